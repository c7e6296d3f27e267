# SPDX-License-Identifier: MIT
"""spmm and recurrence: values against the formula, gradients against differences, plans against each
other, and what is refused."""

import pytest
import torch
from graphs import DOUBLE, OPERATORS, dense_w, diagonal_w, directed, formula, numbers, ring

import mpssm

# Roundings of a few dozen additions of numbers of size one.
TOLERANCE = {torch.float32: 2e-5, DOUBLE: 1e-13}

# plan, diagonal w, with a constant input, outputs
CASES = [
    ("stepwise", False, True, "last"), ("stepwise", False, True, "all"),
    ("stepwise", False, False, "last"), ("stepwise", False, False, "all"),
    ("stepwise", True, True, "last"), ("stepwise", True, False, "all"),
    ("doubling", False, True, "last"),
    ("diagonal", True, True, "last"), ("diagonal", True, True, "all"),
    ("diagonal", True, False, "last"), ("diagonal", True, False, "all"),
    ("reference", False, True, "last"), ("reference", True, False, "all"),
]


def problem(gso, diagonal, constant, *, batch=(), steps=5, channels=4, dtype=DOUBLE, seed=0):
    sizes = (*batch, gso.num_nodes) if constant else (*batch, steps, gso.num_nodes)
    u = numbers(*sizes, 3, seed=seed, dtype=dtype)
    w = diagonal_w(channels, dtype=dtype) if diagonal else dense_w(channels, dtype=dtype)
    b = numbers(3, channels, seed=seed + 1, dtype=dtype)
    initial = numbers(*batch, gso.num_nodes, channels, seed=seed + 2, dtype=dtype)
    return u, w, b, initial, steps if constant else None


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_spmm_is_a_product(name, dtype):
    gso = OPERATORS[name]()
    x = numbers(2, gso.num_nodes, 5, dtype=dtype)
    assert torch.allclose(mpssm.spmm(gso, x), gso.to_dense(dtype) @ x, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", OPERATORS)
def test_spmm_has_gradients_of_any_order(name):
    gso = OPERATORS[name]()
    x = numbers(gso.num_nodes, 2).requires_grad_()
    torch.autograd.gradcheck(lambda t: mpssm.spmm(gso, t), (x,))
    torch.autograd.gradgradcheck(lambda t: mpssm.spmm(gso, t), (x,))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("plan", "diagonal", "constant", "outputs"), CASES)
def test_recurrence_equals_its_formula(name, dtype, plan, diagonal, constant, outputs):
    gso = OPERATORS[name]()
    u, w, b, initial, steps = problem(gso, diagonal, constant, batch=(2, 3), dtype=dtype)
    for start in (None, initial):
        got = mpssm.recurrence(gso, u, w, b, steps=steps, initial=start, outputs=outputs, plan=plan)
        expected = formula(gso, u, w, b, steps=steps, initial=start, outputs=outputs)
        assert got.shape == expected.shape
        assert torch.allclose(got, expected, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["directed", "lopsided"])
@pytest.mark.parametrize(("plan", "diagonal", "constant", "outputs"), CASES)
def test_gradients_equal_differences(name, plan, diagonal, constant, outputs):
    gso = OPERATORS[name]()
    *tensors, steps = problem(gso, diagonal, constant, steps=6 if plan == "doubling" else 3, channels=2)
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]

    def run(u, w, b, initial):
        return mpssm.recurrence(gso, u, w, b, steps=steps, initial=initial, outputs=outputs, plan=plan)

    torch.autograd.gradcheck(run, tensors)
    torch.autograd.gradcheck(lambda u, w, b: run(u, w, b, None), tensors[:3])


@pytest.mark.parametrize(("plan", "diagonal"), [("stepwise", False), ("doubling", False),
                                                ("diagonal", True)])
@pytest.mark.parametrize("only", range(4))
def test_each_gradient_can_be_asked_for_alone(plan, diagonal, only):
    gso = directed()
    *tensors, steps = problem(gso, diagonal, True, channels=2)
    tensors = [tensor.clone().requires_grad_(i == only) for i, tensor in enumerate(tensors)]
    torch.autograd.gradcheck(
        lambda u, w, b, x: mpssm.recurrence(gso, u, w, b, steps=steps, initial=x, plan=plan), tensors)


