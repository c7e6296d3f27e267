# SPDX-License-Identifier: MIT
"""What estimators take: features, graphs and labels in the forms people have them in.

The rules are those of the program's tables: text becomes categories, numbers get mean 0 and deviation 1
over all nodes, an empty label is one to be predicted.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, List, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpssm.gso import Gso

Array = NDArray[Any]
_MAX_CATEGORIES = 100


def is_frame(value: Any) -> bool:
    """Whether this is a pandas DataFrame; pandas is not imported for the question."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def as_array(value: Any) -> Array:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def is_missing(values: Array) -> NDArray[np.bool_]:
    """None, NaN and pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    # NA is neither equal nor unequal to itself.
    return np.array([one is None or type(one).__name__ in ("NAType", "NaTType")
                     or isinstance(one, float) and one != one for one in values.ravel()],
                    dtype=bool).reshape(values.shape)


# ---- features -------------------------------------------------------------------------------


@dataclass
class _Column:
    """A column of numbers with its scale or, with ``categories``, of text."""

    name: Any
    mean: float = 0.0
    scale: float = 1.0
    median: float = 0.0  # stands for a number that is missing
    says_missing: bool = False  # some were missing in training: one more channel, 1 where they are
    categories: Optional[List[str]] = None

    def width(self) -> int:
        return 1 + self.says_missing if self.categories is None else len(self.categories)

    @staticmethod
    def of_numbers(name: Any, values: Array, standardise: bool) -> _Column:
        numbers, missing = _numbers(name, values)
        there = numbers[~missing]
        if not len(there):
            raise ValueError(f"X: column {name!r}: expected a number in some row, got none in any; drop "
                             "the column")
        column = _Column(name, median=float(np.median(there)), says_missing=bool(missing.any()))
        if standardise:
            is_constant = bool((there == there[0]).all())
            column.mean = float(there[0] if is_constant else there.mean())
            column.scale = 1.0 if is_constant else float(there.std())
        return column

    def channels(self, values: Array) -> NDArray[np.float64]:
        """[N, width]"""
        if self.categories is not None:
            number = {name: i for i, name in enumerate(self.categories)}
            one_hot = np.zeros((len(values), len(number)))
            for row, text in enumerate(_texts(values)):
                if text in number:
                    one_hot[row, number[text]] = 1.0
            return one_hot
        if _is_text(values):
            raise ValueError(f"X: column {self.name!r}: expected numbers as in training, got text")
        numbers, missing = _numbers(self.name, values)
        scaled = (np.where(missing, self.median, numbers) - self.mean) / self.scale
        return np.stack([scaled, missing], 1) if self.says_missing else scaled[:, None]


def _numbers(name: Any, values: Array) -> Tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as numbers, and where there are none."""
    missing = is_missing(values)
    numbers = np.zeros(len(values))
    numbers[~missing] = values[~missing].astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"X: column {name!r}, row {int((~np.isfinite(numbers)).argmax())}: expected a "
                         f"finite number, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers, missing


def _is_text(values: Array) -> bool:
    if values.dtype.kind in "US":
        return True
    if values.dtype.kind != "O":
        return False
    return any(isinstance(one, str) for one in values)


def _texts(values: Array) -> List[Optional[str]]:
    return [None if gone or one == "" else str(one) for one, gone in zip(values, is_missing(values))]


def _values_of(series: Any) -> Array:
    if type(series.dtype).__name__ == "CategoricalDtype":  # text, also where it is numbers
        return series.astype(object).map(str, na_action="ignore").to_numpy(dtype=object)
    return series.to_numpy()


