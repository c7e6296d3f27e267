# SPDX-License-Identifier: MIT
"""What torch does with operators besides calling them: compile, export, copies, checkpoints, autocast,
function transforms, worker processes. opcheck: test_opcheck.py."""

import copy
import io
import pickle

import pytest
import torch
from graphs import DOUBLE, dense_w, diagonal_w, directed, numbers, ring
from torch.utils.checkpoint import checkpoint

import mpssm
from mpssm import functional as F

def leaf(*shape, seed=0):
    return numbers(*shape, seed=seed).requires_grad_()


def small_model(gso, x, w, b, weight, scale, shift):
    h = mpssm.recurrence(gso, x, w, b, steps=6)
    h = F.gelu(F.linear(F.layer_norm(h, scale, shift), weight))
    return F.pool(gso, mpssm.spmm(gso, h), "mean")


def small_arguments(dtype=torch.float32):
    return [numbers(7, 3, dtype=dtype), dense_w(4, dtype=dtype), numbers(3, 4, dtype=dtype, seed=1),
            numbers(5, 4, dtype=dtype, seed=2), numbers(4, dtype=dtype, seed=5),
            numbers(4, dtype=dtype, seed=6)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_whole(backend):
    gso = ring()
    eager = [t.requires_grad_() for t in small_arguments()]
    compiled = [t.requires_grad_() for t in small_arguments()]
    function = torch.compile(small_model, fullgraph=True, backend=backend)
    one, other = small_model(gso, *eager), function(gso, *compiled)
    assert torch.allclose(one, other, atol=1e-6)
    for a, b in zip(torch.autograd.grad(one.sum(), eager), torch.autograd.grad(other.sum(), compiled)):
        assert torch.allclose(a, b, atol=1e-6)


def test_compiled_code_is_that_of_this_build():
    """torch finds compiled code of earlier processes by the operators' arguments."""
    seen = []

    def backend(graph, _):
        seen.extend(arg for node in graph.graph.nodes for arg in node.args if isinstance(arg, str))
        return graph.forward

    gso, w = ring(), dense_w(4)
    torch.compile(lambda u: mpssm.recurrence(gso, u, w, steps=4), backend=backend)(numbers(7, 4))
    assert [arg for arg in seen if arg == f"auto@{mpssm._engine.BUILD}"]


def test_compiles_with_a_diagonal_w_and_dropout():
    gso = ring()

    def run(x, pairs):
        h = mpssm.recurrence(gso, x, torch.view_as_complex(pairs), steps=6, outputs="all")
        return F.dropout(h, 0.5)

    x, pairs = leaf(7, 4), torch.view_as_real(diagonal_w(4)).clone().requires_grad_()
    y = torch.compile(run, fullgraph=True, backend="aot_eager")(x, pairs)
    kept = y != 0
    assert 0.1 < float(kept.double().mean()) < 0.9
    assert torch.allclose(y[kept], 2 * mpssm.recurrence(
        gso, x, torch.view_as_complex(pairs), steps=6, outputs="all")[kept], atol=1e-12)
    y.sum().backward()
    assert bool(pairs.grad.abs().sum() > 0)


class Holder(torch.nn.Module):
    def __init__(self, gso):
        super().__init__()
        self.gso = gso
        self.w = torch.nn.Parameter(dense_w(4, dtype=torch.float32))

    def forward(self, x):
        return mpssm.recurrence(self.gso, x, self.w, steps=3)


def test_exports_with_the_operator_inside_or_as_an_argument():
    module, x = Holder(ring()), numbers(7, 4, dtype=torch.float32)
    program = torch.export.export(module, (x,))
    assert torch.allclose(program.module()(x), module(x), atol=1e-6)

    class Given(torch.nn.Module):
        def forward(self, gso, x):
            return mpssm.spmm(gso, x)

    program = torch.export.export(Given(), (ring(), x))
    assert torch.allclose(program.module()(ring(), x), mpssm.spmm(ring(), x))


def test_copies_and_pickles():
    module, x = Holder(directed()), numbers(6, 4, dtype=torch.float32)
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)),
                  torch.load(buffer, weights_only=False)):
        assert torch.equal(other(x), module(x))
        assert other.gso.row_ptr.data_ptr() != module.gso.row_ptr.data_ptr()


