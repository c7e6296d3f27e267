# SPDX-License-Identifier: MIT
"""What the graph alone says of each node, as numbers to append to its features."""

from __future__ import annotations

import ctypes
from typing import Optional

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._edges import EdgeArguments


def encode_nodes(edge_index: Tensor, encodings: str = "rwse:16", edge_weight: Optional[Tensor] = None,
                 num_nodes: Optional[int] = None, *, directed: bool = True) -> Tensor:
    """[N, width], float32: what `data.encodings` of the program appends to the features.

    Args:
        edge_index, edge_weight, num_nodes, directed: the graph, as in :meth:`mpssm.Gso.from_edge_index`.
        encodings: some of "rwse:K" (how likely a random walk is back after 1, ..., K steps), "lap:K" (the K
            lowest eigenvectors of the Laplacian of each connected part, beyond the trivial one) and "degree"
            (log(1 + degree)), with commas between them; the columns come in this order.
    """
    edges, width = EdgeArguments("encode_nodes", edge_index, edge_weight, num_nodes), ctypes.c_int64()
    _engine.encodings_width(encodings.encode(), ctypes.byref(width))
    result = torch.empty(edges.num_nodes, width.value)
    _engine.encode_nodes(*edges.pointers(), not directed, encodings.encode(), result.data_ptr())
    return result.to(edge_index.device)
