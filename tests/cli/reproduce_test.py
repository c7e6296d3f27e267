#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpssm reproduce as a user sees it: every row of the paper's tables, its runs and what is kept of them, refusals."""

import csv
import itertools
import json
import math
import re
import shutil
import signal
import subprocess
import time
import tomllib
import unittest
from pathlib import Path
from xml.dom import minidom

import program
from paper_rows import ROOT, ROWS, Reproduce, lines_of, markdown_rows, mean_and_deviation, num_runs, older, page_rows, \
    recorded_runs, result_of, table_rows

# The paper's numbers by dataset; the rungs of the ladder have their own.
PRINTED = {"diameter": -3.2353, "gpp-published-sssp": -4.6321, "gpp-published-eccentricity": -2.9724,
           "minesweeper": 95.33, "tolokers": 85.26, "roman-empire": 90.91, "amazon-ratings": 53.65,
           "questions": 78.18, "chickenpox": 0.748, "pedalme": 0.647, "wikimath": 0.509, "wikimath-reconstructed": 0.509,
           "metr-la-29": 3.17, "pems-bay-67": 1.62, "peptides-func": 69.93, "peptides-struct": 0.2458}


def first_of_each_experiment(rows):
    first = {}
    for key, row in rows.items():
        first.setdefault(key[0], (key, row))
    return dict(first.values())


class Rows(Reproduce):
    def test_the_list_has_every_row_with_its_runs(self):
        expected = {key: [row["dataset"], str(num_runs(row)), "absent", "not begun"] for key, row in ROWS.items()}
        self.assertGreater(len(expected), 40)
        self.assertEqual(self.listed(), expected)

    def test_the_list_says_whose_files_are_here(self):
        here = {"chickenpox", "questions", "peptides-func"}
        for dataset in here:
            self.pretend(dataset)
        listed = self.listed()
        self.assertEqual({row[0] for row in listed.values() if row[2] == "here"}, here)
        self.assertEqual({row[0] for row in listed.values() if row[2] == "absent"},
                         {row["dataset"] for row in ROWS.values()} - here)

    def test_printed_numbers_are_those_of_the_paper(self):
        page = page_rows(self.page())
        seen = set()
        for (experiment, name), row in ROWS.items():
            if experiment == "ladder" and not re.search("-mpssm|-ours", name) or experiment == "depth":
                continue  # the other rungs have their own, the depths none
            with self.subTest(experiment=experiment, row=name):
                self.assertEqual(row.get("paper"), PRINTED.get(row["dataset"]))
                shown = page[experiment, name]["paper"].split(" ± ")[0]
                self.assertEqual(float(shown) if shown else None, PRINTED.get(row["dataset"]))
                seen.add(row["dataset"])
        self.assertEqual(seen, {*PRINTED, "eccentricity"})

    def stop_early(self, experiment, name):
        """Ctrl-C as soon as the run has written down its settings, which are given back."""
        process = program.start(["reproduce", experiment, "--quick", "--row", name], self.folder)
        seed = ROWS[experiment, name].get("seeds", [0])[0]
        # Rows that name candidates have a folder for the one that is run.
        folder = self.folder / "runs/reproduce/quick" / experiment / name
        deadline = time.monotonic() + 60
        while not (configs := list(folder.rglob(f"split-0-seed-{seed}/config.toml"))) and process.poll() is None \
                and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        result = program.wait(process)
        self.assertEqual(result.code, 130, result.err)
        self.assertEqual(result.err.splitlines()[-1], "stopped; the same command goes on")
        return tomllib.loads(configs[0].read_text(encoding="utf-8"))

    # That all rows have settings that can be taken is tested without the program (tests/study/rows_test.cpp).

    def test_settings_of_rows_with_quick_data_are_taken(self):
        quick = {key: row for key, row in ROWS.items() if "quick_dataset" in row}
        for (experiment, name), row in first_of_each_experiment(quick).items():
            with self.subTest(experiment=experiment, row=name):
                config = self.stop_early(experiment, name)
                self.assertEqual(config["data"]["name"], row["quick_dataset"])
                wanted = dict(setting.split("=") for setting in row["settings"]) | {"train.epochs": "150"}
                for key, value in wanted.items():
                    section, setting = key.split(".")
                    taken = config[section][setting]
                    self.assertEqual(taken if isinstance(taken, float) else str(taken).lower(),
                                     float(value) if isinstance(taken, float) else value, key)
        self.assertFalse((self.folder / "runs/reproduce/quick/results").exists())

    def test_settings_of_the_other_rows_are_accepted(self):
        # The settings are looked at before the data: the only complaint left is that of the file.
        others = first_of_each_experiment({key: row for key, row in ROWS.items() if "quick_dataset" not in row})
        files = {dataset: self.pretend(dataset) for dataset in {row["dataset"] for row in others.values()}}
        for (experiment, name), row in others.items():
            with self.subTest(experiment=experiment, row=name):
                result = self.run_program("reproduce", experiment, "--row", name)
                self.assertEqual(result.code, 1)
                first, *rest = result.err.splitlines()
                self.assertEqual((first, len(rest)), (f"--- {experiment} {name}", 1), result.err)
                self.assertIn(files[row["dataset"]].name, rest[0])
        self.assertEqual([path for path in (self.folder / "runs").rglob("*") if path.is_file()], [])


