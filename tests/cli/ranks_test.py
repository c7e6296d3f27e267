#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainings by several ranks, started by the program itself and by torchrun: the same bits as one process,
for any number of ranks, resumed, interrupted, killed or hung."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from program import PROGRAM, environment, run, start, wait

ROOT = Path(__file__).resolve().parents[2]
FILES = ("model.safetensors", "metrics.csv", "predictions.csv")
SMALL = ["--quiet", "--set", "model.channels=8", "--set", "model.blocks=2", "--set", "train.batch=8", "--set",
         "train.checkpoint_seconds=0.05", "--set", "train.pieces=4", "--set", "train.eval_every=5"]
GRAPHS = ["properties:sssp:24", *SMALL]
LONG = 100000  # epochs: does not end by itself


def has_gloo():
    with tempfile.TemporaryDirectory() as folder:
        return "no Gloo" not in run(["train", "nothing-of-this-name", "--ranks", "2"], folder).err


def torchrun():
    """The command of torchrun, if there is a python that can import torch with all it needs."""
    for python in (ROOT / ".venv-python" / "bin" / "python", ROOT / ".venv" / "bin" / "python"):
        if python.exists() and subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True).returncode == 0:
            return [str(python), "-m", "torch.distributed.run", "--no-python"]
    return None


HAS_GLOO = has_gloo()
TORCHRUN = torchrun() if HAS_GLOO else None


