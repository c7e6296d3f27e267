#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpssm reproduce as a user sees it: every row of the paper's tables, what is recorded of it, the page."""

import csv
import json
import math
import re
import signal
import statistics
import subprocess
import time
import tomllib
import unittest
from pathlib import Path
from xml.dom import minidom

import program
from refusal import BadInput

ROOT = Path(__file__).resolve().parents[2]
# The paper's numbers by dataset; the ablation has its own.
PRINTED = {"diameter": -3.2353, "gpp-published-sssp": -4.6321, "gpp-published-eccentricity": -2.9724,
           "minesweeper": 95.33, "tolokers": 85.26, "roman-empire": 90.91, "amazon-ratings": 53.65,
           "questions": 78.18, "chickenpox": 0.748, "pedalme": 0.647, "wikimath": 0.509,
           "metr-la-29": 3.17, "pems-bay-67": 1.62, "peptides-func": 69.93, "peptides-struct": 0.2458}
COLUMNS = ["row", "paper", "others there", "ours", "verdict", "validation", "parameters", "ms per step", "code", "notes"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
# What files did not say before 0.3.
NEW_KEYS = ("validation", "commit", "dirty", "machine", "libtorch")


def read_rows():
    """{(experiment, row): keys}, those of the experiment and of the row it is like included."""
    rows = {}
    for path in (ROOT / "configs" / "reproduce").glob("*.toml"):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = table.pop("row")
        for entry in entries:
            model = rows[path.stem, entry["like"]] if "like" in entry else table
            settings = [*model.get("settings", []), *entry.get("settings", [])]
            rows[path.stem, entry["name"]] = {**model, **entry, "settings": settings,
                                              "paper_runs": table.get("paper_runs", 0)}
    return rows


ROWS = read_rows()


def num_runs(row):
    return len(row.get("seeds", [0])) * row.get("splits", 1)


def table_rows(text):
    """Cells of a table for people; empty ones are left out."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if "  " in line.strip()]


def markdown_rows(text):
    """Cells of the markdown tables, header and rule left out."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    rules = {i for i, line in enumerate(cells) if set("".join(line)) == {"-"}}
    return [line for i, line in enumerate(cells) if i not in rules and i + 1 not in rules]


def page_rows(page):
    """{(experiment, row): {column: cell}}"""
    rows = {}
    for section in page.split("\n## ")[1:]:
        command = re.search(r"`mpssm reproduce (\w+)`", section)
        if command is None or command[1] in ("runtime", "figure"):
            continue
        experiment = command[1]
        for cells in markdown_rows(section):
            assert len(cells) == len(COLUMNS) and (experiment, cells[0]) not in rows, cells
            rows[experiment, cells[0]] = dict(zip(COLUMNS, cells))
    return rows


def result_of(experiment, row, values, **changes):
    """What a finished row leaves: run i takes i + 1 seconds for 10 steps."""
    keys = ROWS[experiment, row]
    runs = [{"seed": i, "split": 0, "value": value, "validation": value - 0.25, "raw": value + 2.5 if "raw_metric" in keys else None,
             "also": {metric: value + 1.0 for metric in keys.get("also", [])},
             "refit": value - 0.0625 if keys.get("refit") else None,
             "best_test": value - 0.125 if keys.get("refit") else None, "best_step": 5, "steps": 10,
             "seconds": i + 1.0, "peak_mib": 120.0, "commit": COMMIT, "dirty": False, "machine": "an abacus, 2 CPUs",
             "libtorch": "2.0.0"} for i, value in enumerate(values)]
    return {"experiment": experiment, "row": row, "dataset": keys["dataset"], "metric": keys["metric"],
            "protocol": f"as {row} is done", "version": "0.0.0", "parameters": 4321, "planned": num_runs(keys),
            "runs": runs, "references": [], "config": "seed = 0\n", **changes}


def older(result, **changes):
    """The same as a file from before those keys."""
    runs = [{key: value for key, value in run.items() if key not in NEW_KEYS} for run in result["runs"]]
    return {**result, "runs": runs, **changes}


def t_quantile(freedom):
    """97.5 % of Student's t: the density integrated over the angle by Simpson's rule, solved by bisection."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def mass(t):
        pieces, width = 400, math.atan(t) / 400
        return width / 3 * sum((1 if i in (0, pieces) else 4 if i % 2 else 2) * scale / math.cos(i * width) ** 2
                               * (1 + math.tan(i * width) ** 2 / freedom) ** (-(freedom + 1) / 2)
                               for i in range(pieces + 1))

    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mass(middle) < 0.475 else (low, middle)
    return low


def on_our_scale(row, value, raw):
    return value - 2 * math.log10(row["label_max"]) if raw else value


def interval(row, values, printed, deviation):
    """(difference, low, high) of Welch's interval; a number without deviation is exact."""
    parts = [(statistics.variance(values) / len(values), len(values) - 1)]
    if deviation:
        parts.append((deviation ** 2 / row["paper_runs"], row["paper_runs"] - 1))
    variance = sum(part for part, _ in parts)
    difference = statistics.mean(values) - printed
    if variance == 0.0:
        return difference, difference, difference
    width = t_quantile(variance ** 2 / sum(part ** 2 / freedom for part, freedom in parts)) * math.sqrt(variance)
    return difference, difference - width, difference + width


def words_of(word, row, numbers):
    digits = 2 if row.get("scale", 1) > 1 else 4
    return "{}, {:+.{d}f} [{:+.{d}f}, {:+.{d}f}]".format(word, *numbers, d=digits)


def mean_and_deviation(values, digits):
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


class Reproduce(BadInput):
    def reproduce(self, *args, **options):
        return self.succeed("reproduce", *args, **options)

    def listed(self):
        """{(experiment, row): [dataset, runs, files, recorded]}"""
        header, *rows = table_rows(self.reproduce("--list").out)
        self.assertEqual(header, ["experiment", "row", "dataset", "runs", "files", "recorded"])
        self.assertEqual(len({tuple(row[:2]) for row in rows}), len(rows))
        return {(row[0], row[1]): row[2:] for row in rows}

    def page(self, *args):
        self.reproduce("--page", "page.md", *args)
        return (self.folder / "page.md").read_text(encoding="utf-8")

    def file_of(self, dataset):
        """Where the program looks for it, as it says itself."""
        result = self.run_program("data", "info", dataset)
        self.assertEqual(result.code, 1)
        return self.folder / "data" / re.match(rf"mpssm: {dataset}: (\S+) not found in ", result.err)[1]

    def pretend(self, dataset, content="nothing"):
        return self.write(self.file_of(dataset), content)

    def record(self, result):
        return self.write(f"results/{result['experiment']}-{result['row']}.json", json.dumps(result, indent=1))


class Rows(Reproduce):
    def test_the_list_has_every_row_with_its_runs(self):
        expected = {key: [row["dataset"], str(num_runs(row)), "absent", "no"] for key, row in ROWS.items()}
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
            if experiment == "ablation" and "-mpssm" not in name:
                continue
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
        folder = self.folder / "runs/reproduce/quick" / experiment / name / f"split-0-seed-{seed}"
        deadline = time.monotonic() + 60
        while not (folder / "config.toml").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        result = program.wait(process)
        self.assertEqual(result.code, 130, result.err)
        self.assertEqual(result.err.splitlines()[-1], "stopped; the same command goes on")
        return tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))

    def test_settings_of_rows_with_quick_data_are_taken(self):
        for (experiment, name), row in ROWS.items():
            if "quick_dataset" not in row:
                continue
            with self.subTest(experiment=experiment, row=name):
                config = self.stop_early(experiment, name)
                self.assertEqual(config["data"]["name"], row["quick_dataset"])
                wanted = dict(setting.split("=") for setting in row["settings"]) | {"train.epochs": "150"}
                for key, value in wanted.items():
                    section, setting = key.split(".")
                    self.assertEqual(str(config[section][setting]).lower(), value, key)
        self.assertFalse((self.folder / "runs/reproduce/quick/results").exists())

    def test_settings_of_the_other_rows_are_accepted(self):
        # The settings are looked at before the data: the only complaint left is that of the file.
        others = {key: row for key, row in ROWS.items() if "quick_dataset" not in row}
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
        self.assertEqual({row[3] for row in self.listed().values()}, {"no"})

    def test_a_whole_row_is_recorded_and_more_seeds_are_added(self):
        # Other numbers under the name of a file whose checksum is not known.
        wave = [[math.sin(0.7 * t + node) + 0.3 * ((7 * t + node) % 5) for node in range(3)] for t in range(60)]
        self.pretend("wikimath", json.dumps({"edges": [[0, 1], [1, 2]], "X": wave}))
        first = self.check_wikimath(2)
        record = json.loads((self.folder / "results/temporal-wikimath.json").read_text(encoding="utf-8"))
        for run in record["runs"]:
            self.assertTrue(run["machine"] and run["libtorch"], run)
        self.assertIn("recorded in results/temporal-wikimath.json", first.err)
        models = self.models()
        self.assertEqual(len(models), 4)  # each once more with the validation part
        # A finished run keeps the code that trained it; where that is not kept, it is not made up.
        runs = self.folder / "runs/reproduce/temporal/wikimath"
        elsewhere = {"commit": "f" * 40, "dirty": False, "machine": "an abacus, 1 CPUs", "libtorch": "1.13.0"}
        self.write(runs / "split-0-seed-0.code.json", json.dumps(elsewhere))
        (runs / "split-0-seed-1.code.json").unlink()
        self.check_wikimath(3)
        record = json.loads((self.folder / "results/temporal-wikimath.json").read_text(encoding="utf-8"))
        first, second, third = ({key: run[key] for key in elsewhere} for run in record["runs"])
        self.assertEqual(first, elsewhere)
        self.assertEqual(second, {"commit": "", "dirty": None, "machine": "", "libtorch": ""})
        self.assertTrue(third["machine"] and third["libtorch"])
        self.assertEqual(len(self.models()), 6)
        self.assertEqual({path: self.models()[path] for path in models}, models)
        fewer = self.reproduce("temporal", "--row", "wikimath", "--seeds", "1")
        self.assertIn("(3 of 10)", fewer.out)

    def check_wikimath(self, seeds):
        """Runs that many, compares what is recorded with the runs' own files; gives the result of a second call."""
        args = ["temporal", "--row", "wikimath", "--seeds", seeds]
        self.reproduce(*args)
        record = json.loads((self.folder / "results/temporal-wikimath.json").read_text(encoding="utf-8"))
        self.assertEqual((record["planned"], record["dataset"], record["metric"]), (10, "wikimath", "mse"))
        self.assertEqual([run["seed"] for run in record["runs"]], list(range(seeds)))
        for run in record["runs"]:
            folder = self.folder / f"runs/reproduce/temporal/wikimath/split-0-seed-{run['seed']}"
            own = json.loads((folder / "record.json").read_text(encoding="utf-8"))
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
        ours = f"{mean_and_deviation([run['value'] for run in record['runs']], 4)} ({seeds} of 10)"
        self.assertIn(["wikimath", "0.5090 ± 0.0080", "HMM4G 0.5420 ± 0.0080", ours, "not comparable"],
                      table_rows(again.out))
        self.assertIn(f"\nwikimath: {record['protocol']}\n", again.out)
        self.assertEqual(self.listed()["temporal", "wikimath"][2:], ["here", ours])
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
        self.assertEqual([(row[0], row[-1]) for row in rows], [(name, "not run") for name in names])
        self.assertEqual(program.contents(self.folder), {})

    def test_one_row_without_files_is_enough_to_say_so(self):
        for args in (["lrgb", "--row", "peptides-struct"], ["hetero", "--quick", "--row", "tolokers"]):
            result = self.reproduce(*args)
            self.assertEqual(len(result.err.splitlines()), 1)
            self.assertIn(f"{args[-1]}: not run, the files of {args[-1]} are absent", result.err)