class Runs(Reproduce):
    def models(self):
        return {path: path.stat().st_mtime_ns for path in self.folder.rglob("model.safetensors")}

    def test_a_quick_row_is_trained_once_and_not_recorded(self):
        args = ["gpp", "--quick", "--row", "published-sssp"]
        out = self.reproduce(*args).out
        self.assertIn("Not to be compared", out)
        header, row = table_rows(out)
        self.assertEqual(header, ["task", "dataset", "metric", "test", "ms per step"])
        self.assertEqual(row[:3], ["published-sssp", "properties:laplacian:512", "log10_mse"])
        self.assertLess(float(row[3]), -2.0)  # it has learned something
        self.assertGreater(float(row[4]), 0.0)
        run = self.folder / "runs/reproduce/quick/gpp/published-sssp/split-0-seed-41"
        record = json.loads((run / "record.json").read_text(encoding="utf-8"))
        self.assertEqual(f"{record['metrics']['test']['log10_mse']:.4f}", row[3])
        self.assertFalse((self.folder / "results").exists())
        models = self.models()
        self.assertEqual(list(models), [run / "model.safetensors"])
        again = table_rows(self.reproduce(*args).out)
        self.assertEqual([line[:4] for line in again], [header[:4], row[:4]])  # the time may be rounded otherwise
        self.assertEqual(self.models(), models)
        self.assertEqual({row[3] for row in self.listed().values()}, {"not begun"})

    def test_a_whole_row_is_recorded_and_more_seeds_are_added(self):
        # Other numbers under the name of a file whose checksum is not known.
        wave = [[math.sin(0.7 * t + node) + 0.3 * ((7 * t + node) % 5) for node in range(3)] for t in range(60)]
        self.pretend("wikimath", json.dumps({"edges": [[0, 1], [1, 2]], "X": wave}))
        other = self.record(result_of("temporal", "pedalme-0.9", [1.25, 1.5])).read_text(encoding="utf-8")
        first = self.check_wikimath(2)
        for run in recorded_runs(self.folder / "results/temporal.jsonl", "wikimath"):
            self.assertTrue(run["machine"] and run["libtorch"], run)
        self.assertIn("wikimath: recorded in results/temporal.jsonl", first.err)
        models = self.models()
        self.assertEqual(len(models), 4)  # each once more with the validation part
        # A finished run keeps the code that trained it; where that is not kept, it is not made up.
        runs = self.folder / "runs/reproduce/temporal/wikimath"
        elsewhere = {"commit": "f" * 40, "dirty": False, "machine": "an abacus, 1 CPUs", "libtorch": "1.13.0"}
        self.write(runs / "split-0-seed-0.code.json", json.dumps(elsewhere))
        (runs / "split-0-seed-1.code.json").unlink()
        self.check_wikimath(3)
        runs = recorded_runs(self.folder / "results/temporal.jsonl", "wikimath")
        first, second, third = ({key: run[key] for key in elsewhere} for run in runs)
        self.assertEqual(first, elsewhere)
        self.assertEqual(second, {"commit": "", "dirty": None, "machine": "", "libtorch": ""})
        self.assertTrue(third["machine"] and third["libtorch"])
        self.assertEqual(len(self.models()), 6)
        self.assertEqual({path: self.models()[path] for path in models}, models)
        fewer = self.reproduce("temporal", "--row", "wikimath", "--seeds", "1")
        self.assertIn("(3 of 10)", fewer.out)
        # Lines of other rows are as they were.
        self.assertTrue((self.folder / "results/temporal.jsonl").read_text(encoding="utf-8").startswith(other))

    def test_candidates_are_compared_on_validation_and_the_best_is_run(self):
        wave = [[math.sin(0.7 * t + node) + 0.3 * ((7 * t + node) % 5) for node in range(3)] for t in range(60)]
        self.pretend("wikimath", json.dumps({"edges": [[0, 1], [1, 2]], "X": wave}))
        row = ROWS["temporal", "wikimath-strict"]
        axes = [axis.split("=") for axis in row["candidate_grid"]]
        points = [" ".join(f"{key}={value}" for (key, _), value in zip(axes, values))
                  for values in itertools.product(*(values.split(",") for _, values in axes))]
        args = ["temporal", "--row", "wikimath-strict", "--seeds", 1]
        said = self.reproduce(*args).err
        file = self.folder / "results/temporal.selection.jsonl"
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        self.assertEqual([line["candidate"] for line in lines], points)
        for line in lines:
            self.assertFalse([key for key in line if "test" in key or key == "value"])
            config = tomllib.loads(line["config"])
            for setting in line["candidate"].split():
                (section, key), value = setting.split("=")[0].split("."), setting.split("=")[1]
                self.assertEqual(float(config[section][key]), float(value))
        best = min(lines, key=lambda line: line["validation"])["candidate"]
        self.assertIn(f"best on validation: {best}", said)
        run, = recorded_runs(self.folder / "results/temporal.jsonl", "wikimath-strict")
        self.assertEqual((run["compared"], run["chosen"]), (len(points), best))
        self.assertEqual(run["validation"], min(line["validation"] for line in lines))  # the same run, not another
        # The audit finds nothing but the code, which is that of no commit here.
        subprocess.run(["git", "init", "--quiet"], cwd=self.folder, check=True)
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "--quiet", "--allow-empty",
                        "-m", "a"], cwd=self.folder, check=True)
        *findings, last = self.run_program("reproduce", "audit").out.splitlines()
        for finding in findings:
            self.assertRegex(finding, "commit|files were changed")
        # What is recorded is not run again, whatever became of the folders; a candidate that is lost is.
        shutil.rmtree(self.folder / "runs")
        self.assertIn("wikimath-strict: recorded in", self.reproduce(*args).err)
        self.assertFalse((self.folder / "runs").exists())
        # A row goes on from what is recorded, as on another machine.
        self.reproduce("temporal", "--row", "wikimath-strict", "--seeds", 2)
        first, second = recorded_runs(self.folder / "results/temporal.jsonl", "wikimath-strict")
        self.assertEqual((first, second["seed"]), (run, 1))
        self.assertEqual({path.parent.name for path in (self.folder / "runs").rglob("record.json")},
                         {"split-0-seed-1", "split-0-seed-1-refit"})
        file.write_text("".join(json.dumps(line) + "\n" for line in lines[1:]), encoding="utf-8")
        (self.folder / "results/temporal.jsonl").unlink()
        self.assertIn("selecting, 7 of 8 settings", self.listed()["temporal", "wikimath-strict"])
        self.reproduce(*args)
        again = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        self.assertEqual({line["candidate"]: line["validation"] for line in again},
                         {line["candidate"]: line["validation"] for line in lines})
        self.assertEqual(recorded_runs(self.folder / "results/temporal.jsonl", "wikimath-strict")[0]["value"], run["value"])

    def check_wikimath(self, seeds):
        """Runs that many, compares what is recorded with the runs' own files; gives the result of a second call."""
        args = ["temporal", "--row", "wikimath", "--seeds", seeds]
        self.reproduce(*args)
        runs = recorded_runs(self.folder / "results/temporal.jsonl", "wikimath")
        self.assertEqual([run["seed"] for run in runs], list(range(seeds)))
        for run in runs:
            self.assertEqual((run["planned"], run["dataset"], run["metric"]), (10, "wikimath", "mse"))
            folder = self.folder / f"runs/reproduce/temporal/wikimath/split-0-seed-{run['seed']}"
            own = json.loads((folder / "record.json").read_text(encoding="utf-8"))
            self.assertEqual(run["config"], (folder / "config.toml").read_text(encoding="utf-8"))
            self.assertEqual(run["value"], own["metrics"]["test"]["mse"])
            self.assertEqual(run["validation"], own["metrics"]["val"]["mse"])
            self.assertRegex(run["commit"], "^([0-9a-f]{40})?$")
            self.assertIn(run["dirty"], (True, False) if run["commit"] else (None,))
            self.assertRegex(run["machine"], r"^(.+, \d+ CPUs)?$")
            self.assertRegex(run["libtorch"], r"^(\d+\.\d+.*)?$")
            with open(folder / "metrics.csv", encoding="utf-8") as file:
                chosen = min(csv.DictReader(file), key=lambda line: float(line["val_mse"]))["epoch"]
            with open(folder.with_name(folder.name + "-refit") / "metrics.csv", encoding="utf-8") as file:
                tests = {line["epoch"]: float(line["test_mse"]) for line in csv.DictReader(file)}
            self.assertGreater(len(tests), 1)
            self.assertEqual(run["refit"], tests[chosen])
            self.assertEqual(run["best_test"], min(tests.values()))
        again = self.reproduce(*args)
        ours = f"{mean_and_deviation([run['value'] for run in runs], 4)} ({seeds} of 10)"
        self.assertIn(["wikimath", "0.5090 ± 0.0080", "HMM4G 0.5420 ± 0.0080", ours, "not comparable"],
                      table_rows(again.out))
        self.assertIn(f"\nwikimath: {runs[0]['protocol']}\n", again.out)
        self.assertEqual(self.listed()["temporal", "wikimath"][2:4], ["here", ours])
        return again

    def test_rows_without_files_are_left_out(self):
        result = self.reproduce("hetero")
        names = [name for experiment, name in ROWS if experiment == "hetero"]
        lines = result.err.splitlines()
        self.assertEqual(len(lines), len(names), result.err)
        for name, line in zip(names, lines):
            dataset = ROWS["hetero", name]["dataset"]
            self.assertIn(f"hetero {name}: not run, the files of {dataset} are absent", line)
        header, *rows = table_rows(result.out)
        self.assertEqual(header, ["task", "paper", "others there", "ours", "verdict"])
        self.assertEqual([(row[0], row[-1]) for row in rows], [(name, "not begun") for name in names])
        self.assertEqual(program.contents(self.folder), {})

    def test_one_row_without_files_is_enough_to_say_so(self):
        for args in (["lrgb", "--row", "peptides-struct"], ["hetero", "--quick", "--row", "tolokers"]):
            result = self.reproduce(*args)
            self.assertEqual(len(result.err.splitlines()), 1)
            self.assertIn(f"{args[-1]}: not run, the files of {args[-1]} are absent", result.err)


