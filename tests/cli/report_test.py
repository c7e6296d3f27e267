#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.html as a reader sees it: in a browser from file://, in both themes, by mouse and by keys; its numbers
against those of mpssm sensitivity."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import browser
import program

SMALL = ["--quiet", "--set", "train.epochs=6", "--set", "model.channels=8", "--set", "model.blocks=2", "--set",
         "model.hops=3"]
NODES = "id,height,label\n" + "".join(f'"n<{i}>&",{(7 * i) % 11},{"abc"[i % 3]}\n' for i in range(24))
EDGES = "src,dst,weight\n" + "".join(f'"n<{i}>&","n<{(i + step) % 24}>&",{1 + 0.5 * (i % 4)}\n'
                                     for i in range(24) for step in (1, 5))
TAB, ARROW_RIGHT, ENTER, ARROW_DOWN = "\ue004", "\ue014", "\ue007", "\ue015"

CONTRAST = """
const channel = (v) => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const behind = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    layers.push(c.length === 4 ? c : [...c, 1]);
    if (layers.at(-1)[3] === 1) break;
  }
  let under = layers.at(-1)[3] === 1 ? layers.pop() : [255, 255, 255, 1];
  for (const layer of layers.reverse()) under = under.map((v, k) => k < 3 ? layer[3] * layer[k] + (1 - layer[3]) * v : 1);
  return under;
};
const bad = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("script, .picture, .skip")) continue;
  const style = getComputedStyle(element);
  const ink = numbers(element.closest("svg") ? style.fill : style.color).slice(0, 3);
  const paper = behind(element.closest("svg") || element);
  const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${element.tagName} ${walker.currentNode.textContent.trim().slice(0, 30)}`);
}
return bad;
"""
NAMELESS = """
const named = (e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || (e.labels && e.labels.length) ||
  e.textContent.trim() || e.title;
return [...document.querySelectorAll("a, button, input, select, svg, [tabindex]")].filter((e) => !named(e)).map((e) => e.outerHTML.slice(0, 90));
"""
VALUES = """
return Object.fromEntries([...document.querySelectorAll("#ex-svg circle[data-node]")].map((c) => [c.dataset.node, [Number(c.dataset.value), c.getAttribute("fill")]]));
"""


class Folder(unittest.TestCase):
    """Runs that all tests look at."""

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.folder = Path(cls.holder.name)
        program.run(["train", "board:12x12", "--out", "board", *SMALL], cls.folder)
        own = cls.folder / "own"
        own.mkdir()
        (own / "nodes.csv").write_text(NODES)
        (own / "edges.csv").write_text(EDGES)
        program.run(["train", "own", "--out", "mine", "--set", "model.state=dense", *SMALL], cls.folder)

    def page(self, name="board/report.html"):
        return self.folder / name

    def mpssm(self, *args):
        result = program.run(args, self.folder)
        self.assertEqual(result.code, 0, result.err)
        return result.out


