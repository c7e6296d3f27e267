// SPDX-License-Identifier: MIT
// Gso: checks, the transpose, and the operators that are made from a graph.
#include "mpssm/graph/gso.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "mpssm/graph/gso_data.h"

namespace mpssm::graph {
namespace {

[[noreturn]] void fail(const char* function, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", function, what));
}

void check_offsets(const char* function, const char* name, std::span<const std::int64_t> offsets,
                   std::int64_t last) {
  const std::string prefix = fmt::format("expected {}", name);
  if (offsets.empty()) fail(function, prefix + " to start with 0, got an empty array");
  if (offsets.front() != 0) {
    fail(function, fmt::format("{} to start with 0, got {}", prefix, offsets.front()));
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      fail(function,
           fmt::format("{} to ascend, got {} after {}", prefix, offsets[i], offsets[i - 1]));
    }
  }
  if (offsets.back() != last) {
    fail(function, fmt::format("{} to end with {}, got {}", prefix, last, offsets.back()));
  }
}

void check_values(const char* function, std::span<const double> values, std::size_t expected,
                  ValueCheck check = ValueCheck::kFinite) {
  if (values.size() != expected) {
    fail(function,
         fmt::format("expected {} values (one per column), got {}", expected, values.size()));
  }
  if (check == ValueCheck::kNone) return;
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (std::isfinite(values[e])) continue;
    fail(function, fmt::format("value {}: expected it finite, got {}", e, values[e]));
  }
}

// Columns inside [begin, end), ascending without repeats.
void check_row(const char* function, std::int64_t row, std::span<const std::int32_t> columns,
               std::int64_t begin, std::int64_t end) {
  std::int64_t previous = -1;
  for (const std::int32_t column : columns) {
    if (column < begin || column >= end) {
      fail(function,
           fmt::format("row {}: column {} out of range [{}, {})", row, column, begin, end));
    }
    if (column <= previous) {
      fail(function, fmt::format("row {}: expected columns that ascend, got {} after {}", row,
                                 column, previous));
    }
    previous = column;
  }
}

std::vector<float> to_float(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

// The graph's rows with exactly one diagonal entry each: diagonal(weight, is_stored).
template <typename F>
Csr with_diagonal(const Graph& graph, F diagonal) {
  Csr matrix;
  matrix.row_ptr.reserve(graph.num_nodes() + 1);
  matrix.col.reserve(graph.num_entries() + graph.num_nodes());
  matrix.value.reserve(graph.num_entries() + graph.num_nodes());
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    std::int64_t e = graph.row_ptr()[i];
    const std::int64_t end = graph.row_ptr()[i + 1];
    for (; e < end && graph.col()[e] < i; ++e) matrix.push_back(graph.col()[e], graph.weight()[e]);
    const bool is_stored = e < end && graph.col()[e] == i;
    matrix.push_back(i, diagonal(is_stored ? graph.weight()[e] : 0.0, is_stored));
    for (e += is_stored; e < end; ++e) matrix.push_back(graph.col()[e], graph.weight()[e]);
    matrix.end_row();
  }
  return matrix;
}

Csr as_given(const Graph& graph) {
  Csr matrix;
  matrix.row_ptr.assign(graph.row_ptr().begin(), graph.row_ptr().end());
  matrix.col.assign(graph.col().begin(), graph.col().end());
  matrix.value.assign(graph.weight().begin(), graph.weight().end());
  return matrix;
}

Csr with_loops(const Graph& graph, SelfLoops policy) {
  switch (policy) {
    case SelfLoops::kAddMissing:
      return with_diagonal(graph,
                           [](double weight, bool is_stored) { return is_stored ? weight : 1.0; });
    case SelfLoops::kAddAll:
      return with_diagonal(graph, [](double weight, bool) { return weight + 1.0; });
    case SelfLoops::kKeep:
      return as_given(graph);
  }
  fail("make_gso", "unknown SelfLoops policy");
}

std::vector<double> absolute_row_sums(const Csr& matrix) {
  std::vector<double> sums(matrix.num_rows(), 0.0);
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      sums[i] += std::abs(matrix.value[e]);
    }
  }
  return sums;
}

