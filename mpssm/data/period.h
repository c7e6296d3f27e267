// SPDX-License-Identifier: MIT
// What a series repeats, week by week or year by year: where a step is in its period, the mean of
// each node there, and values in place of missing ones. Everything is learned of the first steps,
// those of the training part.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/base/enum_table.h"
#include "mpssm/data/dataset.h"

namespace mpssm::data {

/// What stands in the inputs for a missing reading.
enum class Fill {
  kStored,  ///< what the file has there
  kLast,    ///< the last reading before it, however long ago; until there is one, the mean
  kMean,    ///< the node's mean at this place of the period
};
inline constexpr base::EnumRow<Fill> kFills[] = {
    {Fill::kStored, "stored"},
    {Fill::kLast, "last"},
    {Fill::kMean, "mean"},
};
constexpr base::EnumTable<Fill> table_of(Fill) { return kFills; }

/// NaN, or the value that marks a missing reading.
bool is_missing(const SeriesData& series, float value);

/// Steps of a day by the clock; 0: there is none.
std::int64_t steps_per_day(const SeriesData& series);

/// The period that a clock suggests: a week, or a day if `train_steps` are shorter than two weeks;
/// 0 without a clock.
double clock_period(const SeriesData& series, std::int64_t train_steps);

/// Where each step is in the period, in [0, period), for the steps of the series and `beyond` more.
/// With a clock and a period of whole days, days are counted where it turns back, so that an hour
/// left out does not shift them. Without a period: 0 everywhere.
std::vector<double> places_in_period(const SeriesData& series, std::int64_t beyond = 0);

/// Mean of the readings of each node at each place of the period.
struct PeriodMean {
  std::int64_t slots = 0;          ///< places are rounded down to these; without a period 1
  std::vector<float> values = {};  ///< [slots, N]

  float at(double place, std::int64_t node, std::int64_t num_nodes) const {
    return values[static_cast<std::size_t>(static_cast<std::int64_t>(place) * num_nodes + node)];
  }
};

/// Number of slots of a period.
std::int64_t slots_of(double period);

/// Over the first `train_steps` steps. Each reading also counts at up to two places to either side,
/// fewer if the period is short; where a node has none, its overall mean stands, for a node without
/// any reading the mean of all.
PeriodMean period_mean(const SeriesData& series, std::int64_t train_steps);

/// [T, N]: feature 0 with missing readings filled in.
std::vector<float> filled(const SeriesData& series, const PeriodMean& mean, Fill fill);

}  // namespace mpssm::data
