# SPDX-License-Identifier: MIT
"""Cases of layers and of other kinds of data: one layer in training, batches of small graphs, windows of
series."""

import functools

import numpy as np
import torch
from peer_problems import (PRODUCTS, Case, Graph, Job, diagonal_loop, join_pairs, random_graph,
                           torch_bag)
from peer_steps import Block, GcnLayer, Model, OurModule
from torch.nn.functional import gelu, mse_loss
from torch_geometric.nn import GCNConv

import mpssm
from mpssm.nn import MPSSMConv

#: Contenders that have the same model to compute, and whether they are compiled.
WAYS = [("torch bag", False), ("torch bag", True), ("PyG csr", False), ("PyG edge_index", False)]


def labelled(name, compiled):
    return name + (", compiled" if compiled else "")


def training_of(layer, x, leaves, compiled=False):
    """Forward and backward of a layer: y and the gradients of x and of some leaves."""
    call = torch.compile(layer) if compiled else layer
    gradient = None

    def run():
        nonlocal gradient
        y = call(x)
        if gradient is None:
            gradient = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
        return [y.detach(), *torch.autograd.grad(y, [x, *leaves], gradient)]

    return Job(run, compiled=compiled)


def inputs(nodes, edges, channels):
    torch.manual_seed(0)
    return random_graph(nodes, edges), torch.randn(nodes, channels, requires_grad=True)


# ---- one hop: what GCNConv computes -----------------------------------------------------------------


def gcn_layer_case(nodes, edges, channels):
    def weights():
        return (torch.nn.init.orthogonal_(torch.empty(channels, channels)).requires_grad_(),
                torch.zeros(channels, requires_grad=True))

    def ours():
        graph, x = inputs(nodes, edges, channels)
        gso, (weight, bias) = graph.gso(), weights()
        return training_of(lambda t: mpssm.spmm(gso, mpssm.functional.linear(t, weight)) + bias, x,
                           [weight, bias])

    def by_torch():
        graph, x = inputs(nodes, edges, channels)
        product, (weight, bias) = torch_bag(graph), weights()
        return training_of(lambda t: product(t @ weight.t()) + bias, x, [weight, bias])

    def by_pyg(csr):
        graph, x = inputs(nodes, edges, channels)
        weight, bias = weights()
        conv = GCNConv(channels, channels, normalize=False)  # A is normalised already
        conv.lin.weight.data.copy_(weight.detach())
        a = (graph.csr(),) if csr else graph.edge_index()
        return training_of(lambda t: conv(t, *a), x, [conv.lin.weight, conv.bias])

    return Case("layer-gcn", f"n = {nodes}, c = {channels}, forward and backward",
                {"mpssm spmm, linear": ours, "torch bag": by_torch,
                 "PyG GCNConv, csr": functools.partial(by_pyg, True),
                 "PyG GCNConv, edge_index": functools.partial(by_pyg, False)})


# ---- many hops in one layer ---------------------------------------------------------------------------


class TorchConv(torch.nn.Module):
    """mpssm.nn.MPSSMConv in torch, the channels all real parts, then all imaginary ones."""

    def __init__(self, like, product):
        super().__init__()
        self.product, self.hops = product, like.hops
        self.nu, self.theta = (torch.nn.Parameter(p.detach().clone())
                               for p in (like.w_state.nu, like.w_state.theta))
        self.b_re, self.b_im = (torch.nn.Parameter(like.w_in.detach()[:, i::2].clone()) for i in (0, 1))
        self.state_norm = torch.nn.LayerNorm(like.w_in.shape[1])
        self.lin = torch.nn.Linear(like.lin.in_features, like.lin.out_features)
        weight = like.lin.weight.detach()
        self.lin.weight.data.copy_(torch.cat([weight[:, 0::2], weight[:, 1::2]], 1))
        self.lin.bias.data.copy_(like.lin.bias.detach())

    def forward(self, x):
        modulus = torch.exp(-torch.exp(self.nu))
        state = diagonal_loop(self.product, x @ self.b_re, x @ self.b_im,
                              modulus * torch.cos(self.theta), modulus * torch.sin(self.theta),
                              self.hops)
        return self.lin(self.state_norm(torch.cat(state, -1)))


