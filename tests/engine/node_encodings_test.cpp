// SPDX-License-Identifier: MIT
// Encodings against dense powers and against their definition.
#include "mpssm/engine/node_encodings.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"
#include "mpssm/engine/thread_pool.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/laplacian_modes.h"

namespace mpssm::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// diag(P^k) for k = 1, ..., steps by dense products, P[i][j] = |w(i -> j)| / all that leaves i.
std::vector<float> dense_walks(const graph::Graph& graph, std::int64_t steps) {
  const std::int64_t n = graph.num_nodes();
  std::vector<double> p(n * n, 0.0);
  for (std::int64_t to = 0; to < n; ++to) {
    for (std::int64_t e = graph.row_ptr()[to]; e < graph.row_ptr()[to + 1]; ++e) {
      p[graph.col()[e] * n + to] += std::abs(graph.weight()[e]);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < n; ++j) sum += p[i * n + j];
    for (std::int64_t j = 0; j < n && sum > 0.0; ++j) p[i * n + j] /= sum;
  }
  std::vector<double> power = p;
  std::vector<float> result(n * steps);
  for (std::int64_t k = 0; k < steps; ++k) {
    for (std::int64_t i = 0; i < n; ++i) {
      result[i * steps + k] = static_cast<float>(power[i * n + i]);
    }
    std::vector<double> next(n * n, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t l = 0; l < n; ++l) next[i * n + l] += power[i * n + j] * p[j * n + l];
      }
    }
    power = next;
  }
  return result;
}

graph::Graph random_directed(std::int64_t n, std::int64_t edges, std::uint64_t seed) {
  base::Random random(seed);
  graph::EdgeList list{.num_nodes = n, .src = {}, .dst = {}, .weight = {}};
  for (std::int64_t e = 0; e < edges; ++e) {
    list.src.push_back(random.below(n));
    list.dst.push_back(random.below(n));
    list.weight.push_back(random.unit() - 0.3);
  }
  return graph::Graph::from_edges(list, graph::Direction::kDirected);
}

TEST(NodeEncodings, RandomWalksAreDiagonalsOfPowers) {
  constexpr double kRounding = 1e-6;
  const graph::Graph graphs[] = {graph::make_path(1),
                                 graph::make_path(9),
                                 graph::make_grid(5, 4),
                                 graph::make_star(17),
                                 graph::make_erdos_renyi(40, 0.04, 2),
                                 graph::make_barabasi_albert(30, 3, 1),
                                 random_directed(30, 70, 4),
                                 random_directed(21, 200, 5)};
  for (const graph::Graph& graph : graphs) {
    for (const std::int64_t steps : {1, 2, 7, 12}) {
      const std::vector<float> expected = dense_walks(graph, steps);
      const std::vector<float> got = encode_nodes(graph, {.random_walk = steps}, SerialExecutor());
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], kRounding);
    }
  }
}

TEST(NodeEncodings, ModesHaveRootMeanSquareOneInEachPart) {
  const graph::Graph parts[] = {graph::make_path(3), graph::make_grid(9, 9), graph::make_path(1)};
  const graph::Graph batch = graph::make_batch(parts);
  const std::vector<float> got = encode_nodes(batch, {.laplacian = 4}, SerialExecutor());
  const auto nodes = graph::nodes_of_parts(graph::components(batch));
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    for (std::int64_t k = 0; k < 4; ++k) {
      double squares = 0.0;
      for (const std::int32_t i : nodes[p]) squares += got[i * 4 + k] * got[i * 4 + k];
      const bool is_there = k + 1 < std::ssize(nodes[p]);
      EXPECT_NEAR(squares / std::ssize(nodes[p]), is_there ? 1.0 : 0.0, 1e-5) << p << ", " << k;
    }
  }
}

TEST(NodeEncodings, StandInTheirColumns) {
  const graph::Graph graph = graph::make_barabasi_albert(60, 2, 1);
  const EncodingOptions all{.random_walk = 3, .laplacian = 2, .degree = true};
  const std::vector<float> got = encode_nodes(graph, all, SerialExecutor());
  const std::vector<float> walks = encode_nodes(graph, {.random_walk = 3}, SerialExecutor());
  const std::vector<float> modes = encode_nodes(graph, {.laplacian = 2}, SerialExecutor());
  for (std::int64_t i = 0; i < 60; ++i) {
    for (int k = 0; k < 3; ++k) EXPECT_EQ(got[i * 6 + k], walks[i * 3 + k]);
    for (int k = 0; k < 2; ++k) EXPECT_EQ(got[i * 6 + 3 + k], modes[i * 2 + k]);
    const auto degree = static_cast<double>(graph.row_ptr()[i + 1] - graph.row_ptr()[i]);
    EXPECT_NEAR(got[i * 6 + 5], std::log1p(degree), 1e-6);
  }
}

TEST(NodeEncodings, HaveTheSameBitsOnAnyNumberOfWorkers) {
  std::vector<graph::Graph> graphs;
  for (std::uint64_t g = 0; g < 20; ++g) graphs.push_back(graph::make_power_law_tree(90 + g, g));
  graphs.push_back(random_directed(900, 3000, 1));
  const graph::Graph batch = graph::make_batch(graphs);
  const EncodingOptions all{.random_walk = 9, .laplacian = 5, .degree = true};
  const std::vector<float> expected = encode_nodes(batch, all, SerialExecutor());
  for (const std::int64_t workers : {2, 3, 7}) {
    const ThreadPool pool(workers);
    EXPECT_EQ(encode_nodes(batch, all, pool), expected) << workers;
  }
}

TEST(NodeEncodings, AreNamed) {
  EXPECT_EQ(encodings_from_text("").width(), 0);
  EXPECT_EQ(to_text(encodings_from_text("degree, lap ,rwse, edges")), "rwse:16,lap:8,degree,edges");
  EXPECT_EQ(to_text(encodings_from_text("lap:3")), "lap:3");
  const auto refuses = [](const char* text, const char* message) {
    EXPECT_THAT([&] { encodings_from_text(text); }, ThrowsMessage<base::Error>(HasSubstr(message)))
        << text;
  };
  refuses("rwse:0", "expected rwse:1 to rwse:256, got 'rwse:0'");
  refuses("rwse:", "expected rwse:1 to rwse:256, got 'rwse:'");
  refuses("lap:65", "expected lap:1 to lap:64, got 'lap:65'");
  refuses("rwse,rwse:4", "expected rwse once, got it twice");
  refuses("degree:3",
          "expected some of rwse:K, lap:K, degree, edges with commas between them, got");
  refuses("rwse,", "got ''");
}

}  // namespace
}  // namespace mpssm::engine