class Page(Reproduce):
    def test_without_results_no_row_was_run(self):
        (self.folder / "results").mkdir()
        rows = page_rows(self.page())
        self.assertEqual(set(rows), set(ROWS))
        for key, cells in rows.items():
            self.assertEqual(list(cells.values())[3:], ["not run", "", "", "", "", "", ""], key)
            for other in ROWS[key].get("others", []):
                self.assertIn(other["name"], cells["others there"], key)
        self.assertEqual(self.page("--results", "nowhere"), self.page())

    def check(self, experiment, row, values, verdict, notes, **changes):
        """The line of one recorded row; the others were not run."""
        keys = ROWS[experiment, row]
        scale = keys.get("scale", 1)
        result = result_of(experiment, row, values, **changes)
        with self.subTest(experiment=experiment, row=row, values=values):
            path = self.record(result)
            cells = page_rows(self.page())
            numbers = mean_and_deviation([scale * value for value in values], 2 if scale > 1 else 4)
            ours = f"{numbers} ({len(values)} of {num_runs(keys)})"
            own = cells.pop((experiment, row))
            self.assertEqual((own["ours"], own["verdict"]), (ours, verdict))
            self.assertEqual(own["validation"],
                             mean_and_deviation([scale * (value - 0.25) for value in values], 2 if scale > 1 else 4))
            self.assertEqual((own["parameters"], own["code"]), ("4321", COMMIT[:9]))
            self.assertEqual(own["ms per step"], "100.0")  # of the fastest run
            self.assertEqual(own["notes"], notes)
            self.assertEqual({other["ours"] for other in cells.values()}, {"not run"})
            path.unlink()

    def check_verdict(self, experiment, row, values, *words, notes=""):
        """words: of the printed number and of the other models, in their order."""
        keys = ROWS[experiment, row]
        printed = [(keys["paper"], keys.get("paper_std", 0), keys.get("paper_raw", False), "")]
        printed += [(other["value"], other.get("std", 0), other.get("raw", False), f"to {other['name']}: ")
                    for other in keys.get("others", [])]
        scaled = [keys.get("scale", 1) * value for value in values]
        self.assertEqual(len(words), len(printed))
        verdict = "; ".join(
            name + words_of(word, keys, interval(keys, scaled, on_our_scale(keys, value, raw), deviation))
            for word, (value, deviation, raw, name) in zip(words, printed))
        self.check(experiment, row, values, verdict, notes)

    def test_verdicts_are_differences_with_their_intervals(self):
        def raw(values):
            return "raw labels: " + mean_and_deviation([value + 2.5 for value in values], 4)

        shown, better, worse = "no difference shown", "better", "worse"
        for values, *words in (([-3.9, -3.91, -3.9, -3.89], better, better, better),
                               # 0.1 below the printed number, as wide as it is; above A-DGN and GPS.
                               ([-3.4151, -3.2682, -3.3764, -3.3022], shown, shown, worse),
                               ([-2.8, -2.81, -2.8, -2.79], worse, worse, worse),
                               ([-3.2353, -3.2353, -3.2353, -3.2353], shown, worse, worse)):
            self.check_verdict("gpp", "diameter", values, *words, notes=raw(values))
        for values, *words in (([0.9852 + 0.0005 * (i % 3) for i in range(10)], better, better),
                               ([0.965 + 0.001 * (i % 3) for i in range(10)], better, worse),
                               ([0.953 + 0.002 * (i % 3) for i in range(10)], shown, worse),
                               ([0.93 + 0.001 * i for i in range(10)], worse, worse)):
            self.check_verdict("hetero", "minesweeper", values, *words)
        self.check_verdict("lrgb", "peptides-struct", [0.2312, 0.2313, 0.2311], better, better)

    def test_fewer_runs_than_the_protocol_get_no_verdict(self):
        for count in (1, 2, 3):
            values = [-3.9 - 0.01 * i for i in range(count)]
            self.check("gpp", "diameter", values, f"no verdict, {count} of 4 runs",
                       "raw labels: " + mean_and_deviation([value + 2.5 for value in values], 4))
        self.check("hetero", "minesweeper", [0.99] * 9, "no verdict, 9 of 10 runs", "")
        # The protocol is that of the rows, whatever the file thought was planned.
        self.check("hetero", "minesweeper", [0.99] * 2, "no verdict, 2 of 10 runs", "", planned=2)

    def test_a_row_with_unfair_help_says_so_and_gets_no_verdict(self):
        for row in ("published-sssp", "published-sssp-dense"):
            values = [-6.8, -6.7, -6.9, -6.8]
            self.assertIn("model.gso=laplacian", ROWS["gpp", row]["settings"])
            self.check("gpp", row, values, "no verdict, oracle operator",
                       f"oracle operator; {ROWS['gpp', row]['about']}; raw labels: "
                       + mean_and_deviation([value + 2.5 for value in values], 4))
        # Whoever else is given the label's own operator has to say so, too.
        for key, row in ROWS.items():
            if "sssp" in row["dataset"]:
                self.assertEqual("model.gso=laplacian" in row["settings"], "unfair" in row, key)

    def test_other_models_stand_on_our_scale(self):
        page = page_rows(self.page())
        self.assertEqual(page["gpp", "diameter"]["others there"],
                         "A-DGN -3.5558 ± 0.1812 (printed -0.5188 on raw labels); "
                         "GPS -3.5491 ± 0.0426 (printed -0.5121 on raw labels)")
        self.assertIn("GPS -6.0977", page["gpp", "published-sssp"]["others there"])
        self.assertIn("A-DGN -2.5246", page["gpp", "published-eccentricity"]["others there"])
        self.assertEqual(page["ablation", "diameter-gcn"]["paper"], "-2.2946 ± 0.0466 (printed 0.7424 on raw labels)")
        self.assertEqual(page["hetero", "minesweeper"]["others there"], "CO-GNN 97.31 ± 0.41")

    def test_what_a_file_does_not_say_is_shown_as_that(self):
        values = [-3.4, -3.3, -3.35, -3.45]
        new = result_of("gpp", "diameter", values)
        self.record(new)
        page = self.page()
        self.assertIn("Of 1 files here, 0 have no validation value; 0 do not say for certain which commit ran.", page)
        self.assertIn("Machine of the runs: an abacus, 2 CPUs, libtorch 2.0.0 (4).", page)
        self.assertNotIn("not that of the code that ran", page)
        self.assertIn(mean_and_deviation([value - 0.25 for value in values], 4),
                      page_rows(page)["gpp", "diameter"]["validation"])
        changed = [{**new["runs"][0], "dirty": True}, *new["runs"][1:]]
        self.record({**new, "runs": changed})
        self.assertEqual(page_rows(self.page())["gpp", "diameter"]["code"],
                         f"{COMMIT[:9]}; {COMMIT[:9]}, files changed")
        old = older(new, version="0.2.0+1028ee652")
        self.record(old)
        page = self.page()
        own = page_rows(page)["gpp", "diameter"]
        self.assertEqual((own["validation"], own["code"]), ("not recorded", "0.2.0+1028ee652, commit not certain"))
        self.assertIn("Of 1 files here, 1 have no validation value; 1 do not say for certain which commit ran.", page)
        self.assertIn("Machine of the runs: not recorded (4).", page)
        self.record({**old, "version_matches": False})
        page = self.page()
        self.assertIn("In 1 of them the version in the file is not that of the code that ran", page)
        self.assertEqual(page_rows(page)["gpp", "diameter"]["code"], "0.2.0+1028ee652, not the code that ran")

    def test_recorded_files_whose_version_is_not_that_of_the_code_say_so(self):
        wrong = [path.name for path in sorted((ROOT / "results").glob("*-*.json"))
                 if not json.loads(path.read_text(encoding="utf-8")).get("version_matches", True)]
        # Settings that the version in the file did not have. A row that is run again drops out.
        for name in wrong:
            self.assertRegex(name, "^(ablation-diameter|temporal|traffic|gpp-diameter|hetero-minesweeper)")

    def test_what_cannot_be_compared(self):
        about = "the true eccentricity; not in the paper; raw labels: 1.4500 ± 0.0707"
        self.check("gpp", "eccentricity", [-1.1, -1.0], "not in the paper", about)
        about = ROWS["temporal", "chickenpox-0.9"]["about"]
        for values, verdict in (([0.8124, 0.8013, 0.7902], "not comparable"), ([0.8224, 0.8313], "not comparable")):
            refit, best = (mean_and_deviation([value - less for value in values], 4) for less in (0.0625, 0.125))
            self.check("temporal", "chickenpox-0.9", values, verdict,
                       f"{about}; trained again with the validation part: {refit} at the selected epoch, "
                       f"{best} at the best test epoch")
        references = [{"name": "last value", "test": {"mae_12": 5.4321, "mae_6": 4.321}}, {"name": "none", "test": {}}]
        self.check("traffic", "pems-bay-67", [2.5], "not comparable",
                   f"{ROWS['traffic', 'pems-bay-67']['about']}; last value 5.432; mae_3: 3.5000; "
                   "mae_6: 3.5000 (last value 4.321)", references=references)

    def test_dense_and_diagonal_are_compared_on_the_runs_of_both(self):
        self.assertNotIn("Dense against diagonal", self.page())
        self.record(result_of("hetero", "tolokers", [0.85, 0.84, 0.83]))
        self.assertNotIn("Dense against diagonal", self.page())
        self.record(result_of("hetero", "tolokers-dense", [0.82, 0.81]))
        section = self.page().split("## Dense against diagonal")[1]
        self.assertEqual(markdown_rows(section), [["hetero", "tolokers", "84.50 ± 0.71 (2 of 10)",
                                                   "81.50 ± 0.71 (2 of 10)", "no verdict, -3.00", "higher", "100.0",
                                                   "100.0"]])

    def test_dense_minus_diagonal_is_taken_run_by_run(self):
        keys = ROWS["temporal", "chickenpox-0.8"]
        diagonal = [0.7 + 0.1 * (i % 2) for i in range(10)]  # far more spread than the difference
        for name, change, word in (("better", -0.01, "better"), ("worse", 0.01, "worse"), ("same", 0.0, None)):
            dense = [value + change + 0.001 * (i % 3 - 1) for i, value in enumerate(diagonal)]
            self.record(result_of("temporal", "chickenpox-0.8", diagonal))
            self.record(result_of("temporal", "chickenpox-0.8-dense", dense))
            numbers = interval(keys, [a - b for a, b in zip(dense, diagonal)], 0.0, 0.0)
            row = markdown_rows(self.page().split("## Dense against diagonal")[1])[0]
            self.assertEqual(row[4], words_of(word or "no difference shown", keys, numbers), name)

    def test_page_table_and_list_say_the_same(self):
        recorded = {("gpp", "diameter"): [-3.31, -3.402], ("hetero", "minesweeper"): [0.9741, 0.9752],
                    ("hetero", "roman-empire"): [0.8911], ("temporal", "chickenpox-0.8"): [0.8124, 0.8013, 0.7902]}
        for key, values in recorded.items():
            self.record(result_of(*key, values))
        page, listed = page_rows(self.page()), self.listed()
        self.assertEqual({key for key, row in listed.items() if row[3] != "no"}, set(recorded))
        for experiment in ("gpp", "hetero", "temporal"):
            out = self.reproduce(experiment).out
            table = {line[0]: line for line in table_rows(out)}
            for key, cells in page.items():
                if key[0] == experiment and key in recorded:
                    self.assertEqual(table[key[1]], list(cells.values())[:5])
                    self.assertEqual(listed[key][3], cells["ours"])
                    self.assertIn(f"\n{key[1]}: as {key[1]} is done\n", out)
                elif key[0] == experiment:
                    self.assertEqual(table[key[1]][-1], "not run")

    def test_the_page_in_the_documents_is_up_to_date(self):
        page = self.page("--results", ROOT / "results")
        self.assertTrue((ROOT / "docs/results.md").exists(), "docs/results.md: mpssm reproduce --page docs/results.md")
        self.assertEqual((ROOT / "docs/results.md").read_text(encoding="utf-8"), page)


