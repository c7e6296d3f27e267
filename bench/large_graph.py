# SPDX-License-Identifier: MIT
"""Writes a large graph with locality and planted classes, in the npz layout that `mpssm train` reads.

    python3 bench/large_graph.py big.npz [--nodes 1000000] [--edges 10500000]

Nodes stand in a ring; nine edges of ten go a short way (a Cauchy distance of scale 20, at most 2000),
the tenth anywhere. Four classes change every fortieth of the ring, and a node's features lean towards
its own. Doubles are dropped, so that somewhat fewer edges come out. Needs NumPy.
"""

import argparse

import numpy as np

FEATURES = 16
CLASSES = 4


def edges_of(nodes, count, random):
    """Both ends of undirected edges, [edges, 2], each listed once."""
    src = random.integers(0, nodes, count)
    step = np.abs(random.standard_cauchy(count) * 20).clip(1, 2000).astype(np.int64)
    dst = np.where(random.random(count) < 0.1, random.integers(0, nodes, count), (src + step) % nodes)
    ends = np.sort(np.stack([src, dst], 1)[src != dst], axis=1)
    key = np.unique(ends[:, 0] * nodes + ends[:, 1])
    return np.stack([key // nodes, key % nodes], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_500_000)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    edges = edges_of(options.nodes, options.edges, random)
    label = np.arange(options.nodes) // max(options.nodes // 40, 1) % CLASSES
    features = random.standard_normal((options.nodes, FEATURES)).astype(np.float32)
    features[np.arange(options.nodes), label] += 0.5
    np.savez(options.file, node_features=features, node_labels=label, edges=edges)
    print(f"{options.file}: {options.nodes} nodes, {len(edges)} edges")


if __name__ == "__main__":
    main()
