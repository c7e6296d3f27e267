// SPDX-License-Identifier: MIT
#include "mpssm/engine/plan.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/engine/plan_calibration.h"
#include "mpssm/engine/plan_costs.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/order.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

graph::Gso large() { return graph::make_gso(graph::make_random_connected(5000, 9000, 1)); }
graph::Gso small() { return graph::make_gso(graph::make_random_connected(100, 1529, 1)); }

TEST(Planner, PicksDoublingForDeepStaticDense) {
  EXPECT_EQ(choose_plan(large(), {.num_steps = 17, .channels = 256}), Plan::kDoubling);
}

TEST(Planner, PicksTheLoopWhereDoublingSavesNoProduct) {
  for (const std::int64_t steps : {1, 2, 3}) {
    EXPECT_EQ(choose_plan(large(), {.num_steps = steps, .channels = 64}), Plan::kStepwise);
  }
}

TEST(Planner, TakesTheLoopForASequenceOnlyBecauseOfConstantInputItWouldKeepAllStates) {
  // Slices made dear: the loop would be faster.
  PlanCosts costs = builtin_plan_costs();
  costs[WorkKind::kSliceEntry] = 1e6;
  PlanQuery query{.num_steps = 100, .channels = 64, .diagonal = true, .costs = &costs};
  EXPECT_EQ(choose_plan(large(), query), Plan::kDiagonal);
  query.temporal = true;
  EXPECT_EQ(choose_plan(large(), query), Plan::kStepwise);
}

TEST(Planner, PicksStepwiseForDenseSequencesAndForGivenEntriesWithDenseW) {
  EXPECT_EQ(choose_plan(large(), {.num_steps = 12, .channels = 64, .temporal = true}),
            Plan::kStepwise);
  EXPECT_EQ(choose_plan(large(), {.num_steps = 12, .channels = 64, .outputs = Outputs::kAll}),
            Plan::kStepwise);
  EXPECT_EQ(choose_plan(large(), {.num_steps = 12, .channels = 64, .gso_values = true}),
            Plan::kStepwise);
}

TEST(Planner, TakesASequenceOfGraphsStepByStepOrInSlices) {
  for (const auto& gso : {large(), small()}) {
    PlanQuery query{.num_steps = 12, .channels = 64, .temporal = true, .sequence = true};
    EXPECT_EQ(choose_plan(gso, query), Plan::kStepwise);
    query.temporal = false;
    EXPECT_THAT(why_not(Plan::kDoubling, gso, query), HasSubstr("A changes from step to step"));
    query.temporal = query.diagonal = true;
    EXPECT_EQ(why_not(choose_plan(gso, query), gso, query), "");
    EXPECT_THAT(why_not(Plan::kSpectral, gso, query), HasSubstr("A changes from step to step"));
  }
}

TEST(Planner, PicksDiagonalForGivenEntriesAndNeverADecompositionOfThem) {
  for (const auto& gso : {large(), small()}) {
    PlanQuery query{.num_steps = 5001, .channels = 64, .diagonal = true, .gso_values = true};
    EXPECT_EQ(choose_plan(gso, query), Plan::kDiagonal);
    query.training = true;
    EXPECT_EQ(choose_plan(gso, query), Plan::kDiagonal);
    EXPECT_LT(plan_memory(Plan::kDiagonal, gso, query),
              plan_memory(Plan::kStepwise, gso, query) / 10);
    EXPECT_THAT(why_not(Plan::kSpectral, gso, query),
                HasSubstr("only plans stepwise and diagonal"));
  }
}

TEST(Planner, PicksDiagonalOnLargeGraphsAndSpectralForManyHopsOnSmallOnes) {
  EXPECT_EQ(choose_plan(large(), {.num_steps = 5001, .channels = 32, .diagonal = true}),
            Plan::kDiagonal);
  EXPECT_EQ(choose_plan(small(), {.num_steps = 5001, .channels = 32, .diagonal = true}),
            Plan::kSpectral);
  EXPECT_EQ(choose_plan(small(), {.num_steps = 3, .channels = 32, .diagonal = true}),
            Plan::kDiagonal);
}

TEST(Planner, DecomposesAnOperatorForOneCallOnlyWhereThatCallPaysForIt) {
  // 16 hops on 100 nodes: some tens of microseconds, a decomposition takes milliseconds.
  PlanQuery query{.num_steps = 17, .channels = 32, .diagonal = true};
  EXPECT_EQ(choose_plan(small(), query), Plan::kDiagonal);
  query.operator_calls = 1000;
  EXPECT_EQ(choose_plan(small(), query), Plan::kSpectral);
}

