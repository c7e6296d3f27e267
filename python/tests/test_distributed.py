# SPDX-License-Identifier: MIT
"""Processes that share a training end with the bits of one process."""

import copy

import pytest
import torch
import torch.multiprocessing
from graphs import numbers, ring
from torch import distributed as dist

import mpssm
from mpssm.distributed import ChannelParallel, gradient, share, sum_gradients, why_not_by_channels
from mpssm.nn import MPSSM

FLOAT = torch.float32


def graph(nodes):
    draw = torch.Generator().manual_seed(nodes)
    index = torch.randint(nodes, (2, 3 * nodes), generator=draw)
    return mpssm.Gso.from_edge_index(torch.cat([index, index.flip(0)], 1), num_nodes=nodes)


# ---- one large graph -------------------------------------------------------------------------------

# 1500 nodes are two parts of a sum: of three ranks one has no nodes. From 16384 on parts are larger than
# those of a call that knows of no others.
GRAPHS = {"2600": (2600, {"dropout": 0.3}), "1500": (1500, {"dropout": 0.3, "residual": False}),
          "bf16": (2600, {"precision": "bf16", "readout_layers": 2, "state": "diagonal"}),
          "20000": (20000, {"dropout": 0.1}), "bare": (700, {"norm": "none", "state_norm": "none"}),
          "mixed": (1500, {"state_channels": 20})}


def train_on_one_graph(name, shared):
    """The outputs, gradients and weights of a short training."""
    nodes, options = GRAPHS[name]
    gso, x = graph(nodes), numbers(nodes, 3, dtype=FLOAT)
    target = numbers(nodes, 2, seed=1, dtype=FLOAT)
    torch.manual_seed(0)
    model = MPSSM(3, 14, 2, num_blocks=2, hops=5, **options)
    call = ChannelParallel(model) if shared else model
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    seen = []
    for _ in range(3):
        adam.zero_grad()
        y = call(x, gso)
        (y - target).square().mean().backward()
        if shared:
            call.collect_gradients()
        seen += [y.detach(), *[parameter.grad.clone() for parameter in model.parameters()]]
        adam.step()
    call.eval()
    with torch.no_grad():
        return [*seen, call(x, gso), *[parameter.detach() for parameter in model.parameters()]]


def traffic(hops):
    """Exchanges and numbers sent in a forward and a backward pass."""
    gso, x = graph(1500), numbers(1500, 3, dtype=FLOAT)
    torch.manual_seed(0)
    call = ChannelParallel(MPSSM(3, 12, 2, num_blocks=3, hops=hops))
    sent, whole = [], dist.all_to_all_single

    def counted(received, given, *sizes, **options):
        sent.append(given.numel())
        return whole(received, given, *sizes, **options)

    dist.all_to_all_single = counted
    try:
        call(x, gso).sum().backward()
    finally:
        dist.all_to_all_single = whole
    return len(sent), sum(sent)


# ---- many graphs -----------------------------------------------------------------------------------


def small_model(dropout):
    torch.manual_seed(0)
    model = MPSSM(3, 8, 1, num_blocks=1, readout="graph", dropout=dropout)
    model.unused = torch.nn.Parameter(torch.zeros(2))
    return model


PIECES = [(ring(nodes), nodes) for nodes in (4, 9, 5, 12, 7)]


def loss_of_piece(model, piece):
    gso, seed = piece
    return (model(numbers(gso.num_nodes, 3, seed=seed, dtype=FLOAT), gso) - seed).square().mean() / 5


def train_on_pieces(dropout):
    model = small_model(dropout)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(3):
        losses.append(gradient(model, PIECES, lambda piece: loss_of_piece(model, piece)))
        adam.step()
    assert model.unused.grad is None
    return [torch.tensor(losses), torch.rand(3), *[parameter.detach() for parameter in model.parameters()]]


def accumulate(model, pieces):
    for piece in pieces:
        loss_of_piece(model, piece).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def summed_gradients():
    model = small_model(0.0)
    accumulate(model, [PIECES[dist.get_rank()]])
    sum_gradients(model)
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


# ---- the processes ---------------------------------------------------------------------------------


