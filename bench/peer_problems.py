# SPDX-License-Identifier: MIT
"""What contenders of `./dev bench peers` work on and with: graphs, sparse products, loops, cases."""

import functools

import numpy as np
import scipy.sparse
import torch
from torch.nn.functional import embedding_bag
from torch_geometric.nn import SimpleConv

import mpssm


# ---- graphs ---------------------------------------------------------------------------------


class Graph:
    """Undirected edges, each once, and A = D^-1/2 (M + I) D^-1/2 in compressed rows."""

    def __init__(self, nodes, edges):
        self.nodes, self.edges = nodes, edges
        both = np.concatenate([edges, edges[:, ::-1]])
        ones = np.ones(len(both))
        matrix = scipy.sparse.coo_matrix((ones, (both[:, 0], both[:, 1])), (nodes, nodes)).tocsr()
        matrix += scipy.sparse.identity(nodes, format="csr")
        scale = scipy.sparse.diags(np.asarray(matrix.sum(1)).ravel() ** -0.5)
        self.scipy = (scale @ matrix @ scale).tocsr().astype(np.float32)
        self.scipy.sort_indices()

    def gso(self):
        both = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return mpssm.Gso.from_edge_index(torch.from_numpy(np.ascontiguousarray(both)),
                                         num_nodes=self.nodes)

    def arrays(self):
        return (torch.from_numpy(self.scipy.indptr.astype(np.int64)),
                torch.from_numpy(self.scipy.indices.astype(np.int64)),
                torch.from_numpy(self.scipy.data.copy()))

    def csr(self):
        return torch.sparse_csr_tensor(*self.arrays(), (self.nodes, self.nodes))

    def edge_index(self):
        coo = self.scipy.tocoo()
        return (torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64)),
                torch.from_numpy(coo.data))


@functools.cache
def random_graph(nodes, edges):
    """A random tree and distinct random pairs up to `edges`."""
    draw = np.random.default_rng(1)
    order = draw.permutation(nodes)
    parents = order[(draw.random(nodes - 1) * np.arange(1, nodes)).astype(np.int64)]
    keys = set(pair_keys(np.stack([parents, order[1:]], 1), nodes).tolist())
    while len(keys) < edges:
        pairs = draw.integers(0, nodes, (edges - len(keys), 2))
        keys.update(pair_keys(pairs[pairs[:, 0] != pairs[:, 1]], nodes).tolist())
    keys = np.array(sorted(keys), dtype=np.int64)
    return Graph(nodes, np.stack([keys // nodes, keys % nodes], 1))


def pair_keys(pairs, nodes):
    return pairs.min(1) * nodes + pairs.max(1)


@functools.cache
def board_graph(rows, columns):
    """Minesweeper's: each cell and its up to 8 neighbours."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:]),
             (cells[:-1, :-1], cells[1:, 1:]), (cells[:-1, 1:], cells[1:, :-1])]
    return Graph(rows * columns, np.concatenate(
        [np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs]))


# ---- sparse products x -> A x ---------------------------------------------------------------
# Those of torch have a gradient by the same product (A is symmetric): torch's own backward passes
# take several times as long. Those of PyTorch Geometric are left as they come.


class CsrProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.a = a
        return a @ x

    @staticmethod
    def backward(ctx, gradient):
        return ctx.a @ gradient, None


def bag(x, row_ptr, col, values):
    return embedding_bag(col, x, row_ptr, mode="sum", per_sample_weights=values,
                         include_last_offset=True)


class BagProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, row_ptr, col, values):
        ctx.save_for_backward(row_ptr, col, values)
        return bag(x, row_ptr, col, values)

    @staticmethod
    def backward(ctx, gradient):
        return bag(gradient.contiguous(), *ctx.saved_tensors), None, None, None


def torch_csr(graph):
    a = graph.csr()
    return lambda x: CsrProduct.apply(x, a)


def torch_bag(graph):
    arrays = graph.arrays()
    return lambda x: BagProduct.apply(x, *arrays)


def pyg_csr(graph):
    conv, a = SimpleConv(aggr="sum"), graph.csr()
    return lambda x: conv(x, a)


def pyg_edge_index(graph):
    conv, (index, weight) = SimpleConv(aggr="sum"), graph.edge_index()
    return lambda x: conv(x, index, weight)


PRODUCTS = {"torch csr": torch_csr, "torch bag": torch_bag, "PyG csr": pyg_csr,
            "PyG edge_index": pyg_edge_index}


# ---- the recurrence -------------------------------------------------------------------------


def dense_loop(product, u, w, hops):
    x = u
    for _ in range(hops):
        x = torch.addmm(u, product(x), w)
    return x


def diagonal_loop(product, re, im, sigma_re, sigma_im, hops):
    """Real and imaginary parts by themselves: torch's complex numbers are slow."""
    x_re, x_im = re, im
    for _ in range(hops):
        y_re, y_im = product(x_re), product(x_im)
        x_re = torch.addcmul(torch.addcmul(re, y_re, sigma_re), y_im, -sigma_im)
        x_im = torch.addcmul(torch.addcmul(im, y_im, sigma_re), y_re, sigma_im)
    return x_re, x_im


def recurrence(gso, u, w, w_in, hops):
    return mpssm.recurrence(gso, u, w, w_in, steps=hops + 1)


def split_pairs(x):
    pairs = x.unflatten(-1, (-1, 2))
    return pairs[..., 0].contiguous(), pairs[..., 1].contiguous()


def join_pairs(re, im):
    return torch.stack([re, im], -1).flatten(-2)


def with_gradients(outputs, leaves, gradients):
    """The numbers of a call; without gradients the outputs alone."""
    if gradients is None:
        return list(outputs)
    more = torch.autograd.grad(outputs, leaves, gradients)
    return [output.detach() for output in outputs] + list(more)


# ---- cases ----------------------------------------------------------------------------------


class Job:
    """What a contender does, and how its results read in our layout."""

    def __init__(self, run, in_our_layout=list, compiled=False):
        self.run, self.in_our_layout, self.compiled = run, in_our_layout, compiled


class Case:
    """The first contender is ours, to which ratios are taken. `alike`: names of the contenders
    that must give its numbers. `in_a_row`: calls of a timing, at least."""

    def __init__(self, name, size, contenders, alike=None, programs=(), in_a_row=1):
        self.name, self.size, self.contenders, self.programs = name, size, contenders, programs
        self.in_a_row = in_a_row
        self.alike = list(contenders) if alike is None else alike
