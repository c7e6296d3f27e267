// SPDX-License-Identifier: MIT
#include "mpssm/data/period.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::data {
namespace {

using ::testing::ElementsAre;

constexpr float kNoReading = std::numeric_limits<float>::quiet_NaN();

SeriesData series_of(std::int64_t nodes, std::vector<float> values) {
  SeriesData series{.num_steps = std::ssize(values) / nodes, .num_nodes = nodes};
  series.values = std::move(values);
  return series;
}

TEST(Period, PlacesAreCountedFromTheFirstStep) {
  SeriesData series = series_of(1, std::vector<float>(5, 1.0f));
  EXPECT_THAT(places_in_period(series), ElementsAre(0, 0, 0, 0, 0));
  series.period = 2.5;
  EXPECT_THAT(places_in_period(series, 1), ElementsAre(0, 1, 2, 0.5, 1.5, 0));
  series.first_step = 7;
  EXPECT_THAT(places_in_period(series), ElementsAre(2, 0.5, 1.5, 0, 1));
}

// Four steps a day, a week of two days; the second day lacks a step.
TEST(Period, AStepLeftOutByTheClockShiftsNothing) {
  SeriesData series = series_of(1, std::vector<float>(10, 1.0f));
  series.time_of_day = {0, 0.25, 0.5, 0.75, 0, 0.5, 0.75, 0, 0.25, 0.5};
  series.period = 8.0;
  EXPECT_EQ(steps_per_day(series), 4);
  EXPECT_THAT(places_in_period(series, 3), ElementsAre(0, 1, 2, 3, 4, 6, 7, 0, 1, 2, 3, 4, 5));
  series.first_step = 4;  // the other day of the two
  EXPECT_THAT(places_in_period(series), ElementsAre(4, 5, 6, 7, 0, 2, 3, 4, 5, 6));
  EXPECT_EQ(clock_period(series, 10), 4.0);
  EXPECT_EQ(clock_period(series, 56), 28.0);
  series.time_of_day.clear();
  EXPECT_EQ(clock_period(series, 56), 0.0);
}

TEST(Period, MeansAreThoseOfTheTrainingPartWithoutMissingReadings) {
  SeriesData series = series_of(2, {1, 10, 2, 20, 3, kNoReading, 4, 40, 100, 100, 100, 100});
  series.period = 2.0;
  series.null_value = 4.0f;
  const PeriodMean mean = period_mean(series, 4);
  EXPECT_EQ(mean.slots, 2);
  // Node 0: (1 + 3) / 2, 2 alone; node 1: 10 alone, (20 + 40) / 2.
  EXPECT_THAT(mean.values, ElementsAre(2, 10, 2, 30));
  for (std::size_t i = 8; i < series.values.size(); ++i) series.values[i] = -5;
  EXPECT_EQ(period_mean(series, 4).values, mean.values);
  EXPECT_NE(period_mean(series, 5).values, mean.values);
}

TEST(Period, WhereANodeHasNoReadingItsOverallMeanStands) {
  SeriesData series =
      series_of(2, {1, kNoReading, kNoReading, kNoReading, 3, kNoReading, kNoReading, 9});
  series.period = 2.0;
  EXPECT_THAT(period_mean(series, 3).values, ElementsAre(2, 2, 2, 2));
  series.period = 0.0;
  EXPECT_THAT(period_mean(series, 4).values, ElementsAre(2, 9));
}

TEST(Period, LongPeriodsAreSmoothed) {
  SeriesData series = series_of(1, std::vector<float>(60, 0.0f));
  series.period = 60.0;
  series.values[30] = 5.0f;
  const PeriodMean mean = period_mean(series, 60);
  for (std::int64_t slot = 0; slot < 60; ++slot) {
    EXPECT_EQ(mean.at(static_cast<double>(slot), 0, 1), std::abs(slot - 30) <= 2 ? 1.0f : 0.0f);
  }
}

TEST(Period, MissingReadingsAreFilledFromThePastOrByTheMean) {
  SeriesData series = series_of(1, {kNoReading, 3, kNoReading, 7, kNoReading, 9, 0});
  series.null_value = 0.0f;
  series.period = 2.0;
  const PeriodMean mean = period_mean(series, 6);  // no reading at even places: 19 / 3
  EXPECT_FLOAT_EQ(mean.values[0], 19.0f / 3.0f);
  EXPECT_THAT(filled(series, mean, Fill::kLast), ElementsAre(mean.values[0], 3, 3, 7, 7, 9, 9));
  const float m = mean.values[0];
  EXPECT_THAT(filled(series, mean, Fill::kMean), ElementsAre(m, 3, m, 7, m, 9, m));
  // What comes later does not matter.
  SeriesData other = series;
  other.values[5] = 1000.0f;
  const std::vector<float> now = filled(other, mean, Fill::kLast);
  EXPECT_THAT(std::vector(now.begin(), now.begin() + 5), ElementsAre(m, 3, 3, 7, 7));
}

}  // namespace
}  // namespace mpssm::data
