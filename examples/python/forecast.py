# SPDX-License-Identifier: MIT
"""Forecasting one step ahead on a graph, then online: the state is carried on, nothing is computed twice.

    python examples/python/forecast.py
"""

import torch

import mpssm
from mpssm.nn import MPSSMRecurrent

NODES, STEPS, TRAIN = 20, 240, 200


def wave():
    """A travelling wave around a ring: what comes next at a node is on its way from a neighbour."""
    t, i = torch.arange(STEPS)[:, None], torch.arange(NODES)[None]
    noise = 0.02 * torch.randn(STEPS, NODES, generator=torch.Generator().manual_seed(0))
    return torch.sin(0.3 * t - 2 * torch.pi * 3 * i / NODES) + noise


class Forecaster(torch.nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.recurrent = MPSSMRecurrent(1, channels, kind="random_walk")
        self.head = torch.nn.Sequential(torch.nn.Linear(channels, channels), torch.nn.GELU(),
                                        torch.nn.Linear(channels, 1))

    def forward(self, x, gso, h=None):
        """x [T, N, 1] -> what comes after each step [T, N], and the state to go on from."""
        states = self.recurrent(x, gso, h=h)
        return self.head(states).squeeze(-1), states[-1]


def main():
    torch.manual_seed(0)
    series = wave()
    around = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    gso = mpssm.Gso.from_edge_index(around, kind="random_walk")
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = series.unsqueeze(-1)
    for _ in range(80):
        optimizer.zero_grad()
        predicted, _ = model(x[: TRAIN - 1], gso)
        (predicted - series[1:TRAIN]).square().mean().backward()
        optimizer.step()

    with torch.no_grad():
        at_once, _ = model(x[:-1], gso)
        # As it would come in: piece by piece, each step seen once.
        _, h = model(x[:TRAIN], gso)
        online = []
        for t in range(TRAIN, STEPS - 1):
            predicted, h = model(x[t : t + 1], gso, h)
            online.append(predicted[0])
    online = torch.stack(online)
    error = (online - series[TRAIN + 1 :]).square().mean()
    repeat = (series[TRAIN:-1] - series[TRAIN + 1 :]).square().mean()
    apart = (online - at_once[TRAIN:]).abs().max()
    print(f"mean squared error {float(error):.4f}, repeating the last value {float(repeat):.4f}")
    print(f"online and all at once differ by {float(apart):.1e}")


if __name__ == "__main__":
    main()
