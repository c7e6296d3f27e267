// SPDX-License-Identifier: MIT
// What a network is shown of a series, what is made of its output, and the references beside it.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"
#include "mpssm/data/load.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/task/node_lines.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/built_model.h"

#include "tests/support/real_data.h"
#include "tests/train/small_data.h"

namespace mpssm::task {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using train::testing::make_series_data;
using train::testing::small_config;

constexpr float kGone = std::numeric_limits<float>::quiet_NaN();

class ZeroForecast : public nn::GraphModule {
 public:
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override {
    return torch::zeros({x.size(0), gso.num_nodes(), 3});
  }
};

data::SeriesData& series_in(data::Dataset& dataset) {
  return std::get<data::SeriesData>(dataset.content);
}

std::unique_ptr<Problem> problem_of(const data::Dataset& dataset, const SeriesOptions& options,
                                    const Preprocessing* learned = nullptr) {
  ProblemOptions all = train::problem_options(small_config());
  all.series = options;
  return make_problem(dataset, all, learned);
}

Metrics reference_of(const Problem& problem, const std::string& name) {
  for (const Reference& reference : problem.references()) {
    if (reference.name == name) return reference.test;
  }
  ADD_FAILURE() << "no reference " << name;
  return {};
}

TEST(SeriesInputs, MissingReadingsAreFilledAndMarked) {
  data::Dataset dataset = make_series_data();
  data::SeriesData& series = series_in(dataset);
  series.standardise = false;
  series.null_value = 0.0F;
  series.values[4 * 6 + 2] = 0.0F;  // step 4, node 2
  const torch::Tensor stored = problem_of(dataset, {})->sample(0).x;
  EXPECT_EQ(stored[4][2][0].item<float>(), 0.0F);
  const torch::Tensor last =
      problem_of(dataset, {.fill = data::Fill::kLast, .mark_missing = true})->sample(0).x;
  EXPECT_EQ(last[4][2][0].item<float>(), series.values[3 * 6 + 2]);
  ASSERT_EQ(last.size(2), stored.size(2) + 1);
  const torch::Tensor mark = last.select(2, last.size(2) - 1);
  EXPECT_EQ(mark.sum().item<float>(), 1.0F);
  EXPECT_EQ(mark[4][2].item<float>(), 1.0F);
  // Nothing else changes.
  torch::Tensor same = last.slice(2, 0, stored.size(2)).clone();
  same[4][2][0] = 0.0F;
  EXPECT_TRUE(same.equal(stored));
}

// A gap, or a value that marks one: the same loss, the same errors.
TEST(SeriesInputs, MissingTargetsCountNowhere) {
  data::Dataset marked = make_series_data();
  series_in(marked).null_value = 0.0F;
  data::Dataset empty = make_series_data();
  for (std::size_t i = 0; i < series_in(marked).values.size(); i += 7) {
    series_in(marked).values[i] = 0.0F;
    series_in(empty).values[i] = kGone;
  }
  const SeriesOptions options{.fill = data::Fill::kLast};
  const auto first = problem_of(marked, options);
  const auto second = problem_of(empty, options);
  ZeroForecast model;
  const std::vector<std::int64_t> some = {0, 3, 5};
  const double loss = first->loss(model, some).item<double>();
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(second->loss(model, some).item<double>(), loss);
  EXPECT_EQ(first->weight(some), second->weight(some));
  EXPECT_LT(first->weight(some), 3 * 6 * 3);
  EXPECT_EQ(first->evaluate(model, data::Part::kTest), second->evaluate(model, data::Part::kTest));
  EXPECT_EQ(reference_of(*first, "last observed value"),
            reference_of(*second, "last observed value"));
  // A gap has no stored value.
  EXPECT_EQ(problem_of(empty, {})->loss(model, some).item<double>(), loss);
  EXPECT_THAT([&] { problem_of(empty, {.fill = data::Fill::kStored}); },
              ThrowsMessage<base::Error>(HasSubstr("data.fill: expected last or mean")));
}

TEST(SeriesInputs, AForecastOfNoDeviationIsTheMeanOfThePeriod) {
  data::Dataset dataset = make_series_data();
  data::SeriesData& series = series_in(dataset);
  std::mt19937 random(3);
  std::normal_distribution<float> noise;
  for (float& value : series.values) value += noise(random);
  const auto problem = problem_of(dataset, {.deviation = true});
  const data::WindowSplit split = data::window_split(series);
  const std::int64_t train_steps = split.val + series.lags + series.horizon - 1;
  const data::PeriodMean mean = data::period_mean(series, train_steps);
  const Preprocessing learned = problem->preprocessing();
  EXPECT_EQ(learned.period_mean, mean.values);
  double sum = 0.0;
  double count = 0.0;
  for (std::int64_t w = split.test; w < split.end; ++w) {
    for (std::int64_t t = w + series.lags; t < w + series.lags + series.horizon; ++t) {
      for (std::int64_t i = 0; i < 6; ++i) {
        const double forecast = mean.at(static_cast<double>(t % 24), i, 6) + learned.mean;
        sum += std::abs(series.values[t * 6 + i] - forecast);
        count += 1.0;
      }
    }
  }
  ZeroForecast model;
  EXPECT_NEAR(problem->evaluate(model, data::Part::kTest).at("mae"), sum / count, 1e-4);
  // What is shown is what is left, on its own scale.
  const torch::Tensor x = problem->sample(7).x;
  const double left = series.values[(7 + 2) * 6 + 1] - mean.at(9.0, 1, 6);
  EXPECT_NEAR(x[2][1][0].item<double>(), (left - learned.mean) / learned.scale, 1e-5);
  EXPECT_LT(learned.scale, 2.9);
  // The mean of the training part alone.
  for (std::size_t i = static_cast<std::size_t>(train_steps) * 6; i < series.values.size(); ++i) {
    series.values[i] += 100.0F;
  }
  EXPECT_EQ(problem_of(dataset, {.deviation = true})->preprocessing().period_mean, mean.values);
}

// Known from a training, the same inputs are made of other data as well.
TEST(SeriesInputs, WhatWasLearnedIsUsedAgain) {
  const data::Dataset dataset = make_series_data();
  const SeriesOptions options{.fill = data::Fill::kMean, .deviation = true, .harmonics = 2};
  const auto problem = problem_of(dataset, options);
  const Preprocessing learned = problem->preprocessing();
  data::Dataset later = dataset;
  data::SeriesData& series = series_in(later);
  series.values.erase(series.values.begin(), series.values.begin() + 24 * 6);
  series.time_of_day.erase(series.time_of_day.begin(), series.time_of_day.begin() + 24);
  series.num_steps -= 24;
  later.is_new = true;
  const auto again = problem_of(later, options, &learned);
  EXPECT_TRUE(again->sample(3).x.equal(problem->sample(27).x));
  EXPECT_TRUE(again->sample(3).base.equal(problem->sample(27).base));
  series.period = 23;
  EXPECT_THAT([&] { problem_of(later, options, &learned); },
              ThrowsMessage<base::Error>(HasSubstr("the run knows the means of 144 numbers")));
}

TEST(SeriesInputs, ForecastsBeyondTheEndAreAddedToTheirMeans) {
  const data::Dataset dataset = make_series_data();
  const auto& series = std::get<data::SeriesData>(dataset.content);
  ProblemOptions options = train::problem_options(small_config());
  options.series.deviation = true;
  const auto problem = make_problem(dataset, options);
  const Preprocessing learned = problem->preprocessing();
  ZeroForecast model;
  std::string text;
  const torch::NoGradGuard no_grad;
  write_forecast(dataset, options, learned, model, [&](std::string_view piece) { text += piece; });
  // 120 steps: the next is the first of a day.
  const data::PeriodMean mean{.slots = 24, .values = learned.period_mean};
  const std::string row = text.substr(text.find("\n2,") + 3);
  EXPECT_NEAR(std::stod(row), mean.at(0.0, 2, series.num_nodes) + learned.mean, 1e-4);
  EXPECT_NEAR(std::stod(row.substr(row.rfind(',', row.find('\n')) + 1)),
              mean.at(2.0, 2, series.num_nodes) + learned.mean, 1e-4);
}

TEST(SeriesInputs, AreOfSeriesOnly) {
  const data::Dataset board = train::testing::make_board_data();
  EXPECT_THAT([&] { problem_of(board, {.deviation = true}); },
              ThrowsMessage<base::Error>(HasSubstr("data.deviation: for series only")));
  EXPECT_THAT([&] { problem_of(board, {.fill = data::Fill::kLast}); },
              ThrowsMessage<base::Error>(HasSubstr("data.fill: for series only")));
}

TEST(SeriesInputs, APeriodIsWanted) {
  data::Dataset dataset = make_series_data();
  series_in(dataset).period = 0.0;
  EXPECT_THAT([&] { problem_of(dataset, {.deviation = true}); },
              ThrowsMessage<base::Error>(HasSubstr("data.deviation: expected data.period")));
  EXPECT_THAT([&] { problem_of(dataset, {.harmonics = 3}); },
              ThrowsMessage<base::Error>(HasSubstr("data.harmonics: expected data.period")));
}

TEST(SeriesInputs, ANetworkWithASkipStartsAtTheLineOnWhatItSees) {
  data::Dataset dataset = make_series_data();
  dataset.metric = "mse";
  data::SeriesData& series = series_in(dataset);
  for (std::size_t i = 0; i < series.values.size(); i += 5) series.values[i] *= 1.5F;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    if (i / 6 % 24 < 6) series.values[i] += 4.0F;  // each night
  }
  for (const bool standardise : {true, false}) {
    series.standardise = standardise;
    train::Config config = small_config();
    config.model.skip = true;
    config.data.harmonics = 3;
    const auto problem = make_problem(dataset, train::problem_options(config));
    const train::BuiltModel built = train::build_model(*problem, config);
    train::start_from_data(*problem, built);
    built.module->eval();
    const torch::NoGradGuard no_grad;
    const Metrics line = reference_of(*problem, "line (ridge), 3 harmonics");
    const Metrics plain = reference_of(*problem, "line (ridge)");
    EXPECT_LT(line.at("mse"), 0.98 * plain.at("mse"));
    EXPECT_NEAR(problem->evaluate(*built.module, data::Part::kTest).at("mse"), line.at("mse"),
                1e-4 * line.at("mse"));
    // With deviations it starts at a line on these.
    config.data.harmonics = 0;
    config.data.deviation = true;
    const auto other = make_problem(dataset, train::problem_options(config));
    const train::BuiltModel beside = train::build_model(*other, config);
    train::start_from_data(*other, beside);
    beside.module->eval();
    EXPECT_LT(other->evaluate(*beside.module, data::Part::kTest).at("mse"),
              reference_of(*other, "historical average").at("mse"));
  }
}

