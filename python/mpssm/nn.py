# SPDX-License-Identifier: MIT
"""Modules: the layers and the deep model of the C++ library, under the same parameter names.

Wherever a graph is asked for, an operator, what else :func:`mpssm.recurrence` takes for one, or PyG's
``edge_index`` [2, E] will do. An operator is made once and costs nothing later; an ``edge_index`` is turned
into one at each call (unless ``cached``), which also keeps ``torch.compile(fullgraph=True)`` from working.
"""

from __future__ import annotations

import math
from typing import Optional, Sequence

import torch
from torch import Tensor, nn

from mpssm import _entries, functional
from mpssm._arguments import PRECISIONS, Operators, Place
from mpssm._entries import Entries
from mpssm._graphs import Graph, first_of, groups_of_kind, operators_of
from mpssm._parts import Linear, Norm, StateMatrix, input_matrix, one_of
from mpssm.functional import ACTIVATIONS, Seeds
from mpssm.gso import Gso

__all__ = ["Entries", "Linear", "MPSSM", "MPSSMBlock", "MPSSMCell", "MPSSMConv", "MPSSMRecurrent", "Norm",
           "StateMatrix"]


class MPSSMBlock(nn.Module):
    """Y = MLP(X), X(t+1) = A X(t) W + U(t+1) B, X(0) = 0, MLP(X) = phi(norm(X) W1 + b1) W2 + b2.

    Static (``temporal=False``): u [..., N, in] -> [..., N, out] from the state after ``hops`` hops.
    Temporal: u [..., T, N, in] -> [..., T, N, out], or [..., N, out] with ``outputs="last"``.
    ``hops_per_step`` and ``precision`` are as in :func:`mpssm.recurrence`, and so may the operators be: one
    for each group of channels, of a dense W with these ``shares``, or a :class:`mpssm.GsoSequence`.
    ``entries`` of A may be learned: :class:`Entries`. ``mix_channels``: X goes through a linear map to so
    many before the norm (:func:`mpssm.convert` wants that).
    """

    def __init__(self, in_channels: int, out_channels: int, *, state_channels: Optional[int] = None,
                 hidden_channels: Optional[int] = None, hops: int = 4, state: str = "stable",
                 min_modulus: float = 0.7, max_modulus: float = 0.999, activation: str = "gelu",
                 state_norm: str = "layer", dropout: float = 0.0, plan: str = "auto",
                 precision: str = "float32", entries: str = "fixed", num_entries: int = 0,
                 hops_per_step: int = 1, shares: Sequence[int] = (), mix_channels: int = 0):
        super().__init__()
        channels = state_channels or out_channels
        hidden = hidden_channels or channels
        if hops < 0:
            raise ValueError(f"MPSSMBlock: expected hops >= 0, got {hops}")
        self.hops, self.hops_per_step, self.dropout, self.plan = hops, hops_per_step, dropout, plan
        self.precision = one_of("precision", precision, PRECISIONS)
        self.activation = one_of("activation", activation, tuple(ACTIVATIONS))
        self.w_in = input_matrix(in_channels, channels)
        self.w_state = StateMatrix(channels, state, min_modulus=min_modulus, max_modulus=max_modulus,
                                   shares=shares)
        self.w_out: Optional[nn.Parameter] = None
        if mix_channels:
            self.w_out = input_matrix(channels, mix_channels)
        self.state_norm = Norm(state_norm, mix_channels or channels)
        self.mlp_in = Linear(mix_channels or channels, hidden)
        self.mlp_out = Linear(hidden, out_channels)
        self.entries: Optional[Entries] = None
        if one_of("entries", entries, _entries.KINDS) != "fixed":
            self.entries = Entries(entries, channels, num_entries)

    def recur(self, u: Tensor, gso: Operators, *, temporal: bool = False, outputs: str = "last") -> Tensor:
        """X alone: what the MLP reads."""
        return self._recurrence(u, self.w_in, gso, temporal, outputs)

    def _recurrence(self, u: Tensor, w_in: Optional[Tensor], gso: Operators, temporal: bool,
                    outputs: str) -> Tensor:
        values = None
        if self.entries is not None:
            if not isinstance(gso, Gso):
                raise ValueError("MPSSMBlock: expected one operator for all channels and steps where "
                                 f"entries are learned, got {type(gso).__name__}")
            if w_in is not None:
                u, w_in = functional.norm_linear(u, None, None, w_in, precision=self.precision), None
            gso = self.entries.pattern(gso)
            values = self.entries(u, gso)
        return functional.recurrence(gso, u, self.w_state(), w_in, outputs=outputs, plan=self.plan,
                                     steps=None if temporal else self.hops + 1,
                                     precision=self.precision, values=values,
                                     hops_per_step=self.hops_per_step if temporal else 1)

    def enter(self, u: Tensor, norm: Norm, place: Place = (0, 0)) -> Tensor:
        """norm(u) B: what goes into the recurrence."""
        scale, shift = norm.layer_weights()
        return functional.norm_linear(u if scale is not None else norm(u), scale, shift, self.w_in,
                                      precision=self.precision, place=place)

    def recur_pairs(self, c: Tensor, gso: Gso, begin: int, end: int) -> Tensor:
        """X of the pairs of channels from ``begin`` to ``end`` by itself, from their share c of
        :meth:`enter`: with a diagonal W channels never meet."""
        sigma = self.w_state()
        assert isinstance(sigma, Tensor)
        return functional.recurrence(gso, c, sigma[begin:end], steps=self.hops + 1,
                                     plan=self.plan, precision=self.precision,
                                     all_channels=self.w_state.channels)

    def draw_seeds(self, x: Tensor, dropout: float) -> Seeds:
        """What :meth:`decode` draws for its dropouts in training."""
        if not self.training:
            return None, None
        return functional.draw_seeds(x, self.dropout, dropout)

    def decode(self, x: Tensor, *, residual: Optional[Tensor] = None, dropout: float = 0.0,
               place: Place = (0, 0), seeds: Optional[Seeds] = None) -> Tensor:
        """The MLP with its norm, at every node by itself; in training ``dropout`` on the result."""
        if self.w_out is not None:
            x = functional.norm_linear(x, None, None, self.w_out, precision=self.precision, place=place)
        scale, shift = self.state_norm.layer_weights()
        state = x if scale is not None else self.state_norm(x)
        return functional.feed_forward(
            state, self.mlp_in.weight, self.mlp_in.bias, self.mlp_out.weight, self.mlp_out.bias,
            scale=scale, shift=shift, activation=self.activation,
            drop_hidden=self.dropout if self.training else 0.0,
            drop_out=dropout if self.training else 0.0, residual=residual,
            precision=self.precision, place=place, seeds=seeds)

    def forward(self, u: Tensor, gso: Operators, *, temporal: bool = False, outputs: str = "last",
                norm: Optional[Norm] = None, dropout: float = 0.0,
                residual: bool = False) -> Tensor:
        """``norm``, ``dropout`` and ``residual`` are what a deep model puts around a block: its norm
        before, in training a dropout on the result, and u added (of a sequence with outputs "last":
        its last step). They give what they give one by one, in fewer passes over memory."""
        if norm is None:
            x = self.recur(u, gso, temporal=temporal, outputs=outputs)
        else:
            x = self._recurrence(self.enter(u, norm), None, gso, temporal, outputs)
        last = u.select(-3, -1) if temporal and outputs == "last" else u
        return self.decode(x, residual=last if residual else None, dropout=dropout)


