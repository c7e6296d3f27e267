// SPDX-License-Identifier: MIT
#include "mpssm/graph/operators.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
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

Operators three_on(const Graph& graph) {
  return Operators({{make_gso(graph), 2},
                    {make_gso(graph, {.kind = GsoKind::kRandomWalk})},
                    {make_gso(graph, {.kind = GsoKind::kIdentity})}});
}

TEST(Operators, OneIsTheOperatorOfAllChannels) {
  const Gso gso = make_gso(make_grid(3, 4));
  const Operators operators = gso;
  EXPECT_TRUE(operators.is_single());
  EXPECT_EQ(operators.num_groups(), 1);
  EXPECT_EQ(operators.only().col().data(), gso.col().data());
  EXPECT_EQ(operators.num_nonzeros(), gso.num_nonzeros());
  EXPECT_THAT(operators.channel_begins(7), ElementsAre(0, 7));
  EXPECT_TRUE(Operators({{gso, 5}}).is_single());
  EXPECT_EQ(Operators().num_nodes(), 0);
  // Borrowed rows of a graph in parts do not say which graph they are of.
  GsoArrays rows = gso.arrays();
  rows.graph_ptr = {};
  EXPECT_EQ(Operators(Gso::borrow(rows)).num_nodes(), 12);
}

TEST(Operators, DealChannelsInPairsByShares) {
  const Operators operators = three_on(make_grid(3, 4));
  EXPECT_EQ(operators.num_groups(), 3);
  EXPECT_EQ(operators.of_group(2).kind(), GsoKind::kIdentity);
  EXPECT_EQ(operators.num_nodes(), 12);
  EXPECT_EQ(operators.num_nonzeros(), 46 + 46 + 12);
  EXPECT_THAT(operators.channel_begins(64), ElementsAre(0, 32, 48, 64));
  EXPECT_THAT(operators.channel_begins(10), ElementsAre(0, 6, 8, 10));
  EXPECT_THAT(operators.channel_begins(7), ElementsAre(0, 2, 4, 7));
  EXPECT_THAT([&] { operators.channel_begins(4); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("3 groups, got 4 channels")));
}

