#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is recorded of the paper's experiments, as the page of mpssm reproduce and README.md show it."""

import json
import statistics
import unittest

from paper_rows import COMMIT, ROOT, ROWS, Reproduce, interval, markdown_rows, mean_and_deviation, num_runs, older, \
    on_our_scale, page_rows, recorded_runs, result_of, table_rows, words_of


class Page(Reproduce):
    def test_without_results_no_row_was_run(self):
        (self.folder / "results").mkdir()
        rows = page_rows(self.page())
        self.assertEqual(set(rows), set(ROWS))
        for key, cells in rows.items():
            self.assertEqual(list(cells.values())[3:], ["not begun", "", "", "", "", "", "", "", ""], key)
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
            self.assertEqual({other["ours"] for other in cells.values()}, {"not begun"})
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
        # Whoever else is given the label's own operator, or inputs that the printed models were not, has to say so, too.
        for key, row in ROWS.items():
            if key[0] not in ("gpp", "ladder"):
                continue
            has_label = "sssp" in row["dataset"] and "model.gso=laplacian" in row["settings"]
            has_inputs = "data.encodings" in " ".join([*row["settings"], *row.get("candidate_grid", [])])
            self.assertEqual(row.get("unfair") == "oracle operator", has_label, key)
            self.assertEqual("unfair" in row, has_label or has_inputs, key)

    def test_other_models_stand_on_our_scale(self):
        page = page_rows(self.page())
        self.assertEqual(page["gpp", "diameter"]["others there"],
                         "A-DGN -3.5558 ± 0.1812 (printed -0.5188 on raw labels); "
                         "GPS -3.5491 ± 0.0426 (printed -0.5121 on raw labels)")
        self.assertIn("GPS -6.0977", page["gpp", "published-sssp"]["others there"])
        self.assertIn("A-DGN -2.5246", page["gpp", "published-eccentricity"]["others there"])
        self.assertEqual(page["ladder", "diameter-gcn"]["paper"], "-2.2946 ± 0.0466 (printed 0.7424 on raw labels)")
        self.assertEqual(page["hetero", "minesweeper"]["others there"], "CO-GNN 97.31 ± 0.41")

    def test_what_a_file_does_not_say_is_shown_as_that(self):
        values = [-3.4, -3.3, -3.35, -3.45]
        new = result_of("gpp", "diameter", values)
        self.record(new)
        page = self.page()
        self.assertIn("Of 1 rows here, 0 have no validation value; 0 do not say for certain which commit ran.", page)
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
        self.assertIn("Of 1 rows here, 1 have no validation value; 1 do not say for certain which commit ran.", page)
        self.assertIn("Machine of the runs: not recorded (4).", page)
        self.record({**old, "version_matches": False})
        page = self.page()
        self.assertIn("In 1 of them the version in the file is not that of the code that ran", page)
        self.assertEqual(page_rows(page)["gpp", "diameter"]["code"], "0.2.0+1028ee652, not the code that ran")

    def test_records_whose_version_is_not_that_of_the_code_say_so(self):
        lines = [json.loads(line) for path in sorted((ROOT / "results").glob("*.jsonl")) if ".selection" not in path.name
                 for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertGreater(len(lines), 100)
        # Settings that the version in the file did not have. A row that is run again drops out.
        for line in lines:
            if not line["version_matches"]:
                self.assertRegex(f"{line['experiment']}-{line['row']}",
                                 "^(temporal|traffic|gpp-diameter|hetero-minesweeper)")

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
                   "mae_6: 3.5000 (last value 4.321); rmse_12: 3.5000; mape_12: 3.5000", references=references)

    def test_a_switch_is_compared_on_the_runs_of_both(self):
        self.assertNotIn("One switch at a time", self.page())
        self.record(result_of("hetero", "tolokers", [0.85, 0.84, 0.83]))
        self.assertNotIn("One switch at a time", self.page())
        self.record(result_of("hetero", "tolokers-dense", [0.82, 0.81]))
        section = self.page().split("## One switch at a time")[1].split("\n## ")[0]
        self.assertEqual(markdown_rows(section), [["hetero", "tolokers", "dense W", "84.50 ± 0.71 (2 of 10)",
                                                   "81.50 ± 0.71 (2 of 10)", "no verdict, -3.00", "higher", "100.0",
                                                   "100.0"]])

    def test_a_rung_is_compared_with_the_one_below_on_the_runs_of_both(self):
        self.record(result_of("ladder", "diameter-linear-gcn", [-2.1, -2.2, -2.15, -2.05]))
        self.assertNotIn("What each rung brings", self.page())
        values = {"diameter-gcn": [-2.2, -2.25, -2.3, -2.2], "diameter-linear-gcn-shared": [-2.1]}
        for row, numbers in values.items():
            self.record(result_of("ladder", row, numbers))
        first, second = markdown_rows(self.page().split("## What each rung brings")[1].split("\n## ")[0])
        keys = ROWS["ladder", "diameter-linear-gcn"]
        self.assertEqual(keys["after"], "diameter-gcn")
        self.assertEqual([first[0], first[2], first[4]], ["diameter-gcn", "diameter-linear-gcn",
                                                          words_of("worse", keys, interval(keys, [0.1, 0.05, 0.15, 0.15], 0.0, 0.0))])
        self.assertEqual([second[0], second[1], second[4]], ["diameter-linear-gcn", "-2.1000 (1 of 4)", "no verdict, +0.0000"])

    def test_what_a_switch_makes_is_taken_run_by_run(self):
        keys = ROWS["temporal", "chickenpox-0.8"]
        diagonal = [0.7 + 0.1 * (i % 2) for i in range(10)]  # far more spread than the difference
        for name, change, word in (("better", -0.01, "better"), ("worse", 0.01, "worse"), ("same", 0.0, None)):
            dense = [value + change + 0.001 * (i % 3 - 1) for i, value in enumerate(diagonal)]
            self.record(result_of("temporal", "chickenpox-0.8", diagonal))
            self.record(result_of("temporal", "chickenpox-0.8-dense", dense))
            numbers = interval(keys, [a - b for a, b in zip(dense, diagonal)], 0.0, 0.0)
            row = markdown_rows(self.page().split("## One switch at a time")[1].split("\n## ")[0])[0]
            self.assertEqual(row[5], words_of(word or "no difference shown", keys, numbers), name)

    def test_page_table_and_list_say_the_same(self):
        recorded = {("gpp", "diameter"): [-3.31, -3.402], ("hetero", "minesweeper"): [0.9741, 0.9752],
                    ("hetero", "roman-empire"): [0.8911], ("temporal", "chickenpox-0.8"): [0.8124, 0.8013, 0.7902]}
        for key, values in recorded.items():
            self.record(result_of(*key, values))
        page, listed = page_rows(self.page()), self.listed()
        self.assertEqual({key for key, row in listed.items() if row[3] != "not begun"}, set(recorded))
        for experiment in ("gpp", "hetero", "temporal"):
            out = self.reproduce(experiment).out
            table = {line[0]: line for line in table_rows(out)}
            for key, cells in page.items():
                if key[0] == experiment and key in recorded:
                    self.assertEqual(table[key[1]], list(cells.values())[:5])
                    self.assertEqual(listed[key][3], cells["ours"])
                    self.assertIn(f"\n{key[1]}: as {key[1]} is done\n", out)
                elif key[0] == experiment:
                    self.assertEqual(table[key[1]][-1], "not begun")

    def test_the_page_in_the_documents_is_up_to_date(self):
        page = self.page("--results", ROOT / "results")
        self.assertTrue((ROOT / "docs/results.md").exists(), "docs/results.md: mpssm reproduce --page docs/results.md")
        self.assertEqual((ROOT / "docs/results.md").read_text(encoding="utf-8"), page)


