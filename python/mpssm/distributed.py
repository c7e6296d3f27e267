# SPDX-License-Identifier: MIT
"""Processes that train together, on the group that the caller has: ``torch.distributed`` initialised,
with Gloo or any backend that knows ``all_to_all_single``. Without it all of this works as one rank.

Many graphs or windows: :func:`gradient`, or :func:`sum_gradients` after each rank's own ``backward()``.
One large graph: :class:`ChannelParallel`. Every rank ends with the same gradient, to the bit, so that
optimisers that start alike stay alike. Ranks must draw the same random numbers: seed them alike.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from mpssm.gso import Gso
from mpssm.nn import MPSSM, MPSSMBlock, Norm

Piece = TypeVar("Piece")


def share(count: int, rank: int, ranks: int) -> Tuple[int, int]:
    """Which of ``count`` things in a row a rank has, begin and end: as even as can be."""
    return count * rank // ranks, count * (rank + 1) // ranks


class _Ranks:
    """A process group, or one rank by itself."""

    def __init__(self, group: Optional[Any] = None):
        alone = not dist.is_available() or not dist.is_initialized()
        self.group = group
        self.rank = 0 if alone else dist.get_rank(group)
        self.size = 1 if alone else dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("mpssm.distributed: expected a rank of the group, got one outside it")

    def exchange(self, blocks: Sequence[Tensor], sizes: Sequence[int]) -> List[Tensor]:
        """Sends block p to rank p; gives what rank p sends here, ``sizes[p]`` numbers. All flat."""
        if self.size == 1:
            return list(blocks)
        sent = torch.cat(list(blocks))
        received = sent.new_empty(sum(sizes))
        dist.all_to_all_single(received, sent, list(sizes), [block.numel() for block in blocks],
                               group=self.group)
        return list(received.split(list(sizes)))

    def gather(self, mine: Tensor, sizes: Sequence[int]) -> Tensor:
        """What all ranks have, one behind the other; flat, ``sizes[p]`` numbers of rank p."""
        return torch.cat(self.exchange([mine] * self.size, sizes))

    def sum_in_order(self, terms: Tensor, num_terms: int) -> Tensor:
        """The sum of all terms [n], added in their order; ``terms`` [own, n] are those that
        :func:`share` gives this rank. Each rank adds up its share of the n numbers."""
        n = terms.shape[1]
        numbers = [share(n, p, self.size) for p in range(self.size)]
        owned = [end - begin for begin, end in (share(num_terms, p, self.size)
                                                for p in range(self.size))]
        begin, end = numbers[self.rank]
        received = self.exchange([terms[:, first:last].reshape(-1) for first, last in numbers],
                                 [count * (end - begin) for count in owned])
        total: Optional[Tensor] = None
        for term in torch.cat(received).view(num_terms, end - begin):
            total = term.clone() if total is None else total.add_(term)
        assert total is not None
        return self.gather(total, [last - first for first, last in numbers])


# ---- many graphs, windows: the gradient of a batch, piece by piece ---------------------------------


def _parameters(model: nn.Module) -> List[nn.Parameter]:
    found = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if len({parameter.dtype for parameter in found}) > 1:
        raise ValueError("mpssm.distributed: expected parameters of one type, got "
                         f"{sorted({str(parameter.dtype) for parameter in found})}")
    if not found:
        raise ValueError("mpssm.distributed: expected a model with parameters that require a gradient")
    return found


def _check_no_batch_norm(model: nn.Module) -> None:
    if model.training and any(isinstance(module, nn.modules.batchnorm._BatchNorm)
                              for module in model.modules()):
        raise ValueError("mpssm.distributed: expected no batch norm in training, got one: it looks at "
                         "the samples of all ranks at once")


def _flattened(gradients: Sequence[Optional[Tensor]], parameters: Sequence[Tensor]) -> Tensor:
    """One behind the other, zeros where there is none."""
    return torch.cat([torch.zeros_like(parameter).view(-1) if gradient is None else gradient.reshape(-1)
                      for gradient, parameter in zip(gradients, parameters)])


def _leave(flat: Tensor, parameters: Sequence[nn.Parameter], there: Sequence[bool]) -> None:
    """The way back, into ``.grad`` of those that have one."""
    pieces = flat.split([parameter.numel() for parameter in parameters])
    for parameter, piece, is_there in zip(parameters, pieces, there):
        parameter.grad = piece.view(parameter.shape).clone() if is_there else None


def _term(loss: Tensor, gradients: Sequence[Optional[Tensor]],
          parameters: Sequence[Tensor]) -> Tensor:
    """All that is summed up of one piece: gradients, which of them there are, and the loss."""
    flat = _flattened(gradients, parameters)
    there = torch.tensor([gradient is not None for gradient in gradients])
    return torch.cat([flat, there.to(flat), loss.detach().reshape(1).to(flat)])


def _leave_gradients(total: Tensor, parameters: Sequence[nn.Parameter]) -> None:
    flat, there, _ = total.split([total.numel() - len(parameters) - 1, len(parameters), 1])
    _leave(flat, parameters, (there > 0).tolist())


def gradient(model: nn.Module, pieces: Sequence[Piece], loss_of: Callable[[Piece], Tensor],
             group: Optional[Any] = None) -> float:
    """The gradient of ``sum(loss_of(piece) for piece in pieces)``, left in ``.grad`` on every rank, and
    that sum.

    Each rank computes its :func:`share` of the pieces, which all ranks give alike; gradients are added
    in the order of the pieces. So it is bit by bit what one process gets by ``loss_of(piece).backward()``
    for one piece after the other, for any number of ranks. A piece draws random numbers of its own.
    A mean over a batch is a sum of pieces that are each divided by the size of the batch.
    """
    if not pieces:
        raise ValueError("gradient: expected at least one piece, got none")
    _check_no_batch_norm(model)
    ranks, parameters = _Ranks(group), _parameters(model)
    seeds = torch.randint(2**62, (len(pieces),)).tolist()
    begin, end = share(len(pieces), ranks.rank, ranks.size)
    terms = []
    for i in range(begin, end):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seeds[i])
            loss = loss_of(pieces[i])
            found = torch.autograd.grad(loss, parameters, allow_unused=True)
        terms.append(_term(loss, found, parameters))
    width = sum(parameter.numel() for parameter in parameters) + len(parameters) + 1
    stacked = torch.stack(terms) if terms else parameters[0].new_empty(0, width)
    total = ranks.sum_in_order(stacked.detach(), len(pieces))
    _leave_gradients(total, parameters)
    return float(total[-1])


@torch.no_grad()
def sum_gradients(model: nn.Module, group: Optional[Any] = None) -> None:
    """After each rank's own ``backward()``: ``.grad`` becomes the sum over the ranks, added in their
    order. The same bits as one process that accumulates the ranks' gradients in that order."""
    ranks, parameters = _Ranks(group), _parameters(model)
    zero = torch.zeros(())
    term = _term(zero, [parameter.grad for parameter in parameters], parameters)
    _leave_gradients(ranks.sum_in_order(term.unsqueeze(0), ranks.size), parameters)


