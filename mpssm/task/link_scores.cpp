// SPDX-License-Identifier: MIT
#include "mpssm/task/link_scores.h"

#include <cmath>

#include <torch/types.h>

#include "mpssm/base/random.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

constexpr std::int64_t kWidth = 32;  // of a and of b
constexpr std::int64_t kMarks = 32;

}  // namespace

std::int64_t link_outputs(bool directed) { return 2 * kWidth + (directed ? 2 : 1); }

torch::Tensor marked_features(const data::NodeData& data) {
  const std::int64_t n = data.graph.num_nodes();
  // Where the degree is all there is, marks are what nodes are told apart by. Beside features they
  // weigh together as much as one: heavier they were learned by heart on the made graphs tried.
  const bool has_features = data.columns.size() != 1 || data.columns[0].name != "degree";
  const float size = has_features ? 1.0F / std::sqrt(static_cast<float>(kMarks)) : 1.0F;
  torch::Tensor marks = torch::empty({n, kMarks});
  base::Random random(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random.bits();
    for (std::int64_t k = 0; k < kMarks; ++k) {
      marks.data_ptr<float>()[i * kMarks + k] = (bits >> k & 1) != 0 ? size : -size;
    }
  }
  return torch::cat({tensor_of(data.features), marks}, 1);
}

LinkEnds link_ends(const torch::Tensor& output, bool directed) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(kWidth));
  const torch::Tensor a = output.slice(1, 0, kWidth);
  const torch::Tensor b = output.slice(1, kWidth, 2 * kWidth);
  const torch::Tensor c = output.slice(1, 2 * kWidth, 2 * kWidth + 1);
  const torch::Tensor one = torch::ones_like(c);
  if (directed) {
    const torch::Tensor d = output.slice(1, 2 * kWidth + 1, 2 * kWidth + 2);
    return {torch::cat({a * scale, c, one}, 1), torch::cat({b, one, d}, 1)};
  }
  return {torch::cat({a * scale, b * -scale, c, one}, 1), torch::cat({a, b, one, c}, 1)};
}

torch::Tensor link_scores(const LinkEnds& ends, std::span<const data::NodePair> pairs) {
  torch::Tensor index = torch::empty({2, std::ssize(pairs)}, torch::kLong);
  auto* at = index.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    at[i] = pairs[i].src;
    at[pairs.size() + i] = pairs[i].dst;
  }
  return (ends.left.index_select(0, index[0]) * ends.right.index_select(0, index[1])).sum(1);
}

float link_share(float score) { return 1.0F / (1.0F + std::exp(-score)); }

std::string pair_cells(const data::NodeData& data, data::NodePair pair) {
  const auto name = [&](std::int32_t node) {
    return data.node_ids.empty() ? std::to_string(node) : io::csv_cell(data.node_ids[node]);
  };
  return name(pair.src) + "," + name(pair.dst);
}

}  // namespace mpssm::task