class Measurements(Reproduce):
    RESULTS = Path("runs/reproduce/quick/results")

    def measure(self, name):
        """The table that is printed, and what is kept."""
        out = self.reproduce(name, "--quick").out
        self.assertFalse((self.folder / "results").exists())
        kept = json.loads((self.folder / self.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        rows = markdown_rows(out)
        self.assertEqual([[str(value) for value in list(row.values())[:2]] for row in kept["rows"]],
                         [row[:2] for row in rows])
        for key in ("nodes", "edges", "hidden", "threads"):
            self.assertGreater(kept[key], 0, key)
        self.assertIn("libtorch", kept["code"])
        self.assertIn(f"\nWith {kept['code']}.\n", out)
        self.assertIn(out.strip(), self.page("--results", self.RESULTS))
        return rows, kept["rows"]

    def test_runtime(self):
        rows, kept = self.measure("runtime")
        networks = {"GCN", "MP-SSM, dense W", "MP-SSM, diagonal W", "GPS, GAT + Performer (RWSE)"}
        self.assertEqual({(row["depth"], row["network"]) for row in kept},
                         {(depth, network) for depth in (4, 8, 16, 32) for network in networks})
        gcn = {row["depth"]: row for row in kept if row["network"] == "GCN"}
        for row, cells in zip(kept, rows):
            shown = [f"{row['training_ms']:.1f}", f"{row['training_over_gcn']:.2f}", f"{row['inference_ms']:.1f}",
                     f"{row['inference_over_gcn']:.2f}"]
            self.assertEqual(cells[2:], shown)
            for part in ("training", "inference"):
                self.assertGreater(row[part + "_ms"], 0.0)
                self.assertAlmostEqual(row[part + "_over_gcn"], row[part + "_ms"] / gcn[row["depth"]][part + "_ms"])

    def test_figure(self):
        rows, kept = self.measure("figure")
        kept_file = json.loads((self.folder / self.RESULTS / "figure.json").read_text(encoding="utf-8"))
        self.assertEqual(kept_file["times"], "networks")
        self.assertGreaterEqual(len({row["hops"] for row in kept}), 2)
        for row, cells in zip(kept, rows):
            self.assertGreater(row["milliseconds"], 0.0)
            self.assertEqual(cells[2:], [f"{row['milliseconds']:.3f}"])
        picture = minidom.parse(str(self.folder / self.RESULTS / "figure.svg"))
        self.assertEqual(picture.documentElement.tagName, "svg")
        words = " ".join(node.firstChild.data for node in picture.getElementsByTagName("text") if node.firstChild)
        for network in {row["network"] for row in kept}:
            self.assertIn(network, words)


class CodeStamp(Reproduce):
    """cmake/code_stamp.cmake: what the program knows about its own sources."""

    def git(self, *args):
        run = subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *args], cwd=self.folder,
                             capture_output=True, text=True, check=True)
        return run.stdout.strip()

    def stamp(self):
        """(commit, dirty)"""
        output = self.folder / "out.cpp"
        subprocess.run(["cmake", f"-DSOURCE_DIR={self.folder}", f"-DOUTPUT={output}", "-P",
                        ROOT / "cmake/code_stamp.cmake"], capture_output=True, check=True)
        text = output.read_text(encoding="utf-8")
        return re.search(r'kCommit = "(.*)";', text)[1], re.search(r"kDirty = (\w+);", text)[1]

    def test_commit_and_changes_are_those_of_the_sources(self):
        for path in ("mpssm/a.cpp", "results/a.jsonl"):
            self.write(path, "1")
        self.assertEqual(self.stamp(), ("", "false"))  # no checkout
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "a")
        commit = self.git("rev-parse", "HEAD")
        self.assertEqual(self.stamp(), (commit, "false"))
        written = (self.folder / "out.cpp").stat().st_mtime_ns
        self.write("results/a.jsonl", "2")  # recorded results are no sources
        self.assertEqual(self.stamp(), (commit, "false"))
        self.assertEqual((self.folder / "out.cpp").stat().st_mtime_ns, written)  # nothing to compile again
        self.write("mpssm/a.cpp", "2")
        self.assertEqual(self.stamp(), (commit, "true"))
        self.write("mpssm/a.cpp", "1")
        self.assertEqual(self.stamp(), (commit, "false"))
        self.write("mpssm/new.cpp", "1")
        self.assertEqual(self.stamp(), (commit, "true"))