// value <- f(i, j, value)
template <typename F>
void map_entries(Csr& matrix, F f) {
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      matrix.value[e] = f(i, matrix.col[e], matrix.value[e]);
    }
  }
}

Csr normalize_symmetrically(Csr matrix) {
  std::vector<double> scale = absolute_row_sums(matrix);
  for (double& s : scale) s = s > 0.0 ? 1.0 / std::sqrt(s) : 0.0;
  // The two scales are multiplied first: that product is the same for (i, j) and (j, i), bit by
  // bit.
  map_entries(matrix, [&](std::int64_t i, std::int32_t j, double weight) {
    return weight * (scale[i] * scale[j]);
  });
  return matrix;
}

Csr normalize_rows(Csr matrix) {
  const std::vector<double> degree = absolute_row_sums(matrix);
  map_entries(matrix, [&](std::int64_t i, std::int32_t, double weight) {
    return degree[i] > 0.0 ? weight / degree[i] : 0.0;
  });
  return matrix;
}

Csr laplacian(const Graph& graph) {
  Csr matrix = with_diagonal(graph, [](double weight, bool) { return weight; });
  const std::vector<double> degree = absolute_row_sums(matrix);
  map_entries(matrix, [&](std::int64_t i, std::int32_t j, double weight) {
    return i == j ? degree[i] - weight : -weight;
  });
  return matrix;
}

Csr identity(std::int64_t num_nodes) {
  Csr matrix;
  for (std::int64_t i = 0; i < num_nodes; ++i) {
    matrix.push_back(i, 1.0);
    matrix.end_row();
  }
  return matrix;
}

Csr make_matrix(const Graph& graph, const GsoOptions& options) {
  switch (options.kind) {
    case GsoKind::kSymNormalized:
      return normalize_symmetrically(with_loops(graph, options.self_loops));
    case GsoKind::kSymNormalizedNoLoops:
      return normalize_symmetrically(as_given(graph));
    case GsoKind::kRandomWalk:
      return normalize_rows(with_loops(graph, options.self_loops));
    case GsoKind::kRandomWalkReversed:
      return normalize_rows(transpose(with_loops(graph, options.self_loops)));
    case GsoKind::kAdjacency:
      return as_given(graph);
    case GsoKind::kTranspose:
      return transpose(as_given(graph));
    case GsoKind::kLaplacian:
      return laplacian(graph);
    case GsoKind::kIdentity:
      return identity(graph.num_nodes());
    case GsoKind::kCustom:
      fail("make_gso", "a custom operator has no recipe; use Gso::from_csr");
    case GsoKind::kVirtualNode:
    case GsoKind::kAdaptive:
      break;
  }
  fail("make_gso", "an operator of low rank has no sparse form; see graph/low_rank.h");
}

}  // namespace

Gso::Gso() : data_(std::make_shared<const Data>()) {}