def work(rank, ranks, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks)
    try:
        results = {name: train_on_one_graph(name, True) for name in GRAPHS}
        results["traffic"] = [traffic(2), traffic(20)]
        results["pieces"] = train_on_pieces(0.4)
        results["plain pieces"] = train_on_pieces(0.0)
        results["summed"] = summed_gradients()
        torch.save(results, f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module", params=[2, 3])
def results(request, tmp_path_factory):
    """What each of so many ranks got."""
    folder = tmp_path_factory.mktemp("ranks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOO_SOCKET_IFNAME", "lo")
        torch.multiprocessing.spawn(work, (request.param, folder), nprocs=request.param)
    return [torch.load(folder / f"{rank}.pt") for rank in range(request.param)]


def expect_equal(one, other):
    assert len(one) == len(other)
    assert all(torch.equal(a, b) for a, b in zip(one, other))


@pytest.mark.parametrize("name", GRAPHS)
def test_one_graph_to_the_bit(results, name):
    expected = train_on_one_graph(name, False)
    for of_rank in results:
        expect_equal(of_rank[name], expected)


def test_traffic_does_not_depend_on_the_hops(results):
    for of_rank in results:
        few, many = of_rank["traffic"]
        assert few == many
        # Two for each of three blocks, forward and backward, and the outputs.
        assert few[0] == 2 * 2 * 3 + 1


@pytest.mark.parametrize("dropout", [0.4, 0.0])
def test_pieces_to_the_bit(results, dropout):
    expected = train_on_pieces(dropout)  # one rank by itself
    for of_rank in results:
        expect_equal(of_rank["pieces" if dropout else "plain pieces"], expected)


def test_sums_are_those_of_accumulation(results):
    expected = accumulate(small_model(0.0), PIECES[:len(results)])
    for of_rank in results:
        expect_equal(of_rank["summed"], expected)


# ---- by itself -------------------------------------------------------------------------------------


def test_one_rank_needs_no_group():
    expect_equal(train_on_one_graph("2600", True), train_on_one_graph("2600", False))
    model = small_model(0.0)
    expected = [grad.clone() for grad in accumulate(model, PIECES)]
    gradient(model, PIECES, lambda piece: loss_of_piece(model, piece))
    expect_equal([p.grad for p in model.parameters() if p.grad is not None], expected)
    sum_gradients(model)
    expect_equal([p.grad for p in model.parameters() if p.grad is not None], expected)


def test_another_graph_and_other_weights():
    torch.manual_seed(0)
    model = MPSSM(3, 8, 2, num_blocks=1)
    call = ChannelParallel(model)
    for nodes in (1100, 5, 1100):
        model.load_state_dict(copy.deepcopy(MPSSM(3, 8, 2, num_blocks=1)).state_dict())
        gso, x = graph(nodes), numbers(nodes, 3, dtype=FLOAT)
        assert torch.equal(call(x, gso), model(x, gso))


def test_shares_are_even_and_whole():
    for count, ranks in ((5, 2), (2, 3), (0, 4), (12, 5)):
        bounds = [share(count, rank, ranks) for rank in range(ranks)]
        assert bounds[0][0] == 0 and bounds[-1][1] == count
        assert all(one[1] == other[0] for one, other in zip(bounds, bounds[1:]))
        assert max(b - a for a, b in bounds) - min(b - a for a, b in bounds) <= 1


@pytest.mark.parametrize(("options", "ranks", "reason"), [
    ({"temporal": True, "readout": "forecast"}, 2, "a series is shared by windows"),
    ({"readout": "graph"}, 2, "many graphs are shared by graphs"),
    ({"kind": "adjacency,transpose"}, 2, "groups of channels have operators of their own"),
    ({"state": "dense"}, 2, "a dense W mixes the channels of all ranks"),
    ({"norm": "batch"}, 2, "batch norm looks at all nodes at once"),
    ({"num_embedded_nodes": 9}, 2, "nodes have embeddings"),
    ({"entries": "gin"}, 2, "entries of A are learned from all channels"),
    ({"input_dropout": 0.1}, 2, "dropout outside the blocks looks at all nodes at once"),
    ({}, 5, "8 channels are 4 pairs, less than one for each rank"), ({}, 4, "")])
def test_what_cannot_be_shared_is_said(options, ranks, reason):
    model = MPSSM(3, 8, 2, **options)
    assert why_not_by_channels(model, ranks) == reason
    if reason and ranks == 2:
        with pytest.raises(ValueError, match=f"ChannelParallel: {reason}"):
            ChannelParallel(model)


def test_errors():
    gso, x = ring(), numbers(7, 3, dtype=FLOAT)
    call = ChannelParallel(MPSSM(3, 8, 2))
    with pytest.raises(ValueError, match=r"expected x of shape \[N=7, in_channels=3\], got \[7, 4\]"):
        call(numbers(7, 4, dtype=FLOAT), gso)
    with pytest.raises(ValueError, match="expected float32 or float64 on the CPU, got torch.float16"):
        call(x.half(), gso)
    with pytest.raises(ValueError, match="expected a forward and a backward pass before this"):
        call.collect_gradients()
    with pytest.raises(ValueError, match="expected at least one piece"):
        gradient(call.model, [], lambda piece: x.sum())
    with pytest.raises(ValueError, match="expected no batch norm in training"):
        gradient(MPSSM(3, 8, 2, norm="batch"), [1], lambda piece: x.sum())