def test_auto_takes_a_plan_that_fits():
    gso = ring()
    for diagonal in (False, True):
        for constant in (False, True):
            u, w, b, _, steps = problem(gso, diagonal, constant, steps=33)
            got = mpssm.recurrence(gso, u, w, b, steps=steps)
            assert torch.allclose(got, formula(gso, u, w, b, steps=steps), atol=1e-12)


def test_doubling_falls_back_where_its_powers_overflow():
    # W^m leaves the range of float32, though no state does: A is nilpotent.
    index = torch.tensor([[0, 1], [1, 2]])
    gso = mpssm.Gso.from_edge_index(index, kind="adjacency")
    u = torch.ones(3, 2)
    w = torch.tensor([[1e12, 0.0], [0.0, 1e12]])
    initial = torch.zeros(3, 2)
    for start in (None, initial):
        tensors = [t.clone().requires_grad_() for t in (u, w)]
        got = mpssm.recurrence(gso, *tensors, steps=9, initial=start, plan="doubling")
        expected = mpssm.recurrence(gso, u, w, steps=9, plan="stepwise")
        assert torch.equal(got, expected) and bool(got.isfinite().all())
        grads = torch.autograd.grad(got.sum(), tensors)
        again = [t.clone().requires_grad_() for t in (u, w)]
        stepwise = mpssm.recurrence(gso, *again, steps=9, initial=start, plan="stepwise")
        for one, other in zip(grads, torch.autograd.grad(stepwise.sum(), again)):
            assert torch.equal(one, other)


def test_arguments_need_not_be_contiguous():
    gso = directed()
    u, w, b, initial, steps = problem(gso, False, True)
    turned = [t.t().contiguous().t().requires_grad_() for t in (u, w, b, initial)]
    straight = [t.clone().requires_grad_() for t in (u, w, b, initial)]
    results = [mpssm.recurrence(gso, x, y, z, steps=steps, initial=s) for x, y, z, s in
               (turned, straight)]
    assert torch.equal(*results)
    strange = torch.ones(1, dtype=DOUBLE).expand_as(results[0])
    grads = [torch.autograd.grad(r, t, strange) for r, t in zip(results, (turned, straight))]
    for one, other in zip(*grads):
        assert torch.equal(one, other)


def test_state_carried_on_is_exact():
    gso = directed()
    u, w, b, _, _ = problem(gso, True, False, steps=7)
    whole = mpssm.recurrence(gso, u, w, b, outputs="all")
    first = mpssm.recurrence(gso, u[:3], w, b)
    second = mpssm.recurrence(gso, u[3:], w, b, initial=first, outputs="all")
    assert torch.allclose(second, whole[3:], atol=1e-14)


@pytest.mark.parametrize("plan", ["stepwise", "doubling", "diagonal"])
def test_second_derivatives_are_refused(plan):
    gso = ring()
    u, w, b, _, steps = problem(gso, plan == "diagonal", True)
    u.requires_grad_()
    y = mpssm.recurrence(gso, u, w, b, steps=steps, plan=plan)
    with pytest.raises(NotImplementedError, match="first derivatives only .*plan='reference'"):
        torch.autograd.grad(y.square().sum(), u, create_graph=True)


def test_portable_way_equals_the_engine():
    gso = directed()
    for diagonal in (False, True):
        *tensors, steps = problem(gso, diagonal, True, steps=11)
        both = []
        for function in (mpssm.recurrence, mpssm.portable.recurrence):
            leaves = [t.clone().requires_grad_() for t in tensors[:3]]
            y = function(gso, *leaves, steps=steps)
            both.append([y, *torch.autograd.grad(y.square().sum(), leaves)])
        for one, other in zip(*both):
            assert torch.allclose(one, other, atol=1e-12)


