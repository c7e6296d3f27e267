// SPDX-License-Identifier: MIT
#include "mpssm/task/encoded_features.h"

#include <algorithm>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/incident_edges.h"
#include "mpssm/graph/distances.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::task {
namespace {

/// 64 coins of one part, by the finaliser of SplitMix64.
std::uint64_t coins_of(std::uint64_t seed, std::int32_t part) {
  std::uint64_t z = seed + (static_cast<std::uint64_t>(part) + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// Rows of `left` [N, width] and of `right` [N, columns] as one.
std::vector<float> side_by_side(const std::vector<float>& left, std::int64_t width,
                                const data::Matrix& right) {
  std::vector<float> both;
  both.reserve(left.size() + right.values.size());
  for (std::int64_t i = 0; i < right.rows; ++i) {
    both.insert(both.end(), left.begin() + i * width, left.begin() + (i + 1) * width);
    both.insert(both.end(), right.values.begin() + i * right.columns,
                right.values.begin() + (i + 1) * right.columns);
  }
  return both;
}

}  // namespace

EncodedFeatures::EncodedFeatures(const graph::Graph& graph, const engine::EncodingOptions& options,
                                 const data::EdgeTable& edges, const Preprocessing* learned,
                                 const std::function<bool(std::size_t)>& counts)
    : options_(options) {
  if (options.empty()) return;
  values_ = engine::encode_nodes(graph, options, ops::Threads());
  if (options.edges) {
    edge_columns_ =
        learned != nullptr ? learned->edge_columns : data::fit_edge_columns(edges, counts);
    if (edge_columns_.empty()) {
      throw base::Error("data.encodings",
                        "edges: nothing is known of these edges but ends and weight");
    }
    const data::Matrix sums =
        data::incident_sums(edges, edge_columns_, graph.num_nodes(), graph.is_symmetric());
    values_ = side_by_side(values_, options.width(), sums);
    edge_width_ = sums.columns;
  }
  if (options.laplacian > 0) parts_ = graph::components(graph).of_node;
}

std::int64_t EncodedFeatures::bytes() const {
  return 4 * (std::ssize(values_) + std::ssize(parts_));
}

torch::Tensor EncodedFeatures::append(const torch::Tensor& x) const {
  const Range all{0, x.size(0)};
  return append(x, {&all, 1});
}

torch::Tensor EncodedFeatures::append(const torch::Tensor& x, std::span<const Range> ranges) const {
  if (width() == 0) return x;
  torch::Tensor more = torch::empty({x.size(0), width()});
  float* to = more.data_ptr<float>();
  for (const Range& range : ranges) {
    to = std::copy(values_.begin() + range.first * width(), values_.begin() + range.last * width(),
                   to);
  }
  return torch::cat({x, more}, 1);
}

torch::Tensor EncodedFeatures::flipped(const torch::Tensor& x) const {
  const Range all{0, x.size(0)};
  return flipped(x, {&all, 1});
}

torch::Tensor EncodedFeatures::flipped(const torch::Tensor& x,
                                       std::span<const Range> ranges) const {
  if (options_.laplacian == 0) return x;
  const std::uint64_t seed = ops::draw_dropout_seed();
  torch::Tensor result = x.clone();
  const std::int64_t first = x.size(1) - width() + options_.random_walk;
  float* row = result.data_ptr<float>() + first;
  for (const Range& range : ranges) {
    for (std::int64_t i = range.first; i < range.last; ++i, row += x.size(1)) {
      const std::uint64_t coins = coins_of(seed, parts_[i]);
      for (std::int64_t k = 0; k < options_.laplacian; ++k) {
        if ((coins >> k & 1) != 0) row[k] = -row[k];
      }
    }
  }
  return result;
}

}  // namespace mpssm::task