class Files(Folder):
    """What needs no browser."""

    def test_every_run_has_one(self):
        for run in ("board", "mine"):
            text = self.page(f"{run}/report.html").read_text()
            self.assertTrue(text.startswith("<!doctype html>\n<!-- mpssm report -->"))
            self.assertLess(len(text), 1_000_000)
            self.assertNotIn("<script>alert", text)
            self.assertIsNone(re.search(r"(?:src|href)=.?https?:", text))

    def test_is_made_again_the_same(self):
        before = self.page().read_text()
        self.assertEqual(self.mpssm("report", "board"), "board/report.html\n")
        self.assertEqual(self.page().read_text(), before)

    def test_compares_runs_side_by_side(self):
        self.mpssm("train", "board:12x12", "--seeds", "0-2", "--out", "seeds", *SMALL)
        self.mpssm("report", "seeds", "--out", "seeds.html")
        text = self.page("seeds.html").read_text()
        self.assertIn("3 runs on board:12x12", text)
        summary = json.loads(self.page("seeds/summary.json").read_text())
        self.assertIn(f">{summary['test_mean']:.4g}<", text)
        self.mpssm("report", "seeds/split-0-seed-0", "board", "--out", "two.html")
        both = self.page("two.html").read_text()
        self.assertIn("2 runs", both)
        # Where predictions listen, a line for each run, the numbers of mpssm sensitivity.
        found = json.loads(self.mpssm("sensitivity", "board", "--predictions", "5", "--compare", "seeds/split-0-seed-0", "--json"))
        for run in ("predictions", "compare"):
            self.assertIn(f">{found[run]['mean_hop']:.2f}<", both)

    def test_no_stranger_is_replaced(self):
        self.page("table.html").write_text("mine")
        result = program.run(["report", "board", "--out", "table.html"], self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("table.html", result.err)
        self.assertEqual(self.page("table.html").read_text(), "mine")

    def test_what_is_no_run_is_refused(self):
        for name in ("nothing", "own"):
            result = program.run(["report", name], self.folder)
            self.assertEqual((result.code, result.err.count("\n")), (1, 1), result.err)

    def test_without_its_data_the_page_says_so(self):
        self.mpssm("train", "own", "--out", "orphan", *SMALL)
        (self.folder / "own" / "nodes.csv").rename(self.folder / "away.csv")
        try:
            self.mpssm("report", "orphan", "--out", "orphan.html")
        finally:
            (self.folder / "away.csv").rename(self.folder / "own" / "nodes.csv")
        self.assertIn("Predictions and graph are not shown", self.page("orphan.html").read_text())

    def test_every_page_has_advice(self):
        text = self.page().read_text()
        for words in ("edges that the loss of the validation part", "hops until 50 % of the limit", "with the edge",
                      "Where predictions listen, by hops", "Shapley values", "Integrated gradients"):
            self.assertIn(words, text)
        found = json.loads(self.mpssm("advise", "board", "--edges", "5", "--json"))["edges"]
        self.assertIn(f"{found['harmful'][0]['loss_without']:.6g}", text)

    def test_show_prints_the_record(self):
        text = self.mpssm("show", "board")
        record = json.loads(self.page("board/record.json").read_text())
        self.assertIn(f"{record['metrics']['test']['roc_auc']:.4f}", text)
        self.assertIn("model.hops", text)

    def test_large_graphs_stay_small_files(self):
        self.mpssm("train", "board:250x400", "--out", "large", "--quiet", "--set", "train.epochs=1", "--set",
                   "model.channels=4", "--set", "model.blocks=1", "--set", "model.hops=2")
        text = self.page("large/report.html").read_text()
        self.assertLess(len(text), 2_000_000)
        self.assertIn("of the 100,000 nodes", text)


@unittest.skipUnless(browser.IS_THERE, "needs chromium and chromium-driver (apt-get install)")
class InABrowser(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.light = browser.Browser()
        cls.addClassCleanup(cls.light.close)

    def look(self, name="board/report.html"):
        self.light.open(self.page(name))
        return self.light

    def sensitivity(self, run, source, target, tau, block):
        out = self.mpssm("sensitivity", run, "--source", source, "--target", target, "--tau", tau, "--block", block, "--json")
        return json.loads(out)["profile"][0]["value"]

    def test_loads_without_a_complaint_in_both_themes_and_can_be_read(self):
        dark = browser.Browser(dark=True)
        self.addCleanup(dark.close)
        papers = []
        for window in (self.light, dark):
            for name in ("board/report.html", "mine/report.html"):
                window.open(self.page(name))
                self.assertEqual(window.errors(), [])
                self.assertEqual(window.run(CONTRAST), [])
                self.assertEqual(window.run(NAMELESS), [])
                self.assertGreater(len(window.run(VALUES)), 20)
            papers.append(window.run("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(dark.run("return matchMedia('(prefers-color-scheme: dark)').matches"), True)
        self.assertNotEqual(*papers)
        dark.print_media()  # paper is white, whatever people prefer on a screen
        self.assertEqual(dark.run("return getComputedStyle(document.body).backgroundColor"), papers[0])
        self.assertEqual(dark.run(CONTRAST), [])

    def test_a_click_shows_the_numbers_of_mpssm_sensitivity(self):
        window = self.look()
        before = window.run(VALUES)
        window.click('#ex-svg circle[data-node="40"]')
        after = window.run(VALUES)
        self.assertNotEqual(before, after)
        colours = len({colour for _, colour in after.values()})
        self.assertGreater(colours, 4)
        for source in ("40", "27", "53", "65"):
            self.assertAlmostEqual(after[source][0], self.sensitivity("board", source, "40", "3", "1"), delta=1e-6)
        self.assertEqual(after["0"][0], 0)
        self.assertIn("Node 40", window.run("return document.getElementById('ex-status').textContent"))
        self.assertEqual(window.errors(), [])

    def test_weights_blocks_and_hops_count(self):
        window = self.look("mine/report.html")
        window.type("#ex-node", "n<3>&", clear=True)
        window.press(ENTER)
        window.run("const b = document.getElementById('ex-block'); b.value = '1'; b.dispatchEvent(new Event('change'))")
        for tau in ("1", "7"):
            window.run("const h = document.getElementById('ex-hops'); h.value = arguments[0]; h.dispatchEvent(new Event('input'))", tau)
            values = window.run(VALUES)
            for source in (2, 3, 8, 20):
                expected = self.sensitivity("mine", f"n<{source}>&", "n<3>&", tau, "2")
                self.assertAlmostEqual(values[str(source)][0], expected, delta=1e-6)
        self.assertEqual(window.errors(), [])

    def test_the_slider_moves_colours_and_curve(self):
        window = self.look()
        state = "return [document.getElementById('ex-tau').textContent, document.getElementById('ex-curve-mark').getAttribute('d')]"
        before, colours = window.run(state), window.run(VALUES)
        window.type("#ex-hops", ARROW_RIGHT)
        after = window.run(state)
        self.assertEqual(int(after[0]), int(before[0]) + 1)
        self.assertNotEqual(after[1], before[1])
        self.assertNotEqual(window.run(VALUES), colours)

    def test_other_colours_are_those_of_the_table(self):
        window = self.look()
        window.run("const b = document.getElementById('ex-by'); b.value = '1'; b.dispatchEvent(new Event('change'))")
        values = window.run(VALUES)
        rows = [line.split(",") for line in self.page("board/predictions.csv").read_text().splitlines()[1:]]
        for row in rows[::17]:
            self.assertAlmostEqual(values[row[0]][0], float(row[-1]), delta=1e-6)

    def test_worst_pairs_can_be_jumped_to(self):
        window = self.look()
        pairs = window.run("return explorer.data.worst")
        self.assertEqual(len(pairs), 8)
        least = json.loads(self.mpssm("sensitivity", "board:12x12", "--worst", "1", "--tau", "11", "--json"))["worst"][0]
        self.assertEqual([int(least["source"]), int(least["target"])], pairs[0])
        self.assertGreater(float(least["value"]), 0)  # 11 hops from corner to corner
        window.click("#ex-worst button:nth-of-type(2)")
        self.assertEqual(window.run("return [explorer.state.source, explorer.state.target]"), pairs[1])
        self.assertEqual(window.errors(), [])

    def test_bridges_limit_and_bounds_of_a_chain(self):
        self.mpssm("sensitivity", "--make", "clique-chain:4x6", "--tau", "0:60", "--bounds", "--html", "chain.html")
        window = self.look("chain.html")
        self.assertEqual(window.errors(), [])
        bridges = window.run("return document.querySelector('#ex-svg .bridges').getAttribute('d').split('M').length - 1")
        self.assertEqual(bridges, len(window.run("return explorer.data.bridges")))
        self.assertGreater(bridges, 2)
        self.assertIn("bridge", window.run("return document.getElementById('ex-marks').textContent"))
        source, target = window.run("return [explorer.state.source, explorer.state.target]")
        told = json.loads(self.mpssm("sensitivity", "--make", "clique-chain:4x6", "--source", str(source), "--target", str(target),
                                     "--tau", "20", "--bounds", "--limit", "--json"))
        limit = window.run("const l = explorer.limitOf(explorer.state.target, explorer.state.source); return [l.q, l.error(20)]")
        self.assertAlmostEqual(limit[0], told["limit"], delta=1e-12)
        self.assertAlmostEqual(limit[0] + limit[1], told["bounds"]["at"][0]["upper"], delta=1e-9)
        self.assertIn("its limit", window.run("return document.getElementById('ex-curve').textContent"))

    def test_advised_edges_are_drawn(self):
        self.mpssm("advise", "clique-chain:4x6", "--rewire", "2", "--tau", "20", "--html", "advice.html")
        window = self.look("advice.html")
        self.assertEqual(window.errors(), [])
        self.assertEqual(window.run("return document.querySelector('#ex-svg .advised').getAttribute('d').split('M').length - 1"), 2)
        self.assertEqual(window.run(CONTRAST), [])
        self.assertEqual(window.run(NAMELESS), [])

    def test_headings_sort(self):
        window = self.look()
        column = """const t = [...document.querySelectorAll('table.sortable')].find((t) => t.caption.textContent.startsWith('Worst'));
            return [...t.tBodies[0].rows].map((row) => Number(row.cells[3].textContent));"""
        rising = window.run(column)
        self.assertGreater(len(rising), 3)
        self.assertEqual(rising, sorted(rising))
        press = """const t = [...document.querySelectorAll('table.sortable')].find((t) => t.caption.textContent.startsWith('Worst'));
            t.tHead.rows[0].cells[3].querySelector('button').click(); return t.tHead.rows[0].cells[3].getAttribute('aria-sort');"""
        self.assertEqual(window.run(press), "descending")
        self.assertEqual(window.run(column), sorted(rising, reverse=True))
        self.assertEqual(window.run(press), "ascending")
        self.assertEqual(window.run(column), rising)

    def test_everything_can_be_done_by_keys_in_the_order_of_the_page(self):
        window = self.look()
        seen = []
        for _ in range(60):
            window.press(TAB)
            place = window.run("""const e = document.activeElement;
                return e === document.body ? -1 : [...document.querySelectorAll('*')].indexOf(e);""")
            if place < 0 or place in seen:
                break
            seen.append(place)
        self.assertEqual(seen, sorted(seen))
        reached = window.run("return arguments[0].map((k) => document.querySelectorAll('*')[k].id)", seen)
        for wanted in ("ex-by", "ex-node", "ex-hops", "ex-block", "ex-source", "ex-svg"):
            self.assertIn(wanted, reached)
        window.run("document.getElementById('ex-svg').focus()")
        before = window.run("return explorer.state.target")
        window.press(ARROW_DOWN)
        window.press(ENTER)
        self.assertEqual(window.run("return explorer.state.target"), before + 12)

    def test_a_node_that_is_not_there_is_told(self):
        window = self.look()
        window.type("#ex-node", "nobody", clear=True)
        window.press(ENTER)
        self.assertIn("no node nobody", window.run("return document.getElementById('ex-status').textContent"))
        self.assertEqual(window.run("return document.getElementById('ex-node').getAttribute('aria-invalid')"), "true")

    def test_a_part_of_a_large_graph_shows_exact_numbers_only(self):
        self.mpssm("sensitivity", "board:200x200", "--source", "20100", "--target", "20100", "--tau", "0:40", "--html", "part.html")
        window = self.look("part.html")
        self.assertEqual(window.errors(), [])
        values = window.run(VALUES)
        self.assertLessEqual(len(values), 250)
        for source, tau in (("20301", 3), ("20100", 12)):
            expected = json.loads(self.mpssm("sensitivity", "board:200x200", "--source", source, "--target", "20100", "--tau",
                                             str(tau), "--json"))["profile"][0]["value"]
            found = window.run("return explorer.influence(explorer.find(arguments[0]), explorer.state.target, arguments[1], 0)", source, tau)
            self.assertAlmostEqual(found, expected, delta=1e-9)


if __name__ == "__main__":
    unittest.main()
