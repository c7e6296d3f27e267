# SPDX-License-Identifier: MIT
"""The engine against what Python offers for the same work: torch, eager and compiled, PyTorch
Geometric and SciPy. `./dev bench peers` sets up what it needs and runs it.

Contenders of a case take turns in one process after each has given the same numbers as ours. Peak
memory is that of a first call in a process of its own, forked before anything but imports was done.
"""

import argparse
import ctypes
import gc
import json
import math
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers beside us
warnings.filterwarnings("ignore", message=".*[Ss]parse.*")

import scipy  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from peer_layers import (batch_case, gcn_layer_case, layer_case, small_graphs,  # noqa: E402
                         windows_case)
from peer_operators import call_case, recurrence_case, spmm_case  # noqa: E402
from peer_problems import board_graph, random_graph  # noqa: E402
from peer_steps import StepSizes, step_case  # noqa: E402

TOLERANCE = 1e-3  # of the largest number
SHORTEST_TIMING = 0.002  # seconds


# ---- measuring ------------------------------------------------------------------------------


def status_mib(key):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0.0


def own_mib():
    """Without the pages of program and libraries, of which more are read with each new call."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status_mib("RssAnon:")


def memory_of(prepare):
    """Arguments above the idle process, and the peak of a first call, in MiB; in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            idle = own_mib()
            job = prepare()
            random_graph.cache_clear()
            board_graph.cache_clear()
            small_graphs.cache_clear()
            arguments = max(0.0, own_mib() - idle)
            if job.compiled:
                job.run()  # what the compiler takes is not counted
            before = own_mib()
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
            job.run()
            peak = arguments + max(0.0, status_mib("VmHWM:") - status_mib("RssFile:") - before)
            os.write(write, json.dumps([arguments, peak]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError("no memory measured")
    return json.loads(text)


def load():
    return os.getloadavg()[0]


def machine():
    names = [line.split(": ", 1)[1] for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores"


def expect_same_numbers(case, name, mine, theirs):
    for one, other in zip(mine, theirs, strict=True):
        error = ((other - one).abs().max() / one.abs().max()).item()
        if not error < TOLERANCE:
            sys.exit(f"peers: {case.name}: {name} differs from {case.alike[0]} by {error:.2g}")


def timing(job, calls=1):
    start = time.perf_counter()
    for _ in range(calls):
        job.run()
    return (time.perf_counter() - start) / calls


def first_calls(case, jobs):
    """Checks numbers, warms up, and says how many calls make a timing."""
    ours, calls = None, {}
    for name, job in jobs.items():
        start = time.perf_counter()
        results = job.run()
        took = time.perf_counter() - start
        if name in case.alike:
            results = job.in_our_layout(results)
            ours = ours or results
            expect_same_numbers(case, name, ours, results)
        if job.compiled or took < 100 * SHORTEST_TIMING:
            took = timing(job)
        calls[name] = max(case.in_a_row, math.ceil(SHORTEST_TIMING / took))
    return calls


def measure(case, memory, rounds, options):
    before = load()
    jobs = {name: prepare() for name, prepare in case.contenders.items()}
    calls = first_calls(case, jobs)
    times = {name: [] for name in jobs}
    programs = [make(options.program, options.threads) for make in case.programs]
    times = {**{program.name: [] for program in programs}, **times}
    memory = {**{program.name: (None, program.peak_mib()) for program in programs}, **memory}
    for _ in range(rounds):
        for program in programs:
            times[program.name].append(program.milliseconds())
        for name, job in jobs.items():
            times[name].append(1000 * timing(job, calls[name]))
    ours = min(next(iter(times.values())))
    rows = []
    for name, each in times.items():
        rows.append({"case": case.name, "contender": name, "milliseconds": min(each),
                     "milliseconds_median": statistics.median(each), "ratio": min(each) / ours,
                     "peak_mib": round(memory[name][1], 3),
                     "arguments_mib": memory[name][0] and round(memory[name][0], 3),
                     "size": case.size, "rounds": rounds,
                     "threads": 1 if name == "SciPy" else options.threads,
                     "load": [before, load()], "machine": machine(),
                     "libtorch": torch.__version__.split("+")[0],
                     "torch_geometric": torch_geometric.__version__,
                     "scipy": scipy.__version__})
        print("{case:26} {contender:34} {milliseconds:12.4f} {milliseconds_median:12.4f} "
              "{ratio:8.2f} {peak_mib:10.1f}".format(**rows[-1]), flush=True)
    return rows


def cases(quick):
    yield call_case()
    if quick:
        yield spmm_case(2000, 2906, "2.9", 32)
        for training in (False, True):
            yield recurrence_case(2000, 2906, 64, 4, True, training)
        yield gcn_layer_case(2000, 2906, 32)
        yield layer_case(2000, 2906, 32, 4)
        yield batch_case(8, 16, 4, 2)
        yield windows_case(50, 80, 4, 6, 16, 2)
        yield step_case(StepSizes("quick", 400, lambda: board_graph(20, 20), 7, 3, 16, 4, 2, 20))
        return
    for nodes, edges, degree in ((22662, 32927, "2.9"), (22662, 226620, "20"),
                                 (200000, 400000, "4")):
        yield spmm_case(nodes, edges, degree, 128)
    for training in (False, True):
        for diagonal in (False, True):
            yield recurrence_case(22662, 32927, 256, 16, diagonal, training)
    yield gcn_layer_case(22662, 32927, 128)
    yield layer_case(22662, 32927, 128, 8)
    yield batch_case(64, 64, 8, 4)
    yield windows_case(207, 1500, 16, 12, 64, 2)
    yield step_case(StepSizes("wide", 22662, lambda: random_graph(22662, 32927), 300, 18, 256, 16, 2, 6))
    yield step_case(StepSizes("deep", 10000, lambda: board_graph(100, 100), 7, 3, 64, 4, 8, 20))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("--threads", type=int, default=1, help="of every contender (default: 1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="CASE", help="one case")
    parser.add_argument("--quick", action="store_true", help="one round of small cases")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.compile(lambda x: x)  # imports the compiler: not part of a contender's memory
    torch.set_num_threads(options.threads)
    wanted = [case for case in cases(options.quick) if options.only in (None, case.name)]
    if not wanted:
        parser.error(f"no case '{options.only}'")
    print(f"{machine()}, torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, "
          f"scipy {scipy.__version__}, threads: {options.threads}, load: {load():.2f}")
    print("{:26} {:34} {:>12} {:>12} {:>8} {:>10}".format(
        "case", "contender", "min ms", "median ms", "ratio", "peak MiB"), flush=True)
    # Memory first: the children must be forked from a process that has computed nothing.
    memory = {case.name: {name: memory_of(prepare) for name, prepare in case.contenders.items()}
              for case in wanted}
    rows = []
    for case in wanted:
        rows += measure(case, memory[case.name], 1 if options.quick else options.rounds, options)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
