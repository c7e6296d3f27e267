# SPDX-License-Identifier: MIT
"""The engine's library (built from python/native), loaded and told which threads to use."""

from __future__ import annotations

import ctypes
import struct
import zlib
from pathlib import Path
from typing import Any, Callable

import torch

_I64 = ctypes.c_int64
_F64 = ctypes.c_double
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p

_file = Path(__file__).parent / "libmpssm_engine.so"
_library = ctypes.CDLL(str(_file))
# Tells this build from others, where something outlives the process (the compiler's cache).
BUILD = f"{zlib.crc32(_file.read_bytes()):08x}"


def _check(status: int) -> None:
    if status == 0:
        return
    text = _library.mpssm_error().decode()
    raise ValueError(text) if status == 1 else RuntimeError(text)


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of the library that reports failure by its result."""
    call = getattr(_library, "mpssm_" + name)
    call.argtypes = arguments
    call.restype = _I64

    def run(*values: Any) -> None:
        status = call(*values)
        if status:
            _check(status)

    return run


# Arguments that are many travel as one row of 64-bit numbers; see the structs in python/native.
gso_from_edges = _function("gso_from_edges", _I64, _I64, _POINTER, _POINTER, _POINTER, _TEXT, _TEXT,
                           _I64, _I64, _POINTER, _POINTER)
gso_from_csr = _function("gso_from_csr", _I64, _I64, _POINTER, _POINTER, _POINTER, _I64, _POINTER,
                         _POINTER)
encodings_width = _function("encodings_width", _TEXT, _POINTER)
encode_nodes = _function("encode_nodes", _I64, _I64, _POINTER, _POINTER, _POINTER, _I64, _TEXT, _POINTER)
gso_order = _function("gso_order", _POINTER, _POINTER)
gso_order_copy = _function("gso_order_copy", _POINTER, _I64, *[_POINTER] * 8)
gso_basis = _function("gso_basis", _POINTER, _POINTER)
spmm = _function("spmm", _TEXT, _I64, _I64, _I64, _POINTER, _POINTER)
deal_channels = _function("deal_channels", _I64, _POINTER, _I64, _POINTER)
recurrence_plan = _function("recurrence_plan", _TEXT, _TEXT, _TEXT, _POINTER)
recurrence_forward = _function("recurrence_forward", _TEXT, _TEXT)
recurrence_backward = _function("recurrence_backward", _TEXT, _TEXT)
norm_linear = _function("norm_linear", _TEXT)
feed_forward = _function("feed_forward", _TEXT)
matmul = _function("matmul", *[_I64] * 6, *[_POINTER] * 4)
transposed_matmul = _function("transposed_matmul", *[_I64] * 6, *[_POINTER] * 3)
column_sums = _function("column_sums", *[_I64] * 4, _POINTER, _POINTER)
layer_norm = _function("layer_norm", _I64, _I64, _I64, _F64, *[_POINTER] * 6)
layer_norm_adjoint = _function("layer_norm_adjoint", *[_I64] * 4, *[_POINTER] * 8)
gelu = _function("gelu", _I64, _POINTER, _POINTER, _POINTER)
dropout = _function("dropout", _I64, _I64, _POINTER, _F64, _POINTER, _POINTER)
edge_softmax = _function("edge_softmax", _TEXT, _F64, *[_POINTER] * 3)
edge_softmax_adjoint = _function("edge_softmax_adjoint", _TEXT, _F64, *[_POINTER] * 6)
diagonal_form = _function("diagonal_form", _I64, *[_POINTER] * 6)
pool = _function("pool", _I64, _I64, _I64, _POINTER, _I64, _POINTER, _POINTER, _POINTER, _POINTER)

_library.mpssm_error.restype = _TEXT
_library.mpssm_version.restype = _TEXT
_library.mpssm_num_threads.restype = _I64
kept_tensor = _library.mpssm_kept_tensor
kept_tensor.argtypes = (_I64, _I64, _TEXT)
kept_tensor.restype = _POINTER
kept_totals = _library.mpssm_kept_totals
kept_totals.argtypes = (_POINTER,)
kept_totals.restype = None
gso_sizes = _library.mpssm_gso_sizes
gso_sizes.argtypes = (_POINTER, _POINTER)
gso_sizes.restype = None
gso_copy = _library.mpssm_gso_copy
gso_copy.argtypes = (_POINTER,) * 8
gso_copy.restype = None
gso_basis_copy = _library.mpssm_gso_basis_copy
gso_basis_copy.argtypes = (_POINTER,) * 6
gso_basis_copy.restype = None
gso_free = _library.mpssm_gso_free
gso_free.argtypes = (_POINTER,)
gso_free.restype = None

#: An operator as a call reads it: GsoArguments in python/native/gso.h.
pack_gso = struct.Struct("27q").pack
#: RecurrenceArguments in python/native/recurrence.cpp: the numbers, and the pointers behind them.
pack_recurrence = struct.Struct("16q").pack
pack_recurrence_pointers = struct.Struct("11q").pack
#: NormLinearArguments and FeedForwardArguments in python/native/feed_forward.cpp.
pack_norm_linear = struct.Struct("17q").pack
pack_feed_forward = struct.Struct("11q2d18q").pack


def num_threads() -> int:
    """Threads that a call of the engine uses: torch's, or MPSSM_NUM_THREADS if that is less."""
    return int(_library.mpssm_num_threads())


def version() -> str:
    """Version of the engine."""
    return _library.mpssm_version().decode()


def _start() -> None:
    # Not by the names that this process shows: torch is loaded with its symbols to itself.
    torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    start = _function("start", _POINTER, _POINTER)
    start(ctypes.cast(torch_cpu.torch_parallel_for, _POINTER),
          ctypes.cast(torch_cpu.torch_get_num_threads, _POINTER))


_start()
