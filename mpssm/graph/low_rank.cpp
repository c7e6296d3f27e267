// SPDX-License-Identifier: MIT
#include "mpssm/graph/low_rank.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace mpssm::graph {
namespace {

/// Nodes in a piece of a sum over all of them: one worker's task, and short enough for float.
constexpr std::int64_t kPiece = 4096;

}  // namespace

/// In both precisions.
struct LowRankOperator::Values {
  std::vector<double> in_double;
  std::vector<float> in_float;

  Values() = default;
  explicit Values(std::vector<double> values)
      : in_double(std::move(values)), in_float(in_double.begin(), in_double.end()) {}

  template <typename T>
  const T* data() const {
    if constexpr (std::is_same_v<T, double>) {
      return in_double.data();
    } else {
      return in_float.data();
    }
  }
};

struct LowRankOperator::Pattern {
  GsoKind kind = GsoKind::kCustom;
  std::int64_t rank = 0;
  std::vector<std::int64_t> graph_ptr;
  // Factors, [N, virtual nodes]: node by node, the virtual ones of its graph.
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col;
  // Pieces of their transposes, and which of the factors' entries each of theirs is.
  std::vector<std::int64_t> piece_row_ptr = {0};
  std::vector<std::int32_t> piece_col;
  std::vector<std::int64_t> piece_entry;
  std::vector<std::int64_t> piece_ptr = {0};
  Gso among;  // M's pattern: a full block for each graph

  Pattern(GsoKind kind_in, std::int64_t rank_in, std::vector<std::int64_t> graph_ptr_in)
      : kind(kind_in), rank(rank_in), graph_ptr(std::move(graph_ptr_in)) {
    std::vector<std::int64_t> among_ptr = {0}, virtual_ptr = {0};
    std::vector<std::int32_t> among_col;
    for (std::size_t g = 0; g + 1 < graph_ptr.size(); ++g) {
      const auto first = static_cast<std::int64_t>(g) * rank;
      const auto push_virtual = [&](std::vector<std::int32_t>& columns) {
        for (std::int64_t k = 0; k < rank; ++k) {
          columns.push_back(static_cast<std::int32_t>(first + k));
        }
      };
      for (std::int64_t i = graph_ptr[g]; i < graph_ptr[g + 1]; ++i) {
        push_virtual(col);
        row_ptr.push_back(std::ssize(col));
      }
      for (std::int64_t k = 0; k < rank; ++k) {
        for (std::int64_t begin = graph_ptr[g]; begin < graph_ptr[g + 1]; begin += kPiece) {
          for (std::int64_t i = begin; i < std::min(graph_ptr[g + 1], begin + kPiece); ++i) {
            piece_col.push_back(static_cast<std::int32_t>(i));
            piece_entry.push_back(i * rank + k);
          }
          piece_row_ptr.push_back(std::ssize(piece_col));
        }
        piece_ptr.push_back(std::ssize(piece_row_ptr) - 1);
        push_virtual(among_col);
        among_ptr.push_back(std::ssize(among_col));
      }
      virtual_ptr.push_back(first + rank);
    }
    std::vector<double> zeros(among_col.size(), 0.0);
    among = Gso::from_csr(std::move(among_ptr), std::move(among_col), std::move(zeros),
                          std::move(virtual_ptr));
  }
};

struct LowRankOperator::Data {
  std::shared_ptr<const Pattern> pattern;
  Values p, q, p_pieces, q_pieces;
  Gso among;

  Data(std::shared_ptr<const Pattern> pattern_in, std::span<const double> p_in,
       std::span<const double> q_in)
      : pattern(std::move(pattern_in)),
        p(std::vector<double>(p_in.begin(), p_in.end())),
        q(std::vector<double>(q_in.begin(), q_in.end())),
        p_pieces(in_pieces(p_in)),
        q_pieces(in_pieces(q_in)) {
    const std::int64_t rank = pattern->rank;
    std::vector<double> m(static_cast<std::size_t>(pattern->among.num_nonzeros()), 0.0);
    for (std::size_t g = 0; g + 1 < pattern->graph_ptr.size(); ++g) {
      double* const block = m.data() + static_cast<std::int64_t>(g) * rank * rank;
      for (std::int64_t i = pattern->graph_ptr[g]; i < pattern->graph_ptr[g + 1]; ++i) {
        for (std::int64_t k = 0; k < rank; ++k) {
          for (std::int64_t l = 0; l < rank; ++l) {
            block[k * rank + l] += q_in[i * rank + k] * p_in[i * rank + l];
          }
        }
      }
    }
    among = pattern->among.with_values(m, ValueCheck::kNone);
  }

  std::vector<double> in_pieces(std::span<const double> factor) const {
    std::vector<double> values;
    values.reserve(pattern->piece_entry.size());
    for (const std::int64_t e : pattern->piece_entry) values.push_back(factor[e]);
    return values;
  }
  template <typename T>
  kernels::CsrView<T> rows(const Values& values) const {
    return {std::ssize(pattern->row_ptr) - 1, pattern->row_ptr.data(), pattern->col.data(),
            values.data<T>()};
  }
  template <typename T>
  kernels::CsrView<T> pieces(const Values& values) const {
    return {std::ssize(pattern->piece_row_ptr) - 1, pattern->piece_row_ptr.data(),
            pattern->piece_col.data(), values.data<T>()};
  }
};

