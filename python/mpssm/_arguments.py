# SPDX-License-Identifier: MIT
"""What calls are checked for before they reach the engine, and whether it is the engine that they go to."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from mpssm._recurrence import deal_channels
from mpssm.gso import Gso
from mpssm.gso_sequence import GsoSequence

PLANS = ("auto", "stepwise", "doubling", "diagonal", "spectral", "reference")
#: In which numbers the engine multiplies, in the order of their numbers there. Tensors are float32
#: either way; "bf16" rounds the factors of dense products and the states between hops.
PRECISIONS = ("float32", "bf16")
#: Rows that are rows ``first`` and on of ``all`` rows of a whole, which others compute piece by piece;
#: (0, 0): they are all there are. Sums over rows and what is dropped go by the place in the whole.
Place = Tuple[int, int]
_ENGINE_TYPES = (torch.float32, torch.float64)
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64,
         torch.complex32: torch.float16}


def has_kernel(x: Tensor) -> bool:
    return (x.dtype in _ENGINE_TYPES and x.device.type in ("cpu", "meta") and x.numel() > 0
            and not in_function_transform())


def in_function_transform() -> bool:
    """Inside torch.func (grad, jacrev, vmap ...), which sees through plain torch operations only."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def in_autocast(*tensors: Optional[Tensor]) -> Tuple[Optional[Tensor], ...]:
    """Inside autocast everything of ours runs in float32."""
    first = tensors[0]
    if first is None or first.is_meta or not torch.is_autocast_enabled(first.device.type):
        return tensors
    return tuple(t if t is None or t.dtype in _ENGINE_TYPES or t.is_complex() else t.float()
                 for t in tensors)


def number_of_precision(name: str, precision: str, x: Tensor) -> int:
    if precision == "float32":
        return 0
    if precision not in PRECISIONS:
        raise ValueError(f"{name}: expected precision {', '.join(PRECISIONS)}, got {precision!r}")
    if x.dtype != torch.float32:
        raise TypeError(f"{name}: expected float32 with precision {precision}, got {x.dtype}")
    return PRECISIONS.index(precision)


def check_gso(name: str, gso: Gso, x: Tensor) -> None:
    if not isinstance(gso, Gso):
        raise TypeError(f"{name}: expected a mpssm.Gso, got {type(gso).__name__}; make one by "
                        "mpssm.Gso.from_edge_index(edge_index)")
    if gso.device != x.device:
        raise ValueError(f"{name}: expected the operator on the device of the features, got "
                         f"{gso.device} and {x.device}; move it by gso.to({str(x.device)!r})")


#: One operator for all channels and steps; one for each group of channels: operators, or pairs of an
#: operator and its share of the channels; or one for each step.
Operators = Union[Gso, Sequence[Union[Gso, Tuple[Gso, int]]], GsoSequence]


def groups_of(gso: Operators, u: Tensor) -> Tuple[List[Gso], List[int]]:
    """The operators of groups of channels and their shares; no shares if there is one for all."""
    if not isinstance(gso, (list, tuple)) or not gso:
        raise TypeError("recurrence: expected a mpssm.Gso, a list of them, one for each group of channels, "
                        f"or a mpssm.GsoSequence, got {type(gso).__name__}")
    pairs = [one if isinstance(one, (list, tuple)) else (one, 1) for one in gso]
    for one, share in pairs:
        check_gso("recurrence", one, u)
        if one.num_nodes != pairs[0][0].num_nodes or one.num_graphs != pairs[0][0].num_graphs:
            raise ValueError("recurrence: expected operators on the same nodes and graphs, got "
                             f"{one.num_nodes} nodes in {one.num_graphs} graphs beside "
                             f"{pairs[0][0].num_nodes} in {pairs[0][0].num_graphs}")
        if share < 1:
            raise ValueError(f"recurrence: expected shares of at least 1, got {share}")
    operators, shares = [one for one, _ in pairs], [share for _, share in pairs]
    return operators, shares if len(shares) > 1 else []


def check_sequence(gso: GsoSequence, u: Tensor, steps: Optional[int], values: Optional[Tensor]) -> None:
    if steps is not None or values is not None:
        raise ValueError("recurrence: expected one operator for all steps with "
                         f"{'steps' if steps is not None else 'values'}, got a sequence of them")
    if u.dim() < 3 or u.shape[-3] != gso.num_steps or (
            gso.index.shape[0] not in (1, u.shape[:-3].numel())):
        raise ValueError("recurrence: expected u of shape [..., T, N, C_in] with the copies and steps of "
                         f"{gso}, got {list(u.shape)}")


