// SPDX-License-Identifier: MIT
// Operators for Python: made here, copied out into tensors, borrowed back from them at each call.
#include "python/native/gso.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "mpssm/engine/node_encodings.h"
#include "mpssm/graph/order.h"
#include "mpssm/graph/spectrum.h"

#include "python/native/error.h"
#include "python/native/threads.h"

namespace mpssm::native {
namespace {

template <typename T>
std::span<const T> span_of(const void* data, std::int64_t size) {
  return {static_cast<const T*>(data), static_cast<std::size_t>(size)};
}

graph::SelfLoops loops_from_name(const std::string& name) {
  if (name == "add_missing") return graph::SelfLoops::kAddMissing;
  if (name == "add_all") return graph::SelfLoops::kAddAll;
  if (name == "keep") return graph::SelfLoops::kKeep;
  throw std::invalid_argument("Gso: expected self_loops add_missing, add_all or keep, got '" +
                              name + "'");
}

graph::Graph graph_of(std::int64_t num_nodes, std::int64_t num_edges, const std::int64_t* src,
                      const std::int64_t* dst, const double* weight, bool undirected) {
  graph::EdgeList edges{.num_nodes = num_nodes};
  edges.src.assign(src, src + num_edges);
  edges.dst.assign(dst, dst + num_edges);
  if (weight != nullptr) edges.weight.assign(weight, weight + num_edges);
  return graph::Graph::from_edges(
      edges, undirected ? graph::Direction::kUndirected : graph::Direction::kDirected);
}

/// The same operator, known to consist of several graphs.
graph::Gso with_parts(const graph::Gso& gso, std::span<const std::int64_t> graph_ptr) {
  const auto values = gso.values<double>();
  return graph::Gso::from_csr({gso.row_ptr().begin(), gso.row_ptr().end()},
                              {gso.col().begin(), gso.col().end()}, {values.begin(), values.end()},
                              {graph_ptr.begin(), graph_ptr.end()}, gso.kind());
}

/// A part that is not there is none.
template <typename T>
graph::KeptArray<T> part_of(const void* data, std::int64_t size) {
  return span_of<T>(data, data == nullptr ? 0 : size);
}

template <typename T>
void give_order_to(const graph::Gso& gso, const GsoArguments& arguments) {
  const std::int64_t nodes = arguments.num_nodes;
  const std::int64_t nonzeros = arguments.num_nonzeros;
  graph::give_order<T>(
      gso, *arguments.gain,
      {part_of<std::int32_t>(arguments.node, nodes), part_of<std::int32_t>(arguments.place, nodes)},
      {{part_of<std::int64_t>(arguments.ordered_row_ptr, nodes + 1),
        part_of<std::int32_t>(arguments.ordered_col, nonzeros),
        part_of<T>(arguments.ordered_value, nonzeros)},
       {part_of<std::int64_t>(arguments.ordered_transposed_row_ptr, nodes + 1),
        part_of<std::int32_t>(arguments.ordered_transposed_col, nonzeros),
        part_of<T>(arguments.ordered_transposed_value, nonzeros)}});
}

void give_basis_to(const graph::Gso& gso, const GsoArguments& arguments) {
  const std::int64_t entries = arguments.num_basis_entries;
  graph::EigenBasis basis;
  basis.eigenvalues = part_of<double>(arguments.eigenvalues, arguments.num_nodes);
  basis.row_ptr = part_of<std::int64_t>(arguments.basis_row_ptr, arguments.num_nodes + 1);
  // Its size is what a plan is chosen by, before there is memory.
  basis.col = span_of<std::int32_t>(arguments.basis_col, entries);
  if (arguments.is_double != 0) {
    basis.vectors = part_of<double>(arguments.vectors, entries);
    basis.vectors_transposed = part_of<double>(arguments.vectors_transposed, entries);
  } else {
    basis.vectors_float = part_of<float>(arguments.vectors, entries);
    basis.vectors_transposed_float = part_of<float>(arguments.vectors_transposed, entries);
  }
  graph::give_eigen_basis(gso, std::move(basis));
}

template <typename T>
void copy_rows(const graph::OrderedRows<T>& rows, std::int64_t* row_ptr, std::int32_t* col,
               void* value) {
  std::ranges::copy(rows.row_ptr, row_ptr);
  std::ranges::copy(rows.col, col);
  std::ranges::copy(rows.value, static_cast<T*>(value));
}

}  // namespace

graph::Gso GsoArguments::borrow() const {
  graph::GsoArrays arrays;
  arrays.row_ptr = span_of<std::int64_t>(row_ptr, num_nodes + 1);
  arrays.col = span_of<std::int32_t>(col, num_nonzeros);
  arrays.transposed_row_ptr = span_of<std::int64_t>(transposed_row_ptr, num_nodes + 1);
  arrays.transposed_col = span_of<std::int32_t>(transposed_col, num_nonzeros);
  arrays.graph_ptr = span_of<std::int64_t>(graph_ptr, num_graphs + 1);
  if (is_double != 0) {
    arrays.value = span_of<double>(value, num_nonzeros);
    arrays.transposed_value = span_of<double>(transposed_value, num_nonzeros);
  } else {
    arrays.value_float = span_of<float>(value, num_nonzeros);
    arrays.transposed_value_float = span_of<float>(transposed_value, num_nonzeros);
  }
  arrays.has_symmetric_pattern = transposed_row_ptr == nullptr;
  arrays.is_symmetric = transposed_value == nullptr;
  graph::Gso gso = graph::Gso::borrow(arrays);
  if (gain != nullptr) {
    is_double != 0 ? give_order_to<double>(gso, *this) : give_order_to<float>(gso, *this);
  }
  if (has_basis()) give_basis_to(gso, *this);
  return gso;
}

graph::Operators borrow_groups(const GsoArguments* groups, std::int64_t count) {
  if (count == 1) return groups->borrow();
  std::vector<graph::OperatorGroup> all;
  for (std::int64_t g = 0; g < count; ++g) all.push_back({groups[g].borrow(), groups[g].share});
  return graph::Operators(std::move(all));
}

graph::Operators borrow_sequence(const GsoArguments* operators, std::int64_t count,
                                 std::vector<std::int32_t> index, std::int64_t steps) {
  std::vector<graph::Operators> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(operators[i].borrow());
  return graph::Operators::sequence(std::move(all), std::move(index), steps);
}

}  // namespace mpssm::native