class Readme(unittest.TestCase):
    """The table in README.md quotes the records."""

    LINES = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]

    def values(self, experiment, row):
        path = ROOT / "results" / f"{experiment}-{row}.json"
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return [ROWS[experiment, row].get("scale", 1) * run["value"] for run in runs]

    def line(self, start):
        found = [line for line in self.LINES if line.startswith(f"| {start}")]
        self.assertEqual(len(found), 1, start)
        return found[0]

    def test_means_deviations_and_runs(self):
        for start, experiment, row, digits, unit in (
                ("`minesweeper`", "hetero", "minesweeper", 2, "splits"), ("`tolokers`", "hetero", "tolokers", 2, "splits"),
                ("`diameter`", "gpp", "diameter", 3, "seeds"), ("the same, *oracle", "gpp", "published-sssp", 3, "seeds"),
                ("`gpp-published-eccentricity`", "gpp", "published-eccentricity", 3, "seeds"),
                ("`eccentricity`", "gpp", "eccentricity", 3, "seeds")):
            values = self.values(experiment, row)
            self.assertIn(f"| {mean_and_deviation(values, digits)}, {len(values)} {unit}", self.line(start))
        values = self.values("ablation", "published-sssp-mpssm")
        self.assertIn(f"| {statistics.mean(values):.2f}, {len(values)} seeds of 4 |", self.line("`gpp-published-sssp`"))
        for name in ("chickenpox", "pedalme"):
            means = [statistics.mean(self.values("temporal", f"{name}-{split}")) for split in ("0.9", "0.8")]
            self.assertIn(f"| {means[0]:.3f} / {means[1]:.3f}, 10 seeds |", self.line(f"`{name}`"))
        for name in ("metr-la-29", "pems-bay-67"):
            values = self.values("traffic", name)
            self.assertEqual(len(values), 1)
            self.assertIn(f"| {values[0]:.2f}, 1 seed |", self.line(f"`{name}`"))

    def test_intervals(self):
        for start, experiment, row, others in (("`minesweeper`", "hetero", "minesweeper", ["CO-GNN"]),
                                               ("`tolokers`", "hetero", "tolokers", []),
                                               ("`diameter`", "gpp", "diameter", ["A-DGN"]),
                                               ("`gpp-published-ecc", "gpp", "published-eccentricity", [])):
            keys = ROWS[experiment, row]
            printed = [(keys["paper"], keys["paper_std"])]
            printed += [(on_our_scale(keys, other["value"], other.get("raw", False)), other["std"])
                        for other in keys["others"] if other["name"] in others]
            for number, deviation in printed:
                _, low, high = interval(keys, self.values(experiment, row), number, deviation)
                self.assertIn(f"[{low:+.2f}, {high:+.2f}]", self.line(start))


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
        self.assertIn(out.strip(), self.page("--results", self.RESULTS))
        return rows, kept["rows"]

    def test_runtime(self):
        rows, kept = self.measure("runtime")
        networks = {"GCN", "MP-SSM, dense W", "MP-SSM, diagonal W"}
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
        for path in ("mpssm/a.cpp", "results/a.json"):
            self.write(path, "1")
        self.assertEqual(self.stamp(), ("", "false"))  # no checkout
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "a")
        commit = self.git("rev-parse", "HEAD")
        self.assertEqual(self.stamp(), (commit, "false"))
        written = (self.folder / "out.cpp").stat().st_mtime_ns
        self.write("results/a.json", "2")  # recorded results are no sources
        self.assertEqual(self.stamp(), (commit, "false"))
        self.assertEqual((self.folder / "out.cpp").stat().st_mtime_ns, written)  # nothing to compile again
        self.write("mpssm/a.cpp", "2")
        self.assertEqual(self.stamp(), (commit, "true"))
        self.write("mpssm/a.cpp", "1")
        self.assertEqual(self.stamp(), (commit, "false"))
        self.write("mpssm/new.cpp", "1")
        self.assertEqual(self.stamp(), (commit, "true"))


