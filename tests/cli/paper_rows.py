# SPDX-License-Identifier: MIT
"""What the tests of mpssm reproduce share: the rows of the paper's tables, records of them, verdicts computed anew."""

import json
import math
import re
import statistics
import tomllib
from pathlib import Path

from refusal import BadInput

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ["row", "paper", "others there", "ours", "verdict", "validation", "audit", "parameters", "ms per step",
           "peak MiB", "code", "notes"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read_rows():
    """{(experiment, row): keys}, those of the experiment and of the row it is like included."""
    rows = {}
    for path in (ROOT / "configs" / "reproduce").glob("*.toml"):
        if path.stem == "ranks":
            continue
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
    """What a finished row leaves, its runs apart: run i takes i + 1 seconds for 10 steps."""
    keys = ROWS[experiment, row]
    runs = [{"seed": i, "split": 0, "value": value, "validation": value - 0.25,
             "raw": value + 2.5 if "raw_metric" in keys else None,
             "also": {metric: value + 1.0 for metric in keys.get("also", [])},
             "refit": value - 0.0625 if keys.get("refit") else None,
             "best_test": value - 0.125 if keys.get("refit") else None, "best_step": 5, "steps": 10,
             "seconds": i + 1.0, "peak_mib": 120.0, "commit": COMMIT, "dirty": False, "machine": "an abacus, 2 CPUs",
             "libtorch": "2.0.0", "config": f"seed = {i}\n"} for i, value in enumerate(values)]
    return {"experiment": experiment, "row": row, "dataset": keys["dataset"], "metric": keys["metric"],
            "protocol": f"as {row} is done", "version": "0.0.0", "version_matches": True, "parameters": 4321,
            "planned": num_runs(keys), "compared": 1, "chosen": "", "references": [], "runs": runs, **changes}


def lines_of(result):
    """The same as lines of results/<experiment>.jsonl: what the runs have in common stands in each."""
    common = {key: value for key, value in result.items() if key != "runs"}
    return [json.dumps({**common, **run}) for run in result["runs"]]


def recorded_runs(path, row):
    """The runs of a row in such a file."""
    runs = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [run for run in runs if run["row"] == row]


def older(result, **changes):
    """The same as it was recorded before runs said this of themselves."""
    unknown = {"validation": None, "commit": "", "dirty": None, "machine": "", "libtorch": ""}
    return {**result, "compared": None, "runs": [{**run, **unknown} for run in result["runs"]], **changes}


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
        """{(experiment, row): [dataset, runs, files, state, audit]}, the last one of recorded rows"""
        header, *rows = table_rows(self.reproduce("--list").out)
        self.assertEqual(header, ["experiment", "row", "dataset", "runs", "files", "state", "audit"])
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
        """Puts the lines of a row behind those of the others."""
        name = f"results/{result['experiment']}.jsonl"
        old = (self.folder / name).read_text(encoding="utf-8").splitlines() if (self.folder / name).exists() else []
        others = [line for line in old if json.loads(line)["row"] != result["row"]]
        return self.write(name, "".join(line + "\n" for line in [*others, *lines_of(result)]))
