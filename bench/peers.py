# SPDX-License-Identifier: MIT
"""The engine against what Python offers for the same work: torch, eager and compiled, PyTorch
Geometric and SciPy. `./dev bench peers` sets up what it needs and runs it.

Contenders of a case take turns in one process after each has given the same numbers as ours. Peak
memory is that of a first call in a process of its own, forked before anything but imports was done.
"""

import argparse
import ctypes
import functools
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers beside us
warnings.filterwarnings("ignore", message=".*[Ss]parse.*")

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch.nn.functional import cross_entropy, embedding_bag, gelu  # noqa: E402
from torch_geometric.nn import GCNConv, SimpleConv  # noqa: E402

import mpssm  # noqa: E402

TOLERANCE = 1e-3  # of the largest number
SHORTEST_TIMING = 0.002  # seconds


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
    that must give its numbers."""

    def __init__(self, name, size, contenders, alike=None, program=None):
        self.name, self.size, self.contenders, self.program = name, size, contenders, program
        self.alike = list(contenders) if alike is None else alike


def spmm_case(nodes, edges, degree, channels):
    def inputs():
        torch.manual_seed(0)
        return random_graph(nodes, edges), torch.randn(nodes, channels)

    def ours():
        graph, x = inputs()
        gso = graph.gso()
        return Job(lambda: [mpssm.spmm(gso, x)])

    def by(make):
        graph, x = inputs()
        product = make(graph)
        return Job(lambda: [product(x)])

    def by_scipy():
        graph, x = inputs()
        a, array = graph.scipy, x.numpy()
        return Job(lambda: [torch.from_numpy(a @ array)])

    return Case(f"spmm-{nodes}-degree{degree}-c{channels}",
                f"n = {nodes}, mean degree {degree} and self-loops, c = {channels}",
                {"mpssm": ours, "SciPy": by_scipy,
                 **{name: functools.partial(by, make) for name, make in PRODUCTS.items()}})


def recurrence_case(nodes, edges, channels, hops, diagonal, training):
    def inputs():
        torch.manual_seed(0)
        u = torch.randn(nodes, channels, requires_grad=training)
        gradient = torch.randn(nodes, channels) if training else None
        if diagonal:
            half = channels // 2
            w = torch.polar(0.8 + 0.19 * torch.rand(half), 3.14 * torch.rand(half))
        else:
            w = torch.nn.init.orthogonal_(torch.empty(channels, channels))
        return random_graph(nodes, edges), u, w.requires_grad_(training), gradient

    def run_with_mode(run):
        def inner():
            with torch.set_grad_enabled(training):
                return run()
        return inner

    def ours():
        graph, u, w, gradient = inputs()
        gso = graph.gso()
        run = run_with_mode(lambda: with_gradients(
            [recurrence(gso, u, w, None, hops)], [u, w], [gradient] if training else None))
        return Job(run, lambda results: [torch.view_as_real(result) if result.is_complex()
                                         else result for result in results])

    def dense(make, compiled):
        graph, u, w, gradient = inputs()
        product = make(graph)

        def loop(u, w):
            return dense_loop(product, u, w, hops)

        if compiled:
            loop = torch.compile(loop)
        return Job(run_with_mode(lambda: with_gradients(
            [loop(u, w)], [u, w], [gradient] if training else None)), compiled=compiled)

    def paired(make, compiled, width):
        graph, u, w, gradient = inputs()
        product = make(graph)
        step = width // 2 if width else channels // 2

        def slices(x):
            return [part.contiguous().requires_grad_(training) for part in x.split(step, -1)]

        u_re, u_im = map(slices, split_pairs(u.detach()))
        w_re, w_im = map(slices, (w.detach().real, w.detach().imag))
        gradients = (list(zip(*(half.split(step, -1) for half in split_pairs(gradient))))
                     if training else [None] * len(u_re))
        gradients = [parts and [part.contiguous() for part in parts] for parts in gradients]
        del u, w

        def loop(re, im, sigma_re, sigma_im):
            return diagonal_loop(product, re, im, sigma_re, sigma_im, hops)

        if compiled:
            loop = torch.compile(loop)

        def run():
            return [number for leaves, wanted in zip(zip(u_re, u_im, w_re, w_im), gradients)
                    for number in with_gradients(loop(*leaves), leaves, wanted)]

        def in_our_layout(results):
            count = 6 if training else 2
            columns = [torch.cat(results[i::count], -1) for i in range(count)]
            ours = [join_pairs(columns[0], columns[1])]
            if training:
                ours += [join_pairs(columns[2], columns[3]), torch.stack(columns[4:], -1)]
            return ours

        return Job(run_with_mode(run), in_our_layout, compiled)

    contenders = {"mpssm auto": ours}
    for name, make in PRODUCTS.items():
        for compiled in (False, True):
            if compiled and name != "torch bag":
                continue  # torch cannot compile its CSR tensors, and bag is its best
            label = name + (", compiled" if compiled else "")
            contenders[label] = (functools.partial(paired, make, compiled, 0) if diagonal
                                 else functools.partial(dense, make, compiled))
    if diagonal:
        contenders["torch bag, slices of 32, compiled"] = functools.partial(
            paired, torch_bag, True, min(32, channels))
    kind = f"{'training' if training else 'forward'}-{'diagonal' if diagonal else 'dense'}"
    return Case(kind, f"n = {nodes}, c = {channels}, k = {hops}", contenders)


# ---- whole training steps -------------------------------------------------------------------


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

    def __init__(self, model):
        super().__init__()
        encoder, first = model.encoder, model.layers[0]
        self.gso = first.gso
        self.model = mpssm.nn.MPSSM(encoder.in_features, encoder.out_features,
                                    model.readout.out_features, num_blocks=len(model.layers),
                                    hops=first.hops)
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
    def job(make_layers, compiled=False, as_ours=False):
        graph = sizes.graph()
        x, y, train = (torch.from_numpy(array) for array in sizes.data())
        torch.manual_seed(0)
        model = Model(sizes.features, sizes.channels, sizes.classes, make_layers(graph))
        if as_ours:
            model = OurModule(model)
        optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0)
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
    depth = sizes.blocks * sizes.hops
    for name, csr in (("csr", True), ("edge_index", False)):
        contenders[f"PyG GCN, {depth} layers, {name}"] = functools.partial(
            job, functools.partial(gcn, csr=csr))
    return Case(f"step-{sizes.name}",
                f"n = {sizes.nodes}, c = {sizes.channels}, k = {sizes.hops}, "
                f"{sizes.blocks} blocks", contenders, alike,
                functools.partial(Program, sizes))


class Program:
    """`mpssm train` on the same data, in a process of its own."""

    NAME = "mpssm train"

    def __init__(self, sizes, program, threads):
        self.sizes, self.program, self.threads = sizes, program, threads
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
                    "train.eval_every": epochs}
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


# ---- measuring ------------------------------------------------------------------------------


def status_mib(key):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0.0


def own_mib():
    """Without the pages of program and libraries, of which more are read with each new call."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status_mib("RssAnon:")