# ---- one large graph: some nodes of all channels, or all nodes of some channels --------------------


@dataclass
class _Dealt:
    """Who has which rows and columns of a matrix: ``bounds[p]`` to ``bounds[p + 1]`` of rank p."""

    ranks: _Ranks
    rows: List[int]
    columns: List[int]

    def own(self, bounds: List[int]) -> Tuple[int, int]:
        return bounds[self.ranks.rank], bounds[self.ranks.rank + 1]

    def move_to_columns(self, x: Tensor) -> Tensor:
        """Own rows of all columns -> all rows of own columns."""
        begin, end = self.own(self.columns)
        blocks = [x[:, a:b].reshape(-1) for a, b in zip(self.columns, self.columns[1:])]
        sizes = [(b - a) * (end - begin) for a, b in zip(self.rows, self.rows[1:])]
        return torch.cat(self.ranks.exchange(blocks, sizes)).view(-1, end - begin)

    def move_to_rows(self, x: Tensor) -> Tensor:
        begin, end = self.own(self.rows)
        blocks = [x[a:b].reshape(-1) for a, b in zip(self.rows, self.rows[1:])]
        widths = [b - a for a, b in zip(self.columns, self.columns[1:])]
        received = self.ranks.exchange(blocks, [width * (end - begin) for width in widths])
        return torch.cat([block.view(end - begin, width)
                          for block, width in zip(received, widths)], 1)

    def gather_rows(self, x: Tensor) -> Tensor:
        """Own rows -> all of them."""
        width = x.shape[1]
        sizes = [(b - a) * width for a, b in zip(self.rows, self.rows[1:])]
        return self.ranks.gather(x.reshape(-1), sizes).view(-1, width)

    def own_rows(self, x: Tensor) -> Tensor:
        begin, end = self.own(self.rows)
        return x[begin:end]