class Refusals(Reproduce):
    GOOD = result_of("gpp", "diameter", [-3.0, -3.1])
    FILE = "results/gpp-diameter.json"

    def refuse_result(self, content, *phrases):
        self.write(self.FILE, content if isinstance(content, str) else json.dumps(content))
        self.refuse(["reproduce", "--page", "page.md"], self.FILE, "not a result", *phrases)

    def test_a_result_that_was_cut_off(self):
        text = json.dumps(self.GOOD, indent=1)
        self.write(self.FILE, text)
        self.page()
        for length in (0, 1, len(text) // 2, len(text) - 1):
            self.refuse_result(text[:length])
        self.refuse(["reproduce", "--list"], self.FILE, "not a result")

    def test_a_result_that_lacks_something(self):
        for key in ("metric", "parameters", "planned", "runs", "references"):
            self.refuse_result({other: value for other, value in self.GOOD.items() if other != key}, f"'{key}'")
        for key in ("seed", "value", "raw", "refit", "best_test", "steps", "seconds"):
            run = {other: value for other, value in self.GOOD["runs"][1].items() if other != key}
            self.refuse_result({**self.GOOD, "runs": [self.GOOD["runs"][0], run]}, f"'{key}'")
        self.refuse_result({**self.GOOD, "runs": []}, "runs")

    def test_a_result_with_something_else_in_it(self):
        for content in ("[]", "null", "no json"):
            self.refuse_result(content)
        for key, value in (("runs", 3), ("parameters", "many"), ("references", [{}])):
            self.refuse_result({**self.GOOD, key: value})
        for value in (None, "-3"):
            self.refuse_result({**self.GOOD, "runs": [{**self.GOOD["runs"][0], "value": value}]})

    def test_a_result_with_the_raw_number_of_some_runs_only(self):
        first, second = self.GOOD["runs"]
        self.refuse_result({**self.GOOD, "runs": [first, {**second, "raw": None}]})

    def test_damaged_measurements(self):
        for name in ("runtime", "figure"):
            for content in ('{"nodes": 100, "ro', "{}", "[]"):
                path = self.write(f"results/{name}.json", content)
                self.refuse(["reproduce", "--page", "page.md"], f"results/{name}.json")
                path.unlink()

    def test_what_is_not_there(self):
        self.refuse(["reproduce", "nonsense"], "nonsense", "gpp", "figure", code=2)
        self.refuse(["reproduce"], "experiment", "--list", "--page")
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
