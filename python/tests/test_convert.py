# SPDX-License-Identifier: MIT
"""Modules with a dense W as ones with a diagonal W."""

import pytest
import torch
from graphs import DOUBLE, directed, numbers, ring

import mpssm
from mpssm.nn import MPSSM, MPSSMBlock, MPSSMConv


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("channels", [1, 2, 7, 16])
@pytest.mark.parametrize("mix_channels", [0, 3])
def test_a_block_stays_the_same_function(norm, channels, mix_channels):
    torch.manual_seed(5)
    block = MPSSMBlock(3, 4, state_channels=channels, hops=20, state="dense", state_norm=norm,
                       mix_channels=mix_channels).double()
    gso, u = directed(), numbers(6, 3)
    block(u, gso)  # batch norm has then seen something
    block.eval()
    before = {name: value.clone() for name, value in block.state_dict().items()}
    diagonal = mpssm.convert(block)
    assert diagonal.w_state.kind == "diagonal" and not diagonal.training
    assert torch.allclose(diagonal(u, gso), block(u, gso), atol=1e-10)
    series = numbers(9, 6, 3)
    assert torch.allclose(diagonal(series, gso, temporal=True, outputs="all"),
                          block(series, gso, temporal=True, outputs="all"), atol=1e-10)
    assert all(torch.equal(value, before[name]) for name, value in block.state_dict().items())


@pytest.mark.parametrize("entries", ["free", "gin", "attention"])
def test_learned_entries_go_along(entries):
    torch.manual_seed(6)
    gso, u = ring(), numbers(7, 3)
    block = MPSSMBlock(3, 4, state_channels=5, state="dense", entries=entries,
                       num_entries=gso.num_nonzeros).double()
    with torch.no_grad():
        for parameter in block.entries.parameters():
            parameter.normal_(0.0, 0.1)
    assert torch.allclose(mpssm.convert(block)(u, gso), block(u, gso), atol=1e-11)


@pytest.mark.parametrize("state_norm", ["layer", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_a_model_stays_the_same_function(state_norm, dtype):
    torch.manual_seed(7)
    model = MPSSM(3, 9, 2, num_blocks=3, hops=6, state="dense", state_norm=state_norm, plan="doubling").to(dtype)
    gso, x = ring(), numbers(7, 3, dtype=dtype)
    diagonal = mpssm.convert(model)
    widths = {diagonal.get_submodule(f"block_{i}").w_state.channels for i in range(3)}
    assert widths == {diagonal.state_channels} and 9 < diagonal.state_channels <= 18
    assert torch.allclose(diagonal(x, gso), model(x, gso), atol=1e-4 if dtype == torch.float32 else 1e-11)
    diagonal(x, gso).sum().backward()


def test_what_would_be_spoilt_is_refused():
    block = MPSSMBlock(3, 4, state="dense")
    with torch.no_grad():
        block.w_state.weight.copy_(torch.eye(4) + torch.ones(4, 4).triu(1))  # one Jordan block
    with pytest.raises(ValueError, match="convert: the eigenvectors of W have condition number .*; keep the dense"):
        mpssm.convert(block)
    with pytest.raises(ValueError, match="block 0: expected a dense W, got stable, which is diagonal already"):
        mpssm.convert(MPSSM(3, 4, 2))
    with pytest.raises(ValueError, match="expected one operator for all channels, got 2; keep the dense W"):
        mpssm.convert(MPSSM(3, 4, 2, state="dense", kind="adjacency,transpose"))
    with pytest.raises(TypeError, match="expected a mpssm.nn.MPSSM or MPSSMBlock, got MPSSMConv"):
        mpssm.convert(MPSSMConv(3, 4, state="dense"))
    with torch.no_grad():
        block.w_state.weight.fill_(torch.nan)
    with pytest.raises((RuntimeError, ValueError), match="convert|diagonal_form"):
        mpssm.convert(block)
