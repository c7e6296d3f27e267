// SPDX-License-Identifier: MIT
#include "mpssm/data/period.h"

#include <algorithm>
#include <cmath>

namespace mpssm::data {
namespace {

constexpr std::int64_t kDaysOfAWeek = 7;

/// The shortest way from one time of the day to the next, as a share of the day.
double step_of_clock(const SeriesData& series) {
  double step = 1.0;
  for (std::int64_t t = 1; t < series.num_steps; ++t) {
    const double difference = series.time_of_day[t] - series.time_of_day[t - 1];
    if (difference > 0.0) step = std::min(step, difference);
  }
  return step;
}

double reading(const SeriesData& series, std::int64_t step, std::int64_t node) {
  return series.values[(step * series.num_nodes + node) * series.num_features];
}

}  // namespace

bool is_missing(const SeriesData& series, float value) {
  return std::isnan(value) || (series.null_value && value == *series.null_value);
}

std::int64_t steps_per_day(const SeriesData& series) {
  if (series.time_of_day.empty()) return 0;
  return std::max<std::int64_t>(std::llround(1.0 / step_of_clock(series)), 1);
}

double clock_period(const SeriesData& series, std::int64_t train_steps) {
  const std::int64_t per_day = steps_per_day(series);
  const std::int64_t days = train_steps >= 2 * kDaysOfAWeek * per_day ? kDaysOfAWeek : 1;
  return static_cast<double>(days * per_day);
}

std::vector<double> places_in_period(const SeriesData& series, std::int64_t beyond) {
  std::vector<double> places(static_cast<std::size_t>(series.num_steps + beyond), 0.0);
  const double period = series.period;
  if (period <= 0.0) return places;
  const std::int64_t per_day = steps_per_day(series);
  const bool by_days = per_day > 0 && std::fmod(period, static_cast<double>(per_day)) == 0.0;
  std::int64_t step = series.first_step;
  std::int64_t day = by_days ? series.first_step / per_day : 0;
  for (std::int64_t t = 0; t < std::ssize(places); ++t, ++step) {
    if (by_days && t < series.num_steps) {
      if (t > 0 && series.time_of_day[t] < series.time_of_day[t - 1]) ++day;
      const auto of_day = std::llround(series.time_of_day[t] * static_cast<double>(per_day));
      step = day * per_day + of_day % per_day;
    }
    places[t] = std::fmod(static_cast<double>(step), period);
  }
  return places;
}

std::int64_t slots_of(double period) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(period)), 1);
}

PeriodMean period_mean(const SeriesData& series, std::int64_t train_steps) {
  const std::int64_t n = series.num_nodes;
  PeriodMean mean{.slots = slots_of(series.period)};
  mean.values.resize(static_cast<std::size_t>(mean.slots * n));
  const std::int64_t reach = std::min<std::int64_t>(2, mean.slots / 24);
  const std::vector<double> places = places_in_period(series);
  std::vector<double> sum(mean.values.size(), 0.0);
  std::vector<double> count(mean.values.size(), 0.0);
  std::vector<double> node_sum(static_cast<std::size_t>(n), 0.0);
  std::vector<double> node_count(static_cast<std::size_t>(n), 0.0);
  double all_sum = 0.0;
  double all_count = 0.0;
  for (std::int64_t t = 0; t < std::min(train_steps, series.num_steps); ++t) {
    const auto place = static_cast<std::int64_t>(places[t]);
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = reading(series, t, i);
      if (is_missing(series, static_cast<float>(x))) continue;
      for (std::int64_t shift = -reach; shift <= reach; ++shift) {
        const std::int64_t slot = (place + shift + mean.slots) % mean.slots;
        sum[slot * n + i] += x;
        count[slot * n + i] += 1.0;
      }
      node_sum[i] += x;
      node_count[i] += 1.0;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    all_sum += node_sum[i];
    all_count += node_count[i];
  }
  const double overall = all_count > 0.0 ? all_sum / all_count : 0.0;
  for (std::int64_t slot = 0; slot < mean.slots; ++slot) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = slot * n + i;
      const double of_node = node_count[i] > 0.0 ? node_sum[i] / node_count[i] : overall;
      mean.values[at] = static_cast<float>(count[at] > 0.0 ? sum[at] / count[at] : of_node);
    }
  }
  return mean;
}

std::vector<float> filled(const SeriesData& series, const PeriodMean& mean, Fill fill) {
  const std::int64_t n = series.num_nodes;
  const std::vector<double> places = places_in_period(series);
  std::vector<float> result(static_cast<std::size_t>(series.num_steps * n));
  for (std::int64_t i = 0; i < n; ++i) {
    bool has_last = false;
    float last = 0.0F;
    for (std::int64_t t = 0; t < series.num_steps; ++t) {
      const auto x = static_cast<float>(reading(series, t, i));
      float& to = result[t * n + i];
      if (!is_missing(series, x)) {
        to = last = x;
        has_last = true;
      } else if (fill == Fill::kStored) {
        to = x;
      } else {
        to = fill == Fill::kLast && has_last ? last : mean.at(places[t], i, n);
      }
    }
  }
  return result;
}

}  // namespace mpssm::data
