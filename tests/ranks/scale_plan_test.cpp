// SPDX-License-Identifier: MIT
#include "mpssm/ranks/scale_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

namespace mpssm::ranks {
namespace {

ScaleQuery some_query() {
  ScaleQuery query;
  query.nodes = 1e6;
  query.edges = 5e6;
  query.channels = 64;
  query.hops = 4;
  query.blocks = 2;
  query.ranks = 4;
  return query;
}

const WayCost& of(const std::vector<WayCost>& ways, Way way) {
  return *std::find_if(ways.begin(), ways.end(), [&](const WayCost& c) { return c.way == way; });
}

TEST(ScalePlan, CountsWhatTheWaysSend) {
  ScaleQuery query = some_query();
  query.halo = 1000;
  const auto ways = scale_plan(query, builtin_scale_costs());
  const double gradient = num_weights(query) * 4 * 3 / 4;
  // Tests of the ways themselves compare the bytes that they send with these.
  EXPECT_NEAR(of(ways, Way::kNodes).bytes_sent, 2 * 2 * 4 * 1000 * 64 * 4 + 2 * gradient, 1.0);
  EXPECT_NEAR(of(ways, Way::kChannels).bytes_sent,
              4 * 2 * 1e6 * 64 * 4 * 3 / 16 + 1e6 / 4 * 4 * 3 + 5 * gradient, 1.0);
  query.hops = 400;
  const auto deeper = scale_plan(query, builtin_scale_costs());
  EXPECT_EQ(of(deeper, Way::kChannels).bytes_sent, of(ways, Way::kChannels).bytes_sent);
  EXPECT_GT(of(deeper, Way::kNodes).bytes_sent, 50 * of(ways, Way::kNodes).bytes_sent);
}

TEST(ScalePlan, CountsTheLossOnEveryRankThatSharesChannelsAndWholeLinesOfTheCache) {
  ScaleQuery query = some_query();
  const auto compute = [&](Way way, const ScaleCosts& costs) {
    return of(scale_plan(query, costs), way).compute_seconds;
  };
  const ScaleCosts loss{.output = 2.0};
  EXPECT_DOUBLE_EQ(compute(Way::kChannels, loss), compute(Way::kAlone, loss));
  EXPECT_DOUBLE_EQ(compute(Way::kNodes, loss), compute(Way::kAlone, loss) / 4);
  const ScaleCosts slices{.gather_slices = 1.0};
  EXPECT_DOUBLE_EQ(compute(Way::kChannels, slices), compute(Way::kAlone, slices) / 4);
  query.channels = 16;  // four of them on each rank read as much as sixteen
  EXPECT_DOUBLE_EQ(compute(Way::kChannels, slices), compute(Way::kAlone, slices));
}

TEST(ScalePlan, NeighboursNextToEachOtherAreReadAtThePriceOfAGrid) {
  ScaleQuery query = some_query();
  const ScaleCosts costs{
      .gather_slices = 3.0, .gather_slices_grid = 1.0, .gather_rows = 5.0, .gather_rows_grid = 1.0};
  const auto compute = [&](Way way) { return of(scale_plan(query, costs), way).compute_seconds; };
  const double slices = compute(Way::kAlone);
  const double rows = compute(Way::kNodes);
  query.grid_like = grid_likeness(2, 3);
  EXPECT_DOUBLE_EQ(compute(Way::kAlone), slices / 3);
  EXPECT_DOUBLE_EQ(compute(Way::kNodes), rows / 5);
  EXPECT_EQ(grid_likeness(0, 10), 0.0);
  EXPECT_EQ(grid_likeness(9, 10), 1.0);
  // Of four channels of a rank, half a line is the next neighbour's there.
  query.channels = 16;
  EXPECT_DOUBLE_EQ(compute(Way::kChannels), compute(Way::kAlone) / 2);
}

TEST(ScalePlan, RanksOfOneMachineSlowEachOther) {
  const ScaleQuery query = some_query();
  ScaleCosts costs{.gather_rows = 1.0, .number = 1.0};
  const auto compute = [&](Way way) { return of(scale_plan(query, costs), way).compute_seconds; };
  const double alone = compute(Way::kAlone);
  const double nodes = compute(Way::kNodes);
  costs.sharing = 1.25;
  EXPECT_DOUBLE_EQ(compute(Way::kAlone), alone);
  EXPECT_DOUBLE_EQ(compute(Way::kNodes), 1.25 * nodes);
}

TEST(ScalePlan, RingsAreSentOnceAndComputedAgain) {
  ScaleQuery query = some_query();
  query.halo = 1000;
  const ScaleCosts rows{.gather_rows = 1.0};
  const WayCost by_hop = of(scale_plan(query, rows), Way::kNodes);
  query.ring_halo = 2500;
  const WayCost by_rings = of(scale_plan(query, rows), Way::kNodes);
  EXPECT_NEAR(by_hop.bytes_sent - by_rings.bytes_sent, 2 * 2 * (4 * 1000 - 2500) * 64 * 4, 1.0);
  EXPECT_EQ(by_hop.exchanges - by_rings.exchanges, 2 * 2 * 3);
  EXPECT_NEAR(by_rings.compute_seconds / by_hop.compute_seconds, 1 + 0.75 * 2500 / 250000, 1e-9);
  EXPECT_THAT(by_rings.because, ::testing::HasSubstr("once for the 4 hops"));
  query.halo = query.ring_halo = -1;  // by chance: a few hops reach everybody
  query.hops = 8;
  EXPECT_EQ(counted_ring_halo(query), 750000);
  query.cut = 0.02;  // where these edges are is not known
  EXPECT_LT(counted_ring_halo(query), 0.0);
}

TEST(ScalePlan, ChoosesByWhatIsCutAndWhatFits) {
  ScaleQuery query = some_query();
  query.bits_per_second = 1e9;
  const auto best = [&] { return winner(scale_plan(query, builtin_scale_costs()))->way; };
  query.cut = 0.01;
  EXPECT_EQ(best(), Way::kNodes);
  query.cut = -1;  // by chance: nearly all nodes are read
  query.hops = 64;
  EXPECT_EQ(best(), Way::kChannels);
  query.memory_gib = 1.2;  // the whole graph does not fit
  const auto ways = scale_plan(query, builtin_scale_costs());
  EXPECT_THAT(of(ways, Way::kChannels).why_not, ::testing::HasSubstr("GiB"));
  query.memory_gib = 0;
  query.dense = true;
  EXPECT_EQ(of(scale_plan(query, builtin_scale_costs()), Way::kChannels).why_not,
            "a dense W mixes the channels of all ranks");
  query.graphs = 8;
  EXPECT_EQ(best(), Way::kBatches);
  query.memory_gib = 1e-3;
  EXPECT_EQ(winner(scale_plan(query, builtin_scale_costs())), nullptr);
}

TEST(ScalePlan, OneRankSendsNothing) {
  ScaleQuery query = some_query();
  query.ranks = 1;
  for (const WayCost& way : scale_plan(query, builtin_scale_costs())) {
    EXPECT_EQ(way.bytes_sent, 0.0);
    EXPECT_EQ(way.network_seconds, 0.0);
  }
}

TEST(ScalePlan, PricesAreReadBackAndSpeedsUnderstood) {
  const ScaleCosts costs = builtin_scale_costs();
  EXPECT_EQ(to_text(scale_costs_from_text(to_text(costs), "here")), to_text(costs));
  EXPECT_THROW(scale_costs_from_text("gather_rows=1\n", "here"), base::Error);
  EXPECT_EQ(bits_from_text("25Gbit"), 25e9);
  EXPECT_EQ(bits_from_text("100Mbit"), 1e8);
  EXPECT_THROW(bits_from_text("fast"), base::Error);
  EXPECT_THROW(bits_from_text("-1Gbit"), base::Error);
}

}  // namespace
}  // namespace mpssm::ranks
