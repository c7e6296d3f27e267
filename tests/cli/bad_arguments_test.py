#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong settings, arguments, folders and runs end with one line that says what is wrong."""

import json
import os
import resource
import shutil
import signal
import struct
import tempfile
import time
import unittest
from pathlib import Path

import program
from program import NODES, TINY
from refusal import BadInput


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def limit_memory():
    """So that a failure of these tests is not one of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


class BadSettings(BadInput):
    def refuse_setting(self, setting, *phrases):
        self.refuse_train("board:4x4", ["--set", setting], *phrases)

    def refuse_toml(self, text, *phrases):
        self.write("my.toml", text)
        self.refuse_train("board:4x4", ["--config", "my.toml"], *phrases)

    def test_a_setting_that_is_not_known_is_refused(self):
        self.refuse_setting("model.chanels=4", "'model.chanels'", "'model.channels'")
        self.refuse_setting("qwertz=4", "'qwertz'", "--keys")
        self.refuse_setting("model.channels", "KEY=VALUE", "'model.channels'")
        self.refuse_setting("=4", "KEY=VALUE", "'=4'")

    def test_a_value_of_another_type_is_refused(self):
        self.refuse_setting("model.channels=four", "model.channels", "whole number")
        self.refuse_setting("model.channels=4.5", "model.channels", "whole number")
        self.refuse_setting("model.channels=99999999999999999999", "model.channels", "whole number")
        self.refuse_setting("train.lr=fast", "train.lr", "a number")
        self.refuse_setting("train.lr=nan", "train.lr", "a number")
        self.refuse_setting("model.residual=1", "model.residual", "true or false")

    def test_a_value_out_of_range_is_refused(self):
        for setting in ("model.dropout=1.5", "train.lr=0", "model.channels=-4", "model.channels=5",
                        "model.channels=1000000000", "model.blocks=0", "train.epochs=0", "seed=-1",
                        "model.max_modulus=2", "train.plateau_factor=1", "data.train_ratio=1",
                        "data.period=1", "data.harmonics=101"):
            key, value = setting.split("=")
            self.refuse_setting(setting, key, value)
        self.refuse_setting("model.activation=sin", "model.activation", "'sin'", "gelu")
        self.refuse_setting("train.metric=mae", "train.metric", "'mae'", "roc_auc")
        for setting in ("data.deviation=true", "data.harmonics=2", "data.mark_missing=true", "data.fill=last"):
            self.refuse_setting(setting, setting.split("=")[0], "for series only")
        self.refuse_setting("train.loss=huber", "train.loss", "'huber'")
        self.refuse_setting("data.task=nonsense", "task", "'nonsense'")
        self.refuse_setting("data.split=10", "data.split", "0 to 9", "10")

    def test_a_toml_file_with_a_slip_is_refused_by_line(self):
        self.refuse_toml("[model]\nchannels = 4\nblokcs = 2\n", "my.toml:3:", "'model.blokcs'")
        self.refuse_toml("[modle]\nchannels = 4\n", "my.toml:2:", "'modle.channels'")
        self.refuse_toml("[model]\nchannels = \"4\"\n", "my.toml:2:", "whole number")
        self.refuse_toml("[model]\nchannels = = 4\n", "my.toml:2:")
        self.refuse_toml("[model\n", "my.toml:1:")
        self.refuse_toml("[model]\n\nchannels = [4]\n", "my.toml:3:", "model.channels")
        self.refuse_toml("\n[[model]]\nchannels = 4\n", "my.toml:")
        self.refuse_toml(b"\xff\xfe\x00", "my.toml")
        self.refuse_toml("[model]\ndropout = inf\n", "my.toml:2:", "model.dropout")
        self.refuse_train("board:4x4", ["--config", "absent.toml"], "absent.toml", "cannot open")

    def test_deep_toml_is_refused_before_it_is_parsed(self):
        deep = "a." * 10_000
        self.refuse_toml(deep + "a = 1\n", "my.toml:1:", "many")
        self.refuse_toml("[" + deep + "a]\n", "my.toml:1:", "many")
        self.refuse_toml("seed = 1\nx = {" + deep + "a = 1}\n", "my.toml:2:", "many")

    def test_control_characters_in_toml_are_refused_by_place(self):
        self.refuse_toml(b"seed = 1\n[\0", "my.toml:2:2:", "\\x00")

    def test_a_section_without_settings_must_be_known_too(self):
        self.refuse_toml("[nonsense]\n", "my.toml:1:", "'nonsense'")

    def test_a_training_that_does_not_fit_memory_is_refused(self):
        wide = ["--set", "model.channels=256", "--set", "model.blocks=8"]
        self.refuse_train("board:20x20", [*wide, "--memory-limit", "1"], "MiB", "--memory-limit")
        huge = ["--set", "model.channels=65536", "--set", "model.blocks=64"]
        self.refuse_train("board:20x20", huge, "MiB", preexec_fn=limit_memory)
        self.refuse_train("board:20x20", [*huge, "--memory-limit", "100000000"], "out of memory",
                          preexec_fn=limit_memory)


class BadArguments(BadInput):
    def refuse_usage(self, args, *phrases):
        self.refuse(args, *phrases, code=2)

    def test_unknown_words_are_refused(self):
        self.refuse_usage([], "subcommand")
        self.refuse_usage(["trian"], "trian")
        self.refuse_usage(["train", "board:4x4", "--fast"], "--fast")
        self.refuse_usage(["train", "board:4x4", "board:5x5"], "board:5x5")
        self.refuse_usage(["train", "board:4x4", "two\nlines"], "two\\nlines")
        self.refuse_usage(["data", "mkae", "board:4x4"], "mkae")
        self.refuse_usage(["data"], "subcommand")
        self.refuse_usage(["evaluate", "run", "--part", "all"], "--part", "all")

    def test_missing_arguments_are_named(self):
        self.refuse_usage(["predict"], "run")
        self.refuse_usage(["data", "make", "board"], "--out")
        self.refuse_usage(["train", "board:4x4", "--set"], "--set")
        self.refuse_usage(["tune", "board:4x4", "--minutes", "-1"], "--minutes")
        self.refuse(["train"], "no dataset")

    def test_numbers_that_are_none_are_refused(self):
        self.refuse_usage(["train", "board:4x4", "--threads", "-1"], "--threads", "-1")
        self.refuse_usage(["train", "board:4x4", "--threads", "two"], "--threads", "two")
        for threads in ("20000", "100000", "4294967297", "99999999999999999999"):
            for verb in (["train", "board:4x4"], ["sensitivity", "--make", "path:5"]):
                self.refuse_usage([*verb, "--threads", threads], "--threads", threads)
        self.refuse_usage(["train", "board:4x4", "--memory-limit", "-1"], "--memory-limit")
        self.refuse_usage(["data", "make", "board:4x4", "--out", "b.npz", "--seed", "x"], "--seed")
        for text in ("nonsense", "1,,2", "3-1", "-1", "0-99999999", "1.5"):
            self.refuse_train("board:4x4", [f"--seeds={text}"], "--seeds", f"'{text}'")
        self.refuse_train("board:4x4", ["--splits", "0-x"], "--splits", "'0-x'")

    def test_an_unknown_dataset_gets_the_nearest_name(self):
        self.refuse_train("minesweper", [], "'minesweper'", "did you mean 'minesweeper'")
        self.refuse_train("no/such/path", [], "no/such/path: expected a file or folder")
        self.refuse(["data", "info", ""], "expected a dataset")

    def test_a_registered_dataset_without_its_file_says_where_to_get_it(self):
        place = ["hetero/minesweeper.npz", "yandex-research/heterophilous-graphs", "put it into mydata"]
        self.refuse_train("minesweeper", ["--data-dir", "mydata"], *place)
        self.refuse(["data", "info", "minesweeper", "--data-dir", "mydata"], *place)
        self.refuse(["data", "info", "metr-la", "--data-dir", "mydata"], "metr-la", "get it from")

    def test_a_registered_file_with_other_content_is_refused(self):
        (self.folder / "mydata" / "hetero").mkdir(parents=True)
        program.write_npz(self.folder / "mydata" / "hetero" / "minesweeper.npz", program.graph_arrays())
        self.refuse_train("minesweeper", ["--data-dir", "mydata"], "minesweeper.npz", "sha256")

    def test_a_grid_that_is_none_is_refused(self):
        tune = ["tune", "board:4x4", "--out", "trials"]
        self.refuse([*tune, "--grid", "model.blocks"], "--grid", "'model.blocks'")
        self.refuse([*tune, "--grid", "model.blokcs=1,2"], "'model.blokcs'", "'model.blocks'")
        self.refuse([*tune, "--grid", "model.blocks=1,,2"], "--grid", "empty value")
        self.refuse([*tune, "--grid", "model.blocks=1,two"], "model.blocks", "whole number")
        self.refuse([*tune, "--grid", "model.blocks=1,0"], "model.blocks", "got 0")
        self.refuse([*tune, "--grid", "seed=1,2", "--grid", "seed=3"], "seed", "twice")
        self.refuse([*tune, "--grid", "seed=1,2", "--seeds", "x"], "--seeds", "'x'")

    def test_built_in_data_that_cannot_be_made_are_refused(self):
        for what in ("board:1x1", "board:99999x99999", "board:4", "board:", "board:4x4x4", "properties:nonsense",
                     "properties", "properties:sssp:1", "properties:sssp:9999999", "nonsense:4"):
            self.refuse(["data", "make", what, "--out", "b.npz"], f"'{what}'")


class BadSensitivity(BadInput):
    """Questions about a graph that it cannot answer, or that make no sense."""

    def refuse_question(self, args, *phrases, **options):
        self.refuse(["sensitivity", *args, "--plot", "p.svg"], *phrases, **options)

    def setUp(self):
        super().setUp()
        self.write("g.csv", "src,dst\nann,bob\nbob,eve\n")

    def test_a_node_that_is_none_is_refused(self):
        for node in ("5", "-1", "1.5", "x", "99999999999999999999", "two\nlines"):
            for option in ("--source", "--target"):
                shown = node.replace("\n", "\\n")
                self.refuse_question(["--make", "path:5", option, node], "a node from 0 to 4", f"'{shown}'")
        self.refuse_question(["g.csv", "--source", "anne"], "'anne'", "did you mean 'ann'")
        self.refuse_question(["g.csv", "--source", "ann", "--target", "0"], "by its id", "'0'")

    def test_hops_that_are_none_are_refused(self):
        for tau in ("-1", "1:-1", "5:1", "x", "1,,2", ",", "1:2:0", "1:2:3:4", "5:", "1e3", "1.5", "nan",
                    "99999999999999999999"):
            self.refuse_question(["--make", "path:5", f"--tau={tau}"], "--tau", f"'{tau}'")
        self.refuse_question(["--make", "path:5", "--tau", "10000001"], "--tau", "up to 10000000")
        self.refuse_question(["--make", "path:5", "--tau", "0:10000000"], "--tau", "at most 100000")
        self.refuse_question(["--make", "path:5", "--tau", "0:90000,1:90000"], "--tau", "at most 100000")

    def test_a_share_that_is_none_is_refused(self):
        for share in ("0", "1", "2", "-0.5", "nan", "inf"):
            self.refuse_question(["--make", "path:5", f"--depth={share}"], "--depth", "between 0 and 1")
        self.refuse_question(["--make", "path:5", "--depth", "half"], "--depth", "half", code=2)

    def test_a_share_of_no_limit_is_refused(self):
        for graph in (["--directed"], ["--gso", "random_walk"]):
            self.refuse_question(["g.csv", *graph, "--worst", "3", "--by", "share"], "--by share", "no limit")
            self.refuse_question(["g.csv", *graph, "--depth", "0.5"], "--depth", "no limit")

    def test_what_would_be_passed_over_is_refused(self):
        for option in (["--compare", "r"], ["--predictions", "3"], ["--block", "2"], ["--sample", "1"], ["--top", "3"]):
            self.refuse_question(["g.csv", *option], option[0], "for a run")
        self.refuse_question(["g.csv", "--by", "share"], "--by", "--worst")
        self.refuse_question(["g.csv", "--max-tau", "9"], "--max-tau", "--depth")
        self.refuse_question(["--make", "path:5", "--directed"], "--directed")
        self.refuse_question(["g.csv", "--source", "ann", "--depth", "0.5"], "--depth", "--target")
        self.refuse_question(["g.csv", "--source", ""], "--source", "expected a node")
        self.refuse_question(["g.csv", "--all", "--source", "ann"], "--all")
        self.refuse(["sensitivity", "g.csv", "--picture", "map"], "--picture", "--plot")

    def test_numbers_and_names_of_options(self):
        for option in ("--seed", "--threads", "--top"):
            self.refuse_question(["g.csv", f"{option}=-1"], option, "0 or more, got '-1'", code=2)
        for kind in ("custom", "nonsense"):
            self.refuse_question(["g.csv", "--gso", kind], "--gso", kind, code=2)
        self.refuse_question(["--make", "path:3000", "--tau", "2"], "--picture map", "2000", "--picture curve")

    def test_one_graph_is_asked_about(self):
        self.refuse_question(["g.csv", "--make", "path:5"], "--make", "both")
        self.refuse_question([], "expected a graph, a run folder or --make")
        self.refuse_question(["absent.csv"], "absent.csv: expected a file or folder")
        self.refuse_question(["properties:diameter:8"], "one graph", "many")

    def test_a_family_that_is_none_is_refused(self):
        for spec in ("pathx:5", "path:0", "path:-3", "path:3x3", "path:99999999999", "grid:3", "erdos-renyi:5,2", ":",
                     "regular:5,3"):
            self.refuse_question(["--make", spec], f"'{spec}'", preexec_fn=limit_memory)

    def test_a_graph_with_too_many_pairs_is_refused(self):
        for question in ([], ["--worst", "3"], ["--depth", "0.5"]):
            self.refuse_question(["--make", "path:20001", "--picture", "curve", *question], "20001 nodes", "20000",
                                 "--source")

    def test_other_words_are_refused(self):
        self.refuse_question(["g.csv", "--picture", "graph"], "--picture graph", "--source")
        self.refuse_question(["g.csv", "--picture", "photo"], "--picture", "photo", code=2)
        self.refuse_question(["g.csv", "--by", "size"], "--by", "size", code=2)
        self.refuse_question(["g.csv", "--worst", "0"], "--worst", code=2)
        self.refuse_question(["g.csv", "--max-tau", "0", "--depth", "0.5"], "--max-tau", code=2)
        self.refuse_question(["g.csv", "--w", "much"], "--w", "much", code=2)
        for number in ("nan", "inf", "-inf"):
            self.refuse_question(["g.csv", f"--w={number}"], "--w", "finite")

    def test_a_picture_that_cannot_be_written_is_refused(self):
        for place, phrase in (("no/such/p.svg", "cannot create"), ("/proc/p.svg", "cannot create"), (".", "folder")):
            self.refuse(["sensitivity", "g.csv", "--plot", place], place, phrase)
        self.refuse(["sensitivity", "--make", "ring:60", "--plot", "p.svg"], "p.svg", "cannot write",
                    preexec_fn=limit_files)
        with open("/dev/full", "wb") as full:
            self.refuse(["sensitivity", "g.csv", "--json", "--tau", "1"], "stdout", stdout=full)


class BadPlaces(BadInput):
    def test_a_folder_that_cannot_be_made_is_refused(self):
        self.write("file", "")
        self.refuse(["train", "board:4x4", "--quiet", "--out", "file/run", *TINY], "file/run", "cannot make")
        self.refuse(["train", "board:4x4", "--quiet", "--out", "/proc/no/run", *TINY], "/proc/no/run")
        self.refuse(["train", "board:4x4", "--quiet", "--out", "file", *TINY], "file")
        self.refuse(["data", "make", "board:4x4", "--out", "file/b.npz"], "file/b.npz", "cannot create")
        self.refuse(["data", "make", "board:4x4", "--out", "no/such/b.npz"], "no/such/b.npz", "cannot create")
        self.refuse(["data", "make", "board:4x4", "--out", "."], "folder")

    def test_names_other_than_utf8_are_refused_before_the_work(self):
        strange = os.fsdecode(b"a\xff")
        board = ["train", "board:4x4", "--quiet", *TINY]
        self.refuse([*board, "--out", strange], "a\\xff", "UTF-8", code=2)
        self.refuse([*board, "--seeds", "0-1", "--out", strange], "a\\xff", "UTF-8", code=2)
        self.write_tables(strange)
        self.refuse_train(strange, TINY, "a\\xff", "UTF-8", code=2)
        os.symlink(strange, self.folder / "plain")
        self.refuse_train("plain", TINY, "a\\xff", "UTF-8")

    def test_a_folder_other_than_utf8_does_not_cost_a_finished_run(self):
        strange = self.folder / os.fsdecode(b"b\xff")
        strange.mkdir()
        board = ["train", "board:4x4", "--quiet", "--seeds", "0-1", "--out", "run", "--json", *TINY]
        result = program.run(board, strange)
        self.assertEqual(result.code, 0, result.err)

    def test_a_full_disk_leaves_no_part_of_a_file(self):
        self.refuse(["data", "make", "board:40x40", "--out", "b.npz"], "b.npz", "cannot write", "too large",
                    preexec_fn=limit_files)

    def test_stdout_that_takes_nothing_is_an_error(self):
        with open("/dev/full", "wb") as full:
            self.refuse(["data", "list"], "stdout", stdout=full)


class BadRuns(BadInput):
    """Run folders that are damaged, or asked for what they cannot do."""

    @classmethod
    def setUpClass(cls):
        top = tempfile.TemporaryDirectory()
        cls.addClassCleanup(top.cleanup)
        cls.store = Path(top.name)
        program.write_npz(cls.store / "g.npz", program.graph_arrays())
        cls.make_run("arrays", cls.store / "g.npz")
        (cls.store / "own").mkdir()
        (cls.store / "own" / "nodes.csv").write_text(NODES)
        (cls.store / "own" / "edges.csv").write_text(program.EDGES)
        cls.make_run("tables", "own")
        cls.make_interrupted_run("broken", cls.store / "g.npz")

    @classmethod
    def make_run(cls, name, dataset):
        result = program.run(["train", dataset, "--quiet", "--out", name, *TINY], cls.store)
        assert result.code == 0, result.err

    @classmethod
    def make_interrupted_run(cls, name, dataset):
        endless = ["--set", "train.epochs=1000000", "--set", "train.checkpoint_seconds=0", *TINY[2:]]
        process = program.start(["train", dataset, "--quiet", "--out", name, *endless], cls.store)
        deadline = time.monotonic() + 60
        while not (cls.store / name / "state.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        result = program.wait(process)
        assert result.code == 130, result

    def setUp(self):
        super().setUp()
        for name in ("arrays", "tables", "broken"):
            shutil.copytree(self.store / name, self.folder / name)

    def damage(self, path, change):
        """Writes the file anew with change(header, data), which returns both or all bytes."""
        path = self.folder / path
        changed = change(*program.read_safetensors(path))
        if isinstance(changed, bytes):
            path.write_bytes(changed)
        else:
            program.write_safetensors(path, *changed)

    def refuse_model(self, change, *phrases, **options):
        shutil.copy(self.store / "arrays" / "model.safetensors", self.folder / "arrays")
        self.damage("arrays/model.safetensors", change)
        self.refuse(["predict", "arrays", "--out", "p.csv"], "model.safetensors", *phrases, **options)

    def refuse_state(self, change, *phrases):
        shutil.copy(self.store / "broken" / "state.safetensors", self.folder / "broken")
        self.damage("broken/state.safetensors", change)
        self.refuse(["train", "broken", "--resume", "--quiet"], "state.safetensors", *phrases)

    def test_a_model_file_that_is_damaged_is_refused(self):
        whole = (self.folder / "arrays" / "model.safetensors").read_bytes()
        self.refuse_model(lambda header, data: whole[:len(whole) // 2])
        self.refuse_model(lambda header, data: whole[:-1], "bytes of tensors")
        self.refuse_model(lambda header, data: b"", "0 bytes")
        self.refuse_model(lambda header, data: struct.pack("<Q", 2**63) + whole[8:], "header", str(2**63))
        self.refuse_model(lambda header, data: (b"{not json", data), "JSON")
        self.refuse_model(lambda header, data: (b"{" + b'"a":{' * 50000, data), "'a'")

    def test_a_model_file_with_other_weights_is_refused(self):
        def with_weight(**fields):
            return lambda header, data: ({**header, "encoder.bias": {**header["encoder.bias"], **fields}}, data)

        def without(name):
            def change(header, data):
                begin, end = header.pop(name)["data_offsets"]
                for key, value in header.items():
                    if key != "__metadata__" and value["data_offsets"][0] >= end:
                        value["data_offsets"] = [at - (end - begin) for at in value["data_offsets"]]
                return header, data[:begin] + data[end:]
            return change

        self.refuse_model(with_weight(data_offsets=[0, 10**12]), "'encoder.bias'")
        self.refuse_model(with_weight(shape=[2, 2]), "'encoder.bias'", "[2, 2]", "[4]")
        self.refuse_model(with_weight(shape=[5]), "'encoder.bias'", "[5]")
        self.refuse_model(with_weight(dtype="I32"), "'encoder.bias'", "I32")
        self.refuse_model(with_weight(dtype="X7"), "'encoder.bias'", "'X7'")
        self.refuse_model(without("encoder.bias"), "'encoder.bias'")
        self.refuse_model(without("encoder.weight"), "'encoder.weight'")

    def test_a_model_file_with_other_metadata_is_refused(self):
        def with_text(key, text):
            def change(header, data):
                header["__metadata__"][key] = text
                return header, data
            return change

        def without(key):
            def change(header, data):
                del header["__metadata__"][key]
                return header, data
            return change

        for key in ("config", "data", "task"):
            self.refuse_model(without(key), f"'{key}'")
        self.refuse_model(with_text("config", "[model]\nchannels = \"x\"\n"), "model.channels")
        self.refuse_model(with_text("config", "a." * 10_000 + "a = 1\n"), "many")
        self.refuse_model(with_text("data", "{"), "what it keeps of its data")
        self.refuse_model(with_text("data", "{}"), "what it keeps of its data")
        self.refuse_model(with_text("task", "nonsense"), "'nonsense'")

    def test_a_model_whose_settings_were_changed_is_refused(self):
        def wider(header, data):
            config = header["__metadata__"]["config"]
            header["__metadata__"]["config"] = config.replace("channels = 4", "channels = 6")
            return header, data

        def huge(header, data):
            config = header["__metadata__"]["config"]
            header["__metadata__"]["config"] = config.replace("channels = 4", "channels = 65536")
            return header, data
        self.refuse_model(wider, "weight")
        self.refuse_model(huge, "weights", preexec_fn=limit_memory)

    def test_a_run_that_is_none_is_refused(self):
        self.refuse(["predict", "nothing"], "nothing", "cannot open")
        self.refuse(["evaluate", "nothing"], "nothing", "cannot open")
        (self.folder / "empty").mkdir()
        self.refuse(["predict", "empty"], "empty/model.safetensors", "cannot open")

    def test_other_data_that_do_not_fit_the_model_are_refused(self):
        program.write_npz(self.folder / "wide.npz", program.graph_arrays(features=3))
        self.refuse(["predict", "arrays", "wide.npz", "--out", "p.csv"], "wide", "2 features", "got 3")
        program.write_npz(self.folder / "s.npz", program.series_arrays())
        self.refuse(["predict", "arrays", "s.npz", "--out", "p.csv"], "s.npz", "node_binary", "forecast")
        self.refuse(["evaluate", "arrays", "s.npz"], "s.npz", "node_binary", "forecast")
        self.refuse(["predict", "arrays", "properties:sssp:8", "--out", "p.csv"], "node_binary", "node_regression")
        self.refuse(["predict", "arrays", "absent.npz", "--out", "p.csv"], "absent.npz: expected a file or folder")

    def test_other_tables_that_lack_a_column_are_refused(self):
        short = "\n".join(",".join(row.split(",")[i] for i in (0, 2, 3)) for row in NODES.split()) + "\n"
        self.write_tables("new", nodes=short)
        self.refuse(["predict", "tables", "new", "--out", "p.csv"], "nodes.csv", "'height'")
        self.write_tables("newer", nodes=NODES.replace(".5", " tall").replace(".0", " small"))
        self.refuse(["predict", "tables", "newer", "--out", "p.csv"], "nodes.csv:2:", "a number", "'1 tall'")
        self.write_tables("newest", nodes=NODES.replace(",no", ",maybe"))
        self.refuse(["evaluate", "tables", "newest"], "nodes.csv:3:", "'maybe'")

    def test_other_tables_without_labels_cannot_be_evaluated(self):
        bare = "\n".join(row.rpartition(",")[0] for row in NODES.split()) + "\n"
        self.write_tables("bare", nodes=bare)
        self.refuse(["evaluate", "tables", "bare"], "bare", "label")

    def test_training_data_that_are_gone_are_named(self):
        text = (self.folder / "broken" / "config.toml").read_text()
        self.assertIn(str(self.store.resolve() / "g.npz"), text)
        self.write("broken/config.toml", text.replace("g.npz", "gone.npz"))
        self.refuse(["train", "broken", "--resume", "--quiet"], "gone.npz")

    def test_a_state_that_is_damaged_is_refused(self):
        whole = (self.folder / "broken" / "state.safetensors").read_bytes()

        def with_position(**fields):
            def change(header, data):
                position = json.loads(header["__metadata__"]["position"])
                header["__metadata__"]["position"] = json.dumps({**position, **fields})
                return header, data
            return change

        def random_generator(header, data):
            begin, end = header["generator"]["data_offsets"]
            return header, data[:begin] + b"\xff" * (end - begin) + data[end:]

        self.refuse_state(lambda header, data: whole[:len(whole) // 2])
        self.refuse_state(lambda header, data: b"")
        self.refuse_state(lambda header, data: (b"[]", data), "'{'")
        self.refuse_state(with_position(step="three"), "position")
        self.refuse_state(with_position(batch=7), "position")
        self.refuse_state(with_position(step=-5), "position")
        self.refuse_state(random_generator, "generator")

    def test_resuming_what_cannot_be_resumed_is_refused(self):
        self.refuse(["train", "g.npz", "--resume", "--quiet"], "--resume", "'g.npz'")
        self.refuse(["train", "--resume", "--quiet"], "--resume")
        self.refuse(["train", "broken", "--resume", "--quiet", "--set", "train.lr=0.1"], "broken", "train.lr")
        data = str(self.store / "g.npz")
        other = ["--set", "train.epochs=1000000", "--set", "train.checkpoint_seconds=0", "--set", "model.channels=6",
                 "--set", "model.blocks=1"]
        self.refuse(["train", data, "--out", "broken", "--resume", "--quiet", *other], "broken", "model.channels")
        self.write("broken/config.toml", "[model]\nchannels = = 4\n")
        self.refuse(["train", "broken", "--resume", "--quiet"], "config.toml:2:")

    def test_a_folder_that_holds_a_run_is_not_written_over(self):
        self.refuse(["train", self.store / "g.npz", "--quiet", "--out", "arrays", *TINY], "arrays", "--resume")

    def test_a_full_disk_leaves_the_run_as_it_was(self):
        self.refuse(["train", "broken", "--resume", "--quiet"], "cannot write", "too large", preexec_fn=limit_files)
        self.refuse(["predict", "arrays", "--out", "arrays"], "arrays", "folder")

    def test_a_training_that_diverges_says_what_to_do(self):
        wild = ["--set", "train.lr=1e9", "--set", "model.state=diagonal", "--set", "model.norm=none", "--set",
                "model.state_norm=none", "--set", "train.epochs=200"]
        self.refuse(["train", self.store / "g.npz", "--quiet", "--out", "wild", *wild], "training stopped at step",
                    "train.lr", leaves=["wild", "wild/card.json", "wild/config.toml", "wild/data.json"])

    def test_questions_about_a_run_that_it_cannot_answer_are_refused(self):
        def refuse(args, *phrases):
            self.refuse(["sensitivity", "arrays", *args, "--plot", "p.svg"], *phrases)

        refuse(["--target", "8"], "a node from 0 to 7", "'8'")
        refuse(["--source", "3"], "--source", "--target")
        refuse(["--target", "3", "--source", "x"], "'x'")
        refuse(["--target", "3", "--source", "2", "--block", "99"], "--block", "1 to 1", "99")
        refuse(["--sample", "5"], "--sample", "one graph")
        refuse(["--compare", "tables"], "--compare", "--predictions")
        refuse(["--compare", "tables", "--predictions", "2"], "--compare", "same graph", "tables")
        refuse(["--compare", "absent", "--predictions", "2"], "absent", "cannot open")
        refuse(["--picture", "map"], "--picture map", "curve or graph")
        refuse(["--picture", "graph"], "--picture graph", "--target")
        refuse(["--tau=-1"], "--tau", "'-1'")
        refuse(["--make", "path:5"], "--make", "both")
        for question in (["--worst", "3"], ["--depth", "0.5"], ["--vanishing"]):
            refuse(question, question[0], "for a graph")
        self.refuse(["sensitivity", "tables", "--target", "f", "--plot", "p.svg"], "by its id", "'f'")
        self.refuse(["sensitivity", "arrays", "--target", "3", "--plot", "no/p.svg"], "no/p.svg", "cannot create")

    def test_a_damaged_model_has_no_sensitivity(self):
        def forget(header, data):
            name = next(key for key in header if "w_state" in key)
            begin, end = header[name]["data_offsets"]
            return header, data[:begin] + struct.pack("<f", float("nan")) * ((end - begin) // 4) + data[end:]

        self.damage("arrays/model.safetensors", forget)
        self.refuse(["sensitivity", "arrays", "--plot", "p.svg"], "W", "finite")
        self.damage("tables/model.safetensors", lambda header, data: b"")
        self.refuse(["sensitivity", "tables", "--plot", "p.svg"], "model.safetensors", "0 bytes")

    def test_trials_that_all_fail_say_why_each(self):
        tune = ["tune", self.store / "g.npz", "--out", "trials", "--grid", "data.split=7,8"]
        result = self.run_program(*tune)
        lines = [line for line in result.err.splitlines() if not line.startswith("note: ")]
        self.assertEqual((result.code, len(lines)), (1, 3), result.err)
        self.assertIn("data.split=7: data.split: g has splits 0 to 0", lines[0])
        self.assertTrue(lines[2].startswith("mpssm: "), result.err)
        self.assertFalse((self.folder / "trials").exists())


if __name__ == "__main__":
    unittest.main()