def model_and_input(**options):
    torch.manual_seed(0)
    return mpssm.nn.MPSSM(3, 8, 2, num_blocks=2, **options), numbers(7, 3, dtype=torch.float32)


def gradients(y, model):
    return torch.autograd.grad(y.square().sum(), list(model.parameters()))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_gives_the_same_bits_with_dropout_too(use_reentrant):
    model, x = model_and_input(dropout=0.3)
    x, gso, results = x.requires_grad_(), ring(), []
    for run in (lambda: model(x, gso), lambda: checkpoint(model, x, gso, use_reentrant=use_reentrant)):
        torch.manual_seed(4)
        y = run()
        model.zero_grad()
        y.square().sum().backward()
        results.append([y, *[parameter.grad.clone() for parameter in model.parameters()]])
    for one, other in zip(*results):
        assert torch.equal(one, other)


def test_autocast_leaves_ours_in_float32():
    model, x = model_and_input()
    expected, gso = model(x, ring()), ring()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(torch.nn.functional.linear(x, torch.eye(3)), gso)  # bfloat16 comes in
        assert y.dtype == torch.float32
        assert torch.allclose(y, expected, atol=0.05)
        for call in (lambda t: F.linear(t, torch.eye(3)), lambda t: mpssm.spmm(gso, t.float()),
                     lambda t: F.layer_norm(t, torch.ones(3), torch.zeros(3)),
                     lambda t: F.norm_linear(t, None, None, torch.eye(3)),
                     lambda t: F.feed_forward(t, torch.eye(3), torch.ones(3), torch.eye(3), torch.ones(3)),
                     lambda t: mpssm.recurrence(gso, t, torch.eye(3), steps=3)):
            half = x.bfloat16().requires_grad_()
            assert call(half).dtype == torch.float32
            (grad,) = torch.autograd.grad(call(half).sum(), half)
            assert grad.dtype == torch.bfloat16 and bool(grad.isfinite().all())


@pytest.mark.parametrize("options", [{}, {"state": "dense"}, {"dropout": 0.3}, {"norm": "batch"},
                                     {"readout": "graph", "pooling": "sum_max_mean"},
                                     {"temporal": True, "readout": "forecast", "skip_steps": 2}])
def test_every_kind_of_model_compiles_whole_and_exports(options):
    torch.compiler.reset()  # other models have the same code: compiled anew for each, up to a limit
    model, x = model_and_input(**options)
    gso = ring()
    if options.get("temporal"):
        x = numbers(5, 7, 3, dtype=torch.float32)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    y = compiled(x, gso)
    for grad in gradients(y, model):
        assert bool(grad.isfinite().all())
    model.eval()
    torch.testing.assert_close(compiled(x, gso), model(x, gso), rtol=1e-5, atol=1e-5)
    program = torch.export.export(model, (x, gso))
    torch.testing.assert_close(program.module()(x, gso), model(x, gso), rtol=1e-5, atol=1e-5)


def test_models_copy_and_pickle_between_steps():
    model, x = model_and_input()
    conv = mpssm.nn.MPSSMConv(3, 4, cached=True)
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 0]])
    for module, arguments in ((model, (x, ring())), (conv, (x, edges))):
        gradients(module(*arguments), module)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert torch.equal(other(*arguments), module(*arguments))
            for one, two in zip(gradients(other(*arguments), other), gradients(module(*arguments), module)):
                assert torch.equal(one, two)


