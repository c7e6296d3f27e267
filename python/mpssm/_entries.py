# SPDX-License-Identifier: MIT
"""Learned entries of a block's operator, under the parameter names of the C++ library."""

from __future__ import annotations

import math
from typing import Optional, Tuple

import torch
from torch import Tensor, nn

from mpssm import functional
from mpssm.gso import Gso

KINDS = ("fixed", "free", "attention", "gin")


class Entries(nn.Module):
    """What a block puts in place of its operator's entries.

    - "free": A + D, D on the pattern of A, started at zero; binds the model to one operator of
      ``num_entries`` entries.
    - "gin": A + (1 + eps) I, eps started at zero.
    - "attention": softmax over the neighbours j of node i of leaky(a_target . C(i) + a_source . C(j)),
      C [N, channels] the block's own input U B.
    """

    def __init__(self, kind: str, channels: int = 0, num_entries: int = 0):
        super().__init__()
        self.kind = kind
        if kind == "free":
            if num_entries < 1:
                raise ValueError("Entries: free entries need the number of entries of the one operator "
                                 f"they belong to (gso.num_nonzeros), got num_entries={num_entries}")
            self.change = nn.Parameter(torch.zeros(num_entries))
        elif kind == "gin":
            self.epsilon = nn.Parameter(torch.zeros(1))
        elif kind == "attention":
            bound = math.sqrt(6.0 / (channels + 1))
            self.attention = nn.Parameter(torch.empty(channels, 2).uniform_(-bound, bound))
        else:
            raise ValueError(f"Entries: expected {', '.join(KINDS[1:])}, got {kind!r}")
        self._seen: Optional[Tuple[Gso, Gso]] = None

    def pattern(self, gso: Gso) -> Gso:
        """The operator whose pattern the entries have: gso, for "gin" with a whole diagonal."""
        if self.kind != "gin":
            return gso
        if self._seen is None or self._seen[0] is not gso:
            self._seen = (gso, gso.with_whole_diagonal())
        return self._seen[1]

    def forward(self, c: Tensor, pattern: Gso) -> Tensor:
        """[nonzeros] of such a pattern; c is read by attention alone."""
        if self.kind == "attention":
            if tuple(c.shape) != (pattern.num_nodes, self.attention.shape[0]):
                raise ValueError("Entries: attention takes the features of one graph, [N="
                                 f"{pattern.num_nodes}, C={self.attention.shape[0]}], got {list(c.shape)}")
            scores = functional.norm_linear(c, None, None, self.attention)
            return functional.edge_softmax(pattern, scores[:, 0], scores[:, 1])
        own = pattern.arrays(c.dtype)[2]
        if self.kind == "free":
            if self.change.shape[0] != pattern.num_nonzeros:
                raise ValueError(f"Entries: has {self.change.shape[0]} free entries, got an operator with "
                                 f"{pattern.num_nonzeros}")
            return own + self.change
        rows, columns = pattern.coordinates()
        return own + (rows == columns).to(own.dtype) * (1.0 + self.epsilon)

    def extra_repr(self) -> str:
        return self.kind
