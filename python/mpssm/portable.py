# SPDX-License-Identifier: MIT
"""The same numbers by plain torch operations: for devices and types that the engine has no kernels
for, and as a reference. A dense W keeps O(log T) states by doubling, a diagonal one the input alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import Any, Iterable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mpssm.gso import Gso
from mpssm.gso_sequence import GsoSequence


def spmm(gso: Gso, x: Tensor, transposed: bool = False, values: Optional[Tensor] = None) -> Tensor:
    """A x for x [..., N, C], or with other entries: gather, scale, add up."""
    rows, columns = gso.coordinates()
    if transposed:
        rows, columns = columns, rows
    precise = x.dtype in (torch.float64, torch.complex128)
    if values is None:
        values = gso.double_value if precise else gso.value
    messages = x.index_select(-2, columns) * values.to(x.dtype).unsqueeze(-1)
    return torch.zeros_like(x).index_add(-2, rows, messages)


def _times_w(x: Tensor, w: Tensor) -> Tensor:
    if not w.is_complex():
        return x @ w
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * w).flatten(-2)


def _stepwise(gsos: Iterable[Gso], inputs: List[Tensor], w: Tensor, initial: Optional[Tensor],
              values: Optional[Tensor] = None, hops_per_step: int = 1) -> List[Tensor]:
    """Every state; of each step its operator."""
    states: List[Tensor] = []
    x = initial
    for gso, c in zip(gsos, inputs):
        if x is None:
            x = c
        else:
            for _ in range(hops_per_step):
                x = _times_w(spmm(gso, x, values=values), w)
            x = x + c
        states.append(x)
    return states


def _power(gso: Gso, x: Tensor, hops: int) -> Tensor:
    for _ in range(hops):
        x = spmm(gso, x)
    return x


def _doubling(gso: Gso, c: Tensor, w: Tensor, steps: int, initial: Optional[Tensor]) -> Tensor:
    """S(2m) = S(m) + A^m S(m) W^m, S(m + 1) = C + A S(m) W, over the bits of ``steps``."""
    s, power, hops = c, w, 1
    for bit in bin(steps)[3:]:
        s, power, hops = s + _power(gso, s, hops) @ power, power @ power, 2 * hops
        if bit == "1":
            s, power, hops = c + spmm(gso, s) @ w, power @ w, hops + 1
    return s if initial is None else s + _power(gso, initial, steps) @ power


class _Diagonal(torch.autograd.Function):
    """X(T) for a diagonal W and a constant input. The derivative by sigma, Y(t+1) = sigma A Y(t) +
    A X(t), is a recurrence of its own, channel by channel: nothing but the input is kept."""

    @staticmethod
    def forward(ctx: Any, c: Tensor, pairs: Tensor, gso: Gso, steps: int) -> Tensor:
        ctx.save_for_backward(c, pairs)
        ctx.gso, ctx.steps = gso, steps
        sigma = torch.view_as_complex(pairs.contiguous())
        return _stepwise(repeat(gso), [c] * steps, sigma, None)[-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        c, pairs = ctx.saved_tensors
        gso, sigma = ctx.gso, torch.view_as_complex(pairs.contiguous())
        grad_c, grad_pairs = grad, None
        if ctx.needs_input_grad[0]:
            for _ in range(ctx.steps - 1):
                grad_c = grad + spmm(gso, _times_w(grad_c, sigma.conj()), transposed=True)
        if ctx.needs_input_grad[1]:
            x, y = c, torch.zeros_like(c)
            for _ in range(ctx.steps - 1):
                moved = spmm(gso, x)
                y = _times_w(spmm(gso, y), sigma) + moved
                x = _times_w(moved, sigma) + c
            as_complex = [torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous())
                          for t in (grad, y)]
            product = (as_complex[0] * as_complex[1].conj()).flatten(0, -2).sum(0)
            grad_pairs = torch.view_as_real(product)
        return grad_c, grad_pairs, None, None


def recurrence(gso: Gso, u: Tensor, w: Tensor, b: Optional[Tensor] = None, *,
               steps: Optional[int] = None, initial: Optional[Tensor] = None,
               outputs: str = "last", plan: str = "auto",
               values: Optional[Tensor] = None, hops_per_step: int = 1) -> Tensor:
    """As mpssm.recurrence, whose arguments are checked there. Entries that are learned keep all
    states."""
    c = u if b is None else u @ b
    plain = values is None and hops_per_step == 1
    if steps is not None and outputs == "last" and plan != "reference" and plain:
        if not w.is_complex():
            if plan in ("auto", "doubling"):
                return _doubling(gso, c, w, steps, initial)
        elif initial is None:
            return _Diagonal.apply(c, torch.view_as_real(w.resolve_conj()), gso, steps)
    inputs = list(c.unbind(-3)) if steps is None else [c] * steps
    states = _stepwise(repeat(gso), inputs, w, initial, values, hops_per_step)
    return torch.stack(states, -3) if outputs == "all" else states[-1]


def recurrence_by_groups(gsos: Sequence[Gso], u: Tensor, w: Tensor, b: Optional[Tensor] = None, *,
                         begins: Sequence[int], initial: Optional[Tensor] = None,
                         **how: Any) -> Tensor:
    """With an operator for each group of channels, which begin at ``begins``; a dense w holds those of
    the groups one behind the other, flat."""
    c, at, results = u if b is None else u @ b, 0, []
    for gso, begin, end in zip(gsos, begins, begins[1:]):
        if w.is_complex():
            own = w[begin // 2:end // 2]
        else:
            own = w[at:at + (end - begin) ** 2].view(end - begin, end - begin)
            at += (end - begin) ** 2
        results.append(recurrence(gso, c[..., begin:end], own, **how, initial=None if initial is None else
                                  initial[..., begin:end]))
    return torch.cat(results, -1)


def recurrence_over(gso: GsoSequence, u: Tensor, w: Tensor, b: Optional[Tensor] = None, *,
                    initial: Optional[Tensor] = None, outputs: str = "last",
                    hops_per_step: int = 1) -> Tensor:
    """With an operator for each step of u [..., T, N, C_in]."""
    c = u if b is None else u @ b
    copies = gso.index.shape[0]
    if copies == 1:
        states = _stepwise(gso.at(0), list(c.unbind(-3)), w, initial, None, hops_per_step)
        return torch.stack(states, -3) if outputs == "all" else states[-1]
    starts = [None] * copies if initial is None else list(initial.reshape(copies, *initial.shape[-2:]))
    results = [recurrence_over(replace(gso, index=gso.index[i]), one, w, initial=starts[i], outputs=outputs,
                               hops_per_step=hops_per_step)
               for i, one in enumerate(c.reshape(copies, *c.shape[-3:]))]
    return torch.stack(results).view(*c.shape[:-3], *results[0].shape)


def edge_softmax(gso: Gso, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """As mpssm.functional.edge_softmax."""
    rows, columns = gso.coordinates()
    score = torch.nn.functional.leaky_relu(target[rows] + source[columns], slope)
    # The largest of a row is taken off, which changes nothing but keeps numbers in their range.
    largest = score.new_full((gso.num_nodes,), -torch.inf).scatter_reduce(
        0, rows, score.detach(), "amax")
    weight = (score - largest[rows]).exp()
    return weight / torch.zeros_like(target).index_add(0, rows, weight)[rows]


def pool(gso: Gso, x: Tensor, pooling: str) -> Tensor:
    """As mpssm.functional.pool."""
    if pooling == "sum_max_mean":
        return torch.cat([pool(gso, x, one) for one in ("sum", "max", "mean")], 1)
    sizes = gso.graph_ptr[1:] - gso.graph_ptr[:-1]
    graphs = torch.repeat_interleave(sizes, output_size=x.shape[0])
    zeros = x.new_zeros(gso.num_graphs, x.shape[1])
    if pooling == "max":
        # A graph without nodes keeps its zeros.
        index = graphs.unsqueeze(-1).expand_as(x)
        return zeros.scatter_reduce(0, index, x, "amax", include_self=False)
    total = zeros.index_add(0, graphs, x)
    return total if pooling == "sum" else total / sizes.clamp(min=1).unsqueeze(-1).to(x.dtype)