// Each node follows its own line, but for a few readings that are far off: least squares would
// follow these.
TEST(NodeLines, AreFoundInSpiteOfOutliers) {
  constexpr std::int64_t kSteps = 400;
  std::mt19937 random(5);
  std::normal_distribution<float> noise;
  LineSeries series{.seen = torch::empty({kSteps, 3}), .truth = {}, .lags = 2, .horizon = 2};
  for (std::int64_t i = 0; i < series.seen.numel(); ++i) {
    series.seen.data_ptr<float>()[i] = noise(random);
  }
  series.truth = torch::zeros({kSteps, 3});
  const auto expected = [&](std::int64_t t, std::int64_t node, std::int64_t h) {
    // What is seen h + 1 steps before.
    const auto seen = series.seen.accessor<float, 2>();
    return 0.5 * static_cast<double>(node + 1) * seen[t - h - 1][node] + 1.0;
  };
  for (std::int64_t h = 0; h < 2; ++h) {
    LineSeries one = series;
    one.horizon = h + 1;
    one.truth = torch::full({kSteps, 3}, kGone);
    for (std::int64_t t = 4; t < kSteps; ++t) {
      for (std::int64_t node = 0; node < 3; ++node) {
        const bool is_far_off = t % 9 == 0;
        if (t % 17 == 0) continue;  // missing
        one.truth[t][node] = expected(t, node, h) + (is_far_off ? 50.0 : 0.0);
      }
    }
    const torch::Tensor forecasts = forecasts_by_node_lines(one, 300, 320, 390);
    const auto found = forecasts.accessor<float, 3>();
    for (std::int64_t w = 320; w < 390; w += 10) {
      for (std::int64_t node = 0; node < 3; ++node) {
        EXPECT_NEAR(found[w - 320][node][h], expected(w + 2 + h, node, h), 0.02) << h;
      }
    }
    ops::set_num_threads(1);
    EXPECT_TRUE(forecasts_by_node_lines(one, 300, 320, 390).equal(forecasts));
    ops::set_num_threads(0);
  }
}