def layer_case(nodes, edges, channels, hops):
    def conv():
        torch.manual_seed(2)
        return MPSSMConv(channels, channels, hops=hops)

    def ours():
        graph, x = inputs(nodes, edges, channels)
        layer, gso = conv(), graph.gso()
        return training_of(lambda t: layer(t, gso), x, [layer.w_state.nu, layer.lin.bias])

    def same(name, compiled):
        graph, x = inputs(nodes, edges, channels)
        layer = TorchConv(conv(), PRODUCTS[name](graph))
        return training_of(layer, x, [layer.nu, layer.lin.bias], compiled)

    def gcn(csr):
        graph, x = inputs(nodes, edges, channels)
        a = (graph.csr(),) if csr else graph.edge_index()
        layers = torch.nn.Sequential(*[GcnLayer(channels, *a) for _ in range(hops)])
        return training_of(layers, x, [layers[0].conv.lin.weight, layers[-1].conv.bias])

    contenders = {"mpssm.nn.MPSSMConv": ours}
    for name, compiled in WAYS:
        contenders[labelled(name, compiled)] = functools.partial(same, name, compiled)
    alike = list(contenders)
    for name, csr in (("csr", True), ("edge_index", False)):
        contenders[f"PyG GCN, {hops} layers, {name}"] = functools.partial(gcn, csr)
    return Case("layer-mpssm", f"n = {nodes}, c = {channels}, k = {hops}, forward and backward",
                contenders, alike)


# ---- batches of small graphs --------------------------------------------------------------------------


