// SPDX-License-Identifier: MIT
// Scores of pairs that need no training: what two nodes share.
#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "mpssm/task/link_scores.h"
#include "mpssm/task/metrics.h"

namespace mpssm::task {
namespace {

using data::NodePair;
using Neighbours = std::span<const std::int32_t>;

/// Whom each node sends to: the rows of a graph say whom it hears.
class Receivers {
 public:
  explicit Receivers(const graph::Graph& graph)
      : begin_(static_cast<std::size_t>(graph.num_nodes()) + 1, 0),
        nodes_(static_cast<std::size_t>(graph.num_entries())) {
    for (const std::int32_t source : graph.col()) ++begin_[source + 1];
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    std::vector<std::int64_t> next(begin_.begin(), begin_.end() - 1);
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
        nodes_[next[graph.col()[e]]++] = static_cast<std::int32_t>(i);
      }
    }
  }
  Neighbours of(std::int32_t node) const {
    return std::span(nodes_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

 private:
  std::vector<std::int64_t> begin_;
  std::vector<std::int32_t> nodes_;
};

/// The sum of weigh(w) over the nodes w on a way src -> w -> dst.
double over_shared(Neighbours from, Neighbours to, NodePair pair,
                   const std::function<double(std::int32_t)>& weigh) {
  double sum = 0.0;
  auto a = from.begin();
  auto b = to.begin();
  while (a != from.end() && b != to.end()) {
    if (*a < *b) {
      ++a;
    } else if (*b < *a) {
      ++b;
    } else {
      if (*a != pair.src && *a != pair.dst) sum += weigh(*a);
      ++a;
      ++b;
    }
  }
  return sum;
}

double cosine(const data::Matrix& features, NodePair pair) {
  const auto row = [&](std::int64_t node) {
    return std::span(features.values).subspan(node * features.columns, features.columns);
  };
  const auto a = row(pair.src);
  const auto b = row(pair.dst);
  double product = 0.0;
  double squares[2] = {0.0, 0.0};
  for (std::size_t k = 0; k < a.size(); ++k) {
    product += static_cast<double>(a[k]) * b[k];
    squares[0] += static_cast<double>(a[k]) * a[k];
    squares[1] += static_cast<double>(b[k]) * b[k];
  }
  const double norm = std::sqrt(squares[0] * squares[1]);
  return norm > 0.0 ? product / norm : 0.0;
}

}  // namespace

std::vector<Reference> link_references(const data::NodeData& data) {
  const data::Links& links = data.links.value();
  if (links.edges[2].empty()) return {};
  const graph::Graph& graph = data.graph;
  const Receivers receivers(graph);
  const auto heard = [&](std::int32_t node) {
    return graph.col().subspan(
        static_cast<std::size_t>(graph.row_ptr()[node]),
        static_cast<std::size_t>(graph.row_ptr()[node + 1] - graph.row_ptr()[node]));
  };
  const auto shared = [&](const std::function<double(std::int32_t)>& weigh) {
    return [&, weigh](NodePair pair) {
      return over_shared(receivers.of(pair.src), heard(pair.dst), pair, weigh);
    };
  };
  const auto degree = [&](std::int32_t node) {
    return static_cast<double>(std::max(heard(node).size(), receivers.of(node).size()));
  };
  const std::pair<const char*, std::function<double(NodePair)>> scores[] = {
      {"common neighbours", shared([](std::int32_t) { return 1.0; })},
      {"Adamic-Adar",
       shared([&](std::int32_t node) { return 1.0 / std::log(std::max(degree(node), 2.0)); })},
      {"product of degrees",
       [&](NodePair pair) {
         return static_cast<double>(receivers.of(pair.src).size()) *
                static_cast<double>(heard(pair.dst).size());
       }},
      {"likeness of features", [&](NodePair pair) { return cosine(data.features, pair); }},
  };
  std::vector<Reference> references;
  for (const auto& [name, score] : scores) {
    std::vector<float> of[2];
    for (const bool is_edge : {true, false}) {
      for (const NodePair& pair : is_edge ? links.edges[2] : links.others[2]) {
        of[is_edge ? 0 : 1].push_back(static_cast<float>(score(pair)));
      }
    }
    references.push_back({name, link_metrics(of[0], of[1])});
  }
  return references;
}

}  // namespace mpssm::task