class Readme(unittest.TestCase):
    """The table in README.md quotes the records."""

    LINES = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]

    def values(self, experiment, row):
        runs = recorded_runs(ROOT / "results" / f"{experiment}.jsonl", row)
        return [ROWS[experiment, row].get("scale", 1) * run["value"] for run in runs]

    def line(self, start):
        found = [line for line in self.LINES if line.startswith(f"| {start}")]
        self.assertEqual(len(found), 1, start)
        return found[0]

    def test_means_deviations_and_runs(self):
        for start, experiment, row, digits, unit in (
                ("`minesweeper`", "hetero", "minesweeper-deep", 2, "splits"), ("`tolokers`", "hetero", "tolokers", 2, "splits"),
                ("`diameter`", "gpp", "diameter", 3, "seeds"), ("`gpp-published-sssp`", "ladder", "published-sssp-ours", 3, "seeds"),
                ("the same, *oracle", "gpp", "published-sssp", 3, "seeds"),
                ("the same, Adam for 1200", "gpp", "diameter-long", 3, "seeds"),
                ("`gpp-published-eccentricity`", "gpp", "published-eccentricity", 3, "seeds"),
                ("`eccentricity`", "gpp", "eccentricity", 3, "seeds"),
                ("`wikimath-reconstructed`", "temporal", "wikimath-reconstructed-weekly", 3, "seeds"),
                ("`metr-la-29`", "traffic", "metr-la-29-weekly", 3, "seeds"),
                ("`pems-bay-67`", "traffic", "pems-bay-67-weekly", 3, "seeds")):
            values = self.values(experiment, row)
            self.assertIn(f"| {mean_and_deviation(values, digits)}, {len(values)} {unit}", self.line(start))
        for name in ("chickenpox", "pedalme"):
            means = [statistics.mean(self.values("temporal", f"{name}-{split}")) for split in ("0.9", "0.8")]
            self.assertIn(f"| {means[0]:.3f} / {means[1]:.3f}, 10 seeds |", self.line(f"`{name}`"))

    def test_intervals(self):
        for start, experiment, row, others in (("`minesweeper`", "hetero", "minesweeper-deep", ["CO-GNN"]),
                                               ("`gpp-published-sssp`", "ladder", "published-sssp-ours", []),
                                               ("`tolokers`", "hetero", "tolokers", []),
                                               ("`diameter`", "gpp", "diameter", ["A-DGN"]),
                                               ("`gpp-published-ecc", "gpp", "published-eccentricity", [])):
            keys = ROWS[experiment, row]
            printed = [(keys["paper"], keys["paper_std"])]
            printed += [(on_our_scale(keys, other["value"], other.get("raw", False)), other["std"])
                        for other in keys.get("others", []) if other["name"] in others]
            for number, deviation in printed:
                _, low, high = interval(keys, self.values(experiment, row), number, deviation)
                self.assertIn(f"[{low:+.2f}, {high:+.2f}]", self.line(start))


if __name__ == "__main__":
    unittest.main()
