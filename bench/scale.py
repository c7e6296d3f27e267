# SPDX-License-Identifier: MIT
"""Trains on one graph by one process and by ranks, and prints processor time per step and rank, peak memory of the largest
process, and what `mpssm plan` says of both.

    python3 bench/scale.py big.npz [--ranks 2 4] [--ways channels nodes] [--steps 4] [--costs prices.txt] [--set KEY=VALUE ...]

Processor time, not time on the clock: it says the same on a busy machine. Each training runs twice, with one step and with more; the
difference is what the steps cost. A graph in parts is cut first, beside the data.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAM = os.environ.get("MPSSM") or str(Path(__file__).resolve().parents[1] / "build" / "bin" / "mpssm")
WAYS = {"channels": "channel-parallel", "nodes": "node-partitioned"}


def run(args):
    """Seconds of processor time of the program and all that it starts, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, args))}: {result.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result.stdout


def measured(args):
    """The same in a process of its own, whose children are these alone: (seconds, MiB of the largest)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        seconds, _ = run(args)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        os.write(write, json.dumps([seconds, peak]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--costs")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    settings = [word for setting in options.set for word in ("--set", setting)]
    costs = ["--costs", options.costs] if options.costs else []

    plans = {}

    def plan(ranks):
        """Read and cut once for each number of ranks: that may take longer than the steps."""
        if ranks not in plans:
            plans[ranks] = json.loads(run(["plan", options.data, *settings, "--ranks", ranks, "--json", *costs])[1])
        return plans[ranks]

    def per_step(data, ranks):
        taken = []
        for steps in (1, 1 + options.steps):
            out = tempfile.mkdtemp()
            shutil.rmtree(out)
            seconds, peak = measured(["train", data, *settings, "--quiet", "--threads", 1, "--ranks", ranks, "--out", out, "--set",
                                      f"train.epochs={steps}", "--set", f"train.eval_every={1 + options.steps}", "--set",
                                      "train.checkpoint_seconds=1000"])
            taken.append(seconds)
            shutil.rmtree(out)
        return (taken[1] - taken[0]) / options.steps / ranks, peak

    print("| way | ranks | seconds per step and rank | as planned | MiB of the largest | of one process | as planned |")
    print("|---|---|---|---|---|---|---|")
    whole = None
    for way, ranks in [("alone", 1)] + [(way, ranks) for way in options.ways for ranks in options.ranks]:
        data = options.data
        if way == "nodes":
            data = f"{options.data}.parts-{ranks}"
            if not Path(data).exists():
                run(["data", "partition", options.data, "--parts", ranks, "--out", data])
        seconds, peak = per_step(data, ranks)
        whole = whole or peak
        cost = next(cost for cost in plan(ranks)["ways"] if cost["way"] == WAYS.get(way, "one process"))
        planned = cost["compute_seconds"] + cost["exchange_seconds"]
        print(f"| {cost['way']} | {ranks} | {seconds:.3f} | {planned / seconds:.2f} | {peak:.0f} | {peak / whole:.2f} | "
              f"{cost['memory_bytes'] / 2**20 / peak:.2f} |", flush=True)


if __name__ == "__main__":
    main()