class Audit(Reproduce):
    """The kinds of breach, one by one: tests/study/audit_test.cpp."""

    def git(self, *args):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *args], cwd=self.folder,
                       capture_output=True, check=True)

    def test_breaches_fail_and_old_records_are_named(self):
        (self.folder / "results").mkdir()
        self.refuse(["reproduce", "audit"], "results", "git")  # no checkout, no history
        self.git("init", "--quiet")
        self.git("commit", "--quiet", "--allow-empty", "-m", "a")
        self.assertEqual(self.reproduce("audit").out.splitlines(),
                         ["0 rows recorded: 0 sound, 0 not auditable, 0 in breach"])
        new = result_of("gpp", "diameter", [-3.0, -3.1])
        self.record(older(new))
        lines = self.reproduce("audit").out.splitlines()
        self.assertTrue(lines[0].startswith("not auditable: gpp diameter: "), lines)
        self.assertEqual(lines[-1], "1 row recorded: 0 sound, 1 not auditable, 0 in breach")
        self.assertEqual(page_rows(self.page())["gpp", "diameter"]["audit"], "not auditable")
        self.record(new)
        result = self.run_program("reproduce", "audit")
        self.assertEqual(result.code, 1)
        lines = result.out.splitlines()
        self.assertEqual(lines[-1], "1 row recorded: 0 sound, 0 not auditable, 1 in breach")
        for finding in (f"commit {new['runs'][0]['commit']} is not in the history", "seed 0: not of the protocol"):
            self.assertTrue(any(line.startswith("breach: gpp diameter: ") and finding in line for line in lines), lines)
        self.assertTrue(page_rows(self.page())["gpp", "diameter"]["audit"].startswith("breach: "))
        self.assertEqual(self.listed()["gpp", "diameter"][4], page_rows(self.page())["gpp", "diameter"]["audit"])


