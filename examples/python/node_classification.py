# SPDX-License-Identifier: MIT
"""A PyTorch Geometric training script with the layer swapped: two lines differ from the GCN.

    python examples/python/node_classification.py [--layer gcn] [FILE.npz]

The file is of the kind of PyTorch Geometric's HeterophilousGraphDataset: node_features [N, F],
node_labels [N], edges [m, 2], train_masks and test_masks [splits, N], of which the first is taken. Without
one, chains are made whose class is marked at one end only: too far away for two GCNConv.
"""

import argparse

import numpy as np
import torch
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

from mpssm.nn import MPSSMConv  # the first line that differs


def made_up(chains=80, length=12):
    marks = torch.randint(2, (chains,), generator=torch.Generator().manual_seed(0))
    nodes = torch.arange(chains * length).view(chains, length)
    path = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    x = torch.zeros(chains * length, 2)
    x[nodes[:, 0], marks] = 1.0
    train = (torch.arange(chains) % 2 == 0).repeat_interleave(length)
    return Data(x=x, y=marks.repeat_interleave(length), edge_index=to_undirected(path),
                train_mask=train, test_mask=~train)


def from_file(path):
    file = np.load(path)
    return Data(x=torch.from_numpy(file["node_features"]).float(),
                y=torch.from_numpy(file["node_labels"]).long(),
                edge_index=to_undirected(torch.from_numpy(file["edges"]).long().t().contiguous()),
                train_mask=torch.from_numpy(file["train_masks"][0]).bool(),
                test_mask=torch.from_numpy(file["test_masks"][0]).bool())


class Net(torch.nn.Module):
    def __init__(self, layer, in_channels, hidden, classes):
        super().__init__()
        self.conv1 = layer(in_channels, hidden)
        self.conv2 = layer(hidden, classes)

    def forward(self, x, edge_index):
        return self.conv2(F.relu(self.conv1(x, edge_index)), edge_index)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("--layer", choices=["mpssm", "gcn"], default="mpssm")
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    data = from_file(options.file) if options.file else made_up()

    layer = GCNConv
    if options.layer == "mpssm":
        layer = lambda i, o: MPSSMConv(i, o, hops=12, cached=True)  # noqa: E731  the second line
    model = Net(layer, data.num_node_features, 32, int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    right = model(data.x, data.edge_index).argmax(1) == data.y
    print(f"{options.layer}: accuracy on test {float(right[data.test_mask].float().mean()):.3f}")


if __name__ == "__main__":
    main()
