# SPDX-License-Identifier: MIT
"""Graphs as modules take them, and the operators that they are made into."""

from __future__ import annotations

import functools
import sys
from typing import Callable, List, Optional, Tuple, Union

import torch
from torch import Tensor

from mpssm._arguments import Operators
from mpssm.gso import Gso
from mpssm.gso_sequence import GsoSequence

Graph = Union[Operators, Tensor]


def first_of(gso: Operators) -> Gso:
    """One of the operators: they are all on the same nodes and graphs."""
    if isinstance(gso, Gso):
        return gso
    if isinstance(gso, GsoSequence):
        return gso.operators[0]
    return gso[0] if isinstance(gso[0], Gso) else gso[0][0]


def groups_of_kind(kind: str) -> List[Tuple[str, int]]:
    """"sym_normalized:2,random_walk" as the program's settings have it: kinds of operators, one for each
    group of channels, and their shares."""
    groups = []
    for word in kind.split(","):
        name, _, share = word.strip().partition(":")
        if share and not share.isdigit() or share == "0":
            raise ValueError(f"mpssm.nn: expected a share of at least 1 behind the colon, got {word!r}")
        groups.append((name, int(share or 1)))
    return groups


def operators_of(graph: Graph, edge_weight: Optional[Tensor], num_nodes: int, kind: str,
                 batch: Optional[Tensor] = None, *, plan: str = "auto") -> Operators:
    """An operator, or one for each group of channels if there are several kinds. Never compiled."""
    # The compiler is as long to import as torch: who does not use it does not wait for it.
    make = _make_operators if "torch._dynamo" not in sys.modules else _uncompiled()
    return make(graph, edge_weight, num_nodes, kind, batch, plan)


@functools.lru_cache(None)
def _uncompiled() -> Callable[..., Operators]:
    return torch.compiler.disable(_make_operators)


def _make_operators(graph: Graph, edge_weight: Optional[Tensor], num_nodes: int, kind: str,
                    batch: Optional[Tensor], plan: str) -> Operators:
    if edge_weight is not None and edge_weight.requires_grad:
        raise ValueError("mpssm.nn: expected an edge_weight without gradient, got one that requires "
                         "it; edge weights cannot be learned")
    groups = groups_of_kind(kind)
    if len(groups) > 1:
        return [(Gso.from_edge_index(graph, edge_weight, num_nodes, kind=one,  # type: ignore[arg-type]
                                     batch=batch), share) for one, share in groups]
    if graph.layout != torch.strided:  # type: ignore[union-attr]
        gso = Gso.from_torch_sparse(graph)  # type: ignore[arg-type]
    else:
        gso = Gso.from_edge_index(graph, edge_weight, num_nodes,  # type: ignore[arg-type]
                                  kind=groups[0][0], batch=batch)
    return gso.with_basis() if plan == "spectral" else gso