class Refusals(Reproduce):
    GOOD = result_of("gpp", "diameter", [-3.0, -3.1])
    LINES = [json.loads(line) for line in lines_of(GOOD)]
    FILE = "results/gpp.jsonl"

    def refuse_lines(self, lines, number, *phrases):
        """`number`: of the line that is named."""
        text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
        self.write(self.FILE, text)
        self.refuse(["reproduce", "--page", "page.md"], f"{self.FILE}:{number}: not a result: ", *phrases)

    def refuse_second(self, changes, *phrases):
        self.refuse_lines([self.LINES[0], {**self.LINES[1], **changes}], 2, *phrases)

    def test_a_file_that_was_cut_off(self):
        text = "".join(line + "\n" for line in lines_of(self.GOOD))
        self.write(self.FILE, text)
        self.page()
        first = text.index("\n")
        for length in (1, first // 2, first - 1):
            self.refuse_lines(text[:length], 1)
        for length in (first + 2, len(text) - 2):
            self.refuse_lines(text[:length], 2)
        self.refuse(["reproduce", "--list"], f"{self.FILE}:2: not a result: ")
        self.refuse(["reproduce", "gpp"], f"{self.FILE}:2: not a result: ")

    def test_a_run_that_lacks_something(self):
        for key in self.LINES[1]:
            run = {other: value for other, value in self.LINES[1].items() if other != key}
            self.refuse_lines([self.LINES[0], run], 2, f"'{key}'")

    def test_lines_with_something_else_in_them(self):
        for content in ("[]", "null", "3", "no json", "", "\x00", '{"experiment": "\xff"}', "[" * 100000):
            self.refuse_lines(f"{lines_of(self.GOOD)[0]}\n{content}\n", 2)
        for key, value in (("parameters", "many"), ("references", [{}]), ("references", 3), ("value", None),
                           ("value", "-3"), ("seed", 1.5), ("seed", None), ("steps", 0), ("also", []), ("dirty", 3),
                           ("config", None), ("row", 3)):
            self.refuse_second({key: value})
        self.refuse_second({"protocol": "two\nlines"}, "'protocol'")
        self.refuse_second({"machine": "\x1b[2J"}, "'machine'")
        self.refuse_second({"experiment": "hetero"}, "it is of hetero")

    def test_lines_that_contradict_each_other(self):
        self.refuse_second({"seed": 0}, "seed 0, split 0 of diameter is there twice")
        self.refuse_second({"raw": None}, "the same numbers")
        for key, value in (("dataset", "other"), ("version", "9.9.9"), ("parameters", 5), ("planned", 3)):
            self.refuse_second({key: value}, key, "other runs of diameter")
        one = [{**line, "planned": 1} for line in self.LINES]
        self.refuse_lines(one, 2, "more than the 1 'planned' runs of diameter")

    def test_damaged_measurements(self):
        for name in ("runtime", "figure"):
            for content in ('{"nodes": 100, "ro', "{}", "[]"):
                path = self.write(f"results/{name}.json", content)
                self.refuse(["reproduce", "--page", "page.md"], f"results/{name}.json")
                path.unlink()

    def test_what_is_not_there(self):
        self.refuse(["reproduce", "nonsense"], "nonsense", "gpp", "figure", code=2)
        self.refuse(["reproduce"], "experiment", "audit", "--list", "--page")
        for experiment in ("gpp", "temporal"):
            names = [name for other, name in ROWS if other == experiment]
            for quick in ([], ["--quick"]):
                self.refuse(["reproduce", experiment, "--row", "nope", *quick], "--row", "'nope'", *names)
        # A row of another experiment is none of this one.
        self.refuse(["reproduce", "gpp", "--row", "minesweeper"], "--row", "'minesweeper'", "published-sssp")

    def test_numbers_that_make_no_sense(self):
        for option in ("--seeds", "--threads"):
            for value in ("-1", "some", "1.5"):
                self.refuse(["reproduce", "gpp", option, value], option, f"'{value}'", code=2)

    def test_a_page_that_cannot_be_written(self):
        self.refuse(["reproduce", "--page", "nowhere/page.md"], "nowhere/page.md")
        self.refuse(["reproduce", "--page", "."], "folder")


if __name__ == "__main__":
    unittest.main()
