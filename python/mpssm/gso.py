# SPDX-License-Identifier: MIT
"""The graph shift operator A as a plain object of tensors."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

import torch
from torch import Tensor

from mpssm import _engine
from mpssm._edges import EdgeArguments, graph_ptr_of, most_nodes

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse


@dataclass(eq=False)
class Gso:
    """A sparse square operator and what differs in its transpose, in compressed rows.

    Row i holds what node i receives: ``A[dst, src]``, so that ``A @ x`` moves features along the
    edges. Made by one of the ``from_`` functions, which check; the tensors are the operator's own and
    must not be changed. It can be pickled, copied, moved by :meth:`to`, passed to compiled functions
    and to ``torch.export``.

    Attributes:
        row_ptr: int64 [N + 1], graph_ptr: int64 [G + 1], first node of each graph of a batch.
        col: int32 [nonzeros].
        value, double_value: float32 and float64 [nonzeros].
        transposed_*: the same of the transpose; empty where it does not differ.
        kind: how it was made from a graph, "custom" if it was not.
        basis: the eigenbasis of :meth:`with_basis`, else empty.
    """

    row_ptr: Tensor
    col: Tensor
    value: Tensor
    double_value: Tensor
    transposed_row_ptr: Tensor
    transposed_col: Tensor
    transposed_value: Tensor
    transposed_double_value: Tensor
    graph_ptr: Tensor
    kind: str = "custom"
    basis: Tuple[Tensor, ...] = ()

    # ---- what it is ---------------------------------------------------------------------------

    @property
    def num_nodes(self) -> int:
        return self.row_ptr.shape[0] - 1

    @property
    def num_nonzeros(self) -> int:
        return self.col.shape[0]

    @property
    def num_graphs(self) -> int:
        return self.graph_ptr.shape[0] - 1

    @property
    def is_symmetric(self) -> bool:
        return self.transposed_value.shape[0] == 0

    @property
    def device(self) -> torch.device:
        return self.row_ptr.device

    def __repr__(self) -> str:
        return (f"Gso({self.kind}, nodes={self.num_nodes}, nonzeros={self.num_nonzeros}, "
                f"graphs={self.num_graphs}, device={self.device})")

    def arrays(self, dtype: torch.dtype) -> Tuple[Tensor, ...]:
        """The seven tensors that an operator of ``mpssm_engine`` takes for A."""
        double = dtype == torch.float64
        return (self.row_ptr, self.col, self.double_value if double else self.value,
                self.transposed_row_ptr, self.transposed_col,
                self.transposed_double_value if double else self.transposed_value, self.graph_ptr)

    def arrays_with(self, values: Tensor) -> Tuple[Tensor, ...]:
        """The same with other entries [nonzeros], in the order of ``col``."""
        row_ptr, col, _, t_row_ptr, t_col, _, graph_ptr = self.arrays(values.dtype)
        return (row_ptr, col, values, t_row_ptr, t_col, values.detach()[self.transposing()],
                graph_ptr)

    def transposing(self) -> Tensor:
        """int64 [nonzeros]: which entry of A each entry of its transpose is."""
        kept: Optional[Tensor] = self.__dict__.get("_transposing")
        if kept is None:
            rows, columns = self.coordinates()
            kept = torch.argsort(columns * self.num_nodes + rows)
            if not torch.compiler.is_compiling():
                self.__dict__["_transposing"] = kept
        return kept

    def basis_arrays(self, dtype: torch.dtype) -> Tuple[Tensor, ...]:
        """The five tensors that plan spectral takes for the eigenbasis, none if there is none."""
        if not self.basis:
            return ()
        eigenvalues, row_ptr, col, vectors, transposed, double_vectors, double_transposed = self.basis
        if dtype == torch.float64:
            return eigenvalues, row_ptr, col, double_vectors, double_transposed
        return eigenvalues, row_ptr, col, vectors, transposed

    def order_arrays(self, dtype: torch.dtype) -> Tuple[Tensor, ...]:
        """The nine tensors that bring the nodes of a large operator into an order in which neighbours
        are near; none where that does not pay. Found out at the first call and kept, but not while a
        call is compiled or exported: that goes without."""
        if self.num_nodes < _LEAST_ORDERED_NODES:
            return ()
        kept = self.__dict__.get("_orders", {})
        if dtype in kept:
            return kept[dtype]
        if torch.compiler.is_compiling() or self.device.type != "cpu":
            return ()
        self.__dict__["_orders"] = {**kept, dtype: _find_order(self, dtype == torch.float64)}
        return self.__dict__["_orders"][dtype]

    def to(self, device: Any) -> Gso:
        """The operator on another device (itself if it is there)."""
        if self.device == torch.device(device):
            return self
        moved = {field.name: getattr(self, field.name).to(device) for field in fields(self)
                 if field.name not in ("kind", "basis")}
        return replace(self, **moved, basis=tuple(tensor.to(device) for tensor in self.basis))

    def with_basis(self) -> Gso:
        """The same operator with its eigenbasis, which plan "spectral" needs and plan "auto" then
        takes into account. Symmetric operators whose graphs have at most 4096 nodes; costs the cube
        of that size once and its square in memory."""
        if self.basis:
            return self
        if not self.is_symmetric:
            raise ValueError("Gso.with_basis: expected a symmetric operator, got one that differs from "
                             "its transpose")
        with _owned(self) as handle:
            entries = ctypes.c_int64()
            _engine.gso_basis(handle, ctypes.byref(entries))
            made = [torch.empty(self.num_nodes, dtype=torch.float64),
                    torch.empty(self.num_nodes + 1, dtype=torch.int64),
                    torch.empty(entries.value, dtype=torch.int32),
                    torch.empty(entries.value, dtype=torch.float64),
                    torch.empty(entries.value, dtype=torch.float64)]
            _engine.gso_basis_copy(handle, *[tensor.data_ptr() for tensor in made])
        eigenvalues, row_ptr, col, vectors, transposed = made
        basis = (eigenvalues, row_ptr, col, vectors.float(), transposed.float(), vectors, transposed)
        return replace(self, basis=tuple(tensor.to(self.device) for tensor in basis))

    def with_whole_diagonal(self) -> Gso:
        """The same operator with an entry (i, i) for every node, zero where there was none (itself if
        there is none to add)."""
        rows, columns = (tensor.cpu() for tensor in self.coordinates())
        missing = torch.ones(self.num_nodes, dtype=torch.bool)
        missing[rows[rows == columns]] = False
        nodes = missing.nonzero().squeeze(1)
        if nodes.numel() == 0:
            return self
        rows, columns = torch.cat([rows, nodes]), torch.cat([columns, nodes])
        values = torch.cat([self.double_value.cpu(), torch.zeros(nodes.numel(), dtype=torch.float64)])
        order = torch.argsort(rows * self.num_nodes + columns)
        row_ptr = torch.zeros(self.num_nodes + 1, dtype=torch.int64)
        row_ptr[1:] = torch.bincount(rows, minlength=self.num_nodes).cumsum(0)
        made = Gso.from_csr(row_ptr, columns[order], values[order], graph_ptr=self.graph_ptr)
        return replace(made, kind=self.kind).to(self.device)

    def coordinates(self) -> Tuple[Tensor, Tensor]:
        """Row and column of each entry, int64 [nonzeros]."""
        counts = self.row_ptr[1:] - self.row_ptr[:-1]
        rows = torch.repeat_interleave(counts, output_size=self.num_nonzeros)
        return rows, self.col.long()

    def to_dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """A as [N, N]."""
        dense = torch.zeros(self.num_nodes, self.num_nodes, dtype=dtype, device=self.device)
        dense[self.coordinates()] = self.arrays(dtype)[2].to(dtype)
        return dense

    # ---- how it is made -----------------------------------------------------------------------

    @staticmethod
    def from_edge_index(edge_index: Tensor, edge_weight: Optional[Tensor] = None,
                        num_nodes: Optional[int] = None, *, kind: str = "sym_normalized",
                        self_loops: str = "add_missing", batch: Optional[Tensor] = None,
                        directed: bool = True) -> Gso:
        """From PyG's ``edge_index`` [2, E]: row 0 sources, row 1 destinations, each direction listed.

        Args:
            edge_weight: [E]; without it every edge weighs 1 and repeated edges count once.
            num_nodes: default is the largest index + 1, or the length of ``batch``.
            kind: sym_normalized (GCN's), sym_normalized_no_loops, random_walk, adjacency, laplacian
                or identity.
            self_loops: add_missing (weight 1 where a node has none), add_all or keep.
            batch: int64 [N], ascending: which graph of a batch a node is of, as ``Data.batch``.
            directed: False makes every edge count both ways; those listed both ways count once.
        """
        if batch is not None and num_nodes is None:
            num_nodes = max(batch.shape[0], most_nodes(edge_index))
        edges = EdgeArguments("Gso.from_edge_index", edge_index, edge_weight, num_nodes)
        graph_ptr = None if batch is None else graph_ptr_of(batch, edges.num_nodes)
        handle = ctypes.c_void_p()
        _engine.gso_from_edges(
            *edges.pointers(), kind.encode(), self_loops.encode(), not directed, 0 if graph_ptr is None else graph_ptr.shape[0] - 1,
            None if graph_ptr is None else graph_ptr.data_ptr(), ctypes.byref(handle))
        return _take(handle, kind).to(edge_index.device)

    @staticmethod
    def from_csr(row_ptr: Tensor, col: Tensor, value: Tensor, *,
                 graph_ptr: Optional[Tensor] = None) -> Gso:
        """An operator as it is: row_ptr [N + 1], col and value [nonzeros], columns ascending."""
        rows = row_ptr.detach().to("cpu", torch.int64).contiguous()
        columns = col.detach().to("cpu", torch.int32).contiguous()
        values = value.detach().to("cpu", torch.float64).contiguous()
        if rows.dim() != 1 or rows.shape[0] == 0 or columns.dim() != 1 or values.shape != columns.shape:
            raise ValueError("Gso.from_csr: expected row_ptr [N + 1], col and value [nonzeros], got "
                             f"{list(row_ptr.shape)}, {list(col.shape)} and {list(value.shape)}")
        if int(rows[-1]) != columns.shape[0]:
            raise ValueError(f"Gso.from_csr: expected row_ptr to end with {columns.shape[0]}, got "
                             f"{int(rows[-1])}")
        parts = None if graph_ptr is None else graph_ptr.detach().to("cpu", torch.int64).contiguous()
        handle = ctypes.c_void_p()
        _engine.gso_from_csr(rows.shape[0] - 1, columns.shape[0], rows.data_ptr(),
                             columns.data_ptr(), values.data_ptr(),
                             0 if parts is None else parts.shape[0] - 1,
                             None if parts is None else parts.data_ptr(), ctypes.byref(handle))
        return _take(handle, "custom").to(row_ptr.device)

    @staticmethod
    def from_torch_sparse(matrix: Tensor) -> Gso:
        """A sparse tensor [N, N] of any layout as the operator itself: ``A @ x``."""
        if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"Gso.from_torch_sparse: expected a square matrix, got "
                             f"{list(matrix.shape)}")
        # Rows of a CSR tensor need not be sorted; those made from coordinates are.
        rows = matrix.detach().cpu().to_sparse_coo().coalesce().to_sparse_csr()
        return Gso.from_csr(rows.crow_indices(), rows.col_indices(), rows.values()).to(matrix.device)

    @staticmethod
    def from_scipy(matrix: scipy.sparse.sparray) -> Gso:
        """A SciPy sparse matrix [N, N] as the operator itself: ``A @ x``."""
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"Gso.from_scipy: expected a square matrix, got {list(matrix.shape)}")
        rows = matrix.tocsr(copy=True)
        rows.sum_duplicates()
        return Gso.from_csr(torch.from_numpy(rows.indptr), torch.from_numpy(rows.indices),
                            torch.from_numpy(rows.data))

    @staticmethod
    def from_networkx(graph: networkx.Graph, *, weight: Optional[str] = "weight",
                      kind: str = "sym_normalized", self_loops: str = "add_missing") -> Gso:
        """A NetworkX graph; nodes are numbered as they come. An edge without the attribute
        ``weight`` weighs 1; ``weight=None`` looks at no attribute."""
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [(number[a], number[b], 1.0 if weight is None else data.get(weight, 1.0))
                 for a, b, data in graph.edges(data=True)]
        if not graph.is_directed():
            edges += [(b, a, w) for a, b, w in edges if a != b]
        index = torch.tensor([(a, b) for a, b, _ in edges], dtype=torch.int64).reshape(-1, 2).t()
        weights = torch.tensor([w for _, _, w in edges], dtype=torch.float64)
        return Gso.from_edge_index(index, weights, len(number), kind=kind, self_loops=self_loops)

    @staticmethod
    def from_pandas(edges: pandas.DataFrame, source: str = "src", target: str = "dst",
                    weight: Optional[str] = None, nodes: Optional[Any] = None, *,
                    directed: bool = False, kind: str = "sym_normalized",
                    self_loops: str = "add_missing") -> Tuple[Gso, pandas.Index]:
        """A table of edges between nodes of any names, and the name of each row of the operator.

        Args:
            source, target: columns with the names of both ends; edges count both ways unless
                ``directed``, and once if they are listed both ways.
            weight: column of numbers; without it every edge weighs 1.
            nodes: names in the order of the rows: a list, an Index, or a table of nodes, whose index
                they are. Default: the names as they first come, all sources before all targets.

        Returns:
            The operator, and the names [N]: ``features.loc[names]`` has the rows it expects.
        """
        import pandas

        wanted = [name for name in (source, target, weight) if name is not None]
        for name in wanted:
            if name not in edges.columns:
                raise ValueError(f"Gso.from_pandas: expected columns {', '.join(map(repr, wanted))}, "
                                 f"got {', '.join(repr(name) for name in edges.columns)}")
        if nodes is None:
            names = pandas.Index(pandas.concat([edges[source], edges[target]]).dropna().unique())
        else:
            names = nodes.index if isinstance(nodes, pandas.DataFrame) else pandas.Index(nodes)
        if not names.is_unique:
            raise ValueError("Gso.from_pandas: expected every node once, got "
                             f"{names[names.duplicated()][0]!r} more than once")
        ends = []
        for name in (source, target):
            rows = names.get_indexer(edges[name])
            if (rows < 0).any():
                first = int((rows < 0).argmax())
                raise ValueError(f"Gso.from_pandas: column {name!r}, row {first}: expected the name of "
                                 f"a node, got {edges[name].iloc[first]!r}")
            ends.append(torch.tensor(rows, dtype=torch.int64))
        weights = None
        if weight is not None:
            weights = torch.tensor(edges[weight].to_numpy("float64"))
        gso = Gso.from_edge_index(torch.stack(ends), weights, len(names), kind=kind,
                                  self_loops=self_loops, directed=directed)
        return gso, names

    @staticmethod
    def from_pyg(data: Any, *, kind: str = "sym_normalized", self_loops: str = "add_missing") -> Gso:
        """A PyG ``Data`` or ``Batch``: its edge_index, edge_weight and batch."""
        return Gso.from_edge_index(data.edge_index, getattr(data, "edge_weight", None),
                                   data.num_nodes, kind=kind, self_loops=self_loops,
                                   batch=getattr(data, "batch", None))


torch.export.register_dataclass(Gso)

# Smaller operators fit a cache: the engine would not take another order (graph/order.h).
_LEAST_ORDERED_NODES = 1 << 16


@contextlib.contextmanager
def _owned(gso: Gso) -> Iterator[ctypes.c_void_p]:
    """The operator as one of the library's own, for a while."""
    rows, columns, values, graphs = (tensor.cpu() for tensor in (
        gso.row_ptr, gso.col, gso.double_value, gso.graph_ptr))
    handle = ctypes.c_void_p()
    _engine.gso_from_csr(gso.num_nodes, gso.num_nonzeros, rows.data_ptr(), columns.data_ptr(),
                         values.data_ptr(), gso.num_graphs, graphs.data_ptr(), ctypes.byref(handle))
    try:
        yield handle
    finally:
        _engine.gso_free(handle)


def _find_order(gso: Gso, double: bool) -> Tuple[Tensor, ...]:
    with _owned(gso) as handle:
        gain = torch.zeros(1, dtype=torch.float64)
        _engine.gso_order(handle, gain.data_ptr())
        if gain.item() == 0.0:
            return ()
        nodes = [torch.empty(gso.num_nodes, dtype=torch.int32) for _ in range(2)]
        row_ptr, col, value, t_row_ptr, t_col, t_value, _ = gso.arrays(
            torch.float64 if double else torch.float32)
        rows = [torch.empty_like(array) for array in (row_ptr, col, value, t_row_ptr, t_col, t_value)]
        _engine.gso_order_copy(handle, double, *[array.data_ptr() for array in (*nodes, *rows)])
    return (gain, *nodes, *rows)


def _take(handle: ctypes.c_void_p, kind: str) -> Gso:
    """Copies an operator out of the library into tensors and frees it there."""
    try:
        sizes = (ctypes.c_int64 * 5)()
        _engine.gso_sizes(handle, sizes)
        nodes, nonzeros, graphs, pattern, values = sizes
        made = [torch.empty(nodes + 1, dtype=torch.int64), torch.empty(nonzeros, dtype=torch.int32),
                torch.empty(nonzeros, dtype=torch.float64),
                torch.empty(nodes + 1 if pattern else 0, dtype=torch.int64),
                torch.empty(pattern, dtype=torch.int32), torch.empty(values, dtype=torch.float64),
                torch.empty(graphs + 1, dtype=torch.int64)]
        _engine.gso_copy(handle, *[tensor.data_ptr() for tensor in made])
    finally:
        _engine.gso_free(handle)
    row_ptr, col, value, t_row_ptr, t_col, t_value, graph_ptr = made
    return Gso(row_ptr, col, value.float(), value, t_row_ptr, t_col, t_value.float(), t_value,
               graph_ptr, kind)