TEST(Planner, PicksTheFasterOfDiagonalAndSpectralOnSmallGraphs) {
  // As measured on one thread, milliseconds of the diagonal and of the spectral plan.
  struct Measured {
    std::int64_t nodes, edges, batch, channels, steps;
    double diagonal, spectral;
  };
  for (const Measured& m : std::initializer_list<Measured>{
           {20, 40, 1, 32, 5, 0.004, 0.013},     {20, 40, 1, 32, 9, 0.006, 0.013},
           {20, 40, 1, 32, 17, 0.008, 0.013},    {20, 40, 1, 32, 65, 0.025, 0.013},
           {100, 200, 1, 32, 5, 0.010, 0.051},   {100, 200, 1, 32, 9, 0.013, 0.036},
           {100, 200, 1, 32, 17, 0.024, 0.036},  {100, 200, 1, 32, 65, 0.101, 0.052},
           {100, 500, 1, 32, 5, 0.015, 0.051},   {100, 500, 1, 32, 9, 0.027, 0.037},
           {100, 500, 1, 32, 33, 0.073, 0.037},  {100, 500, 1, 32, 65, 0.144, 0.038},
           {100, 1529, 1, 32, 5, 0.023, 0.035},  {100, 1529, 1, 32, 17, 0.086, 0.037},
           {100, 1529, 1, 32, 33, 0.170, 0.037}, {100, 1529, 1, 32, 65, 0.338, 0.038},
           {200, 600, 1, 32, 5, 0.020, 0.149},   {200, 600, 1, 32, 9, 0.029, 0.119},
           {200, 600, 1, 32, 17, 0.071, 0.145},  {200, 600, 1, 32, 65, 0.301, 0.163},
           {200, 3000, 1, 32, 5, 0.045, 0.116},  {200, 3000, 1, 32, 9, 0.086, 0.117},
           {200, 3000, 1, 32, 17, 0.170, 0.119}, {200, 3000, 1, 32, 33, 0.338, 0.120},
           {200, 3000, 1, 32, 65, 0.674, 0.121},
       }) {
    const auto gso = graph::make_gso(graph::make_random_connected(m.nodes, m.edges, 1));
    const PlanQuery query{.batch = m.batch,
                          .num_steps = m.steps,
                          .channels = m.channels,
                          .diagonal = true,
                          .operator_calls = 100000};
    EXPECT_EQ(choose_plan(gso, query), m.spectral < m.diagonal ? Plan::kSpectral : Plan::kDiagonal)
        << m.nodes << " nodes, " << m.edges << " edges, batch " << m.batch << ", " << m.channels
        << " channels, " << m.steps << " steps";
  }
}