def test_half_precision_takes_the_portable_way():
    gso = ring()
    u, w, b, _, steps = problem(gso, False, True)
    expected = formula(gso, u, w, b, steps=steps)
    got = mpssm.recurrence(gso, u.bfloat16(), w.bfloat16(), b.bfloat16(), steps=steps)
    assert got.dtype == torch.bfloat16
    assert torch.allclose(got.double(), expected, atol=0.1 * float(expected.abs().max()))


def test_meta_tensors_have_shapes_alone():
    gso = ring().to("meta")
    u, w = torch.empty(2, 7, 3, device="meta"), torch.empty(4, 4, device="meta")
    y = mpssm.recurrence(gso, u, w, torch.empty(3, 4, device="meta"), steps=4, outputs="all")
    assert y.shape == (2, 4, 7, 4) and y.is_meta


def test_no_nodes_and_no_channels():
    gso = mpssm.Gso.from_edge_index(torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    assert mpssm.spmm(gso, torch.empty(0, 3)).shape == (0, 3)
    assert mpssm.recurrence(gso, torch.empty(0, 3), torch.eye(3), steps=2).shape == (0, 3)
    assert mpssm.spmm(ring(), torch.empty(7, 0)).shape == (7, 0)


def test_threads_change_no_bit_and_stay_as_they_were():
    nodes = 3000
    index = torch.randint(nodes, (2, 20000), generator=torch.Generator().manual_seed(0))
    gso = mpssm.Gso.from_edge_index(index, num_nodes=nodes)
    u = numbers(nodes, 32, dtype=torch.float32).requires_grad_()
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert mpssm.num_threads() == threads
            for w in (dense_w(32, dtype=torch.float32), diagonal_w(32, dtype=torch.float32)):
                y = mpssm.recurrence(gso, u, w.requires_grad_(), steps=9)
                results.append([y, *torch.autograd.grad(y.sum(), (u, w))])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for other in (results[2:4], results[4:6]):
        for one, two in zip(results[:2], other):
            assert all(torch.equal(x, y) for x, y in zip(one, two))


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"u": torch.ones(6, 3)}, ValueError, r"expected u of shape \[..., N=7, C_in\], got \[6, 3\]"),
    ({"u": torch.ones(7, 3).int()}, TypeError, "expected u of a real floating type, got torch.int32"),
    ({"w": torch.ones(3, 4)}, ValueError, r"expected a real w \(dense\) of shape \[C, C\]"),
    ({"w": torch.ones(2, 2, dtype=torch.complex64)}, ValueError, r"complex w \(diagonal\)"),
    ({"w": torch.ones(4, 4, dtype=DOUBLE)}, TypeError, r"of the precision of u \(torch.float32\)"),
    ({"b": torch.ones(4, 4)}, ValueError, r"expected b of shape \[C_in=3, C=4\], got \[4, 4\]"),
    ({"b": None}, ValueError, "expected u with C=4 channels to match w"),
    ({"initial": torch.ones(7, 3)}, ValueError, r"expected initial of shape \[7, 4\], got \[7, 3\]"),
    ({"steps": 0}, ValueError, "expected at least one step, got 0"),
    ({"steps": None}, ValueError, r"expected u of shape \[..., T, N=7, C_in\].*give steps="),
    ({"outputs": "some"}, ValueError, "expected outputs 'last' or 'all', got 'some'"),
    ({"plan": "fast"}, ValueError, "expected plan auto, stepwise, doubling"),
    ({"plan": "diagonal"}, ValueError, "plan diagonal cannot run this: W is dense"),
    ({"plan": "doubling", "outputs": "all"}, ValueError, "plan doubling cannot run this: all outputs"),
])
def test_what_does_not_fit_is_said(change, error, words):
    arguments = {"u": torch.ones(7, 3), "w": torch.ones(4, 4), "b": torch.ones(3, 4), "steps": 2,
                 "initial": None, "outputs": "last", "plan": "auto", **change}
    with pytest.raises(error, match=words):
        mpssm.recurrence(ring(), **arguments)


def test_an_edge_index_is_no_operator():
    with pytest.raises(TypeError, match="expected a mpssm.Gso, got Tensor; make one by"):
        mpssm.spmm(torch.zeros(2, 3), torch.ones(3, 3))
