# SPDX-License-Identifier: MIT
"""Tables in, predictions out: the water at every gauge of a river, from rain and soil upstream.

    python examples/python/river.py
"""

import numpy as np
import pandas

import mpssm


def make_river(gauges=400, seed=0):
    """A table of gauges and one of reaches; each gauge drains into one that was there before it."""
    draw = np.random.default_rng(seed)
    names = [f"gauge {i}" for i in range(gauges)]
    below = [max(0, i - 1 - int(draw.integers(3))) // 2 for i in range(1, gauges)]
    nodes = pandas.DataFrame({"rain": draw.gamma(2.0, 5.0, size=gauges),
                              "soil": draw.choice(["rock", "loam", "sand"], size=gauges)}, index=names)
    reaches = pandas.DataFrame({"src": names[1:], "dst": [names[i] for i in below]})
    runs_off = nodes["soil"].map({"rock": 0.9, "loam": 0.5, "sand": 0.1}).astype(float)
    water = (nodes["rain"] * runs_off).to_numpy(copy=True)
    # Half of what a gauge has arrives at the next one; the last gauges drain first.
    for i in range(gauges - 1, 0, -1):
        water[below[i - 1]] += 0.5 * water[i]
    return nodes, reaches, pandas.Series(water, index=names)


def main():
    nodes, reaches, water = make_river()
    known = np.random.default_rng(1).random(len(nodes)) < 0.6  # the others were not measured
    settings = {"directed": True, "kind": "adjacency", "channels": 32, "blocks": 2, "hops": 6,
                "epochs": 200, "lr": 1e-2, "dropout": 0.0}
    for what, edges in (("rain and soil alone", reaches.iloc[:0]), ("with the river", reaches)):
        model = mpssm.NodeRegressor(**settings).fit(nodes, water.where(known), edges)
        r2 = model.score(nodes, water, edges, mask=~known)
        print(f"{what}: R^2 {r2:.3f} on the {int((~known).sum())} gauges never measured")

    gso, names = mpssm.Gso.from_pandas(reaches, nodes=nodes, directed=True, kind="adjacency")
    mouth = mpssm.sensitivity.influence(model.model_, gso, model.columns_.transform(nodes), 0)
    print(f"{names[0]} listens to {int((mouth.of_node > 0).sum())} gauges, most to "
          f"{', '.join(names[mouth.top(3)])}; on average {mouth.mean_hop:.1f} reaches away")


if __name__ == "__main__":
    main()