def ranks_of(process, count, timeout=60):
    """Process ids of the ranks that a launcher has started, by rank."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent != process.pid or os.readlink(entry / "exe") != os.path.realpath(PROGRAM):
                    continue
                variables = dict(item.split("=", 1) for item in (entry / "environ").read_text().split("\0") if "=" in item)
            except (OSError, ValueError):
                continue
            if "RANK" in variables:
                found[int(variables["RANK"])] = int(entry.name)
        if len(found) == count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{count} ranks expected")


def time_of(path):
    return path.stat().st_mtime_ns if path.exists() else 0


def wait_for(path, since=0, timeout=60):
    """Until the file is there, or a newer one than that of the given time."""
    end = time.monotonic() + timeout
    while time_of(path) <= since:
        if time.monotonic() > end:
            raise AssertionError(f"{path} expected")
        time.sleep(0.01)


@unittest.skipUnless(HAS_GLOO, "this libtorch has no Gloo")
class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mpssm-ranks-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def train(self, name, *args, epochs=6):
        return run(["train", *GRAPHS, "--set", f"train.epochs={epochs}", "--out", name, *args], self.folder)

    def start(self, name, *args, epochs=LONG):
        return start(["train", *GRAPHS, "--set", f"train.epochs={epochs}", "--out", name, *args], self.folder)

    def assert_same(self, one, other):
        for name in FILES:
            self.assertTrue((self.folder / one / name).read_bytes() == (self.folder / other / name).read_bytes(),
                            f"{name} of {other}")

    def assert_ended(self, result):
        self.assertEqual(result.code, 0, result.err)

    def test_any_number_of_ranks_ends_with_the_bits_of_one_process(self):
        self.assert_ended(self.train("one"))
        for ranks in (2, 3, 4):
            result = self.train(f"by-{ranks}", "--ranks", ranks, "--json")
            self.assert_ended(result)
            self.assertIn(f"{ranks} ranks share each batch of 8 in 4 pieces", result.err)
            self.assertEqual(result.err.count("report: "), 1, result.err)
            self.assertEqual(sum(line.startswith("{") for line in result.out.splitlines()), 1, result.out)
            self.assert_same("one", f"by-{ranks}")

    def test_one_graph_is_shared_by_its_channels(self):
        board = ["train", "board:40x40", "--quiet", "--set", "model.channels=8", "--set", "model.blocks=2", "--set",
                 "train.epochs=4"]
        self.assert_ended(run([*board, "--out", "one"], self.folder))
        result = run([*board, "--out", "three", "--ranks", 3], self.folder)
        self.assert_ended(result)
        self.assertIn("3 ranks share the nodes and, through all 4 hops of a block, the 8 channels", result.err)
        self.assert_same("one", "three")
        result = run([*board, "--out", "dense", "--ranks", 2, "--set", "model.state=dense"], self.folder)
        self.assertEqual(result.code, 1)
        self.assertEqual(result.err, "mpssm: --ranks: 2 ranks cannot share one graph: a dense W mixes the channels of all ranks; "
                         "model.kind=mpssm with model.state=stable and model.input_dropout=0 can be shared\n")

    def test_a_new_run_has_a_piece_for_each_rank(self):
        command = ["train", "properties:sssp:24", "--quiet", "--set", "train.epochs=1", "--set", "model.channels=4"]
        self.assert_ended(run([*command, "--ranks", 3, "--out", "three"], self.folder))
        self.assertIn("pieces = 3", (self.folder / "three" / "config.toml").read_text())

    def test_seeds_have_a_summary(self):
        result = self.train("seeds", "--ranks", 2, "--seeds", "0-1", epochs=1)
        self.assert_ended(result)
        self.assertTrue((self.folder / "seeds" / "summary.json").exists())

    def test_as_many_seeds_as_ranks_are_shared_out(self):
        """Each is trained by one rank alone, and ends like by one process."""
        self.assert_ended(self.train("one", "--seeds", "0-2", epochs=2))
        result = self.train("two", "--ranks", 2, "--seeds", "0-2", "--json", epochs=2)
        self.assert_ended(result)
        for seed in range(3):
            self.assert_same(f"one/split-0-seed-{seed}", f"two/split-0-seed-{seed}")
        one, two = (json.loads((self.folder / name / "summary.json").read_text()) for name in ("one", "two"))
        self.assertEqual([run["metrics"] for run in one["runs"]], [run["metrics"] for run in two["runs"]])

    def tune(self, name, *args, epochs=2):
        return ["tune", "properties:sssp:24", *SMALL[1:], "--grid", "model.hops=1,2,3", "--grid", "train.lr=0.01,0.001", "--set",
                f"train.epochs={epochs}", "--out", name, *args]

    def test_trials_of_a_search_are_shared_out(self):
        """The same table, apart from the time that each took, and the same best settings."""
        def table(name):
            return [line.rsplit(",", 1)[0] for line in (self.folder / name / "trials.csv").read_text().splitlines()]

        for search in ([], ["--halving"]):
            names = [f"by-{ranks}{''.join(search)}" for ranks in (1, 2, 3, 4)]
            for ranks, name in enumerate(names, 1):
                result = run(self.tune(name, *search, "--ranks", ranks, "--json", epochs=18 if search else 2), self.folder)
                self.assert_ended(result)
                self.assertEqual(result.err.count("trial 6/6"), 1 + 2 * len(search), result.err)
                self.assertEqual(json.loads(result.out)["settings_tried"], 6)
                self.assertEqual(table(name), table(names[0]))
                best = [(self.folder / one / "best.toml").read_text() for one in (name, names[0])]
                self.assertEqual(best[0], best[1])

    def test_a_search_ends_with_a_rank_that_is_killed(self):
        process = start(self.tune("killed", "--ranks", 3, "--timeout", 3, epochs=LONG), self.folder)
        pids = ranks_of(process, 3)
        wait_for(self.folder / "killed")
        os.kill(pids[1], signal.SIGKILL)
        result = wait(process)
        self.assertEqual(result.code, 1, result.err)
        lines = [line for line in result.err.splitlines() if line.startswith("mpssm: ")]
        self.assertEqual(lines[-1], "mpssm: rank 1 of 3 was ended by signal 9 (Killed)", result.err)
        # Others may have noticed before they were ended.
        for line in lines[:-1]:
            self.assertRegex(line, r"^mpssm: rank [02] of 3: .*rank 1 was ended by signal 9", result.err)

    def interrupt(self, name, ranks, goes_on_from=None):
        """Ctrl-C after the first checkpoint; again if it came too late, as it may on a busy machine."""
        state = self.folder / name / "state.safetensors"
        for _ in range(5):
            if goes_on_from:
                shutil.copytree(self.folder / goes_on_from, self.folder / name)
            before = time_of(state)
            process = self.start(name, "--ranks", ranks, "--resume", epochs=120)
            wait_for(state, before)
            process.send_signal(signal.SIGINT)
            result = wait(process)
            if result.code == 130:
                self.assertEqual(result.err.count("will save and stop"), 1, result.err)
                self.assertEqual(result.err.count("mpssm: stopped; the state is saved"), 1, result.err)
                return
            self.assertEqual(result.code, 0, result.err)
            shutil.rmtree(self.folder / name)
        self.fail("never interrupted in time")

    def test_ctrl_c_stops_all_and_another_number_goes_on(self):
        self.assert_ended(self.train("whole", epochs=120))
        self.interrupt("by-4", 4)
        self.interrupt("by-2", 2, goes_on_from="by-4")
        self.assert_ended(run(["train", "by-2", "--resume", "--quiet", "--ranks", 3], self.folder))
        self.assert_same("whole", "by-2")

    def test_a_killed_rank_is_named_and_nothing_is_lost(self):
        self.assert_ended(self.train("whole", epochs=120))
        for victim in (0, 1):
            name = f"killed-{victim}"
            process = self.start(name, "--ranks", 3, epochs=120)
            pids = ranks_of(process, 3)
            wait_for(self.folder / name / "state.safetensors")
            os.kill(pids[victim], signal.SIGKILL)
            begin = time.monotonic()
            result = wait(process)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(result.code, 1, result.err)
            lines = [line for line in result.err.splitlines() if line.startswith("mpssm: rank")]
            others = [rank for rank in range(3) if rank != victim]
            for rank in others:
                self.assertIn(f"mpssm: rank {rank} of 3: rank {victim} has ended or lost its link", lines)
            self.assertIn(f"mpssm: rank {victim} of 3 was ended by signal 9 (Killed)", lines)
            self.assertEqual(len(lines), 3, result.err)
            self.assert_ended(run(["train", name, "--resume", "--quiet", "--ranks", 3], self.folder))
            self.assert_same("whole", name)

    def test_a_rank_that_hangs_is_named(self):
        process = self.start("hung", "--ranks", 3, "--timeout", 5)
        pids = ranks_of(process, 3)
        wait_for(self.folder / "hung" / "state.safetensors")
        os.kill(pids[2], signal.SIGSTOP)
        begin = time.monotonic()
        result = wait(process)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual(result.code, 1, result.err)
        for rank in (0, 1):
            self.assertIn(f"mpssm: rank {rank} of 3: rank 2 has not answered for 5 s", result.err)

    def test_an_error_is_said_once(self):
        for args in (["train", "nothing-of-this-name"], ["train", "properties:sssp:24", "--set", "train.lr=1e30"],
                     ["train", "properties:sssp:24", "--set", "model.norm=batch"]):
            result = run([*args, "--ranks", 3, "--quiet", "--out", "none"], self.folder)
            self.assertEqual(result.code, 1, result.err)
            lines = [line for line in result.err.splitlines() if line.startswith("mpssm: ")]
            self.assertEqual(len(lines), 1, result.err)

    def test_usage(self):
        result = run(["train", "board:5x5", "--ranks", "0"], self.folder)
        self.assertEqual(result.code, 2)
        variables = {**environment(self.folder), "RANK": "0", "WORLD_SIZE": "2"}
        result = subprocess.run([PROGRAM, "train", "board:5x5"], cwd=self.folder, env=variables, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^mpssm: environment variable MASTER_PORT: expected .*, got none; .*\n$")
        variables.update(WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        result = subprocess.run([PROGRAM, "train", "board:5x5", "--ranks", "2"], cwd=self.folder, env=variables,
                                capture_output=True, text=True)
        self.assertRegex(result.stderr, r"^mpssm: --ranks: expected 1, as WORLD_SIZE says, got 2; ")


@unittest.skipUnless(TORCHRUN, "no Gloo, or no python with all that torchrun needs")
class Torchrun(unittest.TestCase):
    setUp = Ranks.setUp
    train = Ranks.train
    assert_same = Ranks.assert_same
    assert_ended = Ranks.assert_ended

    def start(self, name, ranks, *options, epochs):
        command = [*TORCHRUN, "--nproc-per-node", str(ranks), "--standalone", *options, PROGRAM, "train", *GRAPHS, "--set",
                   f"train.epochs={epochs}", "--out", name]
        return subprocess.Popen(command, cwd=self.folder, env=environment(self.folder), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_starts_ranks_that_end_with_the_bits_of_one_process(self):
        self.assert_ended(self.train("one"))
        self.assert_ended(wait(self.start("two", 2, epochs=6)))
        self.assert_same("one", "two")

    def test_starts_them_again_after_a_kill_to_the_same_bits(self):
        self.assert_ended(self.train("whole", epochs=120))
        process = self.start("killed", 2, "--max-restarts", "3", epochs=120)
        pids = ranks_of(process, 2)
        wait_for(self.folder / "killed" / "state.safetensors")
        os.kill(pids[1], signal.SIGKILL)
        result = wait(process)
        self.assert_ended(result)
        self.assertRegex(result.err, re.escape("rank 0 of 2: rank 1 has ended or lost its link"))
        self.assert_same("whole", "killed")


def shell(command):
    return subprocess.run(command.split(), capture_output=True, text=True)


class Hosts:
    """Two hosts with a wire between them, as network namespaces; names are this process's own."""

    def __init__(self):
        self.names = [f"mpssm-{os.getpid()}-{side}" for side in "ab"]
        self.wires = [f"mp{os.getpid() % 10**6}{side}" for side in "ab"]
        self.addresses = ["10.213.7.1", "10.213.7.2"]
        for name in self.names:
            self.must(f"ip netns add {name}")
        self.must(f"ip link add {self.wires[0]} netns {self.names[0]} type veth peer name {self.wires[1]} netns {self.names[1]}")
        for name, wire, address in zip(self.names, self.wires, self.addresses):
            self.must(f"ip -n {name} addr add {address}/24 dev {wire}")
            self.must(f"ip -n {name} link set {wire} up")
            self.must(f"ip -n {name} link set lo up")

    @staticmethod
    def must(command):
        done = shell(command)
        if done.returncode != 0:
            raise OSError(f"{command}: {done.stderr}")

    def close(self):
        for name in self.names:
            shell(f"ip netns del {name}")

    def slow_down(self):
        """100 Mbit and 20 ms; False where the kernel cannot."""
        return all(shell(f"tc -n {name} qdisc add dev {wire} root netem delay 10ms rate 100mbit").returncode == 0
                   for name, wire in zip(self.names, self.wires))

    def cut(self):
        self.must(f"ip -n {self.names[0]} link set {self.wires[0]} down")

    def sent(self, host):
        """Bytes that went out of a host's wire."""
        return int(shell(f"ip netns exec {self.names[host]} cat /sys/class/net/{self.wires[host]}/statistics/tx_bytes").stdout)

    def start(self, host, args, folder):
        variables = {**environment(folder), "RANK": str(host), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR":
                     self.addresses[0], "MASTER_PORT": "29517", "GLOO_SOCKET_IFNAME": self.wires[host], "OMP_NUM_THREADS": "1"}
        command = ["ip", "netns", "exec", self.names[host], PROGRAM, *map(str, args)]
        return subprocess.Popen(command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)


