// SPDX-License-Identifier: MIT
// A model whose nodes are dealt to ranks gives what the model gives, up to rounding, and the same
// bits for any number of ranks.
#include "mpssm/nn/node_ranks.h"

#include <numeric>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/partition.h"
#include "mpssm/ops/generator.h"

#include "tests/ranks/threads_as_ranks.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::as_ranks;

ModelOptions node_options(StateKind kind) {
  ModelOptions options{.in_channels = 3,
                       .hidden_channels = 10,
                       .out_channels = 2,
                       .num_blocks = 2,
                       .hops = 3,
                       .dropout = 0.3,
                       .readout_layers = 2};
  options.state.kind = kind;
  return options;
}

std::shared_ptr<ModelImpl> drawn_model(const ModelOptions& options) {
  const ops::DefaultGeneratorScope numbers(ops::make_generator(5));
  return std::make_shared<ModelImpl>(options);
}

/// Nodes of an operator, part by part.
struct Cut {
  graph::Gso gso;
  std::vector<std::int64_t> bounds;  // [parts + 1]
  std::vector<std::int64_t> node;    // at each place
  std::vector<std::int32_t> place;   // of each node

  Cut(const graph::Gso& whole, std::int64_t parts) : gso(whole) {
    const auto part = graph::partition_nodes(whole, parts, graph::best_partition_method(whole));
    node.resize(part.size());
    place.resize(part.size());
    std::iota(node.begin(), node.end(), 0);
    std::stable_sort(node.begin(), node.end(),
                     [&](std::int64_t a, std::int64_t b) { return part[a] < part[b]; });
    bounds.assign(parts + 1, 0);
    for (const std::int32_t p : part) ++bounds[p + 1];
    for (std::int64_t p = 0; p < parts; ++p) bounds[p + 1] += bounds[p];
    for (std::size_t i = 0; i < node.size(); ++i) {
      place[node[i]] = static_cast<std::int32_t>(i);
    }
  }

  OwnRows rows(const kernels::CsrView<float>& a, std::int64_t first, std::int64_t last) const {
    OwnRows own;
    for (std::int64_t n = first; n < last; ++n) {
      for (std::int64_t e = a.row_ptr[node[n]]; e < a.row_ptr[node[n] + 1]; ++e) {
        own.col.push_back(place[a.col[e]]);
        own.value.push_back(a.value[e]);
      }
      own.row_ptr.push_back(std::ssize(own.col));
    }
    return own;
  }

  std::shared_ptr<const NodeRows> of(ranks::Communicator& all, std::int64_t hops = 1,
                                     HaloWay way = HaloWay::kFewerNumbers) const {
    const ranks::Shares shares{std::ssize(bounds) - 1, all.size()};
    const std::int64_t first = bounds[shares.begin(all.rank())];
    const std::int64_t last = bounds[shares.end(all.rank())];
    NodeRows::Given given{.ranks = all,
                          .all_bounds = bounds,
                          .number = {node.begin() + first, node.begin() + last},
                          .rows = rows(gso.view<float>(), first, last),
                          .hops = hops,
                          .way = way};
    if (!gso.is_symmetric()) given.transposed = rows(gso.transpose_view<float>(), first, last);
    return std::make_shared<const NodeRows>(std::move(given));
  }
};

/// Output and all gradients; nodes count differently, by their numbers.
std::vector<torch::Tensor> trained_step(GraphModule& network, ModelImpl& model,
                                        const torch::Tensor& x, const graph::Operators& gso,
                                        const torch::Tensor& weight) {
  const ops::GeneratorScope dropped(ops::make_generator(11));
  model.train();
  for (const torch::Tensor& p : model.parameters()) p.mutable_grad().reset();
  const torch::Tensor y = network.forward(x, gso);
  (y.square() * weight).sum().backward();
  if (auto* shared = dynamic_cast<SharedModule*>(&network)) shared->collect_gradients();
  std::vector<torch::Tensor> result = {y.detach()};
  for (const auto& item : model.named_parameters()) result.push_back(item.value().grad());
  result.push_back(ops::current_generator().get_state());
  return result;
}