Gso::Gso(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Gso Gso::from_csr(std::vector<std::int64_t> row_ptr, std::vector<std::int32_t> col,
                  std::vector<double> values, std::vector<std::int64_t> graph_ptr, GsoKind kind) {
  constexpr const char* kName = "Gso::from_csr";
  check_offsets(kName, "row_ptr", row_ptr, static_cast<std::int64_t>(col.size()));
  const auto num_nodes = static_cast<std::int64_t>(row_ptr.size()) - 1;
  if (num_nodes > std::numeric_limits<std::int32_t>::max()) {
    fail(kName, fmt::format("expected at most {} rows, got {}",
                            std::numeric_limits<std::int32_t>::max(), num_nodes));
  }
  check_values(kName, values, col.size());
  if (graph_ptr.empty()) graph_ptr = {0, num_nodes};
  check_offsets(kName, "graph_ptr", graph_ptr, num_nodes);
  // Rows are checked part by part: no entry may lead from one graph of the batch to another.
  for (std::size_t g = 0; g + 1 < graph_ptr.size(); ++g) {
    for (std::int64_t i = graph_ptr[g]; i < graph_ptr[g + 1]; ++i) {
      check_row(kName, i, std::span(col).subspan(row_ptr[i], row_ptr[i + 1] - row_ptr[i]),
                graph_ptr[g], graph_ptr[g + 1]);
    }
  }

  auto data = std::make_shared<Data>();
  data->rows = {std::move(row_ptr), std::move(col), std::move(values)};
  data->value_float = to_float(data->rows.value);
  data->graph_ptr = std::move(graph_ptr);
  data->kind = kind;
  const Symmetry symmetry = symmetry_of(data->rows);
  data->transposed.row_ptr.clear();
  if (!symmetry.values) {
    Csr transposed = transpose(data->rows);
    if (!symmetry.pattern) {
      data->transposed.row_ptr = std::move(transposed.row_ptr);
      data->transposed.col = std::move(transposed.col);
    }
    data->transposed.value = std::move(transposed.value);
    data->transposed_float = to_float(data->transposed.value);
  }
  data->arrays = {.row_ptr = data->rows.row_ptr,
                  .col = data->rows.col,
                  .value = data->rows.value,
                  .value_float = data->value_float,
                  .transposed_row_ptr = data->transposed.row_ptr,
                  .transposed_col = data->transposed.col,
                  .transposed_value = data->transposed.value,
                  .transposed_value_float = data->transposed_float,
                  .graph_ptr = data->graph_ptr,
                  .has_symmetric_pattern = symmetry.pattern,
                  .is_symmetric = symmetry.values};
  return Gso(std::move(data));
}

Gso Gso::borrow(const GsoArrays& arrays) {
  auto data = std::make_shared<Data>();
  data->arrays = arrays;
  data->order.is_worth_looking = false;
  return Gso(std::move(data));
}

std::span<const std::int64_t> Gso::transposed_entries() const {
  const Data& owner = data_->pattern == nullptr ? *data_ : *data_->pattern;
  std::call_once(owner.transpose.once, [&] {
    const kernels::CsrView<double> rows = view<double>();
    const kernels::CsrView<double> columns = transpose_view<double>();
    std::vector<std::int64_t> next(columns.row_ptr, columns.row_ptr + num_nodes());
    std::vector<std::int64_t>& entries = owner.transpose.entries;
    entries.resize(col().size());
    for (std::int64_t e = 0; e < num_nonzeros(); ++e) entries[next[rows.col[e]]++] = e;
  });
  return owner.transpose.entries;
}

Gso Gso::with_values(std::span<const double> values, ValueCheck check) const {
  const GsoArrays& own = data_->arrays;
  check_values("Gso::with_values", values, own.col.size(), check);
  auto data = std::make_shared<Data>();
  data->pattern = data_->pattern == nullptr ? data_ : data_->pattern;
  data->arrays = {.row_ptr = own.row_ptr,
                  .col = own.col,
                  .transposed_row_ptr = own.transposed_row_ptr,
                  .transposed_col = own.transposed_col,
                  .graph_ptr = own.graph_ptr,
                  .has_symmetric_pattern = own.has_symmetric_pattern};
  std::vector<double>& transposed = data->transposed.value;
  transposed.reserve(values.size());
  for (const std::int64_t e : transposed_entries()) transposed.push_back(values[e]);
  data->arrays.is_symmetric =
      own.has_symmetric_pattern && std::equal(transposed.begin(), transposed.end(), values.begin());
  data->rows.value.assign(values.begin(), values.end());
  data->value_float = to_float(data->rows.value);
  if (data->arrays.is_symmetric) {
    transposed = {};
  } else {
    data->transposed_float = to_float(transposed);
  }
  data->arrays.value = data->rows.value;
  data->arrays.value_float = data->value_float;
  data->arrays.transposed_value = data->transposed.value;
  data->arrays.transposed_value_float = data->transposed_float;
  return Gso(std::move(data));
}

GsoKind Gso::kind() const { return data_->kind; }
const GsoArrays& Gso::arrays() const { return data_->arrays; }
std::int64_t Gso::num_nodes() const { return std::ssize(data_->arrays.row_ptr) - 1; }
std::int64_t Gso::num_nonzeros() const { return std::ssize(data_->arrays.col); }
bool Gso::is_symmetric() const { return data_->arrays.is_symmetric; }
std::span<const std::int64_t> Gso::row_ptr() const { return data_->arrays.row_ptr; }
std::span<const std::int32_t> Gso::col() const { return data_->arrays.col; }
std::span<const std::int64_t> Gso::graph_ptr() const { return data_->arrays.graph_ptr; }
std::int64_t Gso::num_graphs() const { return std::ssize(data_->arrays.graph_ptr) - 1; }

template <typename T>
std::span<const T> Gso::values() const {
  if constexpr (std::is_same_v<T, double>) {
    return data_->arrays.value;
  } else {
    return data_->arrays.value_float;
  }
}

template <typename T>
kernels::CsrView<T> Gso::view() const {
  return {num_nodes(), row_ptr().data(), col().data(), values<T>().data()};
}

template <typename T>
kernels::CsrView<T> Gso::transpose_view() const {
  const GsoArrays& own = data_->arrays;
  kernels::CsrView<T> result = view<T>();
  if (!own.has_symmetric_pattern) {
    result.row_ptr = own.transposed_row_ptr.data();
    result.col = own.transposed_col.data();
  }
  if (!own.is_symmetric) {
    if constexpr (std::is_same_v<T, double>) {
      result.value = own.transposed_value.data();
    } else {
      result.value = own.transposed_value_float.data();
    }
  }
  return result;
}

template std::span<const float> Gso::values<float>() const;
template std::span<const double> Gso::values<double>() const;
template kernels::CsrView<float> Gso::view<float>() const;
template kernels::CsrView<double> Gso::view<double>() const;
template kernels::CsrView<float> Gso::transpose_view<float>() const;
template kernels::CsrView<double> Gso::transpose_view<double>() const;

Gso make_gso(const Graph& graph, const GsoOptions& options) {
  Csr matrix = make_matrix(graph, options);
  return Gso::from_csr(std::move(matrix.row_ptr), std::move(matrix.col), std::move(matrix.value),
                       {graph.graph_ptr().begin(), graph.graph_ptr().end()}, options.kind);
}

Gso with_whole_diagonal(const Gso& gso) {
  Csr whole;
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    bool has_own = false;
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      if (gso.col()[e] > i && !has_own) whole.push_back(i, 0.0);
      has_own = has_own || gso.col()[e] >= i;
      whole.push_back(gso.col()[e], gso.values<double>()[e]);
    }
    if (!has_own) whole.push_back(i, 0.0);
    whole.end_row();
  }
  if (std::ssize(whole.col) == gso.num_nonzeros()) return gso;
  return Gso::from_csr(std::move(whole.row_ptr), std::move(whole.col), std::move(whole.value),
                       {gso.graph_ptr().begin(), gso.graph_ptr().end()}, gso.kind());
}

Gso select_graphs(const Gso& batch, std::span<const std::int64_t> graphs) {
  Csr part;
  std::vector<std::int64_t> graph_ptr = {0};
  for (const std::int64_t g : graphs) {
    if (g < 0 || g >= batch.num_graphs()) {
      throw std::out_of_range(
          fmt::format("select_graphs: expected graphs below {}, got {}", batch.num_graphs(), g));
    }
    const std::int64_t first = batch.graph_ptr()[g];
    const std::int64_t shift = graph_ptr.back() - first;
    for (std::int64_t i = first; i < batch.graph_ptr()[g + 1]; ++i) {
      for (std::int64_t e = batch.row_ptr()[i]; e < batch.row_ptr()[i + 1]; ++e) {
        part.push_back(batch.col()[e] + shift, batch.values<double>()[e]);
      }
      part.end_row();
    }
    graph_ptr.push_back(part.num_rows());
  }
  return Gso::from_csr(std::move(part.row_ptr), std::move(part.col), std::move(part.value),
                       std::move(graph_ptr), batch.kind());
}

}  // namespace mpssm::graph