def two_hosts():
    if not HAS_GLOO or os.geteuid() != 0 or shutil.which("ip") is None:
        return None
    try:
        return Hosts()
    except OSError:
        return None


class TwoHosts(unittest.TestCase):
    train = Ranks.train
    assert_same = Ranks.assert_same
    assert_ended = Ranks.assert_ended

    def setUp(self):
        Ranks.setUp(self)
        self.hosts = two_hosts()
        if self.hosts is None:
            self.skipTest("no Gloo, or no network namespaces here")
        self.addCleanup(self.hosts.close)

    def start(self, name, epochs):
        args = ["train", *GRAPHS, "--set", f"train.epochs={epochs}", "--out", name, "--timeout", 4]
        return [self.hosts.start(host, args, self.folder) for host in (0, 1)]

    def test_end_with_the_bits_of_one_process_on_a_slow_wire(self):
        self.assert_ended(self.train("one", epochs=2))
        self.hosts.slow_down()
        for process in self.start("two", epochs=2):
            self.assert_ended(wait(process))
        self.assert_same("one", "two")

    def test_name_each_other_when_the_wire_is_cut(self):
        processes = self.start("cut", epochs=LONG)
        wait_for(self.folder / "cut" / "state.safetensors")
        self.hosts.cut()
        begin = time.monotonic()
        results = [wait(process) for process in processes]
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual([result.code for result in results], [1, 1], results)
        self.assertIn("mpssm: rank 0 of 2: rank 1 has not answered for 4 s", results[0].err)
        self.assertIn("mpssm: rank 1 of 2: rank 0 at 10.213.7.1 has ended or lost its link", results[1].err)


if __name__ == "__main__":
    unittest.main()
