# SPDX-License-Identifier: MIT
"""Large results are ordinary tensors of memory that is kept for the next ones."""

import copy
import gc
import pickle
import threading

import pytest
import torch
from graphs import numbers, ring
from torch.library import opcheck

import mpssm
from mpssm import _memory
from mpssm import functional as F

LARGE = (1 << 10, 100)  # float32: more than 256 KiB


def like(dtype=torch.float32):
    return torch.empty(0, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [LARGE, (1 << 18,), (4, 1, 7, 1 << 14), (0, 5), (), (3, 2)])
def test_is_an_ordinary_tensor(dtype, shape):
    x = _memory.empty(like(dtype), shape)
    assert tuple(x.shape) == shape and x.dtype == dtype and x.is_contiguous() and x.is_cpu
    assert not x.requires_grad and x.is_leaf and not x._is_view()
    x.fill_(2.0)
    assert bool((x == 2.0).all())
    assert torch.equal(copy.deepcopy(x), x) and torch.equal(pickle.loads(pickle.dumps(x)), x)


def test_memory_serves_again_and_does_not_grow():
    x = _memory.empty(like(), LARGE)
    where = x.data_ptr()
    used = _memory.totals()[0]
    assert used >= x.numel() * 4
    del x
    gc.collect()
    assert _memory.totals()[0] < used
    assert _memory.empty(like(), LARGE).data_ptr() == where

    gso, layer = ring(3000), mpssm.nn.MPSSM(8, 64, 2, num_blocks=2)
    x = torch.randn(3000, 8)

    def step():
        layer(x, gso).square().mean().backward()
        layer.zero_grad()
        gc.collect()
        return _memory.totals()

    step()
    used, kept, most = step()
    for _ in range(5):
        again = step()
        assert again[0] == used and again[0] + again[1] <= again[2] == most
    assert kept > 0


def test_views_and_threads_keep_it_alive():
    x = _memory.empty(like(), LARGE).fill_(3.0)
    part, before = x[5:7], _memory.totals()[0]
    del x
    gc.collect()
    assert _memory.totals()[0] == before and bool((part == 3.0).all())
    box = [part]
    del part
    thread = threading.Thread(target=box.clear)  # the last holder is another thread
    thread.start()
    thread.join()
    assert _memory.totals()[0] < before


def test_gradients_stay_with_the_parameters():
    weight = torch.nn.Parameter(torch.randn(300, 300))
    x = torch.randn(1000, 300)
    F.linear(x, weight).sum().backward()
    first = weight.grad.clone()
    F.linear(x, weight).sum().backward()  # added to the first
    torch.testing.assert_close(weight.grad, 2 * first)
    torch.optim.SGD([weight], 0.1).step()


def test_tracing_knows_large_results():
    x = numbers(2000, 40, dtype=torch.float32).requires_grad_()
    w = numbers(50, 40, dtype=torch.float32).requires_grad_()
    opcheck(torch.ops.mpssm_engine.linear.default, (x, w, None, True, 0, 0))
    compiled = torch.compile(lambda t: F.gelu(F.linear(t, w)).relu(), fullgraph=True,
                             backend="aot_eager")
    torch.testing.assert_close(compiled(x), F.gelu(F.linear(x, w)).relu())


def test_too_much_is_an_error_and_not_the_end():
    with pytest.raises(MemoryError, match=r"no memory for a tensor of shape \[1152921504606846976\]"):
        _memory.empty(like(), (1 << 60,))
    with pytest.raises(MemoryError):
        _memory.empty(like(), (1,) * 17 + (1 << 20,))