/// Skips if the file is not here.
std::optional<data::Dataset> real(const std::string& name, const char* file, double train_ratio) {
  const std::filesystem::path folder = mpssm::testing::real_data();
  if (!std::filesystem::exists(folder / file)) return std::nullopt;
  data::LoadOptions options{.data_dir = folder};
  if (train_ratio > 0.0) options.train_ratio = train_ratio;
  return data::load(name, options);
}

TEST(RealReferences, ChickenpoxRepeatsEachYear) {
  for (const auto& [ratio, expected] : {std::pair(0.9, 0.757), std::pair(0.8, 0.680)}) {
    const auto dataset = real("chickenpox", "chickenpox/chickenpox.json", ratio);
    if (!dataset) GTEST_SKIP() << "chickenpox is not here";
    const auto problem = problem_of(*dataset, {});
    EXPECT_NEAR(reference_of(*problem, "line (ridge), 3 harmonics").at("mse"), expected, 4e-3);
    EXPECT_GT(reference_of(*problem, "line (ridge)").at("mse"), expected + 0.03);
  }
}

TEST(RealReferences, TrafficRepeatsEachWeek) {
  const auto dataset = real("metr-la-29", "traffic/metr_la_subset29.npz", 0.0);
  if (!dataset) GTEST_SKIP() << "metr-la-29 is not here";
  const auto problem = problem_of(*dataset, {});
  EXPECT_NEAR(reference_of(*problem, "last observed value").at("mae_12"), 5.65, 5e-3);
  const Metrics line = reference_of(*problem, "line per node on deviations from it");
  EXPECT_NEAR(line.at("mae_12"), 4.07, 1e-2);
  EXPECT_GT(reference_of(*problem, "historical average").at("mae_12"), line.at("mae_12") + 0.1);
}

}  // namespace
}  // namespace mpssm::task