std::vector<std::pair<graph::Gso, ModelOptions>> node_cases() {
  std::vector<std::pair<graph::Gso, ModelOptions>> cases;
  graph::EdgeList one_way{.num_nodes = 900};
  for (std::int64_t i = 0; i < 900; ++i) {
    for (const std::int64_t j : {(i + 1) % 900, (i * 7 + 3) % 900}) {
      one_way.src.push_back(i);
      one_way.dst.push_back(j);
    }
  }
  const graph::Graph directed = graph::Graph::from_edges(one_way, graph::Direction::kDirected);
  for (const StateKind kind : {StateKind::kStable, StateKind::kDense, StateKind::kDiagonal}) {
    cases.emplace_back(graph::make_gso(graph::make_grid(70, 65)), node_options(kind));
    cases.emplace_back(graph::make_gso(directed, {.kind = graph::GsoKind::kRandomWalk}),
                       node_options(kind));
  }
  cases[0].second.norm = cases[0].second.state_norm = NormKind::kNone;
  cases[0].second.residual = false;
  return cases;
}

TEST(NodeRanks, GiveWhatTheModelGivesAndTheSameBitsForAnyNumber) {
  MPSSM_NEEDS_GLOO();
  for (const auto& [gso, options] : node_cases()) {
    const std::int64_t nodes = gso.num_nodes();
    const torch::Tensor x = torch::linspace(-1.0, 1.0, 3 * nodes).sin().view({nodes, 3});
    const torch::Tensor weight = torch::linspace(0.1, 1.0, 2 * nodes).view({nodes, 2}) / nodes;
    const auto model = drawn_model(options);
    const auto expected = trained_step(*model, *model, x, gso, weight);
    const Cut cut(gso, 4);
    const torch::Tensor order = torch::tensor(cut.node);
    std::vector<torch::Tensor> by_one;
    for (const std::int64_t count : {1, 2, 3, 4}) {
      std::vector<std::shared_ptr<ModelImpl>> models;
      for (std::int64_t i = 0; i < count; ++i) models.push_back(drawn_model(options));
      as_ranks(count, [&](ranks::Communicator& all) {
        const auto rows = cut.of(all);
        const torch::Tensor own = torch::tensor(rows->number());
        NodeRanks shared(models[all.rank()], rows);
        for (const int time : {1, 2}) {
          const auto found = trained_step(shared, *models[all.rank()], x.index_select(0, own),
                                          graph::Operators(), weight.index_select(0, own));
          for (std::size_t i = 0; i < expected.size(); ++i) {
            const torch::Tensor wanted = i == 0 ? expected[0].index_select(0, own) : expected[i];
            // Sums of thousands of floats in another order.
            EXPECT_TRUE(
                torch::allclose(found[i].to(torch::kDouble), wanted.to(torch::kDouble), 1e-4, 1e-5))
                << count << " ranks, time " << time << ", tensor " << i;
            if (by_one.empty() || i == 0) continue;
            EXPECT_TRUE(torch::equal(found[i], by_one[i]))
                << count << " ranks, time " << time << ", tensor " << i;
          }
          if (count == 1) by_one = found;
        }
      });
    }
  }
}

TEST(NodeRanks, SendTheRowsOfTheHaloAtEveryHop) {
  MPSSM_NEEDS_GLOO();
  constexpr std::int64_t kRanks = 3;
  for (const StateKind kind : {StateKind::kStable, StateKind::kDense}) {
    for (const std::int64_t hops : {1, 5}) {
      ModelOptions options = node_options(kind);
      options.hops = hops;
      const Cut cut(graph::make_gso(graph::make_grid(40, 30)), kRanks);
      // Nodes of others beside each part, by definition.
      std::vector<std::int64_t> sent(kRanks, 0);
      const auto a = cut.gso.view<float>();
      const auto part_of = [&](std::int64_t i) {
        return std::upper_bound(cut.bounds.begin(), cut.bounds.end(), cut.place[i]) -
               cut.bounds.begin() - 1;
      };
      for (std::int64_t i = 0; i < a.num_rows; ++i) {
        std::vector<bool> reads(kRanks, false);
        for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
          reads[part_of(a.col[e])] = true;  // symmetric: who is read also reads
        }
        for (std::int64_t p = 0; p < kRanks; ++p) sent[part_of(i)] += p != part_of(i) && reads[p];
      }
      std::vector<std::shared_ptr<ModelImpl>> models;
      for (std::int64_t i = 0; i < kRanks; ++i) models.push_back(drawn_model(options));
      as_ranks(kRanks, [&](ranks::Communicator& all) {
        const auto rows = cut.of(all);
        NodeRanks shared(models[all.rank()], rows);
        const std::int64_t before = all.bytes_sent();
        const std::int64_t calls = all.num_exchanges();
        shared.forward(torch::ones({rows->own(), 3}), {}).sum().backward();
        EXPECT_EQ(rows->rows_sent(), sent[all.rank()]);
        EXPECT_EQ(all.bytes_sent() - before,
                  2 * options.num_blocks * hops * sent[all.rank()] * options.hidden_channels * 4);
        EXPECT_EQ(all.num_exchanges() - calls, 2 * options.num_blocks * hops);
      });
    }
  }
}

