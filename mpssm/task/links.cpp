// SPDX-License-Identifier: MIT
#include "mpssm/task/links.h"

#include <algorithm>
#include <fmt/core.h>
#include <queue>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/data/links.h"
#include "mpssm/ops/linear.h"
#include "mpssm/task/link_scores.h"

namespace mpssm::task {
namespace {

using data::NodePair;

struct ScoredPair {
  NodePair pair;
  float score;
  /// The better one first, of equals the one with the smaller numbers.
  bool operator<(const ScoredPair& other) const {
    return score != other.score ? score > other.score : pair < other.pair;
  }
};

/// The best pairs without an edge, of all that there are, some rows at a time.
std::vector<ScoredPair> best_others(const LinkEnds& ends, const graph::Graph& graph,
                                    std::int64_t count) {
  constexpr std::int64_t kRows = 128;
  const bool directed = !graph.is_symmetric();
  const std::int64_t n = graph.num_nodes();
  std::priority_queue<ScoredPair> best;  // the worst of them on top
  for (std::int64_t first = 0; first < n; first += kRows) {
    const std::int64_t end = std::min(first + kRows, n);
    const torch::Tensor block =
        ops::linear(ends.left.slice(0, first, end), ends.right, {}).contiguous();
    for (std::int64_t src = first; src < end; ++src) {
      const float* score = block.data_ptr<float>() + (src - first) * n;
      for (std::int64_t dst = directed ? 0 : src + 1; dst < n; ++dst) {
        const ScoredPair found{{static_cast<std::int32_t>(src), static_cast<std::int32_t>(dst)},
                               score[dst]};
        if (std::ssize(best) == count && !(found < best.top())) continue;
        if (src == dst || data::has_edge(graph, found.pair)) continue;
        best.push(found);
        if (std::ssize(best) > count) best.pop();
      }
    }
  }
  std::vector<ScoredPair> sorted;
  for (; !best.empty(); best.pop()) sorted.push_back(best.top());
  std::reverse(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

void write_links(const data::Dataset& dataset, const graph::GsoGroups& gso, nn::GraphModule& model,
                 const LinkQuestion& question, const io::Sink& sink) {
  const auto& data = std::get<data::NodeData>(dataset.content);
  const graph::Graph& whole = data.links.value().whole;
  const bool directed = !whole.is_symmetric();
  const torch::Tensor x = marked_features(data);
  const auto ends_on = [&](const graph::Graph& graph) {
    return link_ends(model.forward(x, data::make_operators(graph, gso, data.edge_table)), directed);
  };
  if (!question.pairs) {
    constexpr std::int64_t kMostNodes = 100'000;
    if (whole.num_nodes() > kMostNodes) {
      throw base::Error({.where = dataset.name,
                         .expected = fmt::format("at most {} nodes to try all pairs", kMostNodes),
                         .got = std::to_string(whole.num_nodes()),
                         .hint = "name those to try by --pairs"});
    }
    std::string text = "src,dst,score\n";
    for (const ScoredPair& found : best_others(ends_on(whole), whole, question.top)) {
      text += fmt::format("{},{:.6f}\n", pair_cells(data, found.pair), link_share(found.score));
    }
    return sink(text);
  }
  const std::vector<NodePair>& pairs = *question.pairs;
  std::vector<NodePair> asked = pairs;
  for (NodePair& pair : asked) {
    if (!directed && pair.src > pair.dst) std::swap(pair.src, pair.dst);
  }
  std::sort(asked.begin(), asked.end());
  const torch::Tensor score =
      link_scores(ends_on(data::without_edges(whole, asked)), pairs).contiguous();
  std::string text = "src,dst,edge,score\n";
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    text += fmt::format("{},{},{:.6f}\n", pair_cells(data, pairs[i]),
                        data::has_edge(whole, pairs[i]) ? "yes" : "no",
                        link_share(score.data_ptr<float>()[i]));
  }
  sink(text);
}

}  // namespace mpssm::task
