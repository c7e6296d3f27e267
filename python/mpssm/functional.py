# SPDX-License-Identifier: MIT
"""The recurrence and the layers on tensors: checks, and the way to the engine or to plain torch.

float32 and float64 tensors on the CPU go to the engine; other types and devices take the portable
way (mpssm.portable) with the same numbers.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

from mpssm import _feed_forward, _layers, _recurrence, portable
from mpssm._arguments import PLANS as PLANS
from mpssm._arguments import PRECISIONS as PRECISIONS
from mpssm._arguments import (Operators, Place, check_dense_groups, check_gso, check_like_u,
                              check_recurrence, check_sequence, groups_of, has_kernel, in_autocast,
                              in_function_transform, number_of_precision)
from mpssm.gso import Gso
from mpssm.gso_sequence import GsoSequence

POOLINGS = ("sum", "mean", "max", "sum_max_mean")


def spmm(gso: Gso, x: Tensor) -> Tensor:
    """A x, one hop of message passing. x: [..., N, C]; differentiable any number of times."""
    check_gso("spmm", gso, x)
    if x.dim() < 2 or x.shape[-2] != gso.num_nodes:
        raise ValueError(f"spmm: expected x of shape [..., N={gso.num_nodes}, C], got "
                         f"{list(x.shape)}")
    if not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"spmm: expected x of a floating or complex type, got {x.dtype}")
    if not has_kernel(x):
        return portable.spmm(gso, x)
    return _recurrence.spmm(*gso.arrays(x.dtype), x, False)


def recurrence(gso: Operators, u: Tensor, w: Union[Tensor, Sequence[Tensor]],
               b: Optional[Tensor] = None, *,
               steps: Optional[int] = None, initial: Optional[Tensor] = None,
               outputs: str = "last", plan: str = "auto", precision: str = "float32",
               all_channels: int = 0, values: Optional[Tensor] = None,
               hops_per_step: int = 1) -> Tensor:
    """X(t+1) = A X(t) W + U(t+1) B, from X(0) = ``initial`` or 0.

    Args:
        gso: A. A list of operators, or of pairs of an operator and its share: one for each group of
            channels, which are dealt to the groups in order, whole pairs of them. A
            :class:`mpssm.GsoSequence`: one for each step, X(t) = A(t) X(t-1) W + U(t) B.
        u: a sequence [..., T, N, C_in]; with ``steps`` an input [..., N, C_in] that stays the same
            for so many steps (k + 1 steps reach k hops). Leading axes are copies over one graph.
        w: W. Dense: real [C, C]. Diagonal: complex [C/2], acting on the C channels taken in pairs
            (re, im). Dense with groups: a list of one [C_g, C_g] for each.
        b: B, [C_in, C]. None: u is U B already.
        initial: X(0), [..., N, C].
        outputs: "last" gives X(T), [..., N, C]; "all" gives X(1), ..., X(T), [..., T, N, C].
        plan: "auto" picks the cheapest of "stepwise", "doubling" (dense w, steps, last), "diagonal"
            (diagonal w) and, for a ``gso.with_basis()``, "spectral" (diagonal w); they give the same
            numbers. "reference" is plain torch.
        precision: "bf16" rounds the factors of dense products, and with steps and outputs "last" the
            states between hops, to bfloat16: float32 in and out, to about 3 digits, in less time and
            memory. Not with plan "reference"; where the engine has no kernels it is float32.
        all_channels: with a diagonal w, how many channels the whole has that these are some of; 0:
            they are all. Plan and bits are then those of the whole.
        values: entries of A, [nonzeros] in the order of ``gso.col``, in place of the operator's own; they
            may be learned. Their gradient is dL/dA_ij = sum_t <G(t+1)_i, (X(t) W)_j>, G(t) that of X(t).
        hops_per_step: r applications of A and W between two inputs, X(t+1) = A^r X(t) W^r + U(t+1) B.

    Differentiable once in u, w, b, initial and values ("reference": any number of times).
    """
    sequence, rest, shares = None, [], []  # type: Tuple[Optional[GsoSequence], List[Gso], List[int]]
    if isinstance(gso, GsoSequence):
        check_sequence(gso, u, steps, values)
        sequence, (gso, *rest) = gso, gso.operators
    elif not isinstance(gso, Gso):
        (gso, *rest), shares = groups_of(gso, u)
    group_channels = 0
    if not isinstance(w, Tensor):
        check_dense_groups(w, shares or [1])
        group_channels = sum(one.shape[-1] for one in w)
        w = torch.cat([one.reshape(-1) for one in w])
    elif shares and not w.is_complex():
        raise ValueError("recurrence: expected a list of dense W with several operators, one for each "
                         f"group of channels, got one of shape {list(w.shape)}")
    u, w, b, initial = in_autocast(u, w, b, initial)  # type: ignore[assignment]
    channels = check_recurrence(gso, u, w, b, steps, initial, outputs, plan, group_channels)
    if hops_per_step < 1:
        raise ValueError(f"recurrence: expected at least one hop per step, got {hops_per_step}")
    is_single = sequence is None and not shares
    if not is_single and (values is not None or plan == "spectral"):
        raise ValueError("recurrence: expected one operator for all channels and steps with "
                         f"{'values' if values is not None else 'plan spectral'}, got {1 + len(rest)}")
    rounds = number_of_precision("recurrence", precision, u)
    if rounds and plan == "reference":
        raise ValueError("recurrence: plan reference computes in the type of its tensors, got precision "
                         f"{precision}")
    if values is not None:
        check_like_u("values", values, u)
        if tuple(values.shape) != (gso.num_nonzeros,):
            raise ValueError(f"recurrence: expected values of shape [nonzeros={gso.num_nonzeros}], got "
                             f"{list(values.shape)}")
    if plan == "reference" or not has_kernel(u) or channels == 0:
        how: Dict[str, Any] = {"steps": steps, "outputs": outputs, "hops_per_step": hops_per_step,
                               "plan": "reference" if in_function_transform() else plan}
        if group_channels and not shares:
            w = w.view(channels, channels)
        if sequence is not None:
            return portable.recurrence_over(sequence, u, w, b, initial=initial, outputs=outputs,
                                            hops_per_step=hops_per_step)
        if not shares:
            return portable.recurrence(gso, u, w, b, initial=initial, values=values, **how)
        return portable.recurrence_by_groups([gso, *rest], u, w, b, initial=initial,
                                             begins=_recurrence.deal_channels(shares, channels), **how)
    if b is not None:
        u = _layers.linear(u, b, None, False, rounds, 0)
    diagonal = w.is_complex()
    basis = gso.basis_arrays(u.dtype) if diagonal and values is None and is_single else ()
    if plan == "spectral" and diagonal and not basis:
        raise ValueError("recurrence: plan spectral needs the eigenbasis of the operator; make it once by "
                         "gso = gso.with_basis()")
    wanted = 0
    if torch.is_grad_enabled():
        wanted = (_recurrence.WANT_INPUT * u.requires_grad | _recurrence.WANT_W * w.requires_grad
                  | _recurrence.WANT_INITIAL * (initial is not None and initial.requires_grad)
                  | _recurrence.WANT_VALUES * (values is not None and values.requires_grad))
    order: Tuple[Tensor, ...] = ()
    if values is None:
        arrays = gso.arrays(u.dtype)
        if is_single:
            order = gso.order_arrays(u.dtype)
    else:
        arrays = gso.arrays_with(values.contiguous())
    others = [tensor for one in rest for tensor in one.arrays(u.dtype)]
    return _recurrence.recurrence(*arrays, order, basis, u, w, initial,
                                  u.shape[-3] if steps is None else steps, steps is None,
                                  outputs == "all", _recurrence.of_this_build(plan), wanted, rounds,
                                  all_channels, values is not None, hops_per_step, others, shares,
                                  None if sequence is None else sequence.index)[0]


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, precision: str = "float32",
           place: Place = (0, 0)) -> Tensor:
    """x weight' + bias, as torch.nn.functional.linear; the same bits for any number of threads."""
    x, weight, bias = in_autocast(x, weight, bias)  # type: ignore[assignment]
    if weight.dim() != 2 or x.dim() < 1 or x.shape[-1] != weight.shape[1] or (
            bias is not None and tuple(bias.shape) != (weight.shape[0],)):
        raise ValueError(f"linear: expected x of shape [..., in], weight [out, in] and bias [out], got "
                         f"{list(x.shape)}, {list(weight.shape)} and "
                         f"{'none' if bias is None else list(bias.shape)}")
    rounds = number_of_precision("linear", precision, x)
    if not has_kernel(x) or weight.dtype != x.dtype or weight.device != x.device:
        return functional.linear(x, weight, bias)
    return _layers.linear(x, weight, bias, True, rounds, place[1])


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float = 1e-5, *,
               place: Place = (0, 0)) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over the last axis of x [..., C]."""
    x, scale, shift = in_autocast(x, scale, shift)  # type: ignore[assignment]
    if x.dim() < 1 or tuple(scale.shape) != (x.shape[-1],) or scale.shape != shift.shape:
        raise ValueError(f"layer_norm: expected x of shape [..., C], scale and shift of shape [C], got "
                         f"{list(x.shape)}, {list(scale.shape)} and {list(shift.shape)}")
    if not has_kernel(x) or scale.dtype != x.dtype or scale.device != x.device:
        return functional.layer_norm(x, (x.shape[-1],), scale, shift, epsilon)
    return _layers.layer_norm(x, scale, shift, epsilon, place[1])[0]


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution function of x. Float32 on the CPU is the engine's."""
    if not has_kernel(x) or x.dtype != torch.float32:
        return functional.gelu(x)
    return _layers.gelu(x)