TEST(Planner, GoesByThePricesItIsGiven) {
  PlanQuery query{
      .num_steps = 11, .channels = 32, .diagonal = true, .operator_calls = 1'000'000'000};
  PlanCosts costs = builtin_plan_costs();
  query.costs = &costs;
  costs[WorkKind::kSliceEntry] = 1e6;
  EXPECT_EQ(choose_plan(small(), query), Plan::kSpectral);
  costs = builtin_plan_costs();
  costs[WorkKind::kBasisEntry] = 1e6;
  EXPECT_EQ(choose_plan(small(), query), Plan::kDiagonal);
  query.costs = nullptr;
  const double cost = plan_cost(Plan::kDiagonal, small(), query);
  costs = builtin_plan_costs();
  for (double& price : costs.of) price *= 3.0;
  query.costs = &costs;
  EXPECT_NEAR(plan_cost(Plan::kDiagonal, small(), query), 3.0 * cost, 1e-9 * cost);
}

TEST(Planner, PlansAlikeForAnyNumberOfThreads) {
  for (const bool diagonal : {false, true}) {
    PlanQuery query{.num_steps = 11, .channels = 32, .diagonal = diagonal, .operator_calls = 100};
    for (const Plan plan : {Plan::kStepwise, diagonal ? Plan::kDiagonal : Plan::kDoubling}) {
      query.workers = 1;
      const double one = plan_cost(plan, small(), query);
      query.workers = 64;
      EXPECT_EQ(plan_cost(plan, small(), query), one);
    }
  }
}

TEST(Planner, ChargesTheSameForAGroupOfLowRankInEveryPlan) {
  const auto of_rank = [](std::int64_t rank) {
    const std::vector<double> factor(static_cast<std::size_t>(500 * rank), 0.01);
    return graph::Operators({{.gso = {},
                              .low_rank = graph::LowRankOperator(graph::GsoKind::kCustom, rank,
                                                                 factor, factor, {0, 500})}});
  };
  PlanQuery query{.num_steps = 17, .channels = 64, .diagonal = true};
  const double price = plan_cost(Plan::kDiagonal, of_rank(1), query);
  EXPECT_GT(price, 0.0);
  EXPECT_EQ(plan_cost(Plan::kSpectral, of_rank(1), query), price);
  EXPECT_EQ(plan_cost(Plan::kStepwise, of_rank(1), query), price);
  EXPECT_GT(plan_cost(Plan::kDiagonal, of_rank(10), query), 4.0 * price);
  query.training = true;
  EXPECT_NEAR(plan_cost(Plan::kDiagonal, of_rank(1), query), 2.0 * price, 0.3 * price);
  query.batch = 4'000;  // no cache holds it
  EXPECT_GT(plan_cost(Plan::kDiagonal, of_rank(1), query), 2.0 * 4'000 * price);
}

TEST(PlanWork, GrowsWithEverythingThatIsMore) {
  const auto more = [](const PlanQuery& less, const PlanQuery& query, Plan plan) {
    EXPECT_GT(plan_cost(plan, small(), query), plan_cost(plan, small(), less)) << to_string(plan);
  };
  for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral}) {
    const PlanQuery base{
        .num_steps = 17, .channels = 32, .diagonal = plan != Plan::kDoubling, .has_basis = true};
    PlanQuery query = base;
    query.channels = 64;
    more(base, query, plan);
    query = base;
    query.num_steps = 65;
    more(base, query, plan);
    query = base;
    query.batch = 4;
    more(base, query, plan);
    query = base;
    query.training = true;
    more(base, query, plan);
    if (plan == Plan::kDoubling) continue;
    query = base;
    query.temporal = true;
    query.outputs = Outputs::kAll;
    if (plan == Plan::kStepwise) continue;  // its states pass through memory anyway
    more(base, query, plan);
  }
}

TEST(PlanCosts, TextGoesBothWays) {
  PlanCosts costs = builtin_plan_costs();
  EXPECT_EQ(plan_costs_from_text(to_text(costs)), costs);
  costs[WorkKind::kCall] = 1234.5;
  costs[WorkKind::kNumber] = 0.0;
  costs[WorkKind::kSeries] = 1.0 / 3.0;
  EXPECT_EQ(plan_costs_from_text(to_text(costs)), costs);
}

TEST(PlanCosts, RefusesWhatIsNoListOfPrices) {
  const std::string good = to_text(builtin_plan_costs());
  const auto replaced = [&](const std::string& by) { return by + good.substr(good.find(' ')); };
  for (const std::string& bad :
       {std::string(), std::string("cheap"), std::string("call=1"), good + " more=1",
        replaced("call=-1"), replaced("call=nan"), replaced("call=inf"), replaced("call="),
        replaced("call=1x"), replaced("task=1"), replaced(" call=1")}) {
    EXPECT_THAT([&] { plan_costs_from_text(bad); },
                ThrowsMessage<base::Error>(HasSubstr("not a list of prices")))
        << bad;
  }
}

TEST(Calibration, FindsPricesThatTellShortFromLong) {
  const PlanCosts costs = calibrate_plan_costs();
  for (const double price : costs.of) {
    EXPECT_TRUE(std::isfinite(price));
    EXPECT_GE(price, 0.0);
  }
  // 64 times the hops: whatever else the machine does meanwhile, the order is clear.
  for (const Plan plan : {Plan::kStepwise, Plan::kDiagonal}) {
    PlanQuery query{.num_steps = 9, .channels = 64, .diagonal = true, .costs = &costs};
    const double few = plan_cost(plan, large(), query);
    query.num_steps = 513;
    EXPECT_GT(plan_cost(plan, large(), query), 8.0 * few);
  }
}

TEST(Planner, DoesNotDependOnWhatWasCalledBefore) {
  const graph::Gso gso = small();
  const PlanQuery query{.num_steps = 17, .channels = 32, .diagonal = true};
  const Plan before = choose_plan(gso, query);
  graph::eigen_basis(gso);
  EXPECT_EQ(choose_plan(gso, query), before);
}