LowRankOperator::LowRankOperator(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

LowRankOperator::LowRankOperator(GsoKind kind, std::int64_t rank, std::span<const double> p,
                                 std::span<const double> q, std::vector<std::int64_t> graph_ptr) {
  const auto fail = [](const std::string& what) {
    throw std::invalid_argument("LowRankOperator: " + what);
  };
  if (rank < 1) fail(fmt::format("expected a rank of at least 1, got {}", rank));
  if (graph_ptr.empty() || graph_ptr.front() != 0 || !std::ranges::is_sorted(graph_ptr)) {
    fail("expected graph_ptr to ascend from 0");
  }
  const auto count = static_cast<std::size_t>(graph_ptr.back() * rank);
  if (p.size() != count || q.size() != count) {
    fail(fmt::format("expected factors of {} nodes and rank {}, got {} and {} numbers",
                     graph_ptr.back(), rank, p.size(), q.size()));
  }
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (!std::ranges::all_of(p, is_finite) || !std::ranges::all_of(q, is_finite)) {
    fail("expected finite factors");
  }
  data_ = std::make_shared<const Data>(
      std::make_shared<const Pattern>(kind, rank, std::move(graph_ptr)), p, q);
}

LowRankOperator LowRankOperator::with_factors(std::span<const double> factors) const {
  if (std::ssize(factors) != num_factors()) {
    throw std::invalid_argument(
        fmt::format("LowRankOperator::with_factors: expected {} numbers, got {}", num_factors(),
                    factors.size()));
  }
  const std::size_t half = factors.size() / 2;
  return LowRankOperator(
      std::make_shared<const Data>(data_->pattern, factors.first(half), factors.subspan(half)));
}

GsoKind LowRankOperator::kind() const { return data_->pattern->kind; }
std::int64_t LowRankOperator::rank() const { return data_->pattern->rank; }
std::int64_t LowRankOperator::num_nodes() const { return data_->pattern->graph_ptr.back(); }
std::int64_t LowRankOperator::num_graphs() const {
  return std::ssize(data_->pattern->graph_ptr) - 1;
}
std::span<const std::int64_t> LowRankOperator::graph_ptr() const {
  return data_->pattern->graph_ptr;
}
std::span<const double> LowRankOperator::p() const { return data_->p.in_double; }
std::span<const double> LowRankOperator::q() const { return data_->q.in_double; }
const Gso& LowRankOperator::among_virtual() const { return data_->among; }
std::span<const std::int64_t> LowRankOperator::piece_ptr() const {
  return data_->pattern->piece_ptr;
}

template <typename T>
kernels::CsrView<T> LowRankOperator::p_view() const {
  return data_->rows<T>(data_->p);
}
template <typename T>
kernels::CsrView<T> LowRankOperator::q_view() const {
  return data_->rows<T>(data_->q);
}
template <typename T>
kernels::CsrView<T> LowRankOperator::p_pieces() const {
  return data_->pieces<T>(data_->p_pieces);
}
template <typename T>
kernels::CsrView<T> LowRankOperator::q_pieces() const {
  return data_->pieces<T>(data_->q_pieces);
}
template kernels::CsrView<float> LowRankOperator::p_view() const;
template kernels::CsrView<double> LowRankOperator::p_view() const;
template kernels::CsrView<float> LowRankOperator::q_view() const;
template kernels::CsrView<double> LowRankOperator::q_view() const;
template kernels::CsrView<float> LowRankOperator::p_pieces() const;
template kernels::CsrView<double> LowRankOperator::p_pieces() const;
template kernels::CsrView<float> LowRankOperator::q_pieces() const;
template kernels::CsrView<double> LowRankOperator::q_pieces() const;

LowRankOperator virtual_node(std::span<const std::int64_t> graph_ptr) {
  std::vector<double> factor;
  for (std::size_t g = 0; g + 1 < graph_ptr.size(); ++g) {
    const std::int64_t nodes = graph_ptr[g + 1] - graph_ptr[g];
    factor.insert(factor.end(), static_cast<std::size_t>(nodes),
                  1.0 / std::sqrt(static_cast<double>(nodes)));
  }
  return {GsoKind::kVirtualNode, 1, factor, factor, {graph_ptr.begin(), graph_ptr.end()}};
}

LowRankOperator select_graphs(const LowRankOperator& batch, std::span<const std::int64_t> graphs) {
  std::vector<double> p, q;
  std::vector<std::int64_t> graph_ptr = {0};
  for (const std::int64_t g : graphs) {
    if (g < 0 || g >= batch.num_graphs()) {
      throw std::out_of_range(
          fmt::format("select_graphs: expected graphs below {}, got {}", batch.num_graphs(), g));
    }
    const auto begin = batch.graph_ptr()[g] * batch.rank();
    const auto end = batch.graph_ptr()[g + 1] * batch.rank();
    p.insert(p.end(), batch.p().begin() + begin, batch.p().begin() + end);
    q.insert(q.end(), batch.q().begin() + begin, batch.q().begin() + end);
    graph_ptr.push_back(graph_ptr.back() + (end - begin) / batch.rank());
  }
  return {batch.kind(), batch.rank(), p, q, std::move(graph_ptr)};
}

}  // namespace mpssm::graph