def dropout(x: Tensor, probability: float = 0.5, training: bool = True) -> Tensor:
    """x / (1 - probability), or 0 with that probability. One number of torch's generator is the
    seed of the whole mask, which is made again for the gradient instead of being kept."""
    if not 0.0 <= probability < 1.0:
        raise ValueError(f"dropout: expected a probability in [0, 1), got {probability}")
    if not training or probability == 0.0:
        return x
    if not has_kernel(x):
        return functional.dropout(x, probability)
    return _layers.dropout(x, _seed(x, probability), probability)


#: Nonlinearities by name, in the order of their numbers in the engine.
ACTIVATIONS: Dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "leaky_relu": functional.leaky_relu,
    "identity": lambda x: x,
}
_NUMBER_OF_ACTIVATION = {name: number for number, name in enumerate(ACTIVATIONS)}


def _engine_takes(x: Tensor, *others: Optional[Tensor]) -> bool:
    """Whether all of these are of one kind that the engine has kernels for."""
    return has_kernel(x) and all(
        t is None or (t.dtype == x.dtype and t.device == x.device and t.numel() > 0) for t in others)


def _check_norm(name: str, x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor]) -> None:
    if (scale is None) != (shift is None) or scale is not None and shift is not None and (
            tuple(scale.shape) != (x.shape[-1],) or scale.shape != shift.shape):
        raise ValueError(f"{name}: expected scale and shift of shape [C={x.shape[-1]}], or neither, got "
                         f"{_shape(scale)} and {_shape(shift)}")