@functools.cache
def small_graphs(count):
    """One batch of random trees with a few more edges, and which graph a node is of."""
    draw = np.random.default_rng(3)
    sizes = draw.integers(20, 41, count)
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    edges = []
    for size, start in zip(sizes, starts):
        tree = [(i, draw.integers(i)) for i in range(1, size)]
        more = [tuple(draw.choice(size, 2, replace=False)) for _ in range(size // 4)]
        pairs = np.unique(np.sort(np.array(tree + more), 1), axis=0)
        edges.append(pairs + start)
    return Graph(int(sizes.sum()), np.concatenate(edges)), torch.from_numpy(
        np.repeat(np.arange(count), sizes))


class GraphModel(Model):
    """A number for each graph: the mean over its nodes before the readout."""

    def __init__(self, features, channels, outputs, layers, batch):
        super().__init__(features, channels, outputs, layers)
        self.batch, self.sizes = batch, torch.bincount(batch).unsqueeze(-1)

    def forward(self, x):
        h = self.encoder(x)
        for layer in self.layers:
            h = layer(h)
        h = self.norm(h)
        total = h.new_zeros(self.sizes.shape[0], h.shape[-1]).index_add(0, self.batch, h)
        return self.readout(total / self.sizes)


def regression_step(model, call, x, target, compiled=False):
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0, fused=True)

    def run():
        loss = mse_loss(call(x), target)
        loss.backward()
        results = [loss.detach(), model.encoder.weight.grad]
        optimiser.step()
        optimiser.zero_grad()
        return results

    return Job(run, compiled=compiled)


def batch_case(count, channels, hops, blocks):
    def data():
        graph, batch = small_graphs(count)
        draw = torch.Generator().manual_seed(0)
        return (graph, batch, torch.randn(graph.nodes, 9, generator=draw),
                torch.randn(count, 2, generator=draw))

    def ours(ready):
        graph, batch, x, target = data()
        torch.manual_seed(0)
        edge_index = torch.from_numpy(np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy())
        gso = mpssm.Gso.from_edge_index(edge_index, num_nodes=graph.nodes, batch=batch)
        layers = [Block(channels, hops, gso=gso) for _ in range(blocks)]
        module = OurModule(GraphModel(9, channels, 2, layers, batch), readout="graph")
        return regression_step(module, module if ready else (
            lambda t: module.model(t, edge_index, None, batch)), x, target)

    def same(name, compiled):
        graph, batch, x, target = data()
        torch.manual_seed(0)
        product = PRODUCTS[name](graph)
        layers = [Block(channels, hops, product=product) for _ in range(blocks)]
        model = GraphModel(9, channels, 2, layers, batch)
        return regression_step(model, torch.compile(model) if compiled else model, x, target, compiled)

    def gcn(csr):
        graph, batch, x, target = data()
        a = (graph.csr(),) if csr else graph.edge_index()
        model = GraphModel(9, channels, 2, [GcnLayer(channels, *a) for _ in range(hops * blocks)], batch)
        return regression_step(model, model, x, target)

    contenders = {"mpssm.nn.MPSSM, edge_index": functools.partial(ours, False),
                  "mpssm.nn.MPSSM, operator ready": functools.partial(ours, True)}
    for name, compiled in WAYS:
        contenders[labelled(name, compiled)] = functools.partial(same, name, compiled)
    alike = list(contenders)
    for name, csr in (("csr", True), ("edge_index", False)):
        contenders[f"PyG GCN, {hops * blocks} layers, {name}"] = functools.partial(gcn, csr)
    return Case("step-batch", f"{count} graphs of 20 to 40 nodes, c = {channels}, k = {hops}, {blocks} "
                "blocks", contenders, alike)


# ---- windows of series --------------------------------------------------------------------------------


class WindowBlock(Block):
    """h [T, N, B, C]: all windows of a batch go through one product."""

    def __init__(self, *arguments, last=False, **options):
        super().__init__(*arguments, **options)
        self.last = last

    def forward(self, h):
        u = self.norm(h)
        modulus = torch.exp(-torch.exp(self.nu))
        sigma_re, sigma_im = modulus * torch.cos(self.theta), modulus * torch.sin(self.theta)
        states, x_re, x_im = [], None, None
        for re, im in zip((u @ self.b_re).unbind(0), (u @ self.b_im).unbind(0)):
            if x_re is None:
                x_re, x_im = re, im
            else:
                y_re, y_im = (self.product(x.flatten(1)).view(x.shape) for x in (x_re, x_im))
                x_re = torch.addcmul(torch.addcmul(re, y_re, sigma_re), y_im, -sigma_im)
                x_im = torch.addcmul(torch.addcmul(im, y_im, sigma_re), y_re, sigma_im)
            states.append(torch.cat([x_re, x_im], -1))
        x, h = (states[-1], h[-1]) if self.last else (torch.stack(states), h)
        return h + self.mlp_out(gelu(self.mlp_in(self.state_norm(x))))


def windows_case(nodes, edges, windows, steps, channels, blocks):
    def data():
        torch.manual_seed(0)
        return (random_graph(nodes, edges), torch.randn(windows, steps, nodes, 2),
                torch.randn(windows, nodes, 3))

    def ours():
        graph, x, target = data()
        gso = graph.gso()
        layers = [Block(channels, 0, gso=gso) for _ in range(blocks)]
        module = OurModule(Model(2, channels, 3, layers), temporal=True, readout="forecast")
        return regression_step(module, module, x, target)

    def same(name, compiled):
        graph, x, target = data()
        product = PRODUCTS[name](graph)
        layers = [WindowBlock(channels, 0, product=product, last=i + 1 == blocks)
                  for i in range(blocks)]
        model = Model(2, channels, 3, layers)
        return regression_step(model, torch.compile(model) if compiled else model,
                               x.permute(1, 2, 0, 3).contiguous(), target.transpose(0, 1).contiguous(),
                               compiled)

    contenders = {"mpssm.nn.MPSSM": ours}
    for name, compiled in WAYS:
        contenders[labelled(name, compiled)] = functools.partial(same, name, compiled)
    return Case("step-windows", f"{windows} windows of {steps} steps, n = {nodes}, c = {channels}, "
                f"{blocks} blocks", contenders)