/// Nodes of each part that others read within so many hops, one that two of them read twice.
std::vector<std::int64_t> read_by_others(const Cut& cut, std::int64_t hops) {
  const std::int64_t parts = std::ssize(cut.bounds) - 1;
  std::vector<std::int64_t> sent(parts, 0);
  const auto a = cut.gso.view<float>();
  for (std::int64_t reader = 0; reader < parts; ++reader) {
    std::vector<bool> is_read(a.num_rows, false);
    for (std::int64_t p = cut.bounds[reader]; p < cut.bounds[reader + 1]; ++p) {
      is_read[cut.node[p]] = true;
    }
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      const std::vector<bool> before = is_read;
      for (std::int64_t i = 0; i < a.num_rows; ++i) {
        if (!before[i]) continue;
        for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) is_read[a.col[e]] = true;
      }
    }
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t p = cut.bounds[part]; part != reader && p < cut.bounds[part + 1]; ++p) {
        sent[part] += is_read[cut.node[p]];
      }
    }
  }
  return sent;
}

TEST(NodeRanks, HaveTheSameBitsByRingsAndSendThemOnce) {
  MPSSM_NEEDS_GLOO();
  for (const auto& [gso, options] : node_cases()) {
    const std::int64_t nodes = gso.num_nodes();
    const torch::Tensor x = torch::linspace(-1.0, 1.0, 3 * nodes).sin().view({nodes, 3});
    const torch::Tensor weight = torch::linspace(0.1, 1.0, 2 * nodes).view({nodes, 2}) / nodes;
    for (const std::int64_t count : {1, 2, 3, 4}) {
      const Cut cut(gso, count == 3 ? 3 : 4);  // with four parts, two ranks have two each
      std::vector<std::shared_ptr<ModelImpl>> models;
      for (std::int64_t i = 0; i < count; ++i) models.push_back(drawn_model(options));
      as_ranks(count, [&](ranks::Communicator& all) {
        std::vector<std::vector<torch::Tensor>> found;
        for (const HaloWay way : {HaloWay::kEachHop, HaloWay::kAllHops}) {
          const auto rows = cut.of(all, options.hops, way);
          EXPECT_EQ(rows->by_rings(), way == HaloWay::kAllHops && count > 1);
          const torch::Tensor own = torch::tensor(rows->number());
          NodeRanks shared(models[all.rank()], rows);
          const std::int64_t before = all.bytes_sent();
          const std::int64_t calls = all.num_exchanges();
          found.push_back(trained_step(shared, *models[all.rank()], x.index_select(0, own),
                                       graph::Operators(), weight.index_select(0, own)));
          const std::int64_t times = options.num_blocks * (rows->by_rings() ? 1 : options.hops);
          const std::int64_t sent = all.bytes_sent() - before;
          const std::int64_t exchanges = all.num_exchanges() - calls;
          shared.collect_gradients();  // as trained_step() did at its end
          const std::int64_t gradients = all.bytes_sent() - before - sent;
          EXPECT_EQ(sent - gradients, times * (rows->rows_sent() + rows->rows_sent_back()) *
                                          options.hidden_channels * 4);
          EXPECT_EQ(2 * exchanges - (all.num_exchanges() - calls), 2 * times);
          if (gso.is_symmetric() && std::ssize(cut.bounds) - 1 == count) {
            const auto expected = read_by_others(cut, way == HaloWay::kAllHops ? options.hops : 1);
            EXPECT_EQ(rows->rows_sent(), expected[all.rank()]);
          }
        }
        for (std::size_t i = 0; i < found[0].size(); ++i) {
          EXPECT_TRUE(torch::equal(found[0][i], found[1][i])) << count << " ranks, tensor " << i;
        }
      });
    }
  }
}

