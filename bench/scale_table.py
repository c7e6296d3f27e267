# SPDX-License-Identifier: MIT
"""Prints the table of docs/scale.md: a training step on graphs of 10^6 to 10^10 edges as `mpssm plan` counts it.

    python3 bench/scale_table.py [--costs prices.txt]
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

PROGRAM = os.environ.get("MPSSM") or str(Path(__file__).resolve().parents[1] / "build" / "bin" / "mpssm")
ROWS = ((6, 4), (7, 4), (8, 64), (9, 64), (10, 64))  # power of ten of the edges, ranks
SETTING = ["--channels", "64", "--blocks", "4", "--hops", "8", "--network", "25Gbit", "--json"]


def ways(edges, ranks, *more):
    command = [PROGRAM, "plan", "--nodes", str(edges / 10), "--edges", str(edges), "--ranks", str(ranks), *SETTING, *more]
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {way["way"]: way for way in plan["ways"]}


def amount(number):
    for unit in ("B", "KB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def cell(way):
    if way["why_not"]:
        return "no: " + way["why_not"]
    seconds = way["compute_seconds"] + way["exchange_seconds"]
    time = f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    sent = [amount(way["bytes_sent"])] if way["bytes_sent"] > 0 else []
    return ", ".join([time, *sent, amount(way["memory_bytes"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--costs")
    options = parser.parse_args()
    costs = ["--costs", options.costs] if options.costs else []
    print("| edges | ranks | one process | channel-parallel | node-partitioned, 2 % cut | node-partitioned, by chance |")
    print("|---|---|---|---|---|---|")
    for power, ranks in ROWS:
        chance = ways(10**power, ranks, *costs)
        near = ways(10**power, ranks, "--cut", "0.02", *costs)
        cells = (chance["one process"], chance["channel-parallel"], near["node-partitioned"], chance["node-partitioned"])
        print(f"| 10^{power} | {ranks} | " + " | ".join(map(cell, cells)) + " |")


if __name__ == "__main__":
    main()