TEST(Operators, OfASequenceAreTakenStepByStep) {
  const std::vector<Operators> operators = {make_gso(make_grid(3, 4)),
                                            make_gso(make_ring(12), {.kind = GsoKind::kAdjacency})};
  const Operators both = Operators::sequence(operators, {0, 0, 1, 1, 0, 1}, 3);
  EXPECT_TRUE(both.is_sequence());
  EXPECT_FALSE(both.is_single());
  EXPECT_EQ(both.num_steps(), 3);
  EXPECT_EQ(both.num_copies(), 2);
  EXPECT_EQ(both.at(0, 2).kind(), GsoKind::kAdjacency);
  EXPECT_EQ(both.at(1, 1).kind(), GsoKind::kSymNormalized);
  EXPECT_EQ(both.largest().num_nonzeros(), 46);
  const Operators later = both.steps(1, 3);
  EXPECT_EQ(later.num_steps(), 2);
  EXPECT_EQ(later.at(0, 1).kind(), GsoKind::kAdjacency);
  EXPECT_EQ(later.at(1, 0).kind(), GsoKind::kSymNormalized);
  EXPECT_THAT([&] { both.only(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got a sequence of graphs")));
  EXPECT_THAT([&] { both.of_group(0); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got a sequence of graphs")));
  EXPECT_THAT([&] { both.steps(2, 4); },
              ThrowsMessage<std::out_of_range>(HasSubstr("some of 3 steps, got [2, 4)")));
  EXPECT_THAT(
      [&] {
        Operators::sequence(operators, {0, 2}, 2);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("an index below 2, got 2")));
  EXPECT_THAT(
      [&] {
        Operators::sequence(operators, {0, 1, 0}, 2);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("2 steps, got an index of 3")));
  EXPECT_THAT(
      [] {
        Operators::sequence({make_gso(make_ring(4)), make_gso(make_ring(5))}, {0}, 1);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("got 5 nodes beside 4")));
}

TEST(Operators, OfASequenceMayBeInGroups) {
  const Operators grid = three_on(make_grid(3, 4));
  const Operators ring = three_on(make_ring(12));
  const Operators both = Operators::sequence({ring, grid}, {0, 1, 1, 0}, 2);
  EXPECT_EQ(both.num_groups(), 3);
  EXPECT_THAT(both.channel_begins(64), ElementsAre(0, 32, 48, 64));
  EXPECT_EQ(both.num_nonzeros(), grid.num_nonzeros());
  EXPECT_EQ(both.largest().of_group(1).col().data(), grid.of_group(1).col().data());
  EXPECT_EQ(both.at(0, 0, 1).col().data(), ring.of_group(1).col().data());
  EXPECT_EQ(both.at(0, 1, 2).col().data(), grid.of_group(2).col().data());
  const Operators second = both.steps(1, 2).alone(1);
  EXPECT_TRUE(second.is_sequence());
  EXPECT_EQ(second.num_groups(), 1);
  EXPECT_EQ(second.at(1, 0).col().data(), ring.of_group(1).col().data());
  EXPECT_TRUE(grid.alone(1).is_single());
  EXPECT_THAT([&] { both.of_group(0); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got a sequence of graphs")));
  EXPECT_THAT(
      [&] {
        Operators::sequence({grid, make_gso(make_grid(3, 4))}, {0, 1}, 2);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("the same groups of channels")));
  EXPECT_THAT(
      [&] {
        Operators::sequence({both}, {0, 0}, 2);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("got a sequence")));
}

TEST(Operators, AreRefusedWhereTheyDoNotFitTogether) {
  const Gso gso = make_gso(make_grid(3, 4));
  EXPECT_THAT([] { Operators(std::vector<OperatorGroup>{}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("at least one group")));
  EXPECT_THAT(
      [&] {
        Operators({{gso}, {make_gso(make_ring(5))}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("same nodes")));
  EXPECT_THAT(
      [&] {
        Operators({{gso, 1}, {gso, 0}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("shares of at least 1")));
  EXPECT_THAT([&] { three_on(make_ring(5)).only(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("one operator")));
}

TEST(Operators, OfSomeGraphsAreThoseOfEachGroup) {
  const Graph batch = make_batch(std::vector<Graph>{make_ring(5), make_grid(2, 3), make_path(4)});
  const Operators some = select_graphs(three_on(batch), std::vector<std::int64_t>{2, 0});
  EXPECT_EQ(some.num_nodes(), 9);
  EXPECT_EQ(some.num_graphs(), 2);
  EXPECT_EQ(some.share(0), 2);
  const Gso alone = make_gso(make_path(4), {.kind = GsoKind::kRandomWalk});
  for (std::int64_t e = 0; e < alone.num_nonzeros(); ++e) {
    EXPECT_EQ(some.of_group(1).values<double>()[e], alone.values<double>()[e]);
  }
}

TEST(GsoGroups, AreReadAsTheyAreWritten) {
  for (const char* text : {"sym_normalized", "random_walk:2,identity", "adjacency,transpose:3"}) {
    EXPECT_EQ(to_string(gso_groups_from_text(text)), text);
  }
  EXPECT_EQ(gso_groups_from_text("random_walk"), GsoGroups(GsoKind::kRandomWalk));
  EXPECT_EQ(to_string(gso_groups_from_text("adjacency:1, transpose")), "adjacency,transpose");
  EXPECT_TRUE(gso_groups_from_text("identity:7").shares().empty());
  EXPECT_THAT(gso_groups_from_text("identity:7,adjacency").shares(), ElementsAre(7, 1));
  for (const char* text : {"", "gcn", "custom", "adjacency,", "adjacency:", "adjacency:0",
                           "adjacency:-1", "adjacency:2x", "adjacency:2:3", "adjacency:99999999"}) {
    EXPECT_THROW(gso_groups_from_text(text), std::invalid_argument) << text;
  }
}

TEST(GsoGroups, NameSomeOfTheEdges) {
  for (const char* text : {"sym_normalized(bond)", "adjacency,random_walk(bond=double, aromatic):2",
                           "adjacency(a=b=c:1),transpose(a)"}) {
    EXPECT_EQ(to_string(gso_groups_from_text(text)), text);
  }
  const GsoGroups groups = gso_groups_from_text("identity,adjacency(kind=a:b=c):3");
  EXPECT_EQ(groups.groups[1].column, "kind");
  EXPECT_EQ(groups.groups[1].value, "a:b=c");
  EXPECT_EQ(groups.groups[1].share, 3);
  EXPECT_TRUE(groups.is_of_edges());
  EXPECT_FALSE(gso_groups_from_text("identity").is_of_edges());
  EXPECT_NE(gso_groups_from_text("adjacency(a)"), GsoGroups(GsoKind::kAdjacency));
  for (const char* text : {"adjacency(", "adjacency()", "adjacency(=1)", "adjacency(a=)",
                           "adjacency(a)b", "adjacency(a)2", "adjacency((a)", "adjacency(a):0",
                           "identity(a)", "adjacency,virtual_node(a)", "adjacency(a\"b)"}) {
    EXPECT_THROW(gso_groups_from_text(text), std::invalid_argument) << text;
  }
  EXPECT_THROW(make_operators(make_path(3), groups), std::invalid_argument);
}

Graph one_way() {
  EdgeList edges;
  edges.num_nodes = 4;
  edges.src = {0, 0, 1, 2};
  edges.dst = {1, 2, 2, 3};
  edges.weight = {1.0, 3.0, 2.0, 5.0};
  return Graph::from_edges(edges, Direction::kDirected);
}

TEST(GsoGroups, ReversedKindsAreThoseOfTheReversedGraph) {
  EdgeList edges;
  edges.num_nodes = 4;
  edges.src = {1, 2, 2, 3};
  edges.dst = {0, 0, 1, 2};
  edges.weight = {1.0, 3.0, 2.0, 5.0};
  const Graph reversed = Graph::from_edges(edges, Direction::kDirected);
  const std::pair<GsoKind, GsoKind> kinds[] = {
      {GsoKind::kTranspose, GsoKind::kAdjacency},
      {GsoKind::kRandomWalkReversed, GsoKind::kRandomWalk}};
  for (const auto& [there, here] : kinds) {
    const Gso got = make_gso(one_way(), {.kind = there});
    const Gso expected = make_gso(reversed, {.kind = here});
    EXPECT_TRUE(std::ranges::equal(got.row_ptr(), expected.row_ptr()));
    EXPECT_TRUE(std::ranges::equal(got.col(), expected.col()));
    EXPECT_TRUE(std::ranges::equal(got.values<double>(), expected.values<double>()));
  }
}

TEST(GsoGroups, UnitedIsWhoHearsWhom) {
  const Operators both = make_operators(one_way(), gso_groups_from_text("adjacency,transpose"));
  const Gso all = united(both);
  EXPECT_EQ(all.num_nonzeros(), 8);
  EXPECT_TRUE(all.is_symmetric());
  EXPECT_EQ(united(make_gso(one_way())).num_nonzeros(), 8);  // with loops, as it is
}

}  // namespace
}  // namespace mpssm::graph