class _Move(torch.autograd.Function):
    """Numbers change hands one way, and their gradients the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Callable[[Tensor], Tensor],
                back: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        return ctx.back(grad), None, None


@dataclass
class _Part:
    """One part of the nodes, and the parameters with gradients of their own for it."""

    model: MPSSM
    begin: int
    end: int


def _parts_of(nodes: int) -> List[Tuple[int, int]]:
    """How the engine cuts a sum over rows: engine::RowParts."""
    size = max(1024, -(-nodes // 16))
    return [(begin, min(nodes, begin + size)) for begin in range(0, nodes, size)]


def why_not_by_channels(model: MPSSM, ranks: int) -> str:
    """Empty if so many ranks can share the model by channels, else the reason why not."""
    if model.temporal:
        return "a series is shared by windows"
    if model.readout != "node":
        return "many graphs are shared by graphs"
    block: Any = model.get_submodule("block_0")
    if "," in model.kind:
        return "groups of channels have operators of their own"
    if block.w_state.kind == "dense":
        return "a dense W mixes the channels of all ranks"
    if any(isinstance(module, Norm) and module.kind == "batch" for module in model.modules()):
        return "batch norm looks at all nodes at once"
    if model.num_embedded_nodes:
        return "nodes have embeddings"
    if block.entries is not None:
        return "entries of A are learned from all channels"
    if model.input_dropout or model.readout_dropout:
        return "dropout outside the blocks looks at all nodes at once"
    channels = block.w_state.channels
    if channels // 2 < ranks:
        return f"{channels} channels are {channels // 2} pairs, less than one for each rank"
    return ""


class ChannelParallel(nn.Module):
    """A deep model on one large graph, shared by ranks: each has some of the nodes in norms, products
    and MLPs, which look at each node by itself, and some of the channels of all nodes in the hops,
    which look at each channel by itself. Numbers change hands twice in a block, however many hops it
    has; the graph is on every rank.

    Gives what the model gives, forward and backward, to the bit, for any number of ranks. All ranks
    call it with the same arguments::

        parallel = ChannelParallel(model)
        loss_of(parallel(x, gso)).backward()       # x [N, in] -> [N, out], whole on every rank
        parallel.collect_gradients()               # then the optimiser of model.parameters() steps
    """

    def __init__(self, model: MPSSM, group: Optional[Any] = None):
        super().__init__()
        self._ranks = _Ranks(group)
        reason = why_not_by_channels(model, self._ranks.size)
        if reason:
            raise ValueError(f"ChannelParallel: {reason}")
        self.model = model
        self._parts: List[_Part] = []
        self._dealt: Optional[_Dealt] = None
        self._num_parts = 0

    def _deal(self, nodes: int) -> _Dealt:
        """Parts of the sum over nodes, whole ones, to each rank."""
        if self._dealt is not None and self._dealt.rows[-1] == nodes:
            return self._dealt
        bounds, ranks = _parts_of(nodes), self._ranks
        shares = [share(len(bounds), p, ranks.size) for p in range(ranks.size)]
        block: Any = self.model.get_submodule("block_0")
        pairs = block.w_state.channels // 2
        self._num_parts = len(bounds)
        self._dealt = _Dealt(
            ranks, [bounds[first][0] if first < len(bounds) else nodes for first, _ in shares] + [nodes],
            [2 * share(pairs, p, ranks.size)[0] for p in range(ranks.size)] + [2 * pairs])
        first, last = shares[ranks.rank]
        own = bounds[first:last] or [(nodes, nodes)]
        self._parts = [_Part(copy.deepcopy(self.model), *part) for part in own]
        return self._dealt

    def forward(self, x: Tensor, gso: Gso) -> Tensor:
        model = self.model
        if x.dim() != 2 or tuple(x.shape) != (gso.num_nodes, model.in_channels):
            raise ValueError(f"ChannelParallel: expected x of shape [N={gso.num_nodes}, in_channels="
                             f"{model.in_channels}], got {list(x.shape)}")
        if not x.is_cpu or x.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"ChannelParallel: expected float32 or float64 on the CPU, got {x.dtype} on "
                             f"{x.device}")
        dealt = self._deal(gso.num_nodes)
        for part in self._parts:
            part.model.train(model.training)
            for mine, shared in zip(part.model.parameters(), model.parameters()):
                mine.data = shared.data
                mine.requires_grad_(shared.requires_grad)
        places = [(part.begin, gso.num_nodes) for part in self._parts]
        h = [part.model.encoder(x[part.begin:part.end], place)
             for part, place in zip(self._parts, places)]
        sizes = [part.end - part.begin for part in self._parts]
        begin, end = dealt.own(dealt.columns)
        for i in range(model.num_blocks):
            blocks: List[MPSSMBlock] = [getattr(part.model, f"block_{i}") for part in self._parts]
            c = [block.enter(h[j], getattr(self._parts[j].model, f"norm_{i}"), places[j])
                 for j, block in enumerate(blocks)]
            columns = _Move.apply(torch.cat(c), dealt.move_to_columns, dealt.move_to_rows)
            whole: MPSSMBlock = getattr(model, f"block_{i}")
            state = whole.recur_pairs(columns, gso, begin // 2, end // 2)
            rows = _Move.apply(state, dealt.move_to_rows, dealt.move_to_columns).split(sizes)
            seeds = whole.draw_seeds(x, model.dropout)  # one draw for all parts
            h = [block.decode(rows[j], residual=h[j] if model.residual else None,
                              dropout=model.dropout, place=places[j], seeds=seeds)
                 for j, block in enumerate(blocks)]
        y = [part.model.read_out(h[j], gso, places[j]) for j, part in enumerate(self._parts)]
        # All ranks go on with all rows alike, so the gradient of the own ones is at hand.
        return _Move.apply(torch.cat(y), dealt.gather_rows, dealt.own_rows)

    @torch.no_grad()
    def collect_gradients(self) -> None:
        """After ``backward()``: leaves the gradient in ``.grad`` of the model's parameters, on every
        rank. Gradients must have been cleared before (``zero_grad()``)."""
        if self._dealt is None:
            raise ValueError("collect_gradients: expected a forward and a backward pass before this")
        self._gather_channels(self._dealt)
        self._sum_parts()

    def _gather_channels(self, dealt: _Dealt) -> None:
        """Each rank has the gradients of W for its channels, and they go to all."""
        ranks = self._ranks
        grads = [parameter.grad for name, parameter in self.model.named_parameters()
                 if ".w_state." in name and parameter.grad is not None]
        if not grads:
            return
        bounds = [column // 2 for column in dealt.columns]
        slices = [[grad[a:b] for grad in grads] for a, b in zip(bounds, bounds[1:])]
        sizes = [sum(rows.numel() for rows in of_rank) for of_rank in slices]
        mine = torch.cat([rows.reshape(-1) for rows in slices[ranks.rank]])
        received = ranks.gather(mine, sizes)
        at = 0
        for of_rank in slices:
            for rows in of_rank:
                rows.copy_(received[at:at + rows.numel()].view(rows.shape))
                at += rows.numel()

    def _sum_parts(self) -> None:
        """Each part has gradients of its own, which are added in order."""
        own = [(name, parameter) for name, parameter in self.model.named_parameters()
               if ".w_state." not in name and parameter.requires_grad]
        if not own:
            return
        parameters = [parameter for _, parameter in own]
        terms = []
        for part in self._parts:
            named = dict(part.model.named_parameters())
            if part.begin < part.end:
                terms.append(_flattened([named[name].grad for name, _ in own], parameters))
            part.model.zero_grad(set_to_none=True)
        width = sum(parameter.numel() for parameter in parameters)
        stacked = torch.stack(terms) if terms else parameters[0].new_empty(0, width)
        total = self._ranks.sum_in_order(stacked, self._num_parts)
        _leave(total, parameters, [True] * len(parameters))