def check_dense_groups(w: Sequence[Tensor], shares: List[int]) -> None:
    channels = sum(one.shape[-1] for one in w)
    begins = deal_channels(shares, channels)
    wanted = [(end - begin,) * 2 for begin, end in zip(begins, begins[1:])]
    if [tuple(one.shape) for one in w] != wanted or any(one.is_complex() for one in w):
        raise ValueError(f"recurrence: expected a dense W of each group of {channels} channels, "
                         f"{', '.join(str(list(shape)) for shape in wanted)}, got "
                         f"{', '.join(str(list(one.shape)) for one in w)}")


def check_recurrence(gso: Gso, u: Tensor, w: Tensor, b: Optional[Tensor], steps: Optional[int],
                      initial: Optional[Tensor], outputs: str, plan: str,
                      group_channels: int) -> int:
    """Throws unless the arguments fit; returns C, the channels of the state. In every call, so no
    words are made before they are needed."""
    check_gso("recurrence", gso, u)
    temporal, nodes, shape = steps is None, gso.num_nodes, u.shape
    if len(shape) < (3 if temporal else 2) or shape[-2] != nodes:
        axes = f"[..., T, N={nodes}, C_in]" if temporal else f"[..., N={nodes}, C_in]"
        hint = "; give steps= for an input that stays the same" if temporal and u.dim() == 2 else ""
        raise ValueError(f"recurrence: expected u of shape {axes}, got {list(shape)}{hint}")
    if steps is not None and steps < 1:
        raise ValueError(f"recurrence: expected at least one step, got {steps}")
    if temporal and shape[-3] < 1:
        raise ValueError("recurrence: expected at least one step, got a sequence of none")
    if outputs not in ("last", "all"):
        raise ValueError(f"recurrence: expected outputs 'last' or 'all', got {outputs!r}")
    if plan not in PLANS:
        raise ValueError(f"recurrence: expected plan {', '.join(PLANS)}, got {plan!r}")
    dtype, w_shape = u.dtype, w.shape
    if w.is_complex():
        if len(w_shape) != 1:
            raise ValueError("recurrence: expected a complex w (diagonal) of shape [C/2], got "
                             f"{list(w_shape)}")
        channels, precision = 2 * w_shape[0], _REAL.get(w.dtype)
    elif group_channels:
        channels, precision = group_channels, w.dtype
    else:
        if len(w_shape) != 2 or w_shape[0] != w_shape[1]:
            raise ValueError("recurrence: expected a real w (dense) of shape [C, C], got "
                             f"{list(w_shape)}")
        channels, precision = w_shape[0], w.dtype
    if not dtype.is_floating_point:
        raise TypeError(f"recurrence: expected u of a real floating type, got {dtype}")
    if precision != dtype:
        raise TypeError(f"recurrence: expected w of the precision of u ({dtype}), got {w.dtype}")
    if w.device != u.device:
        raise ValueError(f"recurrence: expected u and w on one device, got {u.device} and {w.device}")
    if b is not None:
        check_like_u("b", b, u)
        if tuple(b.shape) != (shape[-1], channels):
            raise ValueError(f"recurrence: expected b of shape [C_in={shape[-1]}, C={channels}], got "
                             f"{list(b.shape)}")
    elif shape[-1] != channels:
        raise ValueError(f"recurrence: expected u with C={channels} channels to match w (or give b), "
                         f"got {shape[-1]}")
    if initial is not None:
        check_like_u("initial", initial, u)
        expected = (*shape[: -3 if temporal else -2], nodes, channels)
        if tuple(initial.shape) != expected:
            raise ValueError(f"recurrence: expected initial of shape {list(expected)}, got "
                             f"{list(initial.shape)}")
    return channels


def check_like_u(name: str, tensor: Tensor, u: Tensor) -> None:
    if tensor.dtype != u.dtype:
        raise TypeError(f"recurrence: expected {name} of type {u.dtype}, got {tensor.dtype}")
    if tensor.device != u.device:
        raise ValueError(f"recurrence: expected u and {name} on one device, got {u.device} and "
                         f"{tensor.device}")
