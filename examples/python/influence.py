# SPDX-License-Identifier: MIT
"""Which node influences what: the recurrence is linear, so the answer is a number, not a guess.

    python examples/python/influence.py
"""

import networkx
import torch

import mpssm
from mpssm import sensitivity
from mpssm.nn import MPSSM


def main():
    torch.manual_seed(0)
    graph = networkx.barbell_graph(8, 4)  # two cliques and a path between them
    gso = mpssm.Gso.from_networkx(graph)
    first, last = 0, gso.num_nodes - 1
    # (A^tau)[last, first] for tau = 0 ... 60: what of the first node arrives at the last.
    found = sensitivity.profile(gso, range(61), source=first, target=last)
    print(f"from {first} to {last}: nothing before hop {found.facts['hops']}, "
          f"{found['value'][20]:.1e} at hop 20, {found['value'][60]:.1e} at hop 60, "
          f"{found.facts['limit']:.1e} in the end")

    x = torch.randn(gso.num_nodes, 3)
    for hops in (1, 8):
        model = MPSSM(3, 16, 2, num_blocks=1, hops=hops).eval()
        seen = sensitivity.influence(model, gso, x, last)
        print(f"one block of {hops} hops: node {last} sees {int((seen.of_node > 0).sum())} of "
              f"{gso.num_nodes} nodes, most of {seen.top(3)}")


if __name__ == "__main__":
    main()
