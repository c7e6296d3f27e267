// SPDX-License-Identifier: MIT
#include "mpssm/study/ranks.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::study {
namespace {

TEST(Ranks, EqualsShareTheBetterPlaceAndOutOfMemoryComesLast) {
  const double none = std::nan("");
  const double memory = std::numeric_limits<double>::infinity();
  const RankTable table{.title = "",
                        .tasks = {{"up", "", "", true}, {"down", "", "", false}},
                        .models = {{"a", {3.0, 1.0}, {}},
                                   {"b", {3.0, 2.0}, {}},
                                   {"c", {2.0, memory}, {}},
                                   {"d", {1.0, none}, {}},
                                   {"e", {none, none}, {}}}};
  const std::vector<double> ranks = average_ranks(table, {0, 1});
  EXPECT_THAT(std::vector<double>(ranks.begin(), ranks.end() - 1),
              ::testing::ElementsAre(1.0, 1.5, 3.0, 4.0));
  EXPECT_TRUE(std::isnan(ranks.back()));
}

TEST(Ranks, RecomputedTheyAreThePrintedOnes) {
  std::size_t compared = 0;
  for (const RankTable& table : rank_tables()) {
    std::vector<std::size_t> all(table.tasks.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const std::vector<double> ranks = average_ranks(table, all);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (!table.models[i].printed) continue;
      EXPECT_NEAR(ranks[i], *table.models[i].printed, 0.0501)  // printed with one digit
          << table.title << " " << table.models[i].name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 80);
}

}  // namespace
}  // namespace mpssm::study