using namespace mpssm;

/// begins [groups + 1]: where the channels of each group begin (graph::deal_channels).
MPSSM_C_API std::int64_t mpssm_deal_channels(std::int64_t num_groups, const std::int64_t* shares,
                                             std::int64_t channels, std::int64_t* begins) {
  return native::guarded([&] {
    std::ranges::copy(graph::deal_channels(std::span(shares, num_groups), channels), begins);
  });
}

/// Edges src[e] -> dst[e], the other way too if undirected; weight, graph_ptr may be null. Free
/// with mpssm_gso_free().
MPSSM_C_API std::int64_t mpssm_gso_from_edges(std::int64_t num_nodes, std::int64_t num_edges,
                                              const std::int64_t* src, const std::int64_t* dst,
                                              const double* weight, const char* kind,
                                              const char* self_loops, std::int64_t undirected,
                                              std::int64_t num_graphs,
                                              const std::int64_t* graph_ptr, graph::Gso** result) {
  return native::guarded([&] {
    const graph::Graph graph =
        native::graph_of(num_nodes, num_edges, src, dst, weight, undirected != 0);
    graph::Gso gso = graph::make_gso(graph, {.kind = graph::gso_kind_from_name(kind),
                                             .self_loops = native::loops_from_name(self_loops)});
    if (graph_ptr != nullptr) {
      gso = native::with_parts(gso, native::span_of<std::int64_t>(graph_ptr, num_graphs + 1));
    }
    *result = std::make_unique<graph::Gso>(std::move(gso)).release();
  });
}

/// How many numbers of each node mpssm_encode_nodes() gives for such a text ("rwse:16,degree").
MPSSM_C_API std::int64_t mpssm_encodings_width(const char* encodings, std::int64_t* width) {
  return native::guarded([&] {
    const engine::EncodingOptions options = engine::encodings_from_text(encodings);
    if (options.edges) {
      throw std::invalid_argument(
          "encode_nodes: expected encodings of the graph alone (rwse, lap, degree), got edges");
    }
    *width = options.width();
  });
}

/// Edges as above; result [nodes, width].
MPSSM_C_API std::int64_t mpssm_encode_nodes(std::int64_t num_nodes, std::int64_t num_edges,
                                            const std::int64_t* src, const std::int64_t* dst,
                                            const double* weight, std::int64_t undirected,
                                            const char* encodings, float* result) {
  return native::guarded([&] {
    std::ranges::copy(engine::encode_nodes(
                          native::graph_of(num_nodes, num_edges, src, dst, weight, undirected != 0),
                          engine::encodings_from_text(encodings), native::HostThreads()),
                      result);
  });
}

