# SPDX-License-Identifier: MIT
"""Trains on one graph by one process and by ranks, and prints processor time per step and rank, peak memory of the largest
process, and what `mpssm plan` says of both.

    python3 bench/scale.py big.npz [--ranks 2 4] [--ways channels nodes] [--steps 10] [--costs prices.txt] [--set KEY=VALUE ...]

Processor time, not time on the clock: it says nearly the same on a busy machine. A training is stopped after a few steps, before it
evaluates and makes its report; steps are counted by the checkpoint, which is written after each, and the first is not timed. Contenders
take turns, and the fastest round counts. A graph in parts is cut first, beside the data, or into a temporary folder.
"""

import argparse
import json
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = os.environ.get("MPSSM") or str(Path(__file__).resolve().parents[1] / "build" / "bin" / "mpssm")
WAYS = {"alone": "one process", "channels": "channel-parallel", "nodes": "node-partitioned"}
EPOCHS = 100000  # more than are waited for
PLAIN = [f"train.epochs={EPOCHS}", f"train.eval_every={EPOCHS}", "train.checkpoint_seconds=0.001"]


def step_in(folder):
    try:
        with open(folder / "state.safetensors", "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    except FileNotFoundError:
        return 0
    return json.loads(header["__metadata__"]["position"])["step"]


def working(process):
    """Ids of the ranks, or of the one process."""
    children = []
    for entry in Path("/proc").iterdir():
        try:
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                children.append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return children or [process.pid]


def seconds_of(pid):
    """Of processor time, of all threads, to the nanosecond where the kernel keeps it."""
    try:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid):
    """MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def watched(arguments, steps):
    """(seconds per step and rank, MiB of the largest)"""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        process = subprocess.Popen([PROGRAM, "train", *arguments, "--quiet", "--out", str(folder)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        taken = []
        try:
            for step in (1, 1 + steps):
                while step_in(folder) < step:
                    if process.poll() is not None:
                        raise SystemExit(process.stderr.read().decode())
                    time.sleep(0.005)
                pids = working(process)
                taken.append((step_in(folder), sum(map(seconds_of, pids))))
            peak = max(map(peak_of, pids))
        finally:
            process.terminate()
            process.communicate()
    (first, before), (last, after) = taken
    return (after - before) / (last - first) / len(pids), peak


def program(*words):
    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {result.stderr}")
    return result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ways", nargs="+", default=["channels", "nodes"], choices=["channels", "nodes"])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--costs")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    settings = [word for setting in options.set for word in ("--set", setting)]
    costs = ["--costs", options.costs] if options.costs else []
    words = ["--threads", "1", *(word for setting in PLAIN for word in ("--set", setting)), *settings]
    contenders = [("alone", 1)] + [(way, ranks) for way in options.ways for ranks in options.ranks]

    with tempfile.TemporaryDirectory() as place:
        def data_of(way, ranks):
            if way != "nodes":
                return options.data
            beside = Path(f"{options.data}.parts-{ranks}") if Path(options.data).exists() else Path(place) / f"parts-{ranks}"
            if not beside.exists():
                program("data", "partition", options.data, "--parts", ranks, "--out", beside)
            return str(beside)

        plans = {ranks: json.loads(program("plan", options.data, *settings, "--ranks", ranks, "--json", *costs))
                 for ranks in {ranks for _, ranks in contenders}}
        found = {contender: [] for contender in contenders}
        for _ in range(options.rounds):
            for way, ranks in contenders:
                found[way, ranks].append(watched([data_of(way, ranks), *words, "--ranks", str(ranks)], options.steps))

    print("| way | ranks | seconds per step and rank | plan over measured | MiB of the largest | of one process | plan over measured |")
    print("|---|---|---|---|---|---|---|")
    whole = max(peak for _, peak in found["alone", 1])
    for way, ranks in contenders:
        seconds = min(taken for taken, _ in found[way, ranks])
        peak = max(peak for _, peak in found[way, ranks])
        cost = next(cost for cost in plans[ranks]["ways"] if cost["way"] == WAYS[way])
        planned = cost["compute_seconds"] + cost["exchange_seconds"]
        print(f"| {cost['way']} | {ranks} | {seconds:.3g} | {planned / seconds:.2f} | {peak:,.0f} | {peak / whole:.2f} | "
              f"{cost['memory_bytes'] / 2**20 / peak:.2f} |")


if __name__ == "__main__":
    main()
