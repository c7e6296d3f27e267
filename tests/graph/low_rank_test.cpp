// SPDX-License-Identifier: MIT
#include "mpssm/graph/low_rank.h"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/operator_groups.h"

namespace mpssm::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

LowRankOperator two_graphs() {
  // One node, then two; rank 2.
  return {GsoKind::kCustom,
          2,
          std::vector{1.0, 2.0, 3.0, 4.0, 5.0, 6.0},
          std::vector{1.0, -1.0, 0.5, 0.0, 2.0, 1.0},
          {0, 1, 3}};
}

TEST(LowRank, OperatorAmongVirtualNodesIsTheProductOfTheFactors) {
  const LowRankOperator a = two_graphs();
  const Gso& m = a.among_virtual();
  EXPECT_EQ(m.num_nodes(), 4);
  EXPECT_THAT(m.graph_ptr(), ElementsAre(0, 2, 4));
  // Q' P of each graph
  EXPECT_THAT(m.values<double>(), ElementsAre(1.0, 2.0, -1.0, -2.0, 11.5, 14.0, 5.0, 6.0));
  EXPECT_EQ(a.num_factors(), 12);
}

// Long graphs are summed in pieces, one behind the other; every node is in one of them.
TEST(LowRank, PiecesHoldEveryEntryOnce) {
  std::vector<std::int64_t> graph_ptr = {0, 3, 3, 10'003};  // one without nodes
  std::vector<double> p(2 * 10'003), q(p.size(), 1.0);
  std::iota(p.begin(), p.end(), 0.0);
  const LowRankOperator a(GsoKind::kCustom, 2, p, q, graph_ptr);
  EXPECT_EQ(a.piece_ptr().size(), 7);
  EXPECT_EQ(a.piece_ptr()[3] - a.piece_ptr()[2], 0);
  EXPECT_GT(a.piece_ptr()[5] - a.piece_ptr()[4], 1);
  const auto pieces = a.p_pieces<double>();
  for (std::int64_t v = 0; v < 6; ++v) {
    std::int64_t node = graph_ptr[v / 2];
    for (std::int64_t row = a.piece_ptr()[v]; row < a.piece_ptr()[v + 1]; ++row) {
      for (std::int64_t e = pieces.row_ptr[row]; e < pieces.row_ptr[row + 1]; ++e, ++node) {
        ASSERT_EQ(pieces.col[e], node);
        ASSERT_EQ(pieces.value[e], 2.0 * static_cast<double>(node) + static_cast<double>(v % 2));
      }
    }
    EXPECT_EQ(node, graph_ptr[v / 2 + 1]);
  }
}

TEST(LowRank, AVirtualNodeIsItsOwnPower) {
  const LowRankOperator mean = virtual_node(std::vector<std::int64_t>{0, 4, 4, 11});
  EXPECT_EQ(mean.rank(), 1);
  EXPECT_EQ(mean.p()[0] * mean.q()[3], 0.25);
  EXPECT_NEAR(mean.p()[4] * mean.q()[10], 1.0 / 7.0, 1e-15);
  const auto m = mean.among_virtual().values<double>();
  EXPECT_NEAR(m[0], 1.0, 1e-15);
  EXPECT_EQ(m[1], 0.0);  // of no nodes
  EXPECT_NEAR(m[2], 1.0, 1e-15);
}

TEST(LowRank, SomeGraphsKeepTheirFactors) {
  const LowRankOperator some = select_graphs(two_graphs(), std::vector<std::int64_t>{1, 0, 1});
  EXPECT_THAT(some.graph_ptr(), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(some.p(), ElementsAre(3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0));
  EXPECT_THROW(select_graphs(two_graphs(), std::vector<std::int64_t>{2}), std::out_of_range);
}

TEST(LowRank, RefusesFactorsThatDoNotFit) {
  const std::vector<double> two = {1.0, 2.0};
  EXPECT_THAT(
      [&] {
        LowRankOperator(GsoKind::kCustom, 2, two, two, {0, 2});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("of 2 nodes and rank 2, got 2 and")));
  EXPECT_THAT(
      [&] {
        LowRankOperator(GsoKind::kCustom, 0, {}, {}, {0, 2});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("a rank of at least 1, got 0")));
  const std::vector<double> none = {1.0, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(
      [&] {
        LowRankOperator(GsoKind::kCustom, 1, two, none, {0, 2});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("finite")));
  EXPECT_THAT([&] { (void)two_graphs().with_factors(two); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("expected 12 numbers, got 2")));
}

TEST(LowRank, AGroupOfChannelsMayHaveIt) {
  const Graph graph = make_grid(3, 4);
  const Operators both =
      make_operators(graph, gso_groups_from_text("virtual_node:3,sym_normalized"));
  EXPECT_TRUE(both.has_low_rank() && both.is_low_rank(0) && !both.is_low_rank(1));
  EXPECT_EQ(both.kind(0), GsoKind::kVirtualNode);
  EXPECT_EQ(both.kind(1), GsoKind::kSymNormalized);
  EXPECT_EQ(both.num_nodes(), 12);
  EXPECT_EQ(both.num_nonzeros(), 46 + 2 * 12);
  EXPECT_THAT(both.channel_begins(8), ElementsAre(0, 6, 8));
  EXPECT_THAT([&] { both.of_group(0); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("virtual_node, which has low rank")));
  EXPECT_EQ(both.alone(0).num_nodes(), 12);
  EXPECT_THAT([&] { both.alone(0).only(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got one of low rank")));
  // Hops are counted along edges.
  EXPECT_EQ(united(both).num_nonzeros(), 46);
  const Operators batch = make_operators(make_batch(std::vector{graph, make_ring(5)}),
                                         gso_groups_from_text("virtual_node,identity"));
  EXPECT_EQ(select_graphs(batch, std::vector<std::int64_t>{1}).low_rank(0).num_nodes(), 5);
}

TEST(LowRank, DoesNotStandAlone) {
  EXPECT_THAT([] { gso_groups_from_text("virtual_node"); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("an operator of the graph beside 'virtual_node'")));
  EXPECT_EQ(to_string(gso_groups_from_text("identity,virtual_node:2")), "identity,virtual_node:2");
  EXPECT_THAT([] { gso_groups_from_text("adaptive,identity,adaptive"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("adaptive once")));
  EXPECT_THAT([] { make_gso(make_ring(3), {.kind = GsoKind::kVirtualNode}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("low rank")));
  EXPECT_FALSE(table_of(GsoKind{}).find("virtual_node"));
}

}  // namespace
}  // namespace mpssm::graph
