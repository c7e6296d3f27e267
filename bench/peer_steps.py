# SPDX-License-Identifier: MIT
"""Cases of whole training steps: the deep model here, in torch, in PyTorch Geometric, by the program."""

import functools
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from peer_problems import PRODUCTS, Case, Job, diagonal_loop, join_pairs, recurrence, torch_bag
from torch.nn.functional import cross_entropy, gelu
from torch_geometric.nn import GCNConv

import mpssm


class Block(torch.nn.Module):
    """Recurrence with |sigma| < 1, LayerNorm, MLP. With a product the channels are all real parts,
    then all imaginary ones; with a gso they are in pairs, as our operator wants them."""

    def __init__(self, channels, hops, product=None, gso=None):
        super().__init__()
        half = channels // 2
        self.hops, self.product, self.gso = hops, product, gso
        self.norm = torch.nn.LayerNorm(channels)
        self.b_re = torch.nn.Parameter(torch.randn(channels, half) / math.sqrt(channels))
        self.b_im = torch.nn.Parameter(torch.randn(channels, half) / math.sqrt(channels))
        modulus = (torch.rand(half) * (0.999**2 - 0.7**2) + 0.7**2).sqrt()
        self.nu = torch.nn.Parameter((-modulus.log()).log())
        self.theta = torch.nn.Parameter(torch.rand(half) * math.pi)
        self.state_norm = torch.nn.LayerNorm(channels)
        self.mlp_in = torch.nn.Linear(channels, channels)
        self.mlp_out = torch.nn.Linear(channels, channels)
        if gso is not None:  # the same numbers in our layout
            self.b = torch.nn.Parameter(join_pairs(self.b_re.detach(), self.b_im.detach()))
            with torch.no_grad():
                self.mlp_in.weight.copy_(join_pairs(*self.mlp_in.weight.clone().chunk(2, -1)))
            del self.b_re, self.b_im

    def forward(self, h):
        u = self.norm(h)
        modulus = torch.exp(-torch.exp(self.nu))
        if self.gso is not None:
            x = recurrence(self.gso, u, torch.polar(modulus, self.theta), self.b, self.hops)
        else:
            x = torch.cat(diagonal_loop(self.product, u @ self.b_re, u @ self.b_im,
                                        modulus * torch.cos(self.theta),
                                        modulus * torch.sin(self.theta), self.hops), -1)
        return h + self.mlp_out(gelu(self.mlp_in(self.state_norm(x))))


class Model(torch.nn.Module):
    def __init__(self, features, channels, classes, layers):
        super().__init__()
        self.encoder = torch.nn.Linear(features, channels)
        self.layers = torch.nn.ModuleList(layers)
        self.norm = torch.nn.LayerNorm(channels)
        self.readout = torch.nn.Linear(channels, classes)

    def forward(self, x):
        h = self.encoder(x)
        for layer in self.layers:
            h = layer(h)
        return self.readout(self.norm(h))


class OurModule(torch.nn.Module):
    """mpssm.nn.MPSSM with the numbers of a Model of our blocks, so that all of a step is ours."""

    NAMES = {"norm.weight": "final_norm.scale", "norm.bias": "final_norm.shift",
             "readout.weight": "readout_0.weight", "readout.bias": "readout_0.bias"}
    IN_BLOCK = {"norm.weight": "norm_{}.scale", "norm.bias": "norm_{}.shift", "b": "block_{}.w_in",
                "nu": "block_{}.w_state.nu", "theta": "block_{}.w_state.theta",
                "state_norm.weight": "block_{}.state_norm.scale",
                "state_norm.bias": "block_{}.state_norm.shift"}

    def __init__(self, model, **options):
        super().__init__()
        encoder, first = model.encoder, model.layers[0]
        self.gso = first.gso
        self.model = mpssm.nn.MPSSM(encoder.in_features, encoder.out_features,
                                    model.readout.out_features, num_blocks=len(model.layers),
                                    hops=first.hops, **options)
        self.model.load_state_dict({self.name_of(name): value
                                    for name, value in model.state_dict().items()})
        self.encoder = self.model.encoder

    @classmethod
    def name_of(cls, name):
        if not name.startswith("layers."):
            return cls.NAMES.get(name, name)
        _, index, rest = name.split(".", 2)
        return cls.IN_BLOCK.get(rest, "block_{}." + rest).format(index)

    def forward(self, x):
        return self.model(x, self.gso)


class GcnLayer(torch.nn.Module):
    def __init__(self, channels, index, weight=None):
        super().__init__()
        self.conv = GCNConv(channels, channels, normalize=False)  # A is normalised already
        self.index, self.weight = index, weight

    def forward(self, h):
        return torch.relu(self.conv(h, self.index, self.weight))


