// SPDX-License-Identifier: MIT
#include "mpssm/task/series_view.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numbers>

#include <torch/types.h>

#include "mpssm/base/error.h"

namespace mpssm::task {
namespace {

constexpr int kClockHarmonics = 4;  // of the day: down to six hours

/// One mean and deviation of `values` [T, N] over the inputs of the training windows, each step as
/// often as windows see it (DCRNN's choice).
void set_scale(const data::SeriesData& data, const std::vector<float>& values, std::int64_t windows,
               Preprocessing& learned) {
  if (!data.standardise) return;
  double count = 0.0;
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t t = 0; t < windows + data.lags - 1; ++t) {
    const auto seen =
        static_cast<double>(std::min({t + 1, data.lags, windows + data.lags - 1 - t, windows}));
    for (std::int64_t i = 0; i < data.num_nodes; ++i) {
      const double x = values[t * data.num_nodes + i];
      count += seen;
      sum += seen * x;
      squares += seen * x * x;
    }
  }
  learned.mean = sum / count;
  const double deviation = std::sqrt(std::max(squares / count - learned.mean * learned.mean, 0.0));
  learned.scale = deviation > 0.0 ? deviation : 1.0;
}

torch::Tensor matrix_of(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  torch::Tensor tensor = torch::empty({rows, columns});
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return tensor;
}

data::PeriodMean mean_of(const data::SeriesData& data, std::int64_t train_windows,
                         const Preprocessing* learned) {
  if (learned == nullptr) {
    return data::period_mean(data, train_windows + data.lags + data.horizon - 1);
  }
  data::PeriodMean mean{.slots = data::slots_of(data.period), .values = learned->period_mean};
  // Trained on data without a gap: the mean of all is what is known.
  if (mean.values.empty()) {
    mean.values.assign(static_cast<std::size_t>(mean.slots * data.num_nodes),
                       static_cast<float>(learned->mean));
  }
  if (std::ssize(mean.values) != mean.slots * data.num_nodes) {
    throw base::Error(fmt::format(
        "the run knows the means of {} numbers (nodes by places of data.period), the data have {}",
        mean.values.size(), mean.slots * data.num_nodes));
  }
  return mean;
}

void check_period(const data::SeriesData& data, const SeriesOptions& options) {
  const char* setting = options.deviation       ? "data.deviation"
                        : options.harmonics > 0 ? "data.harmonics"
                                                : nullptr;
  if (setting == nullptr || data.period > 0.0) return;
  throw base::Error(setting,
                    "expected data.period beside it (the steps of a day, a week or a year), got "
                    "none");
}

bool has_gaps(const data::SeriesData& data) {
  return std::any_of(data.values.begin(), data.values.end(),
                     [](float value) { return std::isnan(value); });
}

}  // namespace

at::Tensor readings_of(const data::SeriesData& data) {
  torch::Tensor readings = torch::empty({data.num_steps, data.num_nodes});
  for (std::int64_t i = 0; i < readings.numel(); ++i) {
    const float value = data.values[i * data.num_features];
    readings.data_ptr<float>()[i] =
        data::is_missing(data, value) ? std::numeric_limits<float>::quiet_NaN() : value;
  }
  return readings;
}

at::Tensor harmonics_of(const data::SeriesData& data, std::int64_t count) {
  torch::Tensor harmonics = torch::empty({data.num_steps, 2 * count});
  const std::vector<double> places = data::places_in_period(data);
  float* to = harmonics.data_ptr<float>();
  for (std::int64_t t = 0; t < data.num_steps; ++t) {
    for (std::int64_t h = 1; h <= count; ++h) {
      const double angle =
          2.0 * std::numbers::pi * static_cast<double>(h) * places[t] / data.period;
      *to++ = static_cast<float>(std::sin(angle));
      *to++ = static_cast<float>(std::cos(angle));
    }
  }
  return harmonics;
}

SeriesView::SeriesView(const data::SeriesData& data, const SeriesOptions& options,
                       std::int64_t train_windows, const Preprocessing* known)
    : measured(readings_of(data)) {
  check_period(data, options);
  const bool gaps = has_gaps(data);
  data::Fill fill = options.fill.value_or(gaps ? data::Fill::kLast : data::Fill::kStored);
  if (gaps && fill == data::Fill::kStored) {
    throw base::Error("data.fill",
                      "expected last or mean, got stored: the data have nothing where readings "
                      "are missing");
  }
  // With nothing in their place, missing readings would be far below the mean.
  if (options.deviation && fill == data::Fill::kStored) fill = data::Fill::kMean;
  const bool needs_mean = options.deviation || fill != data::Fill::kStored;
  if (known != nullptr) learned = *known;
  data::PeriodMean mean;
  if (needs_mean) {
    mean = mean_of(data, train_windows, known);
    learned.period_mean = mean.values;
  }
  const std::int64_t n = data.num_nodes;
  std::vector<float> values = data::filled(data, mean, fill);
  if (options.deviation) {
    const std::vector<double> places = data::places_in_period(data, data.horizon);
    base = torch::empty({data.num_steps + data.horizon, n});
    float* to = base.data_ptr<float>();
    for (const double place : places) {
      for (std::int64_t i = 0; i < n; ++i) *to++ = mean.at(place, i, n);
    }
    const float* from = base.data_ptr<float>();
    for (float& value : values) value -= *from++;
  }
  if (known == nullptr) set_scale(data, values, train_windows, learned);
  if (options.harmonics > 0) line.calendar = harmonics_of(data, options.harmonics);
  line.seen = matrix_of(values, data.num_steps, n);
  line.truth = base.defined() ? measured - base.slice(0, 0, data.num_steps) : measured;
  line.lags = data.lags;
  line.horizon = data.horizon;
}

at::Tensor SeriesView::inputs(const data::SeriesData& data, const SeriesOptions& options) const {
  const std::int64_t n = data.num_nodes;
  const bool with_time = !data.time_of_day.empty();
  const std::int64_t channels = data.num_features + (with_time ? 1 + 2 * kClockHarmonics : 0) +
                                (options.mark_missing ? 1 : 0) + 2 * options.harmonics;
  torch::Tensor result = torch::empty({data.num_steps, n, channels});
  float* to = result.data_ptr<float>();
  const float* values = line.seen.data_ptr<float>();
  const float* from = data.values.data();
  for (std::int64_t t = 0; t < data.num_steps; ++t) {
    for (std::int64_t i = 0; i < n; ++i) {
      const bool is_missing = data::is_missing(data, *from++);
      *to++ = static_cast<float>((values[t * n + i] - learned.mean) / learned.scale);
      for (std::int64_t f = 1; f < data.num_features; ++f) *to++ = *from++;
      if (with_time) {
        *to++ = data.time_of_day[t];
        for (int h = 1; h <= kClockHarmonics; ++h) {
          const double angle = 2.0 * std::numbers::pi * h * data.time_of_day[t];
          *to++ = static_cast<float>(std::sin(angle));
          *to++ = static_cast<float>(std::cos(angle));
        }
      }
      if (options.mark_missing) *to++ = is_missing ? 1.0F : 0.0F;
      if (options.harmonics > 0) {
        const float* of_step = line.calendar.data_ptr<float>() + t * 2 * options.harmonics;
        to = std::copy(of_step, of_step + 2 * options.harmonics, to);
      }
    }
  }
  return result;
}

std::int64_t SeriesView::bytes() const {
  std::int64_t numbers = measured.numel() + line.seen.numel();
  if (base.defined()) numbers += base.numel() + line.truth.numel();
  return static_cast<std::int64_t>(sizeof(float)) * numbers;
}

}  // namespace mpssm::task