def memory_of(prepare):
    """Arguments above the idle process, and the peak of a first call, in MiB; in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            idle = own_mib()
            job = prepare()
            random_graph.cache_clear()
            board_graph.cache_clear()
            arguments = max(0.0, own_mib() - idle)
            if job.compiled:
                job.run()  # what the compiler takes is not counted
            before = own_mib()
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
            job.run()
            peak = arguments + max(0.0, status_mib("VmHWM:") - status_mib("RssFile:") - before)
            os.write(write, json.dumps([arguments, peak]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError("no memory measured")
    return json.loads(text)


def load():
    return os.getloadavg()[0]


def machine():
    names = [line.split(": ", 1)[1] for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores"


def expect_same_numbers(case, name, mine, theirs):
    for one, other in zip(mine, theirs, strict=True):
        error = ((other - one).abs().max() / one.abs().max()).item()
        if not error < TOLERANCE:
            sys.exit(f"peers: {case.name}: {name} differs from {case.alike[0]} by {error:.2g}")


def timing(job, calls=1):
    start = time.perf_counter()
    for _ in range(calls):
        job.run()
    return (time.perf_counter() - start) / calls


def first_calls(case, jobs):
    """Checks numbers, warms up, and says how many calls make a timing."""
    ours, calls = None, {}
    for name, job in jobs.items():
        start = time.perf_counter()
        results = job.run()
        took = time.perf_counter() - start
        if name in case.alike:
            results = job.in_our_layout(results)
            ours = ours or results
            expect_same_numbers(case, name, ours, results)
        if job.compiled or took < 100 * SHORTEST_TIMING:
            took = timing(job)
        calls[name] = max(1, math.ceil(SHORTEST_TIMING / took))
    return calls


def measure(case, memory, rounds, options):
    before = load()
    jobs = {name: prepare() for name, prepare in case.contenders.items()}
    calls = first_calls(case, jobs)
    times = {name: [] for name in jobs}
    program = case.program and case.program(options.program, options.threads)
    if program:
        times = {program.NAME: [], **times}
        memory = {program.NAME: (None, program.peak_mib()), **memory}
    for _ in range(rounds):
        if program:
            times[program.NAME].append(program.milliseconds())
        for name, job in jobs.items():
            times[name].append(1000 * timing(job, calls[name]))
    ours = min(next(iter(times.values())))
    rows = []
    for name, each in times.items():
        rows.append({"case": case.name, "contender": name, "milliseconds": min(each),
                     "milliseconds_median": statistics.median(each), "ratio": min(each) / ours,
                     "peak_mib": round(memory[name][1], 3),
                     "arguments_mib": memory[name][0] and round(memory[name][0], 3),
                     "size": case.size, "rounds": rounds,
                     "threads": 1 if name == "SciPy" else options.threads,
                     "load": [before, load()], "machine": machine(),
                     "libtorch": torch.__version__.split("+")[0],
                     "torch_geometric": torch_geometric.__version__,
                     "scipy": scipy.__version__})
        print("{case:26} {contender:34} {milliseconds:12.4f} {milliseconds_median:12.4f} "
              "{ratio:8.2f} {peak_mib:10.1f}".format(**rows[-1]), flush=True)
    return rows


def cases(quick):
    if quick:
        yield spmm_case(2000, 2906, "2.9", 32)
        for training in (False, True):
            yield recurrence_case(2000, 2906, 64, 4, True, training)
        yield step_case(StepSizes("quick", 400, lambda: board_graph(20, 20), 7, 3, 16, 4, 2, 20))
        return
    for nodes, edges, degree in ((22662, 32927, "2.9"), (22662, 226620, "20"),
                                 (200000, 400000, "4")):
        yield spmm_case(nodes, edges, degree, 128)
    for training in (False, True):
        for diagonal in (False, True):
            yield recurrence_case(22662, 32927, 256, 16, diagonal, training)
    yield step_case(StepSizes("wide", 22662, lambda: random_graph(22662, 32927), 300, 18, 256, 16, 2, 6))
    yield step_case(StepSizes("deep", 10000, lambda: board_graph(100, 100), 7, 3, 64, 4, 8, 20))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("--threads", type=int, default=1, help="of every contender (default: 1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="CASE", help="one case")
    parser.add_argument("--quick", action="store_true", help="one round of small cases")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.compile(lambda x: x)  # imports the compiler: not part of a contender's memory
    torch.set_num_threads(options.threads)
    wanted = [case for case in cases(options.quick) if options.only in (None, case.name)]
    if not wanted:
        parser.error(f"no case '{options.only}'")
    print(f"{machine()}, torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, "
          f"scipy {scipy.__version__}, threads: {options.threads}, load: {load():.2f}")
    print("{:26} {:34} {:>12} {:>12} {:>8} {:>10}".format(
        "case", "contender", "min ms", "median ms", "ratio", "peak MiB"), flush=True)
    # Memory first: the children must be forked from a process that has computed nothing.
    memory = {case.name: {name: memory_of(prepare) for name, prepare in case.contenders.items()}
              for case in wanted}
    rows = []
    for case in wanted:
        rows += measure(case, memory[case.name], 1 if options.quick else options.rounds, options)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