class StepSizes:
    def __init__(self, name, nodes, graph, features, classes, channels, hops, blocks, steps):
        self.name, self.nodes, self.graph = name, nodes, graph
        self.features, self.classes = features, classes
        self.channels, self.hops, self.blocks, self.steps = channels, hops, blocks, steps

    def data(self):
        draw = np.random.default_rng(0)
        x = draw.standard_normal((self.nodes, self.features), dtype=np.float32)
        y = draw.integers(0, self.classes, self.nodes)
        return x, y, draw.random(self.nodes) < 0.5


def step_case(sizes):
    def job(make_layers, compiled=False, as_ours=False, precision="float32"):
        graph = sizes.graph()
        x, y, train = (torch.from_numpy(array) for array in sizes.data())
        torch.manual_seed(0)
        model = Model(sizes.features, sizes.channels, sizes.classes, make_layers(graph))
        if as_ours:
            model = OurModule(model, precision=precision)
        optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0, fused=True)
        train, y = train.nonzero().squeeze(1), y[train]
        call = torch.compile(model) if compiled else model

        def run():
            loss = cross_entropy(call(x)[train], y)
            loss.backward()
            results = [loss.detach(), model.encoder.weight.grad]
            optimiser.step()
            optimiser.zero_grad()
            return results

        return Job(run, compiled=compiled)

    def blocks(make, graph):
        product = make(graph)
        return [Block(sizes.channels, sizes.hops, product=product) for _ in range(sizes.blocks)]

    def our_blocks(graph):
        gso = graph.gso()
        return [Block(sizes.channels, sizes.hops, gso=gso) for _ in range(sizes.blocks)]

    def gcn(graph, csr):
        a = (graph.csr(),) if csr else graph.edge_index()
        return [GcnLayer(sizes.channels, *a) for _ in range(sizes.blocks * sizes.hops)]

    contenders = {"mpssm.nn.MPSSM": functools.partial(job, our_blocks, as_ours=True),
                  "mpssm operator, torch MLP": functools.partial(job, our_blocks)}
    for name in ("torch bag", "PyG csr", "PyG edge_index"):
        contenders[name] = functools.partial(job, functools.partial(blocks, PRODUCTS[name]))
    contenders["torch bag, compiled"] = functools.partial(
        job, functools.partial(blocks, torch_bag), True)
    alike = list(contenders)
    contenders["mpssm.nn.MPSSM, bf16"] = functools.partial(job, our_blocks, as_ours=True,
                                                           precision="bf16")
    depth = sizes.blocks * sizes.hops
    for name, csr in (("csr", True), ("edge_index", False)):
        contenders[f"PyG GCN, {depth} layers, {name}"] = functools.partial(
            job, functools.partial(gcn, csr=csr))
    return Case(f"step-{sizes.name}",
                f"n = {sizes.nodes}, c = {sizes.channels}, k = {sizes.hops}, "
                f"{sizes.blocks} blocks", contenders, alike,
                [functools.partial(Program, sizes, precision) for precision in ("float32", "bf16")],
                in_a_row=max(1, sizes.steps // 4))  # the program has all its steps in a row


class Program:
    """`mpssm train` on the same data, in a process of its own."""

    def __init__(self, sizes, precision, program, threads):
        self.sizes, self.precision, self.program, self.threads = sizes, precision, program, threads
        self.name = "mpssm train" + (", bf16" if precision == "bf16" else "")
        self.folder = tempfile.TemporaryDirectory()
        self.runs = 0
        x, y, train = sizes.data()
        rest = np.cumsum(~train) % 2 == 0
        self.file = Path(self.folder.name) / "data.npz"
        np.savez(self.file, node_features=x, node_labels=y, edges=sizes.graph().edges,
                 train_masks=train[None], val_masks=(~train & rest)[None],
                 test_masks=(~train & ~rest)[None])

    def train(self, data, epochs):
        out = Path(self.folder.name) / f"run{self.runs}"
        self.runs += 1
        sizes = self.sizes
        settings = {"model.channels": sizes.channels, "model.hops": sizes.hops,
                    "model.blocks": sizes.blocks, "model.dropout": 0, "train.epochs": epochs,
                    "train.eval_every": epochs, "train.precision": self.precision}
        command = [self.program, "train", str(data), "--out", str(out), "--quiet",
                   "--threads", str(self.threads),
                   *(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))]
        # By way of a shell: a process counts the peak of the one that started it as its own.
        run = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *command],
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"peers: {' '.join(command)}: {run.stderr}")
        return json.loads((out / "record.json").read_text())

    def milliseconds(self):
        """Of a step, with its share of the one evaluation at the end and of saving."""
        record = self.train(self.file, self.sizes.steps)
        return 1000 * record["seconds"] / record["steps"]

    def peak_mib(self):
        return self.train(self.file, 2)["peak_mib"] - self.train("board:4x4", 1)["peak_mib"]