def _columns_of(x: Any) -> Tuple[List[Any], List[Array]]:
    """Names and values [N] of each column of a table or an array [N, F]."""
    if is_frame(x):
        names, columns = list(x.columns), [_values_of(x.iloc[:, i]) for i in range(x.shape[1])]
    else:
        if hasattr(x, "tocoo"):
            raise TypeError("X: expected an array or a table, got a sparse matrix; give X.toarray()")
        values = as_array(x)
        if values.ndim != 2:
            raise ValueError(f"X: expected features of shape [N, F], got {list(values.shape)}. Reshape "
                             "your data: X.reshape(-1, 1) is one feature")
        names = list(range(values.shape[1]))
        columns = [values[:, i] for i in names]
    for name, column in zip(names, columns):
        if column.dtype.kind not in "biufOUS":
            hint = " (Complex data not supported)" if column.dtype.kind == "c" else ""
            raise ValueError(f"X: column {name!r}: expected numbers or text, got {column.dtype}{hint}")
    return names, columns


@dataclass
class FeatureColumns:
    """What was learned about the columns of X: scales of numbers, categories of text."""

    columns: List[_Column] = field(default_factory=list)
    named: bool = False

    @staticmethod
    def fit(x: Any, standardise: bool) -> FeatureColumns:
        names, values = _columns_of(x)
        if not names or not len(values[0]):
            raise ValueError("X: expected at least one node and one column, got "
                             f"{len(values[0]) if names else 'any'} node(s) and {len(names)} feature(s) "
                             f"(shape={np.shape(x)}) while a minimum of 1 is required.")
        fitted = []
        for name, column in zip(names, values):
            if _is_text(column):
                known = sorted({text for text in _texts(column) if text is not None})
                if len(known) > _MAX_CATEGORIES:
                    raise ValueError(f"X: column {name!r}: expected text of at most {_MAX_CATEGORIES} "
                                     f"different values, got {len(known)}; drop the column or make it "
                                     "numbers")
                fitted.append(_Column(name, categories=known))
                continue
            fitted.append(_Column.of_numbers(name, column, standardise))
        return FeatureColumns(fitted, is_frame(x))

    def num_channels(self) -> int:
        return sum(column.width() for column in self.columns)

    def transform(self, x: Any, estimator: str = "the estimator") -> Tensor:
        """float32 [N, channels]. Text that training has not seen counts as none."""
        names, values = _columns_of(x)
        if self.named and is_frame(x):
            place = {name: i for i, name in enumerate(names)}
            missing = [column.name for column in self.columns if column.name not in place]
            if missing:
                raise ValueError(f"X: expected the columns of training, got none named {missing[0]!r}")
            values = [values[place[column.name]] for column in self.columns]
        elif len(names) != len(self.columns):
            raise ValueError(f"X has {len(names)} features, but {estimator} is expecting "
                             f"{len(self.columns)} features as input, the columns of training")
        parts = [column.channels(given) for column, given in zip(self.columns, values)]
        return torch.from_numpy(np.concatenate(parts, 1)).float()


# ---- graphs ---------------------------------------------------------------------------------


def _gso_of_frame(edges: Any, num_nodes: int, names: Optional[Any], options: Any) -> Gso:
    columns = list(edges.columns)
    if len(columns) < 2:
        raise ValueError(f"edges: expected a table with columns src and dst, got {columns}")
    source, target = ("src", "dst") if {"src", "dst"} <= set(columns) else columns[:2]
    weight = "weight" if "weight" in columns else None
    nodes = range(num_nodes) if names is None else names
    return Gso.from_pandas(edges, source, target, weight, nodes, **options)[0]


def _gso_of_networkx(graph: Any, num_nodes: int, names: Optional[Any], options: Any) -> Gso:
    if names is None and all(node in range(num_nodes) for node in graph.nodes):
        names = range(num_nodes)  # numbers of rows, in whatever order the graph was built
    order = list(graph.nodes) if names is None else list(names)
    number = {node: i for i, node in enumerate(order)}
    strangers = [node for node in graph.nodes if node not in number]
    if strangers:
        raise ValueError(f"edges: expected the nodes of X, got {strangers[0]!r} in the graph")
    listed = [(number[a], number[b], data.get("weight", 1.0))
              for a, b, data in graph.edges(data=True)]
    index = torch.tensor([(a, b) for a, b, _ in listed], dtype=torch.int64).reshape(-1, 2).t()
    weight = torch.tensor([w for _, _, w in listed], dtype=torch.float64)
    if not graph.is_directed():
        options = {**options, "directed": False}
    return Gso.from_edge_index(index, weight, len(order), **options)


