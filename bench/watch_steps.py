# SPDX-License-Identifier: MIT
"""Prints processor time per step and rank and peak memory of trainings that are too long to wait for: each is stopped after a few
steps, before it evaluates and makes its report.

    python3 bench/watch_steps.py big.npz [--parts big.parts] [--ranks 4] [--steps 3] [--set KEY=VALUE ...]

One process and ranks that share channels train on the data, ranks that share nodes on the parts (`mpssm data partition`). Steps are
counted by the checkpoint, which is written after each; the first is not timed. Processor time, because it says the same on a busy machine.
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = os.environ.get("MPSSM") or str(Path(__file__).resolve().parents[1] / "build" / "bin" / "mpssm")
EPOCHS = 1000  # more than are waited for


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
                    time.sleep(0.02)
                pids = working(process)
                taken.append((step_in(folder), sum(map(seconds_of, pids))))
            peak = max(map(peak_of, pids))
        finally:
            process.terminate()
            process.communicate()
        shutil.rmtree(folder, ignore_errors=True)
    (first, before), (last, after) = taken
    return (after - before) / (last - first) / len(pids), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--parts")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    settings = [f"train.epochs={EPOCHS}", f"train.eval_every={EPOCHS}", "train.checkpoint_seconds=0.001", *options.set]
    words = ["--threads", "1", *(word for setting in settings for word in ("--set", setting))]
    ways = [("one process", options.data, 1), ("channel-parallel", options.data, options.ranks)]
    if options.parts:
        ways.append(("node-partitioned", options.parts, options.ranks))
    print("| way | ranks | seconds per step and rank | MiB of the largest | of one process |")
    print("|---|---|---|---|---|")
    whole = None
    for way, data, ranks in ways:
        seconds, peak = watched([data, *words, "--ranks", str(ranks)], options.steps)
        whole = whole or peak
        print(f"| {way} | {ranks} | {seconds:.3g} | {peak:,.0f} | {peak / whole:.2f} |", flush=True)


if __name__ == "__main__":
    main()
