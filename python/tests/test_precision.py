# SPDX-License-Identifier: MIT
"""precision="bf16": rounded numbers inside, float32 outside, the same bits for any number of threads."""

import pytest
import torch
from graphs import dense_w, diagonal_w, numbers, ring

import mpssm
from mpssm import functional as F
from mpssm.nn import MPSSM, MPSSMConv, MPSSMRecurrent

FLOAT = torch.float32
DIGITS = 3e-2  # of the largest number: bfloat16 keeps 8 bits, a few products add up their roundings


def off(one, other):
    return ((one - other).abs().max() / other.abs().max()).item()


def rounded_and_not(call, *leaves):
    """Result and gradients in both precisions."""
    results = []
    for precision in F.PRECISIONS:
        y = call(precision)
        weights = numbers(*y.shape, seed=20, dtype=FLOAT)
        results.append([y, *torch.autograd.grad((y * weights).sum(), leaves)])
    return results


def expect_rounded(call, *leaves):
    plain, rounded = rounded_and_not(call, *leaves)
    assert not torch.equal(plain[0], rounded[0])
    for one, other in zip(rounded, plain):
        assert one.dtype == other.dtype and off(one, other) < DIGITS


@pytest.mark.parametrize("plan", ["stepwise", "doubling", "diagonal"])
def test_recurrence(plan):
    u, b = (numbers(*shape, dtype=FLOAT).requires_grad_() for shape in ((2, 9, 5), (5, 8)))
    pairs = diagonal_w(8, dtype=FLOAT)
    w = (pairs if plan == "diagonal" else dense_w(8, dtype=FLOAT)).requires_grad_()
    gso = ring(9)
    expect_rounded(lambda precision: mpssm.recurrence(gso, u, w, b, steps=6, plan=plan,
                                                      precision=precision), u, b)


def test_what_stands_around_it():
    x, scale, shift, w = (numbers(*shape, seed=i, dtype=FLOAT).requires_grad_()
                          for i, shape in enumerate(((3, 40, 16), (16,), (16,), (16, 8))))
    expect_rounded(lambda precision: F.norm_linear(x, scale, shift, w, precision=precision),
                   x, scale, shift, w)
    mlp = [numbers(*shape, seed=i, dtype=FLOAT).requires_grad_()
           for i, shape in enumerate(((24, 16), (24,), (8, 24), (8,)))]
    expect_rounded(lambda precision: F.feed_forward(x, *mlp, scale=scale, shift=shift,
                                                    precision=precision), x, scale, shift, *mlp)
    expect_rounded(lambda precision: F.linear(x, mlp[0], mlp[1], precision=precision), x, *mlp[:2])


def kept_bytes(model, x, gso):
    kept = {}

    def keep(tensor):
        kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    parameters = {parameter.data_ptr() for parameter in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(x, gso)
    return sum(size for place, size in kept.items() if place not in parameters)


def test_a_model_keeps_less_and_learns():
    torch.manual_seed(0)
    gso, x = ring(400), numbers(400, 4, dtype=FLOAT)
    target = x.roll(1, 0).sum(1, keepdim=True)
    models = {precision: MPSSM(4, 64, 1, num_blocks=2, precision=precision) for precision in F.PRECISIONS}
    models["bf16"].load_state_dict(models["float32"].state_dict())
    assert kept_bytes(models["bf16"], x, gso) < 0.65 * kept_bytes(models["float32"], x, gso)
    model = models["bf16"]
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(40):
        adam.zero_grad()
        losses.append((model(x, gso) - target).square().mean())
        losses[-1].backward()
        adam.step()
    assert losses[-1] < 0.3 * losses[0]


def test_same_bits_for_any_number_of_threads():
    torch.manual_seed(0)
    model, gso, x = MPSSM(3, 16, 2, num_blocks=1, precision="bf16"), ring(3000), numbers(3000, 3, dtype=FLOAT)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            model.zero_grad()
            y = model(x, gso)
            y.square().sum().backward()
            results.append([y.detach(), *[parameter.grad for parameter in model.parameters()]])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*results))


def test_other_modules_compile_and_copies():
    gso, x = ring(9), numbers(9, 3, dtype=FLOAT)
    for make in (lambda precision: MPSSMConv(3, 8, precision=precision),
                 lambda precision: MPSSMRecurrent(3, 8, state="dense", precision=precision)):
        torch.manual_seed(0)
        plain = make("float32")
        rounded = make("bf16")
        rounded.load_state_dict(plain.state_dict())
        given = x if isinstance(plain, MPSSMConv) else x.expand(4, 9, 3)
        assert 0 < off(rounded(given, gso), plain(given, gso)) < DIGITS
    model = MPSSM(3, 8, 2, num_blocks=1, precision="bf16")
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    one, other = model(x, gso), compiled(x, gso)
    assert torch.equal(one, other)
    gradients = [torch.autograd.grad(y.sum(), list(model.parameters())) for y in (one, other)]
    assert all(torch.equal(a, b) for a, b in zip(*gradients))


def test_what_cannot_be_rounded_is_said():
    gso, u, w = ring(), numbers(7, 4), dense_w(4)
    with pytest.raises(TypeError, match="recurrence: expected float32 with precision bf16, got torch.float64"):
        mpssm.recurrence(gso, u, w, steps=3, precision="bf16")
    with pytest.raises(ValueError, match="expected precision float32, bf16, got 'half'"):
        mpssm.recurrence(gso, u, w, steps=3, precision="half")
    with pytest.raises(ValueError, match="plan reference computes in the type of its tensors"):
        mpssm.recurrence(gso, u.float(), w.float(), steps=3, plan="reference", precision="bf16")
    with pytest.raises(ValueError, match="precision: expected float32, bf16, got 'fp8'"):
        MPSSM(3, 8, 2, precision="fp8")
