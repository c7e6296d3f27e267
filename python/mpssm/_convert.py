# SPDX-License-Identifier: MIT
"""A module with a dense W as one with a diagonal W that computes the same: `mpssm convert` in Python."""

from __future__ import annotations

import copy
import ctypes
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from mpssm import _engine
from mpssm.nn import MPSSM, MPSSMBlock

Converted = TypeVar("Converted", MPSSM, MPSSMBlock)


@dataclass
class _Form:
    """engine::DiagonalForm, in double, with room for ``channels`` in all."""

    sigma: Tensor  # [channels / 2, 2]
    enter: Tensor  # [C, channels]
    leave: Tensor  # [channels, C]
    condition: float

    def widened(self, channels: int) -> _Form:
        """With more channels, which nothing enters and nobody reads."""
        more = channels - self.enter.shape[1]
        pad = torch.nn.functional.pad
        return _Form(pad(self.sigma, (0, 0, 0, more // 2)), pad(self.enter, (0, more)),
                     pad(self.leave, (0, 0, 0, more)), self.condition)


def _form_of(w: Tensor) -> _Form:
    wide = w.detach().to("cpu", torch.float64).contiguous()
    channels = wide.shape[0]
    pairs, condition = ctypes.c_int64(), ctypes.c_double()
    sigma, enter, leave = (torch.empty(size, dtype=torch.float64)
                           for size in (2 * channels, 2 * channels**2, 2 * channels**2))
    _engine.diagonal_form(channels, wide.data_ptr(), ctypes.byref(pairs), ctypes.byref(condition),
                          sigma.data_ptr(), enter.data_ptr(), leave.data_ptr())
    count = 2 * pairs.value
    return _Form(sigma[:count].view(-1, 2), enter[:channels * count].view(channels, count),
                 leave[:channels * count].view(count, channels), condition.value)


def _checked_form(block: MPSSMBlock, where: str, tolerance: float) -> _Form:
    state = block.w_state
    if state.kind != "dense":
        raise ValueError(f"convert: {where}expected a dense W, got {state.kind}, which is diagonal already")
    if state.num_dense > 1:
        raise ValueError(f"convert: {where}expected one operator for all channels, got {state.num_dense}; "
                         "keep the dense W")
    form = _form_of(state.weight)
    rounding = form.condition * torch.finfo(state.weight.dtype).eps
    if not rounding <= tolerance:
        raise ValueError(f"convert: {where}the eigenvectors of W have condition number {form.condition:.3g}, so "
                         f"rounding could grow to {rounding:.2g}, more than {tolerance:.2g}; keep the dense W, "
                         "or allow more with tolerance=")
    return form


@torch.no_grad()
def _diagonal_block(block: MPSSMBlock, form: _Form) -> MPSSMBlock:
    dense, has_norm = block.w_state, block.state_norm.kind != "none"
    width = block.mlp_in.in_features
    made = MPSSMBlock(block.w_in.shape[0], block.mlp_out.out_features, state_channels=form.enter.shape[1],
                      hidden_channels=block.mlp_in.out_features, hops=block.hops, state="diagonal",
                      min_modulus=dense.min_modulus, max_modulus=dense.max_modulus,
                      activation=block.activation, state_norm=block.state_norm.kind, dropout=block.dropout,
                      precision=block.precision, hops_per_step=block.hops_per_step,
                      mix_channels=width if has_norm else 0)
    made.to(block.w_in).train(block.training)
    made.state_norm, made.mlp_out = copy.deepcopy(block.state_norm), copy.deepcopy(block.mlp_out)
    made.w_in.copy_(block.w_in.double() @ form.enter.to(block.w_in.device))
    made.w_state.sigma.copy_(form.sigma)
    leave = form.leave.to(block.w_in.device)
    mixed = leave @ block.w_out.double() if block.w_out is not None else leave
    if made.w_out is not None:
        made.w_out.copy_(mixed)
        made.mlp_in.weight.copy_(block.mlp_in.weight)
    else:
        made.mlp_in.weight.copy_(block.mlp_in.weight.double() @ mixed.t())
    made.mlp_in.bias.copy_(block.mlp_in.bias)
    if block.entries is not None:
        made.entries = copy.deepcopy(block.entries)
        if block.entries.kind == "attention":  # scores of U B, which is now in another basis
            made.entries.attention = torch.nn.Parameter(
                (leave @ block.entries.attention.double()).to(block.w_in.dtype))
    return made


def convert(module: Converted, *, tolerance: float = 1e-3) -> Converted:
    """The same function with a diagonal W in place of a dense one, W = V S V^-1: its recurrence takes no
    products with W and the memory of one step, however many there are. Equal up to rounding now, and a free
    parametrisation: not the same under further training.

    Args:
        module: a block, or a model, whose blocks then all have as many channels as the widest needs: up to
            twice as many real ones. It stays as it is.
        tolerance: how much rounding may grow, cond(V) times the precision of the weights. If it would grow by
            more, this raises ValueError with the numbers.
    """
    if isinstance(module, MPSSMBlock):
        return _diagonal_block(module, _checked_form(module, "", tolerance))
    if not isinstance(module, MPSSM):
        raise TypeError(f"convert: expected a mpssm.nn.MPSSM or MPSSMBlock, got {type(module).__name__}, whose "
                        "state is read as it is: give it state='diagonal' and train it so")
    blocks: Any = [module.get_submodule(f"block_{i}") for i in range(module.num_blocks)]
    forms = [_checked_form(block, f"block {i}: ", tolerance) for i, block in enumerate(blocks)]
    channels = max(form.enter.shape[1] for form in forms)
    made = copy.deepcopy(module)
    for i, (block, form) in enumerate(zip(blocks, forms)):
        setattr(made, f"block_{i}", _diagonal_block(block, form.widened(channels)))
    made.plan, made.state_channels = "auto", channels
    return made