TEST(Planner, TakesABasisThatIsThereForNothing) {
  const graph::Gso gso = small();
  PlanQuery query{.num_steps = 17, .channels = 32, .diagonal = true};
  query.operator_calls = std::int64_t{1}
                         << 40;  // what a decomposition costs is then shared by many
  const double shared = plan_cost(Plan::kSpectral, gso, query);
  query.operator_calls = 1;
  EXPECT_GT(plan_cost(Plan::kSpectral, gso, query), 1.01 * shared);
  query.has_basis = true;
  EXPECT_NEAR(plan_cost(Plan::kSpectral, gso, query), shared, 1e-6 * shared);
}

TEST(Planner, NeverPicksAPlanThatCannotRun) {
  const auto directed = graph::make_gso(graph::Graph::from_edges(
      {.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}}, graph::Direction::kDirected));
  for (const auto& gso : {large(), small(), directed, graph::Gso()}) {
    for (const bool temporal : {false, true}) {
      for (const bool diagonal : {false, true}) {
        for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
          for (const bool values : {false, true}) {
            for (const std::int64_t steps : {1, 2, 17, 100000}) {
              const PlanQuery query{.num_steps = steps,
                                    .channels = 32,
                                    .temporal = temporal,
                                    .diagonal = diagonal,
                                    .outputs = outputs,
                                    .gso_values = values};
              EXPECT_EQ(why_not(choose_plan(gso, query), gso, query), "");
            }
          }
        }
      }
    }
  }
}

TEST(Planner, ExplainsItself) {
  const std::string text =
      explain_plan(large(), {.num_steps = 17, .channels = 64, .diagonal = true});
  EXPECT_THAT(text, HasSubstr("* diagonal"));
  EXPECT_THAT(text, HasSubstr("doubling  no: W is diagonal"));
  EXPECT_THAT(text, HasSubstr("spectral  no: a graph has 5000 nodes"));
}

TEST(Planner, MemoryOfTrainingGrowsWithStepsOnlyWhereItMust) {
  const auto memory = [](Plan plan, std::int64_t hops, bool diagonal) {
    return static_cast<double>(plan_memory(
        plan, large(),
        {.num_steps = hops + 1, .channels = 256, .diagonal = diagonal, .training = true}));
  };
  EXPECT_EQ(memory(Plan::kDiagonal, 1024, true), memory(Plan::kDiagonal, 16, true));
  EXPECT_LE(memory(Plan::kDoubling, 1024, false), 3 * memory(Plan::kDoubling, 16, false));
  EXPECT_GE(memory(Plan::kStepwise, 1024, false), 30 * memory(Plan::kStepwise, 16, false));
}

TEST(Planner, MemoryCountsTheOrderOfALargeOperator) {
  const auto beyond_states = [](std::int64_t nodes) {
    const graph::Gso gso = graph::make_gso(graph::make_ring(nodes));
    const PlanQuery query = {.num_steps = 17, .channels = 64};
    return plan_memory(Plan::kDoubling, gso, query) - 3 * nodes * 64 * 4;
  };
  EXPECT_EQ(beyond_states(graph::kLeastOrderedNodes - 1), 0);
  // Order and inverse, row pointers, and three entries a node of column and value.
  EXPECT_EQ(beyond_states(graph::kLeastOrderedNodes),
            graph::kLeastOrderedNodes * (4 + 4 + 8 + 3 * (4 + 4)));
}

TEST(Planner, NamesGoBothWays) {
  for (const Plan plan : {Plan::kAuto, Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal,
                          Plan::kSpectral, Plan::kReference}) {
    EXPECT_EQ(plan_from_name(to_string(plan)), plan);
  }
  EXPECT_THAT([] { plan_from_name("fast"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("got 'fast'")));
}

TEST(Plan, KnowsWhatBf16Saves) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(500, 900, 5));
  for (const bool diagonal : {false, true}) {
    const Plan plan = diagonal ? Plan::kDiagonal : Plan::kDoubling;
    PlanQuery query{.num_steps = 17, .channels = 64, .diagonal = diagonal, .training = true};
    const double cost = plan_cost(plan, gso, query);
    const std::int64_t memory = plan_memory(plan, gso, query);
    query.precision = Precision::kBf16;
    EXPECT_LT(plan_cost(plan, gso, query), cost);
    EXPECT_LE(plan_memory(plan, gso, query), memory);
    // A series with a diagonal W is float32 either way.
    if (!diagonal) continue;
    query.temporal = true;
    const double series = plan_cost(plan, gso, query);
    query.precision = Precision::kFloat32;
    EXPECT_EQ(plan_cost(plan, gso, query), series);
  }
}

}  // namespace
}  // namespace mpssm::engine
