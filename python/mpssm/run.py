# SPDX-License-Identifier: MIT
"""Runs of the program `mpssm train`, opened in Python."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import torch
from safetensors.torch import load_file
from torch import Tensor

from mpssm.gso import Gso
from mpssm.nn import MPSSM, Graph, _gso_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_READOUTS = {"node_binary": "node", "node_classes": "node", "node_regression": "node",
             "graph_regression": "graph", "graph_labels": "graph", "forecast": "forecast"}


@dataclass
class Run:
    """A trained model with what the program learned about its data.

    Attributes:
        model: the :class:`mpssm.nn.MPSSM`, in evaluation mode.
        task: node_binary, node_classes, node_regression, graph_regression, graph_labels, forecast.
        class_names: of a classification.
        config, record: ``config.toml`` and ``record.json`` of the run folder.
    """

    model: MPSSM
    task: str
    class_names: List[str] = field(default_factory=list)
    mean: float = 0.0
    scale: float = 1.0
    label_scale: float = 1.0
    config: Dict[str, Any] = field(default_factory=dict)
    record: Dict[str, Any] = field(default_factory=dict)

    @torch.no_grad()
    def predict(self, x: Tensor, graph: Graph, edge_weight: Optional[Tensor] = None,
                batch: Optional[Tensor] = None) -> Tensor:
        """What `mpssm predict` writes. x: the model's features [N, in]; for a forecast the last
        steps [..., T, N, F] on the scale of the file.

        Probabilities [N, classes] of a classification ([G, labels] of graphs), else numbers on the
        scale of the labels: [N, out], [G, out], or [..., N, steps ahead].
        """
        if not isinstance(graph, Gso):
            graph = _gso_of(graph, edge_weight, x.shape[-2], self.model.kind, batch,
                            plan=self.model.plan)
        if self.task == "forecast":
            x = torch.cat([(x[..., :1] - self.mean) / self.scale, x[..., 1:]], -1)
        y = self.model.eval()(x, graph)
        if self.task == "node_binary":
            positive = torch.sigmoid(y)
            return torch.cat([1 - positive, positive], -1)
        if self.task == "node_classes":
            return torch.softmax(y, -1)
        if self.task == "graph_labels":
            return torch.sigmoid(y)
        return y * (self.scale * self.label_scale) + self.mean


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
    record = json.loads(_read(folder / "record.json"))
    learned = json.loads(_read(folder / "data.json"))
    settings, task = config["model"], record["task"]
    if settings["kind"] != "mpssm":
        raise ValueError(f"load: expected a run of model.kind mpssm, got {settings['kind']} in {folder}")
    weights = load_file(folder / "model.safetensors")
    readout = _READOUTS[task]
    last = weights[f"readout_{settings['readout_layers'] - 1}.weight"]
    in_channels = weights["encoder.weight"].shape[1]
    embedding, skip = weights.get("node_embedding"), weights.get("skip.weight")
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
                  kind=settings["gso"], plan=settings["plan"])
    model.load_state_dict(weights)
    return Run(model.eval(), task, learned["class_names"], learned["mean"], learned["scale"],
               learned["label_scale"], config, record)
