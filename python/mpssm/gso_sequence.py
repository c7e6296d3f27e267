# SPDX-License-Identifier: MIT
"""A graph for each step of a series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Sequence, Tuple

import torch
from torch import Tensor

from mpssm.gso import Gso


@dataclass(eq=False)
class GsoSequence:
    """A(t) of X(t) = A(t) X(t-1) W + U(t) B: step t goes by ``operators[index[t]]``.

    Attributes:
        operators: on the same nodes and graphs, each as often as there are graphs, not steps.
        index: [T], or [B, T] where the copies of a batch have steps of their own (windows of one
            series, say); kept as int32 [copies, T].
    """

    operators: Sequence[Gso]
    index: Tensor

    def __post_init__(self) -> None:
        self.operators = tuple(self.operators)
        if not self.operators:
            raise ValueError("GsoSequence: expected at least one operator, got none")
        first = self.operators[0]
        for one in self.operators:
            if (one.num_nodes, one.num_graphs, one.device) != (first.num_nodes, first.num_graphs,
                                                              first.device):
                raise ValueError("GsoSequence: expected operators on the same nodes, graphs and device, got "
                                 f"{one} beside {first}")
        index = torch.as_tensor(self.index)
        if index.dim() not in (1, 2) or index.numel() == 0 or index.is_floating_point():
            raise ValueError("GsoSequence: expected an index of whole numbers and shape [T] or [B, T], got "
                             f"{list(index.shape)} of {index.dtype}")
        self.index = torch.atleast_2d(index).to(torch.int32).contiguous()
        if not torch.compiler.is_compiling() and not 0 <= int(self.index.min()) <= int(
                self.index.max()) < len(self.operators):
            raise ValueError(f"GsoSequence: expected an index from 0 to {len(self.operators) - 1}, got "
                             f"{int(self.index.min())} to {int(self.index.max())}")

    @property
    def num_nodes(self) -> int:
        return self.operators[0].num_nodes

    @property
    def num_graphs(self) -> int:
        return self.operators[0].num_graphs

    @property
    def num_steps(self) -> int:
        return self.index.shape[1]

    @property
    def device(self) -> torch.device:
        return self.operators[0].device

    def __repr__(self) -> str:
        return (f"GsoSequence(operators={len(self.operators)}, copies={self.index.shape[0]}, "
                f"steps={self.num_steps}, nodes={self.num_nodes})")

    def window(self, begin: int, end: int) -> GsoSequence:
        """Steps ``begin`` to ``end`` (without it), with the operators that these have."""
        if not 0 <= begin < end <= self.num_steps:
            raise ValueError(f"GsoSequence: expected some of {self.num_steps} steps, got {begin} to {end}")
        used, index = torch.unique(self.index[:, begin:end], return_inverse=True)
        return GsoSequence([self.operators[i] for i in used.tolist()], index)

    def at(self, copy: int) -> Tuple[Gso, ...]:
        """The operator of each step of one copy."""
        return tuple(self.operators[i] for i in self.index[copy].tolist())

    def to(self, device: Any) -> GsoSequence:
        """The same on another device; the index stays on the CPU."""
        return replace(self, operators=[one.to(device) for one in self.operators])


torch.export.register_dataclass(GsoSequence)