def _shape(tensor: Optional[Tensor]) -> str:
    return "none" if tensor is None else str(list(tensor.shape))


def _norm(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor]) -> Tensor:
    return x if scale is None or shift is None else layer_norm(x, scale, shift)


def _keeps(*tensors: Optional[Tensor]) -> bool:
    """Whether a gradient will be asked for."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def norm_linear(x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor], w: Tensor, *,
                precision: str = "float32", place: Place = (0, 0)) -> Tensor:
    """layer_norm(x, scale, shift) w for x [..., in], w [in, out], in one pass; without scale and
    shift x w. The norm is made again for the gradient: x alone is kept. ``precision`` as in
    :func:`recurrence`; then x is kept in bfloat16."""
    x, scale, shift, w = in_autocast(x, scale, shift, w)  # type: ignore[assignment]
    if x.dim() < 1 or w.dim() != 2 or x.shape[-1] != w.shape[0]:
        raise ValueError("norm_linear: expected x of shape [..., in] and w of shape [in, out], got "
                         f"{_shape(x)} and {_shape(w)}")
    _check_norm("norm_linear", x, scale, shift)
    rounds = number_of_precision("norm_linear", precision, x)
    if not _engine_takes(x, scale, shift, w):
        return _norm(x, scale, shift) @ w
    return _feed_forward.norm_linear(x, scale, shift, w, rounds, place[1],
                                     _keeps(x, scale, shift, w))[0]


def _seed(x: Tensor, probability: float) -> Optional[Tensor]:
    """One number of torch's generator, if there is something to drop."""
    if probability == 0.0:
        return None
    return torch.randint(2**62, (1,), dtype=torch.int64, device=x.device)


#: Of the two dropouts of :func:`feed_forward`; none where nothing is dropped.
Seeds = Tuple[Optional[Tensor], Optional[Tensor]]


