# SPDX-License-Identifier: MIT
"""Small operators for the tests, and the recurrence written down as its formula says."""

import torch

import mpssm

DOUBLE = torch.float64


def ring(nodes=7):
    """Symmetric, normalised, with loops."""
    first = torch.arange(nodes)
    second = (first + 1) % nodes
    index = torch.stack([torch.cat([first, second]), torch.cat([second, first])])
    return mpssm.Gso.from_edge_index(index)


def directed(nodes=6, edges=14, seed=0):
    """Neither pattern nor values are symmetric; node 0 has no neighbour but itself."""
    draw = torch.Generator().manual_seed(seed)
    index = torch.randint(1, nodes, (2, edges), generator=draw)
    weight = torch.rand(edges, generator=draw, dtype=DOUBLE) + 0.5
    return mpssm.Gso.from_edge_index(index, weight, nodes, kind="random_walk")


def lopsided():
    """A symmetric pattern with values that are not."""
    index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    weight = torch.tensor([0.3, -0.7, 0.5, 0.2, 0.9, 0.4])
    return mpssm.Gso.from_edge_index(index, weight, kind="adjacency")


OPERATORS = {"ring": ring, "directed": directed, "lopsided": lopsided}


def as_matrix(w):
    """W [C, C] of a diagonal w: each pair of channels is turned and scaled by its sigma."""
    if not w.is_complex():
        return w
    blocks = [torch.stack([torch.stack([s.real, s.imag]), torch.stack([-s.imag, s.real])]) for s in w]
    return torch.block_diag(*blocks)


def formula(gso, u, w, b=None, steps=None, initial=None, outputs="last"):
    """X(t+1) = A X(t) W + U(t+1) B with dense matrices."""
    a, w = gso.to_dense(u.dtype), as_matrix(w)
    inputs = [u] * steps if steps is not None else list(u.unbind(-3))
    x = torch.zeros(*inputs[0].shape[:-1], w.shape[0], dtype=u.dtype) if initial is None else initial
    states = []
    for one in inputs:
        x = a @ x @ w + (one if b is None else one @ b)
        states.append(x)
    return torch.stack(states, -3) if outputs == "all" else states[-1]


def numbers(*shape, seed=0, dtype=DOUBLE, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def dense_w(channels, seed=3, dtype=DOUBLE):
    return numbers(channels, channels, seed=seed, dtype=dtype, scale=0.6 / channels**0.5)


def diagonal_w(channels, seed=4, dtype=DOUBLE):
    pairs = numbers(channels // 2, 2, seed=seed, dtype=dtype, scale=0.5)
    return torch.view_as_complex(pairs)