class MPSSM(nn.Module):
    """The deep model: H = x E + e; H <- H + Dropout(Block(Norm(H))) for each block; y = Readout(
    Norm(H)). ``blocks`` of ``hops`` let a node see their product in hops.

    Readouts: "node" x [..., N, in] -> [..., N, out]; "graph" x [N, in] -> [G, out];
    "forecast" x [..., T, N, in] -> [..., N, out]. With ``temporal``, "node" is one output per step.
    ``readout_layers`` linear ones, each of half the width of the one before, or with ``readout_shape``
    "constant" as wide as what comes in. ``input_dropout`` is on H at the start, ``readout_dropout`` before
    each layer of the readout. ``kind`` of operator that an ``edge_index`` is made into, "a:2,b" for one of each
    group of channels. ``state_channels`` of the blocks, if others than hidden ones (:func:`mpssm.convert`).
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, *,
                 num_blocks: int = 4, hops: int = 4, temporal: bool = False, state: str = "stable",
                 min_modulus: float = 0.7, max_modulus: float = 0.999, activation: str = "gelu",
                 norm: str = "layer", state_norm: str = "layer", residual: bool = True,
                 dropout: float = 0.0, readout: str = "node", pooling: str = "mean",
                 readout_layers: int = 1, readout_activation: str = "gelu",
                 num_embedded_nodes: int = 0, skip_steps: int = 0, kind: str = "sym_normalized",
                 plan: str = "auto", precision: str = "float32", entries: str = "fixed",
                 num_entries: int = 0, input_dropout: float = 0.0, readout_dropout: float = 0.0,
                 readout_shape: str = "halving", hops_per_step: int = 1, state_channels: int = 0):
        super().__init__()
        self.readout = one_of("readout", readout, ("node", "graph", "forecast"))
        if readout == "graph" and temporal or readout == "forecast" and not temporal:
            raise ValueError("MPSSM: readout graph needs temporal=False, forecast temporal=True")
        if entries == "attention" and temporal:
            raise ValueError("MPSSM: entries by attention need temporal=False")
        self.temporal, self.residual, self.dropout = temporal, residual, dropout
        self.input_dropout, self.readout_dropout = input_dropout, readout_dropout
        self.readout_shape = one_of("readout_shape", readout_shape, ("halving", "constant"))
        self.pooling = one_of("pooling", pooling, functional.POOLINGS)
        self.readout_activation = one_of("activation", readout_activation, tuple(ACTIVATIONS))
        self.in_channels, self.num_blocks = in_channels, num_blocks
        self.kind, self.plan, self.precision = kind, plan, precision
        self.skip_steps, self.num_embedded_nodes = skip_steps, num_embedded_nodes
        self.state_channels = state_channels
        self.encoder = Linear(in_channels, hidden_channels)
        shares = [share for _, share in groups_of_kind(kind)]
        has_mix = state_channels > 0 and state_norm != "none"
        for i in range(num_blocks):
            self.add_module(f"norm_{i}", Norm(norm, hidden_channels))
            self.add_module(f"block_{i}", MPSSMBlock(
                hidden_channels, hidden_channels, hops=hops, state=state, min_modulus=min_modulus,
                max_modulus=max_modulus, activation=activation, state_norm=state_norm,
                dropout=dropout, plan=plan, precision=precision, entries=entries,
                num_entries=num_entries, hops_per_step=hops_per_step,
                shares=shares if len(shares) > 1 else (), state_channels=state_channels or None,
                hidden_channels=hidden_channels, mix_channels=hidden_channels if has_mix else 0))
        self.final_norm = Norm(norm, hidden_channels)
        width = 3 * hidden_channels if readout == "graph" and pooling == "sum_max_mean" else (
            hidden_channels)
        self.readout_layers = readout_layers
        for i in range(readout_layers):
            after = out_channels if i + 1 == readout_layers else (
                max(width // 2, 1) if readout_shape == "halving" else width)
            self.add_module(f"readout_{i}", Linear(width, after))
            width = after
        if num_embedded_nodes:
            self.node_embedding = nn.Parameter(0.1 * torch.randn(num_embedded_nodes, hidden_channels))
        if skip_steps:
            self.skip = Linear(skip_steps * in_channels, out_channels)
            nn.init.zeros_(self.skip.weight)
            nn.init.zeros_(self.skip.bias)

    def forward(self, x: Tensor, graph: Graph,
                edge_weight: Optional[Tensor] = None, batch: Optional[Tensor] = None) -> Tensor:
        gso: Operators = graph if not isinstance(graph, Tensor) else operators_of(
            graph, edge_weight, x.shape[-2], self.kind, batch, plan=self.plan)
        first = first_of(gso)
        if x.dim() < (3 if self.temporal else 2) or x.shape[-1] != self.in_channels:
            shape = "[..., T, N, " if self.temporal else "[..., N, "
            raise ValueError(f"MPSSM: expected x of shape {shape}in_channels={self.in_channels}], got "
                             f"{list(x.shape)}")
        if self.num_embedded_nodes not in (0, first.num_nodes):
            raise ValueError(f"MPSSM: has embeddings of {self.num_embedded_nodes} nodes, got a graph "
                             f"of {first.num_nodes}")
        h = self.encoder(x)
        if self.num_embedded_nodes:
            h = h + self.node_embedding
        h = functional.dropout(h, self.input_dropout, self.training)
        for i in range(self.num_blocks):
            every_step = self.temporal and (self.readout != "forecast" or i + 1 < self.num_blocks)
            h = getattr(self, f"block_{i}")(
                h, gso, temporal=self.temporal, outputs="all" if every_step else "last",
                norm=getattr(self, f"norm_{i}"), dropout=self.dropout, residual=self.residual)
        h = self.read_out(h, first)
        if self.skip_steps:
            if x.shape[-3] < self.skip_steps:
                raise ValueError(f"MPSSM: expected at least skip_steps={self.skip_steps} steps, got "
                                 f"{x.shape[-3]}")
            last = x.narrow(-3, x.shape[-3] - self.skip_steps, self.skip_steps)
            h = h + self.skip(last.transpose(-3, -2).flatten(-2))
        return h

    def read_out(self, h: Tensor, gso: Gso, place: Place = (0, 0)) -> Tensor:
        """What follows the blocks, at every node by itself but for pooling."""
        h = self.final_norm(h, place)
        if self.readout == "graph":
            h = functional.pool(gso, h, self.pooling)
        for i in range(self.readout_layers):
            if i > 0:
                h = ACTIVATIONS[self.readout_activation](h)
            h = functional.dropout(h, self.readout_dropout, self.training)
            h = getattr(self, f"readout_{i}")(h, place)
        return h


class MPSSMConv(nn.Module):
    """Drop-in for PyG's GCNConv that reaches ``hops`` hops in one linear layer:
    y = norm(X) W_out + bias, X after ``hops`` hops of X(t+1) = A X(t) W + x B.

    Args:
        in_channels, out_channels: x [..., N, in] -> [..., N, out].
        hops: how far a node sees. GCNConv sees one.
        state_channels: width of the recurrence; default out_channels, made even.
        cached: keep the operator of the first call, as GCNConv does for one fixed graph.
        kind: the operator; "sym_normalized" is GCNConv's.
    """

    def __init__(self, in_channels: int, out_channels: int, hops: int = 8, *,
                 state_channels: Optional[int] = None, state: str = "stable",
                 min_modulus: float = 0.7, max_modulus: float = 0.999, state_norm: str = "layer",
                 cached: bool = False, bias: bool = True, kind: str = "sym_normalized",
                 plan: str = "auto", precision: str = "float32"):
        super().__init__()
        channels = state_channels or out_channels + out_channels % 2
        if hops < 0:
            raise ValueError(f"MPSSMConv: expected hops >= 0, got {hops}")
        self.in_channels, self.out_channels, self.hops = in_channels, out_channels, hops
        self.cached, self.kind, self.plan = cached, kind, plan
        self.precision = one_of("precision", precision, PRECISIONS)
        self.w_in = input_matrix(in_channels, channels)
        self.w_state = StateMatrix(channels, state, min_modulus=min_modulus, max_modulus=max_modulus)
        self.state_norm = Norm(state_norm, channels)
        self.lin = Linear(channels, out_channels, bias=bias)
        self._cached_gso: Optional[Operators] = None

    def reset_parameters(self) -> None:
        with torch.no_grad():
            bound = 1.0 / math.sqrt(self.in_channels)
            self.w_in.uniform_(-bound, bound)
        self.w_state.reset_parameters()
        self.lin.reset_parameters()
        self._cached_gso = None

    def forward(self, x: Tensor, edge_index: Graph,
                edge_weight: Optional[Tensor] = None) -> Tensor:
        gso: Operators
        if not isinstance(edge_index, Tensor):
            gso = edge_index
        elif self._cached_gso is not None:
            gso = self._cached_gso
        else:
            gso = operators_of(edge_index, edge_weight, x.shape[-2], self.kind, plan=self.plan)
            if self.cached:
                self._cached_gso = gso
        state = functional.recurrence(gso, x, self.w_state(), self.w_in, steps=self.hops + 1,
                                      plan=self.plan, precision=self.precision)
        return self.lin(self.state_norm(state))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, hops={self.hops}"


class MPSSMRecurrent(nn.Module):
    """The recurrence over time with its state carried on exactly, as PyG-Temporal's cells are called.

    x [..., T, N, in], h [..., N, out] or None (zero) -> every state [..., T, N, out]. The last one,
    ``y[..., -1, :, :]``, given as ``h`` with the next piece continues as if nothing had been cut.
    """

    def __init__(self, in_channels: int, out_channels: int, *, state: str = "stable",
                 min_modulus: float = 0.7, max_modulus: float = 0.999,
                 kind: str = "sym_normalized", plan: str = "auto", precision: str = "float32"):
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kind, self.plan = kind, plan
        self.precision = one_of("precision", precision, PRECISIONS)
        self.w_in = input_matrix(in_channels, out_channels)
        self.w_state = StateMatrix(out_channels, state, min_modulus=min_modulus,
                                   max_modulus=max_modulus)

    def forward(self, x: Tensor, edge_index: Graph, edge_weight: Optional[Tensor] = None,
                h: Optional[Tensor] = None) -> Tensor:
        gso = edge_index if not isinstance(edge_index, Tensor) else operators_of(
            edge_index, edge_weight, x.shape[-2], self.kind, plan=self.plan)
        return functional.recurrence(gso, x, self.w_state(), self.w_in, initial=h, outputs="all",
                                     plan=self.plan, precision=self.precision)


class MPSSMCell(MPSSMRecurrent):
    """One step: x [..., N, in], h [..., N, out] or None -> h [..., N, out]."""

    def forward(self, x: Tensor, edge_index: Graph, edge_weight: Optional[Tensor] = None,
                h: Optional[Tensor] = None) -> Tensor:
        return super().forward(x.unsqueeze(-3), edge_index, edge_weight, h).squeeze(-3)