def test_function_transforms():
    gso = ring()
    x = numbers(7, 4)
    gradient = torch.func.grad(lambda t: mpssm.spmm(gso, t).square().sum())(x)
    assert torch.allclose(gradient, 2 * gso.to_dense(DOUBLE).t() @ gso.to_dense(DOUBLE) @ x)
    w = dense_w(4)
    jacobian = torch.func.jacrev(lambda t: mpssm.recurrence(gso, x, t, steps=3).sum(0))(w)
    expected = torch.autograd.functional.jacobian(
        lambda t: mpssm.recurrence(gso, x, t, steps=3).sum(0), w)
    assert torch.allclose(jacobian, expected)
    forward = torch.func.jacfwd(lambda t: mpssm.recurrence(gso, x, t, steps=3).sum(0))(w)
    assert torch.allclose(forward, expected)


COPIES = 3
# Made beforehand: inside vmap nothing is drawn, and no graph is read.
GSO, DENSE, SIGMA = ring(), dense_w(4), diagonal_w(4)
SCALE, SHIFT, NARROW = numbers(4), numbers(4, seed=1), numbers(4, 3)
WIDE, BIAS, BACK = numbers(5, 4), numbers(5), numbers(4, 5)
MAPPED = {
    "spmm": lambda x: mpssm.spmm(GSO, x),
    "recurrence, dense": lambda x: mpssm.recurrence(GSO, x, DENSE, steps=4),
    "recurrence, diagonal": lambda x: mpssm.recurrence(GSO, x, SIGMA, steps=4, outputs="all"),
    "linear": lambda x: F.linear(x, WIDE, BIAS),
    "layer_norm": lambda x: F.layer_norm(x, SCALE, SHIFT),
    "gelu": F.gelu,
    "norm_linear": lambda x: F.norm_linear(x, SCALE, SHIFT, NARROW),
    "feed_forward": lambda x: F.feed_forward(x, WIDE, BIAS, BACK, SCALE, residual=x),
    "pool": lambda x: F.pool(GSO, x, "sum_max_mean"),
}


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_equals_one_by_one(name):
    function, many = MAPPED[name], numbers(COPIES, 7, 4)
    expected = torch.stack([function(x) for x in many])
    assert torch.allclose(torch.func.vmap(function)(many), expected, atol=1e-12)

    def total(x):
        return function(x).square().sum()

    each = torch.stack([torch.autograd.functional.jacobian(total, x) for x in many])
    assert torch.allclose(torch.func.vmap(torch.func.grad(total))(many), each, atol=1e-12)


def test_vmap_over_parameters():
    """An ensemble: the same graph and input, several W, and several whole models."""
    gso, x = ring(), numbers(7, 4)
    for several in (torch.stack([dense_w(4, seed=s) for s in range(COPIES)]),
                    torch.stack([diagonal_w(4, seed=s) for s in range(COPIES)])):
        got = torch.func.vmap(lambda w: mpssm.recurrence(gso, x, w, steps=6))(several)
        expected = torch.stack([mpssm.recurrence(gso, x, w, steps=6) for w in several])
        assert torch.allclose(got, expected, atol=1e-12)
    models = [mpssm.nn.MPSSM(4, 6, 2, num_blocks=2).double() for _ in range(COPIES)]
    parameters, buffers = torch.func.stack_module_state(models)
    got = torch.func.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), (x, gso)))(
        parameters, buffers)
    assert torch.allclose(got, torch.stack([model(x, gso) for model in models]), atol=1e-12)


class Features(torch.utils.data.Dataset):
    def __init__(self, gso):
        self.gso = gso

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return mpssm.spmm(self.gso, torch.full((self.gso.num_nodes, 2), float(index)))


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_worker_processes(way):
    gso = ring()
    mpssm.spmm(gso, torch.ones(7, 2))
    loader = torch.utils.data.DataLoader(Features(gso), num_workers=2, multiprocessing_context=way)
    for index, batch in enumerate(loader):
        assert torch.allclose(batch[0], torch.full((7, 2), float(index)), atol=1e-6)