def draw_seeds(x: Tensor, drop_hidden: float, drop_out: float) -> Seeds:
    """What :func:`feed_forward` draws from torch's generator."""
    return _seed(x, drop_hidden), _seed(x, drop_out)


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *,
                 scale: Optional[Tensor] = None, shift: Optional[Tensor] = None,
                 activation: str = "gelu", drop_hidden: float = 0.0, drop_out: float = 0.0,
                 residual: Optional[Tensor] = None, precision: str = "float32",
                 place: Place = (0, 0), seeds: Optional[Seeds] = None) -> Tensor:
    """residual + drop(f(norm(x) w1' + b1) w2' + b2) in one pass over the rows of x [..., in].

    Args:
        w1, b1, w2, b2: as torch.nn.Linear keeps them, [hidden, in], [hidden], [out, hidden], [out].
        scale, shift: of the layer norm, [in]; none without them.
        drop_hidden, drop_out: probability of a dropout after f and of one on the result; each takes
            one number of torch's generator, the inner one first, as :func:`dropout` does.
        residual: [..., out], added to the result.
        precision: of the products and of what is kept, as in :func:`recurrence`.
        seeds: these instead of numbers of the generator, by :func:`draw_seeds`; for rows of one whole.

    Keeps x and the numbers before f for the gradient.
    """
    x, w1, b1, w2, b2, scale, shift, residual = in_autocast(  # type: ignore[assignment]
        x, w1, b1, w2, b2, scale, shift, residual)
    if w1.dim() != 2 or w2.dim() != 2 or w2.shape[1] != w1.shape[0] or (
            x.dim() < 1 or x.shape[-1] != w1.shape[1] or tuple(b1.shape) != (w1.shape[0],)
            or tuple(b2.shape) != (w2.shape[0],)):
        raise ValueError("feed_forward: expected x of shape [..., in], w1 [hidden, in], b1 [hidden], w2 "
                         f"[out, hidden] and b2 [out], got {_shape(x)}, {_shape(w1)}, {_shape(b1)}, "
                         f"{_shape(w2)} and {_shape(b2)}")
    _check_norm("feed_forward", x, scale, shift)
    if residual is not None and tuple(residual.shape) != (*x.shape[:-1], w2.shape[0]):
        raise ValueError(f"feed_forward: expected a residual of shape "
                         f"{[*x.shape[:-1], w2.shape[0]]}, got {_shape(residual)}")
    if activation not in ACTIVATIONS:
        raise ValueError(f"feed_forward: expected activation {', '.join(ACTIVATIONS)}, got "
                         f"{activation!r}")
    for probability in (drop_hidden, drop_out):
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"feed_forward: expected probabilities in [0, 1), got {probability}")
    rounds = number_of_precision("feed_forward", precision, x)
    if not _engine_takes(x, scale, shift, w1, b1, w2, b2, residual):
        hidden = ACTIVATIONS[activation](linear(_norm(x, scale, shift), w1, b1))
        y = dropout(linear(dropout(hidden, drop_hidden), w2, b2), drop_out)
        return y if residual is None else residual + y
    keeps = _keeps(x, scale, shift, w1, b1, w2, b2)
    seed_hidden, seed_out = seeds or draw_seeds(x, drop_hidden, drop_out)
    return _feed_forward.feed_forward(x, scale, shift, w1, b1, w2, b2, residual, seed_hidden,
                                      seed_out, drop_hidden, drop_out,
                                      _NUMBER_OF_ACTIVATION[activation], rounds, *place, keeps)[0]


def edge_softmax(gso: Gso, target: Tensor, source: Tensor, slope: float = 0.2) -> Tensor:
    """target, source [N] -> [nonzeros], in the order of ``gso.col``: for entry (i, j) the softmax over
    row i of leaky(target[i] + source[j]), with this slope below zero, as in GAT. Values for
    :func:`recurrence`; the operator's own are not read."""
    check_gso("edge_softmax", gso, target)
    for name, tensor in (("target", target), ("source", source)):
        if tuple(tensor.shape) != (gso.num_nodes,):
            raise ValueError(f"edge_softmax: expected {name} of shape [N={gso.num_nodes}], got "
                             f"{list(tensor.shape)}")
    if not _engine_takes(target, source):
        return portable.edge_softmax(gso, target, source, slope)
    return _recurrence.edge_softmax(*gso.arrays(target.dtype), target, source, slope)


def pool(gso: Gso, x: Tensor, pooling: str = "mean") -> Tensor:
    """x [N, C] pooled over each graph of the batch: [G, C], or [G, 3 C] for "sum_max_mean". Other
    poolings: "sum", "mean", "max". A graph without nodes gives zeros."""
    check_gso("pool", gso, x)
    if pooling not in POOLINGS:
        raise ValueError(f"pool: expected pooling {', '.join(POOLINGS)}, got {pooling!r}")
    if x.dim() != 2 or x.shape[0] != gso.num_nodes:
        raise ValueError(f"pool: expected x of shape [N={gso.num_nodes}, C], got {list(x.shape)}")
    if not has_kernel(x):
        return portable.pool(gso, x, pooling)
    return _layers.pool(gso.graph_ptr, x, POOLINGS.index(pooling))
