// SPDX-License-Identifier: MIT
#include "mpssm/data/incident_edges.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

namespace mpssm::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool every_row(std::size_t) { return true; }

/// 0-1, 1-2, 2-0, and 0-1 the other way.
EdgeTable triangle() {
  return {.src = {0, 1, 2, 1},
          .dst = {1, 2, 0, 0},
          .columns = {{.name = "kind", .values = {0, 1, 1, NAN}, .words = {"rail", "road"}},
                      {.name = "lanes", .values = {2, 4, 2, 2}},
                      {.name = "km", .values = {0.5, 1.5, 2.5, 3.5}}}};
}

TEST(IncidentEdges, WordsAndFewWholeNumbersAreCategories) {
  const std::vector<Column> columns = fit_edge_columns(triangle(), every_row);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_THAT(columns[0].categories, ElementsAre("rail", "road"));
  EXPECT_THAT(columns[1].categories, ElementsAre("2", "4"));
  EXPECT_EQ(columns[2].kind, ColumnKind::kNumber);
  EXPECT_DOUBLE_EQ(columns[2].mean, 2.0);
  EXPECT_DOUBLE_EQ(columns[2].scale, std::sqrt(1.25));
  EXPECT_EQ(edge_features(columns), 5);
  const auto some = fit_edge_columns(triangle(), [](std::size_t row) { return row == 0; });
  EXPECT_THAT(some[0].categories, ElementsAre("rail"));
  EXPECT_EQ(some[2].mean, 0.5);
  EXPECT_EQ(some[2].scale, 1.0);
}

TEST(IncidentEdges, AreAddedUpWhereTheyComeIn) {
  const EdgeTable table = triangle();
  std::vector<Column> columns = fit_edge_columns(table, every_row);
  columns.resize(2);
  // rail, road, 2 lanes, 4 lanes
  EXPECT_THAT(incident_sums(table, columns, 4, /*both_ways=*/false).values,
              ElementsAre(0, 1, 2, 0,  //
                          1, 0, 1, 0,  //
                          0, 1, 0, 1,  //
                          0, 0, 0, 0));
  // 1-2 and 2-0 are listed one way.
  EXPECT_THAT(incident_sums(table, columns, 4, /*both_ways=*/true).values,
              ElementsAre(0, 1, 2, 0,  //
                          1, 1, 1, 1,  //
                          0, 2, 1, 1,  //
                          0, 0, 0, 0));
}

TEST(IncidentEdges, NewValuesAddNothingAndMissingColumnsAreAnError) {
  const std::vector<Column> columns = fit_edge_columns(triangle(), every_row);
  EdgeTable other{.src = {0},
                  .dst = {1},
                  .columns = {{.name = "km", .values = {2.0}},
                              {.name = "lanes", .values = {3}},
                              {.name = "kind", .values = {1}, .words = {"ship", "road"}}}};
  EXPECT_THAT(incident_sums(other, columns, 2, false).values,
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
  other.columns.pop_back();
  EXPECT_THAT([&] { incident_sums(other, columns, 2, false); },
              ThrowsMessage<base::Error>(HasSubstr("expected a column 'kind'")));
}

}  // namespace
}  // namespace mpssm::data
