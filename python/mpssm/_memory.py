# SPDX-License-Identifier: MIT
"""Room for the results of operators: large ones in memory that waits for the next of their size.

torch's allocator is the C library's, which leaves holes between aligned blocks and gives freed pages
back to the system; taking them anew costs a wide model some percent of a step
(mpssm/engine/kept_memory.h).
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from typing import Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mpssm import _engine

_LEAST_BYTES = 1 << 18
_BYTES = {torch.float32: 4, torch.float64: 8, torch.bfloat16: 2}
_CAPSULE_NAME = b"dltensor"  # must outlive the capsules
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_new_capsule.restype = ctypes.py_object
_from_capsule: Callable[[object], Tensor] = torch.utils.dlpack.from_dlpack


@functools.lru_cache(maxsize=None)
def _pack_shape(axes: int) -> Callable[..., bytes]:
    return struct.Struct(f"{axes}q").pack


def empty(like: Tensor, shape: Sequence[int], dtype: Optional[torch.dtype] = None) -> Tensor:
    """On the CPU, float32, float64 or bfloat16 (default: of the type of ``like``), contiguous, with any
    numbers in it."""
    element = _BYTES[dtype or like.dtype]
    if math.prod(shape) * element < _LEAST_BYTES:
        return like.new_empty(shape) if dtype is None else like.new_empty(shape, dtype=dtype)
    memory = _engine.kept_tensor(element, len(shape), _pack_shape(len(shape))(*shape))
    if not memory:
        raise MemoryError(f"mpssm: no memory for a tensor of shape {list(shape)}")
    return _from_capsule(_new_capsule(memory, _CAPSULE_NAME, None))


def totals() -> Tuple[int, int, int]:
    """Bytes in such tensors now, waiting for the next ones, and the most that ever were in tensors."""
    numbers = (ctypes.c_int64 * 3)()
    _engine.kept_totals(numbers)
    return numbers[0], numbers[1], numbers[2]