def gso_of(edges: Any, num_nodes: int, names: Optional[Any], kind: str, directed: bool) -> Gso:
    """The operator of a graph on ``num_nodes`` nodes.

    edges: None (no edges); a Gso (taken as it is); edge_index [2, E]; a table with the ends of each edge in columns src
    and dst (else its first two) and perhaps a weight; a SciPy matrix [N, N], entry (i, j) an edge from
    i to j; a NetworkX graph. ``names`` are those of the nodes, in tables and NetworkX; without them
    nodes are numbers of rows or, in NetworkX, may be anything, in its order.
    """
    options = {"kind": kind, "directed": directed}
    if edges is None:
        gso = Gso.from_edge_index(torch.zeros(2, 0, dtype=torch.int64), None, num_nodes, kind=kind)
    elif isinstance(edges, Gso):
        gso = edges
    elif is_frame(edges):
        gso = _gso_of_frame(edges, num_nodes, names, options)
    elif hasattr(edges, "tocoo"):
        matrix = edges.tocoo()
        index = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
        weight = torch.from_numpy(matrix.data.astype(np.float64))
        gso = Gso.from_edge_index(index, weight, max(matrix.shape), **options)  # type: ignore[arg-type]
    elif hasattr(edges, "is_directed") and hasattr(edges, "edges"):
        gso = _gso_of_networkx(edges, num_nodes, names, options)
    else:
        index = torch.as_tensor(edges)
        if index.dim() == 2 and index.shape[0] != 2 and index.shape[1] == 2:
            raise ValueError(f"edges: expected edge_index [2, E], got {list(index.shape)}; transpose it")
        gso = Gso.from_edge_index(index, None, num_nodes, **options)  # type: ignore[arg-type]
    if gso.num_nodes != num_nodes:
        raise ValueError(f"edges: expected a graph of the {num_nodes} nodes of X, got one of "
                         f"{gso.num_nodes}")
    return gso


# ---- labels ---------------------------------------------------------------------------------


def known_labels(y: Any, num_nodes: int, mask: Optional[Any], minus_one_is_none: bool
                 ) -> Tuple[Array, NDArray[np.bool_]]:
    """y [N] and which of its entries are labels: those of ``mask``, else all but None, NaN and, for
    classes in numbers, -1."""
    labels = as_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        kind = getattr(sys.modules.get("sklearn.exceptions"), "DataConversionWarning", UserWarning)
        warnings.warn("A column-vector y was passed when a 1d array was expected; its column is taken.",
                      kind, stacklevel=3)
        labels = labels[:, 0]
    if labels.shape != (num_nodes,):
        raise ValueError(f"y: expected a label or nothing for each of {num_nodes} nodes, got "
                         f"{list(labels.shape)}")
    known = ~is_missing(labels)
    if mask is not None:
        chosen = mask_of("mask", mask, num_nodes)
        if not known[chosen].all():
            raise ValueError("y: expected a label wherever the mask says so, got none for node "
                             f"{int((chosen & ~known).argmax())}")
        return labels, chosen
    if minus_one_is_none and labels.dtype.kind in "if":
        known &= labels != -1
    return labels, known


def mask_of(name: str, mask: Any, num_nodes: int) -> NDArray[np.bool_]:
    chosen = as_array(mask)
    if chosen.dtype != bool or chosen.shape != (num_nodes,):
        raise ValueError(f"{name}: expected True or False for each of {num_nodes} nodes, got "
                         f"{list(chosen.shape)} of {chosen.dtype}")
    return chosen
