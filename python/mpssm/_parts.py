# SPDX-License-Identifier: MIT
"""What blocks are made of: linear, norm, W."""

from __future__ import annotations

import math
from typing import List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from mpssm import functional
from mpssm._arguments import Place
from mpssm._recurrence import deal_channels


def one_of(what: str, name: str, known: Tuple[str, ...]) -> str:
    if name not in known:
        raise ValueError(f"{what}: expected {', '.join(known)}, got {name!r}")
    return name


class Linear(nn.Linear):
    """torch.nn.Linear on the engine."""

    def forward(self, input: Tensor, place: Place = (0, 0)) -> Tensor:
        return functional.linear(input, self.weight, self.bias, place=place)


class Norm(nn.Module):
    """Layer norm over the channels of x [..., C], batch norm over all else, or nothing."""

    def __init__(self, kind: str, channels: int):
        super().__init__()
        self.kind = one_of("Norm", kind, ("none", "layer", "batch"))
        if kind == "layer":
            self.scale = nn.Parameter(torch.ones(channels))
            self.shift = nn.Parameter(torch.zeros(channels))
        elif kind == "batch":
            self.batch = nn.BatchNorm1d(channels)

    def layer_weights(self) -> Tuple[Optional[Tensor], Optional[Tensor]]:
        """Scale and shift of a layer norm, for operators that have one inside; else none."""
        return (self.scale, self.shift) if self.kind == "layer" else (None, None)

    def forward(self, x: Tensor, place: Place = (0, 0)) -> Tensor:
        if self.kind == "layer":
            return functional.layer_norm(x, self.scale, self.shift, place=place)
        if self.kind == "batch":
            return self.batch(x.reshape(-1, x.shape[-1])).view(x.shape)
        return x


class StateMatrix(nn.Module):
    """W of the recurrence: ``dense`` real [C, C]; ``diagonal`` complex sigma, free; ``stable`` sigma =
    exp(-exp(nu) + i theta), inside the unit circle whatever is learned. Dense with several operators, one
    for each group of channels with these ``shares``: a W for each group."""

    def __init__(self, channels: int, kind: str = "stable", *, min_modulus: float = 0.7,
                 max_modulus: float = 0.999, shares: Sequence[int] = ()):
        super().__init__()
        self.kind = one_of("StateMatrix", kind, ("dense", "diagonal", "stable"))
        if kind != "dense" and channels % 2:
            raise ValueError("StateMatrix: expected an even number of channels for a diagonal W (they "
                             f"are taken in pairs), got {channels}")
        if not 0.0 < min_modulus <= max_modulus < 1.0:
            raise ValueError("StateMatrix: expected 0 < min_modulus <= max_modulus < 1, got "
                             f"{min_modulus} and {max_modulus}")
        self.channels, self.min_modulus, self.max_modulus = channels, min_modulus, max_modulus
        self.num_dense = max(len(shares), 1)
        if kind == "dense" and self.num_dense > 1:
            begins = deal_channels(shares, channels)
            for i, (begin, end) in enumerate(zip(begins, begins[1:])):
                self.register_parameter(f"weight_{i}", nn.Parameter(torch.empty(end - begin, end - begin)))
        elif kind == "dense":
            self.weight = nn.Parameter(torch.empty(channels, channels))
        elif kind == "diagonal":
            self.sigma = nn.Parameter(torch.empty(channels // 2, 2))
        else:
            self.nu = nn.Parameter(torch.empty(channels // 2))
            self.theta = nn.Parameter(torch.empty(channels // 2))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        if self.kind == "dense":
            for weight in self.parameters():
                nn.init.orthogonal_(weight)
            return
        half = self.channels // 2
        # Uniform by area; conjugates are implied, so half the circle is all.
        low, high = self.min_modulus**2, self.max_modulus**2
        modulus = (torch.rand(half) * (high - low) + low).sqrt()
        phase = torch.rand(half) * math.pi
        if self.kind == "stable":
            self.nu.copy_((-modulus.log()).log())
            self.theta.copy_(phase)
        else:
            self.sigma.copy_(torch.stack([modulus * phase.cos(), modulus * phase.sin()], -1))

    def forward(self) -> Union[Tensor, List[Tensor]]:
        """As mpssm.recurrence takes it: real [C, C], one for each group, or complex [C/2]."""
        if self.kind == "dense" and self.num_dense > 1:
            return [self.get_parameter(f"weight_{i}") for i in range(self.num_dense)]
        if self.kind == "dense":
            return self.weight
        if self.kind == "diagonal":
            return torch.view_as_complex(self.sigma)
        modulus = (-self.nu.exp()).exp()
        pairs = torch.stack([modulus * self.theta.cos(), modulus * self.theta.sin()], -1)
        return torch.view_as_complex(pairs)


def input_matrix(rows: int, columns: int) -> nn.Parameter:
    bound = 1.0 / math.sqrt(rows)
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))
