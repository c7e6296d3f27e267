# SPDX-License-Identifier: MIT
"""Runs of the program `mpssm train`, opened in Python, and models of Python saved as such runs."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from mpssm._encodings import encode_nodes
from mpssm._engine import version
from mpssm._graphs import Graph, operators_of
from mpssm.gso_sequence import GsoSequence
from mpssm.nn import MPSSM

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_READOUTS = {"node_binary": "node", "node_classes": "node", "node_regression": "node",
             "graph_binary": "graph", "graph_classes": "graph", "graph_regression": "graph",
             "graph_labels": "graph", "forecast": "forecast", "links": "node"}


@dataclass
class Run:
    """A trained model with what the program learned about its data.

    Attributes:
        model: the :class:`mpssm.nn.MPSSM`, in evaluation mode.
        task: node_binary, node_classes, node_regression, graph_regression, graph_labels, forecast;
            of links, the outputs are those that the score of a pair is made of (docs/data.md).
        class_names: of a classification.
        config, data: ``config.toml`` and ``data.json`` of the run folder.
        record: ``record.json``; empty for a model that was saved from Python.
    """

    model: MPSSM
    task: str
    class_names: List[str] = field(default_factory=list)
    mean: float = 0.0
    scale: float = 1.0
    label_scale: float = 1.0
    config: Dict[str, Any] = field(default_factory=dict)
    record: Dict[str, Any] = field(default_factory=dict)
    data: Dict[str, Any] = field(default_factory=dict)
    dataset: str = ""

    @torch.no_grad()
    def predict(self, x: Tensor, graph: Graph, edge_weight: Optional[Tensor] = None,
                batch: Optional[Tensor] = None) -> Tensor:
        """What `mpssm predict` writes. x: the model's features [N, in]; for a forecast the last
        steps [..., T, N, F] on the scale of the file.

        Encodings that the run has (data.encodings) are made from ``graph``, an ``edge_index`` then, unless x
        has them already. With data.graph_over_time, ``graph`` is a :class:`mpssm.GsoSequence` of these steps.

        Probabilities [N, classes] of a classification ([G, labels] of graphs), else numbers on the
        scale of the labels: [N, out], [G, out], or [..., N, steps ahead].
        """
        settings = self.config["data"]
        if settings.get("graph_over_time") and not isinstance(graph, GsoSequence):
            raise ValueError("predict: expected a mpssm.GsoSequence with a graph for each step, as the run has "
                             f"data.graph_over_time, got {type(graph).__name__}")
        if self.task == "forecast":
            x = torch.cat([(x[..., :1] - self.mean) / self.scale, x[..., 1:]], -1)
        if settings.get("encodings") and x.shape[-1] != self.model.in_channels:
            x = _with_encodings(x, graph, edge_weight, settings["encodings"])
        if isinstance(graph, Tensor):
            graph = operators_of(graph, edge_weight, x.shape[-2], self.model.kind, batch,
                                 plan=self.model.plan)
        y = self.model.eval()(x, graph)
        if self.task == "node_binary":
            positive = torch.sigmoid(y)
            return torch.cat([1 - positive, positive], -1)
        if self.task == "node_classes":
            return torch.softmax(y, -1)
        if self.task == "graph_labels":
            return torch.sigmoid(y)
        return y * (self.scale * self.label_scale) + self.mean

    def save(self, folder: Union[str, Path], model: Optional[MPSSM] = None) -> None:
        """Writes a model for the data of this run as a run of its own, which `mpssm evaluate`,
        `predict` and `sensitivity` take, and :func:`load`.

        Args:
            folder: new or empty.
            model: default is ``self.model``, trained further or not. It may have another width, depth
                or kind of state, but must read and give what that one does.
        """
        model, folder = model or self.model, Path(folder)
        if folder.is_dir() and any(folder.iterdir()) or folder.is_file():
            raise ValueError(f"save: expected a folder that is new or empty, got {folder}")
        _check_same_task(model, self.model)
        later = {key: value for key, value in _later_settings_of(model).items()
                 if key in self.config["model"] or not _is_off(f"model.{key}", value)}
        config = {**self.config, "model": {**self.config["model"], **_settings_of(model), **later},
                  "train": {**self.config["train"], "precision": model.precision}}
        config_text, data_text = _to_toml(config), json.dumps(self.data, indent=1)
        metadata = {"format": "mpssm-model-2", "version": version(), "dataset": self.dataset,
                    "task": self.task, "config": config_text, "data": data_text}
        weights = {name: (value.float() if value.is_floating_point() else value).cpu().contiguous()
                   for name, value in model.state_dict().items()}
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: it gets its name when it is complete and opens again.
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            made = Path(scratch) / "run"
            made.mkdir()
            (made / "config.toml").write_text(config_text, encoding="utf-8")
            (made / "data.json").write_text(data_text + "\n", encoding="utf-8")
            save_file(weights, made / "model.safetensors", metadata)
            load(made)
            made.rename(folder)


def _with_encodings(x: Tensor, graph: Graph, edge_weight: Optional[Tensor], encodings: str) -> Tensor:
    if not isinstance(graph, Tensor):
        raise ValueError(f"predict: expected an edge_index, from which data.encodings={encodings} are made, got "
                         f"{type(graph).__name__}; or append mpssm.encode_nodes(...) to x")
    of_nodes = encode_nodes(graph, encodings, edge_weight, x.shape[-2]).to(x)
    return torch.cat([x, of_nodes.expand(*x.shape[:-1], -1)], -1)


def _settings_of(model: MPSSM) -> Dict[str, Any]:
    """[model] of config.toml."""
    block: Any = model.get_submodule("block_0")
    state, norm = block.w_state, model.get_submodule("norm_0")
    return {"channels": model.encoder.out_features, "blocks": model.num_blocks, "hops": block.hops,
            "state": state.kind, "min_modulus": state.min_modulus, "max_modulus": state.max_modulus,
            "activation": block.activation, "norm": norm.kind, "state_norm": block.state_norm.kind,
            "residual": model.residual, "dropout": model.dropout, "gso": model.kind,
            "pooling": model.pooling, "readout_layers": model.readout_layers,
            "readout_activation": model.readout_activation,
            "node_embedding": model.num_embedded_nodes > 0, "skip": model.skip_steps > 0,
            "plan": model.plan}


def _later_settings_of(model: MPSSM) -> Dict[str, Any]:
    """Those that a program may not know yet: written where they are not off."""
    block: Any = model.get_submodule("block_0")
    return {"entries": "fixed" if block.entries is None else block.entries.kind,
            "input_dropout": model.input_dropout, "readout_dropout": model.readout_dropout,
            "readout_shape": model.readout_shape, "hops_per_step": block.hops_per_step,
            "state_channels": model.state_channels}


#: What the settings are that say how a model computes when they do nothing, apart from false, 0, "" and [].
_OFF = {"model.entries": "fixed", "model.readout_shape": "halving", "model.hops_per_step": 1}
#: Those of [model] that are done here, those of other kinds of model or operator, and those of all tables that are not
#: done, with the reason.
_DONE = {"kind", "channels", "blocks", "hops", "state", "min_modulus", "max_modulus", "activation", "norm",
         "state_norm", "residual", "dropout", "gso", "pooling", "readout_layers", "readout_activation",
         "node_embedding", "skip", "plan", "plan_costs", "entries", "input_dropout", "readout_dropout",
         "readout_shape", "hops_per_step", "state_channels"}
_OF_OTHER_KINDS = {"heads", "step_size", "damping", "delay", "state_size", "adaptive_rank"}
_NO_DATES = "a window has no place in the period here"
_NOT_DONE = {"data.deviation": _NO_DATES, "data.harmonics": _NO_DATES}


def _is_off(name: str, value: Any) -> bool:
    return value == _OFF[name] if name in _OFF else not value or value == "none"


def _check_known(config: Dict[str, Any], folder: Path) -> None:
    """Refuses what the modules here cannot do. A setting that changes the parameters is found by
    their names in any case."""
    def refuse(name: str, value: Any, why: str) -> None:
        raise ValueError(f"load: expected a run that Python can compute, got {name}={value} in {folder}: "
                         f"{why}; `mpssm predict {folder}` has it")

    for name, why in _NOT_DONE.items():
        table, key = name.split(".")
        value = config.get(table, {}).get(key)
        if value is not None and not _is_off(name, value):
            refuse(name, value, why)
    encodings = config["data"].get("encodings", "")
    if "edges" in encodings.split(","):
        refuse("data.encodings", encodings, "what is known of edges is read from tables")
    gso = config["model"]["gso"]
    if "(" in gso:
        refuse("model.gso", gso, "what is known of edges is read from tables")
    if "virtual_node" in gso or "adaptive" in gso:
        refuse("model.gso", gso, "operators of low rank are the program's")
    if config["model"]["kind"] != "mpssm":
        refuse("model.kind", config["model"]["kind"], "compared networks are the program's")


def _check_same_task(model: MPSSM, like: MPSSM) -> None:
    def outside(one: MPSSM) -> Dict[str, Any]:
        readout = one.get_submodule(f"readout_{one.readout_layers - 1}")
        return {"in_channels": one.in_channels, "out_channels": readout.out_features,
                "readout": one.readout, "temporal": one.temporal}

    for name, expected in outside(like).items():
        if outside(model)[name] != expected:
            raise ValueError(f"save: expected a model with {name}={expected}, as the data of this run "
                             f"want it, got {outside(model)[name]}")


def _to_toml(config: Dict[str, Any]) -> str:
    """Of a file of scalars in tables one deep."""

    def line(key: str, value: Any) -> str:
        # JSON's strings and true, false are TOML's as well.
        return f"{key} = {value!r}" if type(value) in (int, float) else (
            f"{key} = {json.dumps(value, ensure_ascii=False)}")

    lines = [line(key, value) for key, value in config.items() if not isinstance(value, dict)]
    for name, table in config.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]", *(line(key, value) for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"load: expected the folder of a finished run (`mpssm train ... --out "
                         f"{path.parent}`), got {path}: {error.strerror}") from None


def load(folder: Union[str, Path]) -> Run:
    """Opens the folder of a run: the model that was best on validation."""
    folder = Path(folder)
    config = tomllib.loads(_read(folder / "config.toml"))
    learned = json.loads(_read(folder / "data.json"))
    record_file = folder / "record.json"
    record = json.loads(_read(record_file)) if record_file.exists() else {}
    settings = config["model"]
    _check_known(config, folder)
    try:
        with safe_open(folder / "model.safetensors", "pt") as file:
            metadata = file.metadata() or {}
        weights = load_file(folder / "model.safetensors")
        task = metadata["task"]
    except (OSError, KeyError) as error:
        raise ValueError(f"load: expected a model written by mpssm in {folder}/model.safetensors, got "
                         f"{type(error).__name__}: {error}") from None
    readout = _READOUTS[task]
    last = weights[f"readout_{settings['readout_layers'] - 1}.weight"]
    in_channels = weights["encoder.weight"].shape[1]
    embedding, skip = weights.get("node_embedding"), weights.get("skip.weight")
    change = weights.get("block_0.entries.change")
    model = MPSSM(in_channels, settings["channels"], last.shape[0], num_blocks=settings["blocks"],
                  hops=settings["hops"], temporal=readout == "forecast", state=settings["state"],
                  min_modulus=settings["min_modulus"], max_modulus=settings["max_modulus"],
                  activation=settings["activation"], norm=settings["norm"],
                  state_norm=settings["state_norm"], residual=settings["residual"],
                  dropout=settings["dropout"], readout=readout, pooling=settings["pooling"],
                  readout_layers=settings["readout_layers"],
                  readout_activation=settings["readout_activation"],
                  num_embedded_nodes=0 if embedding is None else embedding.shape[0],
                  skip_steps=0 if skip is None else skip.shape[1] // in_channels,
                  kind=settings["gso"], plan=settings["plan"],
                  precision=config["train"].get("precision", "float32"),
                  entries=settings.get("entries", "fixed"),
                  num_entries=0 if change is None else change.shape[0],
                  input_dropout=settings.get("input_dropout", 0.0),
                  readout_dropout=settings.get("readout_dropout", 0.0),
                  readout_shape=settings.get("readout_shape", "halving"),
                  hops_per_step=settings.get("hops_per_step", 1),
                  state_channels=settings.get("state_channels", 0))
    named = model.state_dict()
    strange = sorted(set(weights) ^ set(named)) or [name for name, value in named.items()
                                                    if value.shape != weights[name].shape]
    if strange:
        raise ValueError(f"load: expected the parameters of such a model, got others in {folder}, "
                         f"{strange[0]} for one")
    model.load_state_dict(weights)
    return Run(model.eval(), task, learned["class_names"], learned["mean"], learned["scale"],
               learned["label_scale"], config, record, learned, metadata.get("dataset", ""))