/// From sorted rows, as they are.
MPSSM_C_API std::int64_t mpssm_gso_from_csr(std::int64_t num_nodes, std::int64_t num_nonzeros,
                                            const std::int64_t* row_ptr, const std::int32_t* col,
                                            const double* value, std::int64_t num_graphs,
                                            const std::int64_t* graph_ptr, graph::Gso** result) {
  return native::guarded([&] {
    std::vector<std::int64_t> parts;
    if (graph_ptr != nullptr) parts.assign(graph_ptr, graph_ptr + num_graphs + 1);
    *result =
        std::make_unique<graph::Gso>(
            graph::Gso::from_csr({row_ptr, row_ptr + num_nodes + 1}, {col, col + num_nonzeros},
                                 {value, value + num_nonzeros}, std::move(parts)))
            .release();
  });
}

/// sizes: nodes, nonzeros, graphs, entries of the transpose's pattern, of its values.
MPSSM_C_API void mpssm_gso_sizes(const graph::Gso* gso, std::int64_t* sizes) {
  sizes[0] = gso->num_nodes();
  sizes[1] = gso->num_nonzeros();
  sizes[2] = gso->num_graphs();
  sizes[3] = std::ssize(gso->arrays().transposed_col);
  sizes[4] = std::ssize(gso->arrays().transposed_value);
}

/// Copies what mpssm_gso_sizes() counted; both row pointers have one entry more than there are
/// nodes.
MPSSM_C_API void mpssm_gso_copy(const graph::Gso* gso, std::int64_t* row_ptr, std::int32_t* col,
                                double* value, std::int64_t* transposed_row_ptr,
                                std::int32_t* transposed_col, double* transposed_value,
                                std::int64_t* graph_ptr) {
  const graph::GsoArrays& arrays = gso->arrays();
  std::ranges::copy(arrays.row_ptr, row_ptr);
  std::ranges::copy(arrays.col, col);
  std::ranges::copy(arrays.value, value);
  std::ranges::copy(arrays.transposed_row_ptr, transposed_row_ptr);
  std::ranges::copy(arrays.transposed_col, transposed_col);
  std::ranges::copy(arrays.transposed_value, transposed_value);
  std::ranges::copy(arrays.graph_ptr, graph_ptr);
}

/// Entries per node that another order of the nodes would bring near (graph/order.h).
MPSSM_C_API std::int64_t mpssm_gso_order(const graph::Gso* gso, double* gain) {
  return native::guarded([&] { *gain = graph::entries_brought_near(*gso); });
}

/// Copies that order, and the operator in it: arrays as large as the operator's own.
MPSSM_C_API std::int64_t mpssm_gso_order_copy(const graph::Gso* gso, std::int64_t is_double,
                                              std::int32_t* node, std::int32_t* place,
                                              std::int64_t* row_ptr, std::int32_t* col, void* value,
                                              std::int64_t* transposed_row_ptr,
                                              std::int32_t* transposed_col,
                                              void* transposed_value) {
  return native::guarded([&] {
    const graph::NodeOrder& order = graph::node_order(*gso);
    std::ranges::copy(order.node, node);
    std::ranges::copy(order.place, place);
    const auto copy = [&](const auto& ordered) {
      native::copy_rows(ordered.rows, row_ptr, col, value);
      native::copy_rows(ordered.transposed, transposed_row_ptr, transposed_col, transposed_value);
    };
    is_double != 0 ? copy(graph::ordered_gso<double>(*gso)) : copy(graph::ordered_gso<float>(*gso));
  });
}

/// Computes the eigenbasis; `entries` is how many numbers its vectors have.
MPSSM_C_API std::int64_t mpssm_gso_basis(const graph::Gso* gso, std::int64_t* entries) {
  return native::guarded([&] { *entries = std::ssize(graph::eigen_basis(*gso).col); });
}

MPSSM_C_API void mpssm_gso_basis_copy(const graph::Gso* gso, double* eigenvalues,
                                      std::int64_t* row_ptr, std::int32_t* col, double* vectors,
                                      double* vectors_transposed) {
  const graph::EigenBasis& basis = graph::eigen_basis(*gso);
  std::ranges::copy(basis.eigenvalues, eigenvalues);
  std::ranges::copy(basis.row_ptr, row_ptr);
  std::ranges::copy(basis.col, col);
  std::ranges::copy(basis.vectors, vectors);
  std::ranges::copy(basis.vectors_transposed, vectors_transposed);
}

MPSSM_C_API void mpssm_gso_free(graph::Gso* gso) { delete gso; }
