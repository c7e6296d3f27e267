# SPDX-License-Identifier: MIT
"""Edges and batches of graphs as PyTorch Geometric has them, checked and made ready for the library."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor


def most_nodes(edge_index: Tensor) -> int:
    return int(edge_index.max()) + 1 if edge_index.numel() else 0


class EdgeArguments:
    """Edges as the library takes them, checked: edge_index [2, E], edge_weight [E] or none."""

    def __init__(self, name: str, edge_index: Tensor, edge_weight: Optional[Tensor],
                 num_nodes: Optional[int]):
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            raise ValueError(f"{name}: expected edge_index of whole numbers and shape [2, E], got "
                             f"{list(edge_index.shape)} of {edge_index.dtype}")
        self.num_edges = edge_index.shape[1]
        if edge_weight is not None and tuple(edge_weight.shape) != (self.num_edges,):
            raise ValueError(f"{name}: expected edge_weight of shape [{self.num_edges}], got "
                             f"{list(edge_weight.shape)}")
        self.num_nodes = most_nodes(edge_index) if num_nodes is None else num_nodes
        self.index = edge_index.detach().to("cpu", torch.int64).contiguous()
        self.weight = None if edge_weight is None else (
            edge_weight.detach().to("cpu", torch.float64).contiguous())

    def pointers(self) -> Tuple[Any, ...]:
        """Nodes, edges, sources, destinations, weights; valid as long as this."""
        return (self.num_nodes, self.num_edges, self.index[0].data_ptr(), self.index[1].data_ptr(),
                None if self.weight is None else self.weight.data_ptr())


def graph_ptr_of(batch: Tensor, num_nodes: int) -> Tensor:
    nodes = batch.detach().to("cpu", torch.int64)
    if tuple(nodes.shape) != (num_nodes,):
        raise ValueError(f"Gso: expected batch of shape [N={num_nodes}], got {list(nodes.shape)}")
    if num_nodes and (bool((nodes[1:] < nodes[:-1]).any()) or int(nodes[0]) < 0):
        raise ValueError("Gso: expected batch to ascend from 0, as PyG's Batch makes it")
    sizes = torch.bincount(nodes)
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
