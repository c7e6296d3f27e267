# SPDX-License-Identifier: MIT
"""Which node influences what: the recurrence is linear, so the answer is a number, not a guess.

    python examples/python/influence.py
"""

import networkx
import torch

import mpssm
from mpssm.nn import MPSSM


def reach(gso, source, target, hops):
    """(A^t)[target, source] for t = 0 ... hops: what of the source arrives at the target."""
    x = torch.zeros(gso.num_nodes, 1)
    x[source] = 1.0
    # No input after the first step, W = 1: X(t) = A^(t-1) x.
    impulse = torch.cat([x[None], x.new_zeros(hops, gso.num_nodes, 1)])
    states = mpssm.recurrence(gso, impulse, torch.ones(1, 1), outputs="all")
    return states[:, target, 0]


def influence(model, x, gso, target):
    """Sum over channels of |d y[target] / d x[j]| for each node j: one backward pass per output."""
    x = x.clone().requires_grad_()
    y = model(x, gso)[target]
    rows = [torch.autograd.grad(one, x, retain_graph=True)[0].abs().sum(1) for one in y]
    return torch.stack(rows).sum(0)


def main():
    torch.manual_seed(0)
    graph = networkx.barbell_graph(8, 4)  # two cliques and a path between them
    gso = mpssm.Gso.from_networkx(graph)
    first, last = 0, gso.num_nodes - 1
    arrives = reach(gso, first, last, 60)
    print(f"from {first} to {last}: nothing before hop {int((arrives > 0).nonzero()[0])}, "
          f"{float(arrives[20]):.1e} at hop 20, {float(arrives[60]):.1e} at hop 60")

    x = torch.randn(gso.num_nodes, 3)
    for hops in (1, 8):
        model = MPSSM(3, 16, 2, num_blocks=1, hops=hops).eval()
        seen = influence(model, x, gso, last)
        print(f"one block of {hops} hops: node {last} sees {int((seen > 0).sum())} of "
              f"{gso.num_nodes} nodes, most of {seen.topk(3).indices.tolist()}")


if __name__ == "__main__":
    main()
