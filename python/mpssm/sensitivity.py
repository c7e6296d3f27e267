# SPDX-License-Identifier: MIT
"""Who reaches whom: S_ij(tau) = |(A^tau)_ij| |w|^tau, its limit, its bounds, the depth a pair needs.

What ``mpssm sensitivity`` answers, by the same code. ``(A^tau)[i, j]`` is what is left at node i, the
target, of a unit that node j, the source, held tau hops before. Nodes are row numbers.
"""

from __future__ import annotations

import ctypes
import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpssm import _engine
from mpssm._recurrence import _packed
from mpssm.gso import Gso

if TYPE_CHECKING:
    import pandas

__all__ = ["Depth", "Influence", "Table", "bounds", "depth", "influence", "limit", "profile",
           "worst_pairs"]

Numbers = NDArray[Any]
Taus = Union[int, Sequence[int]]

_MAX_TAU = 100_000
_MAX_DENSE = 5_000  # nodes of a whole [N, N] answer

_ask = _engine._function("sensitivity_ask", ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
_limits = _engine._function("sensitivity_limits", ctypes.c_char_p, ctypes.c_int64,
                            *[ctypes.c_void_p] * 3)
_hops = _engine._function("sensitivity_hops", ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
_column = _engine._library.mpssm_sensitivity_column
_column.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_column.restype = ctypes.POINTER(ctypes.c_double)
_free = _engine._library.mpssm_sensitivity_free
_free.argtypes = (ctypes.c_void_p,)
_free.restype = None
#: SensitivityArguments in python/native/sensitivity.cpp.
_pack = struct.Struct("=4qdqd4q").pack


# ---- answers --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table(Mapping[str, Numbers]):
    """Columns of one length by name, and facts about all of them. ``table["value"]`` is an array.

    Attributes:
        columns: name -> [rows].
        facts: what holds for the whole: limit, hops, lambda_star, hold, ...; None where not known.
    """

    columns: Dict[str, Numbers]
    facts: Dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame, by tau where there is one; ``facts`` are in its ``attrs``."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas: pandas is not installed (pip install pandas); columns are "
                              "arrays without it") from None
        frame = pandas.DataFrame(dict(self.columns))
        frame.attrs.update(self.facts)
        return frame.set_index("tau") if "tau" in frame else frame

    def plot(self, ax: Any = None) -> Any:
        """Draws the columns over tau, or the values of worst pairs as bars. Returns the axes."""
        axes = _axes(ax)
        if "tau" not in self.columns:
            names = [f"{s} -> {t}" for s, t in zip(self["source"], self["target"])]
            axes.barh(names[::-1], self["value"][::-1])
            axes.set_xlabel(f"S({self.facts['tau']})")
            return axes
        drawn = [name for name in ("value", "lower", "upper", "least", "least_bound", "largest",
                                   "largest_bound", "smallest", "total") if name in self.columns]
        for name in drawn:
            # What is 0 has no place on a logarithmic axis.
            values = np.where(self[name] > 0.0, self[name], np.nan)
            is_bound = name in ("lower", "upper", "least_bound", "largest_bound")
            axes.plot(self["tau"], values, "--" if is_bound else "-", label=name)
        if self.facts.get("limit") and "limit_value" in self.columns:
            axes.plot(self["tau"], self["limit_value"], ":", label="limit")
        axes.set_xlabel("tau (hops)")
        axes.set_ylabel("S(tau)")
        axes.set_yscale("log")
        axes.legend()
        return axes

    def __repr__(self) -> str:
        lines = [" ".join(f"{name:>14}" for name in self.columns)]
        rows = list(zip(*self.columns.values()))
        for row in rows[:10]:
            lines.append(" ".join(f"{number:>14.6g}" for number in row))
        if len(rows) > 10:
            lines.append(f"... {len(rows)} rows")
        lines += [f"{name}: {value}" for name, value in self.facts.items() if value is not None]
        return "\n".join(lines)


@dataclass(frozen=True)
class Depth:
    """Hops until ``share`` of the limit has arrived.

    Attributes:
        tau: the first tau at which it has; None: not up to ``max_tau``, or never.
        sure_from: of a pair, the tau from which the bound says so; None: it never does.
        last_source, last_target: of all pairs, the one that takes longest.
    """

    share: float
    max_tau: int
    tau: Optional[int]
    sure_from: Optional[int] = None
    last_source: Optional[int] = None
    last_target: Optional[int] = None


@dataclass(frozen=True, eq=False)
class Influence:
    """What one prediction of a module depends on.

    Attributes:
        target: its row.
        of_node: [N], sum of |d y[target] / d x[j]| over outputs and features (and time steps).
        hops: int [N] from each node to the target, -1 where there is no way.
        of_hop: influence of all nodes at distance 0, 1, ...; nodes_at: how many these are.
        mean_hop: distance that influence comes from on average.
        jacobian: [out, ..., N, in], d y[target] / d x.
    """

    target: int
    of_node: Numbers
    hops: Numbers
    of_hop: Numbers
    nodes_at: Numbers
    mean_hop: float
    jacobian: Tensor

    def top(self, count: int = 10) -> List[int]:
        """The nodes of largest influence, largest first."""
        return np.argsort(-self.of_node, kind="stable")[:count].tolist()

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each node: influence, hops."""
        return Table({"influence": self.of_node, "hops": self.hops}).to_pandas()

    def plot(self, ax: Any = None) -> Any:
        """Draws the influence by distance. Returns the axes."""
        axes = _axes(ax)
        axes.bar(np.arange(len(self.of_hop)), self.of_hop)
        axes.set_xlabel(f"hops to node {self.target}")
        axes.set_ylabel("influence")
        return axes


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot: matplotlib is not installed (pip install matplotlib)") from None
    return pyplot.subplots()[1]


# ---- asking ---------------------------------------------------------------------------------


def _checked_taus(taus: Taus) -> NDArray[np.int64]:
    given = np.atleast_1d(np.asarray(taus))
    whole = given.astype(np.int64) if given.dtype.kind in "iuf" else None
    if (whole is None or given.ndim != 1 or not len(given) or np.any(whole != given)
            or whole[0] < 0 or np.any(np.diff(whole) <= 0)):
        raise ValueError("sensitivity: expected taus as whole numbers that ascend from 0 or more, got "
                         f"{taus!r}")
    return np.ascontiguousarray(whole)


def _checked_node(name: str, node: Optional[int], gso: Gso) -> int:
    if node is None:
        return -1
    number = int(node)
    if not 0 <= number < gso.num_nodes:
        raise ValueError(f"sensitivity: expected {name} from 0 to {gso.num_nodes - 1}, got {node}")
    return number


def _checked_gso(gso: Gso) -> Gso:
    if not isinstance(gso, Gso):
        raise TypeError(f"sensitivity: expected a mpssm.Gso, got {type(gso).__name__}; "
                        "Gso.from_edge_index(edge_index) makes one")
    if gso.num_nodes == 0:
        raise ValueError("sensitivity: expected a node, got an operator of none")
    return gso.to("cpu")


class _Answer:
    """One call of the library: columns by name, None for what it has not."""

    def __init__(self, gso: Gso, taus: Taus, source: Optional[int], target: Optional[int], *,
                 w: float = 1.0, bounds: bool = False, depth: float = math.nan,
                 max_tau: int = _MAX_TAU, worst: int = 0, by_share: bool = False,
                 profile: bool = True):
        operator = _checked_gso(gso)
        self.taus = _checked_taus(taus)
        if not math.isfinite(w):
            raise ValueError(f"sensitivity: expected a finite w, got {w}")
        arguments = _pack(len(self.taus), self.taus.ctypes.data,
                          _checked_node("source", source, operator),
                          _checked_node("target", target, operator), w, bounds, depth, max_tau,
                          worst, by_share, profile)
        handle = ctypes.c_void_p()
        _ask(_packed(operator.arrays(torch.float64)), arguments, ctypes.byref(handle))
        self._handle = handle

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: Any) -> None:
        _free(self._handle)

    def column(self, name: str) -> Optional[Numbers]:
        size = ctypes.c_int64()
        data = _column(self._handle, name.encode(), ctypes.byref(size))
        return np.array(data[: size.value], dtype=np.float64) if data else None

    def number(self, name: str) -> Optional[float]:
        column = self.column(name)
        return None if column is None or math.isnan(column[0]) else float(column[0])

    def whole(self, name: str) -> Optional[int]:
        number = self.number(name)
        return None if number is None else int(number)

    def columns(self, *names: str) -> Dict[str, Numbers]:
        """Those of them that are there; counts and nodes as whole numbers."""
        found = {name: self.column(name) for name in names}
        whole = ("nodes", "zeros", "hops", "bridges", "source", "target", "least_source",
                 "least_target", "largest_source", "largest_target")
        return {name: column.astype(np.int64) if name in whole else column
                for name, column in found.items() if column is not None}

    def profile(self) -> Dict[str, Numbers]:
        return {"tau": self.taus,
                **self.columns("value", "limit_value", "nodes", "smallest", "total", "least",
                               "least_source", "least_target", "largest", "largest_source",
                               "largest_target", "zeros")}


def profile(gso: Gso, taus: Taus, *, source: Optional[int] = None, target: Optional[int] = None,
            w: float = 1.0) -> Table:
    """S(tau) for each of ``taus`` (ascending), a row for each.

    Of a pair (``source`` and ``target``): column ``value``, and ``limit_value`` = limit |w|^tau where
    the limit is known; facts ``hops``, ``limit``, ``lambda_star``. One product with A for each hop.
    Of one node: what it sends (``source``) or hears (``target``): ``nodes`` that anything arrives at,
    ``smallest`` above 0, ``largest``, ``total``.
    Of all pairs (neither; up to 20,000 nodes): ``least`` within a component and ``largest`` with their
    nodes, and ``zeros``, the ordered pairs of one component that nothing passes between yet.
    """
    with _Answer(gso, taus, source, target, w=w) as answer:
        facts: Dict[str, Any] = {"w": w, "lambda_star": answer.number("lambda_star")}
        if source is not None and target is not None:
            facts.update(hops=answer.whole("hops"), limit=answer.number("limit"))
        elif source is None and target is None:
            facts["least_limit"] = answer.number("least_limit")
        return Table(answer.profile(), facts)


def limit(gso: Gso, *, source: Optional[int] = None,
          target: Optional[int] = None) -> Union[float, Numbers]:
    """Where (A^tau)_ij ends: sqrt(D_i D_j) / vol of the component, 0 across components.

    A number for a pair, [N] for one node, [N, N] (target by source) for neither. It is known for
    D^-1/2 M D^-1/2 of undirected graphs whose nodes have loops of weight 1, as ``sym_normalized``
    makes it (of any such operator, whatever it was made by); ValueError says where it is not.
    """
    operator = _checked_gso(gso)
    nodes = operator.num_nodes
    for name, node in (("source", source), ("target", target)):
        _checked_node(name, node, operator)
    if source is None and target is None and nodes > _MAX_DENSE:
        raise ValueError(f"limit: expected at most {_MAX_DENSE} nodes for all pairs, got {nodes}; "
                         "give source or target")
    everyone = np.arange(nodes, dtype=np.int64)
    targets, sources = np.broadcast_arrays(
        everyone[:, None] if target is None else np.int64(target),
        everyone[None, :] if source is None else np.int64(source))
    shape = targets.shape
    targets, sources = np.ascontiguousarray(targets), np.ascontiguousarray(sources)
    found = np.empty(shape, dtype=np.float64)
    _limits(_packed(operator.arrays(torch.float64)), found.size, sources.ctypes.data,
            targets.ctypes.data, found.ctypes.data)
    if source is not None and target is not None:
        return float(found)
    return found if source is None and target is None else found.reshape(-1)


def bounds(gso: Gso, taus: Taus, *, source: Optional[int] = None, target: Optional[int] = None,
           w: float = 1.0) -> Table:
    """The profile of a pair or of all pairs with what is known about it beforehand.

    Of a pair: ``lower`` and ``upper``, limit -+ lambda*^tau sqrt((1 - q_ii)(1 - q_jj)). Of all pairs:
    ``largest_bound`` = rho^tau / N and, of a connected graph whose limit is known, ``least_bound``.
    Facts: ``hold`` (at every tau), ``lambda_star``, ``is_certain`` (else lambda* is an approximation).
    """
    if (source is None) != (target is None):
        raise ValueError("bounds: expected source and target, or neither, got one of them")
    with _Answer(gso, taus, source, target, w=w, bounds=True) as answer:
        columns = {**answer.profile(),
                   **answer.columns("lower", "upper", "least_bound", "largest_bound")}
        return Table(columns, {"w": w, "hold": bool(answer.number("hold")),
                               "limit": answer.number("limit"),
                               "lambda_star": answer.number("lambda_star"),
                               "is_certain": bool(answer.number("is_certain"))})


def depth(gso: Gso, share: float = 0.5, *, source: Optional[int] = None,
          target: Optional[int] = None, max_tau: int = _MAX_TAU) -> Depth:
    """The least tau at which (A^tau)_ij >= share * limit: of a pair, or of every pair of a component
    (neither given; up to 20,000 nodes). Needs the limit, see :func:`limit`."""
    if (source is None) != (target is None):
        raise ValueError("depth: expected source and target, or neither, got one of them")
    if not 0.0 < share < 1.0:
        raise ValueError(f"depth: expected a share between 0 and 1, got {share}")
    if max_tau < 0:
        raise ValueError(f"depth: expected max_tau of 0 or more, got {max_tau}")
    with _Answer(gso, 0, source, target, depth=share, max_tau=max_tau) as answer:
        return Depth(share, max_tau, answer.whole("depth"), answer.whole("sure_from"),
                     answer.whole("last_source"), answer.whole("last_target"))


def worst_pairs(gso: Gso, tau: int, count: int = 10, *, by: str = "value", w: float = 1.0) -> Table:
    """The ``count`` pairs of one component between which least arrives after ``tau`` hops, worst
    first: ``source``, ``target``, ``hops`` between them, ``value``; ``limit`` and ``share`` of it
    where it is known; of an undirected graph how many ``bridges`` everything has to pass.

    ``by="share"`` ranks by the share of the limit: held back by the graph rather than by low degrees.
    Up to 20,000 nodes; each pair once if the operator is symmetric.
    """
    if by not in ("value", "share"):
        raise ValueError(f"worst_pairs: expected by value or share, got {by!r}")
    if count < 1:
        raise ValueError(f"worst_pairs: expected a count of 1 or more, got {count}")
    with _Answer(gso, int(tau), None, None, w=w, worst=count, by_share=by == "share",
                 profile=False) as answer:
        return Table(answer.columns("source", "target", "hops", "value", "limit", "share",
                                    "bridges"), {"tau": int(tau), "w": w, "by": by})


# ---- of a module ----------------------------------------------------------------------------


def influence(model: torch.nn.Module, gso: Gso, x: Tensor, target: int) -> Influence:
    """What ``model(x, gso)[target]`` depends on, exactly: one forward pass and a backward pass for
    each output. x [N, in] or [T, N, in]; ``target`` is a node, a row of the output [N, out].

    The module is in evaluation mode meanwhile; its gradients and its mode are left as they were.
    """
    operator = _checked_gso(gso)
    modes = [(module, module.training) for module in model.modules()]
    leaf = x.detach().clone().requires_grad_()
    try:
        model.eval()
        with torch.enable_grad():
            y = model(leaf, gso)
            if y.dim() != 2 or y.shape[0] != operator.num_nodes:
                raise ValueError(f"influence: expected an output [N={operator.num_nodes}, out], got "
                                 f"{list(y.shape)}")
            if not 0 <= target < y.shape[0]:
                raise ValueError(f"influence: expected target from 0 to {y.shape[0] - 1}, got "
                                 f"{target}")
            jacobian = torch.stack([torch.autograd.grad(one, leaf, retain_graph=True)[0]
                                    for one in y[target]])
    finally:
        for module, training in modes:
            module.training = training
    if not bool(torch.isfinite(jacobian).all()):
        raise RuntimeError("influence: the derivative of this prediction is not finite: weights or "
                           "features are too large")
    sizes = jacobian.abs().double().sum(-1)
    of_node = sizes.reshape(-1, sizes.shape[-1]).sum(0).cpu().numpy()
    hops = np.empty(operator.num_nodes, dtype=np.int32)
    _hops(_packed(operator.arrays(torch.float64)), target, hops.ctypes.data)
    near, distance = of_node[hops >= 0], hops[hops >= 0]
    total = near.sum()
    return Influence(target, of_node, hops, np.bincount(distance, near), np.bincount(distance),
                     float((near * distance).sum() / total) if total > 0.0 else 0.0, jacobian)
