#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/extending.md does what it says: its changes fit the sources, compile, and have their effect."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build"))


def changes():
    """(path, [lines that go, lines that come]) of every file in the page, in order."""
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        path = None
        for line in block.splitlines():
            if line.startswith("--- "):
                continue
            if line.startswith("+++ b/"):
                path = line.removeprefix("+++ b/")
            elif line.startswith("@@"):
                found.append((path, [], []))
            else:
                if line[:1] in (" ", "-"):
                    found[-1][1].append(line[1:])
                if line[:1] in (" ", "+"):
                    found[-1][2].append(line[1:])
    return found


def apply(tree):
    """Makes the changes in a copy of the sources; returns the files touched."""
    touched = []
    for path, before, after in changes():
        file = tree / path
        if before:
            text = file.read_text(encoding="utf-8")
            old = "\n".join(before) + "\n"
            if text.count(old) != 1:
                raise AssertionError(f"docs/extending.md: {path} has {text.count(old)} places like\n{old}")
            file.write_text(text.replace(old, "\n".join(after) + "\n"), encoding="utf-8")
        else:
            file.write_text("\n".join(after) + "\n", encoding="utf-8")
        touched.append(path)
    return sorted(set(touched))


def flags_of(name):
    """Compiler and flags of the sources that the build compiles under this name, without precompiled header."""
    entries = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in entries:
        source = Path(entry["file"])
        unity = source.name == f"unity_{name}_cxx.cxx"
        if not unity and source.parent.name != name:
            continue
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        words = words[: words.index("-c")] if "-c" in words else words
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-include"):
                skip = True
            elif not word.startswith(("-O", "-Winvalid-pch")):
                kept.append(word)
        return entry["directory"], kept
    raise AssertionError(f"no source of {name} in compile_commands.json")


class Extending(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = Path(tempfile.mkdtemp())
        for folder in ("mpssm", "cli"):
            shutil.copytree(ROOT / folder, cls.tree / folder)
        shutil.copy(ROOT / "CMakeLists.txt", cls.tree)
        cls.touched = apply(cls.tree)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tree)

    def compile(self, name, *arguments):
        directory, flags = flags_of(name)
        # The changed tree comes first; what is only in the build folder comes after.
        command = [flags[0], f"-I{self.tree}", *flags[1:], *arguments]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_the_operator_has_rows_that_add_up_to_one(self):
        main = self.tree / "main.cpp"
        main.write_text("""
            #include <cmath>
            #include "mpssm/graph/generators.h"
            #include "mpssm/graph/gso.h"
            int main() {
              using namespace mpssm::graph;
              const Gso gso = make_gso(make_path(4), {.kind = gso_kind_from_name("lazy_walk")});
              for (int i = 0; i < 4; ++i) {
                double sum = 0.0;
                for (auto e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) sum += gso.values<double>()[e];
                if (std::abs(sum - 1.0) > 1e-12) return 1;
              }
              return gso.values<double>()[0] == 0.5 ? 0 : 2;
            }""", encoding="utf-8")
        program = self.tree / "lazy"
        library = BUILD / "lib"
        # Its own gso.cpp stands before that of the library.
        self.compile("graph", "-O0", str(main), str(self.tree / "mpssm/graph/gso.cpp"), "-o", str(program),
                     f"-L{library}", "-lmpssm_core", "-lfmt", f"-Wl,-rpath,{library}")
        self.assertEqual(subprocess.run([program]).returncode, 0)

    def test_the_dataset_is_known_by_its_name(self):
        main = self.tree / "known.cpp"
        main.write_text("""
            #include "mpssm/data/registry.h"
            int main() { return mpssm::data::find_dataset("squirrel-filtered") != nullptr ? 0 : 1; }""", encoding="utf-8")
        program = self.tree / "known"
        library = BUILD / "lib"
        self.compile("data", "-O0", str(main), str(self.tree / "mpssm/data/registry.cpp"), "-o", str(program),
                     f"-L{library}", "-lmpssm_core", "-lfmt", f"-Wl,-rpath,{library}")
        self.assertEqual(subprocess.run([program]).returncode, 0)

    def test_the_model_and_the_verb_compile(self):
        sources = [path for path in self.touched if path.endswith(".cpp")]
        # In one source, so that torch is parsed once.
        together = self.tree / "together.cpp"
        together.write_text("".join(f'#include "{path}"\n' for path in sources
                                    if path.startswith(("mpssm/nn/", "mpssm/train/"))))
        self.compile("app", "-fsyntax-only", str(together))
        for path in sources:
            if path.startswith("cli/"):
                self.compile("cli", "-fsyntax-only", str(self.tree / path))

    def test_new_sources_are_listed(self):
        lists = (self.tree / "CMakeLists.txt").read_text() + (self.tree / "cli/CMakeLists.txt").read_text()
        for name in ("mpssm/nn/baselines/mlp.cpp", "  hello.cpp"):
            self.assertIn(name, lists)


if __name__ == "__main__":
    unittest.main()