TEST(NodeRanks, TakeTheHaloThatSendsLess) {
  MPSSM_NEEDS_GLOO();
  constexpr std::int64_t kRanks = 3;
  constexpr std::int64_t kHops = 4;
  // Communities in which each node is near to all others, and a few edges between them: what is
  // read at a hop is little, what is read within four is everything.
  const auto communities = [](std::int64_t count, std::int64_t nodes) {
    graph::EdgeList edges{.num_nodes = count * nodes};
    const auto join = [&](std::int64_t i, std::int64_t j) {
      edges.src.push_back(i);
      edges.dst.push_back(j);
    };
    for (std::int64_t c = 0; c < count; ++c) {
      for (std::int64_t i = 0; i < nodes; ++i) {
        join(c * nodes + i, c * nodes + (i * 7 + 3) % nodes);
        join(c * nodes + i, c * nodes + (i * 31 + 11) % nodes);
        join(c * nodes + i, c * nodes + (i * 101 + 57) % nodes);
      }
      for (std::int64_t i = 0; i < 4; ++i) join(c * nodes + i, (c + 1) % count * nodes + i);
    }
    return graph::make_gso(graph::Graph::from_edges(edges));
  };
  for (const bool is_one : {true, false}) {  // one community, all of which is read at any hop
    const graph::Gso gso = communities(is_one ? 1 : kRanks, 300);
    const Cut cut(gso, kRanks);
    const auto sum = [](const std::vector<std::int64_t>& numbers) {
      return std::accumulate(numbers.begin(), numbers.end(), 0.0);
    };
    // Computed again are, at each hop, those within the hops that follow.
    double again = 0.0;
    for (std::int64_t hops = 1; hops < kHops; ++hops) again += sum(read_by_others(cut, hops));
    const bool is_less = sum(read_by_others(cut, kHops)) + ranks::kRowComputedAgain * again <
                         kHops * sum(read_by_others(cut, 1));
    EXPECT_EQ(is_less, is_one);
    as_ranks(kRanks, [&](ranks::Communicator& all) {
      EXPECT_EQ(cut.of(all, kHops)->by_rings(), is_less);
      EXPECT_FALSE(cut.of(all, 1)->by_rings());
    });
  }
}

TEST(NodeRanks, SayWhatCannotBeDealt) {
  ModelOptions options = node_options(StateKind::kDense);
  EXPECT_EQ(why_not_by_nodes(options), "");
  options.norm = NormKind::kBatch;
  EXPECT_EQ(why_not_by_nodes(options), "batch norm looks at all nodes at once");
  options = node_options(StateKind::kStable);
  options.precision = engine::Precision::kBf16;
  EXPECT_EQ(why_not_by_nodes(options), "numbers travel as float32");
}

TEST(Halo, BringsTheRowsOfOthersInOrder) {
  MPSSM_NEEDS_GLOO();
  const std::vector<std::int64_t> bounds = {0, 4, 5, 9};
  const std::vector<std::vector<std::int64_t>> wanted = {{4, 6, 8}, {0}, {1, 4}};
  as_ranks(3, [&](ranks::Communicator& all) {
    const ranks::Halo halo(all, bounds, wanted[all.rank()]);
    std::vector<double> own;
    for (std::int64_t i = bounds[all.rank()]; i < bounds[all.rank() + 1]; ++i) {
      own.push_back(10.0 * static_cast<double>(i));
      own.push_back(10.0 * static_cast<double>(i) + 1.0);
    }
    std::vector<double> rows(2 * static_cast<std::size_t>(halo.size()));
    const std::int64_t before = all.bytes_sent();
    halo.fill(own.data(), 2 * sizeof(double), rows.data());
    EXPECT_EQ(all.bytes_sent() - before, halo.rows_sent() * 16);
    for (std::size_t i = 0; i < wanted[all.rank()].size(); ++i) {
      EXPECT_EQ(rows[2 * i], 10.0 * static_cast<double>(wanted[all.rank()][i]));
      EXPECT_EQ(rows[2 * i + 1], rows[2 * i] + 1.0);
    }
  });
}

TEST(Halo, NumbersColumnsByOwnRowsAndTheRestInOrder) {
  std::vector<std::int32_t> columns = {7, 3, 0, 4, 7, 9};
  EXPECT_EQ(ranks::localise(3, 5, columns), (std::vector<std::int64_t>{0, 7, 9}));
  EXPECT_EQ(columns, (std::vector<std::int32_t>{3, 0, 2, 1, 3, 4}));
}

}  // namespace
}  // namespace mpssm::nn
