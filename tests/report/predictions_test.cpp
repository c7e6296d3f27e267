// SPDX-License-Identifier: MIT
// What tables of predictions say, against counting pairs and cells one by one.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/random.h"
#include "mpssm/report/classification.h"
#include "mpssm/report/forecast_errors.h"
#include "mpssm/report/regression.h"

namespace mpssm::report {
namespace {

/// Few different scores, so that there are ties.
ClassTable random_table(std::size_t n, std::size_t classes, std::uint64_t seed) {
  base::Random random(seed);
  ClassTable table;
  for (std::size_t c = 0; c < classes; ++c)
    table.class_names.push_back("class " + std::to_string(c));
  for (std::size_t i = 0; i < n; ++i) {
    table.id.push_back(std::to_string(i));
    table.truth.push_back(static_cast<std::int32_t>(random.unit() * static_cast<double>(classes)));
    std::vector<double> p;
    double sum = 0.0;
    for (std::size_t c = 0; c < classes; ++c) {
      const bool is_it = static_cast<std::size_t>(table.truth[i]) == c;
      p.push_back(std::ceil(5 * random.unit() + (is_it ? 2 : 0)));
      sum += p.back();
    }
    table.predicted.push_back(
        static_cast<std::int32_t>(std::max_element(p.begin(), p.end()) - p.begin()));
    for (const double share : p) table.probability.push_back(static_cast<float>(share / sum));
  }
  return table;
}

double area_by_pairs(const ClassTable& table, std::size_t c) {
  const std::size_t classes = table.class_names.size();
  double wins = 0.0, pairs = 0.0;
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    for (std::size_t j = 0; j < table.truth.size(); ++j) {
      if (static_cast<std::size_t>(table.truth[i]) != c ||
          static_cast<std::size_t>(table.truth[j]) == c) {
        continue;
      }
      const float a = table.probability[i * classes + c];
      const float b = table.probability[j * classes + c];
      wins += a > b ? 1.0 : a == b ? 0.5 : 0.0;
      ++pairs;
    }
  }
  return wins / pairs;
}

TEST(Classification, AreaIsTheShareOfPairsInOrder) {
  for (const std::size_t classes : {2, 3}) {
    const ClassTable table = random_table(120, classes, classes);
    const Classification found = classification_of(table);
    ASSERT_EQ(found.curves.size(), classes == 2 ? 1u : 3u);
    for (const ClassCurve& curve : found.curves) {
      const std::size_t c = std::stoul(curve.name.substr(6));
      EXPECT_NEAR(curve.roc_auc, area_by_pairs(table, c), 1e-12);
      EXPECT_EQ(curve.false_positive_rate.front(), 0.0);
      EXPECT_EQ(curve.true_positive_rate.back(), 1.0);
      EXPECT_EQ(curve.false_positive_rate.back(), 1.0);
      EXPECT_TRUE(std::is_sorted(curve.recall.begin(), curve.recall.end()));
    }
  }
}

TEST(Classification, AveragePrecisionOfAKnownOrder) {
  // Hits at ranks 1 and 3 of four.
  const ClassCurve curve = class_curve("it", {0.9F, 0.8F, 0.7F, 0.1F}, {true, false, true, false});
  EXPECT_NEAR(curve.average_precision, 0.5 * 1.0 + 0.5 * 2.0 / 3.0, 1e-15);
  EXPECT_NEAR(curve.roc_auc, 0.75, 1e-15);
  EXPECT_EQ(curve.share, 0.5);
  EXPECT_TRUE(std::isnan(class_curve("none", {0.1F, 0.2F}, {false, false}).roc_auc));
}

TEST(Classification, ConfusionCalibrationAndMistakesCountSamples) {
  const ClassTable table = random_table(300, 4, 9);
  const Classification found = classification_of(table);
  std::int64_t total = 0, right = 0, binned = 0;
  for (std::size_t t = 0; t < 4; ++t) {
    for (std::size_t p = 0; p < 4; ++p) {
      const auto cell = std::count_if(table.id.begin(), table.id.end(), [&](const std::string& id) {
        const std::size_t i = std::stoul(id);
        return static_cast<std::size_t>(table.truth[i]) == t &&
               static_cast<std::size_t>(table.predicted[i]) == p;
      });
      EXPECT_EQ(found.confusion[t * 4 + p], cell);
      total += cell;
      right += t == p ? cell : 0;
    }
  }
  for (const std::int64_t count : found.calibration.count) binned += count;
  EXPECT_EQ(total, 300);
  EXPECT_EQ(binned, 300);
  EXPECT_EQ(found.wrong, 300 - right);
  EXPECT_EQ(found.worst.size(), std::min<std::size_t>(kMaxMistakes, found.wrong));
  EXPECT_TRUE(std::is_sorted(found.worst.begin(), found.worst.end(),
                             [](auto& a, auto& b) { return a.p_truth < b.p_truth; }));
}

TEST(Classification, PerfectlyCalibratedHasNoError) {
  ClassTable table{.class_names = {"no", "yes"}};
  for (int i = 0; i < 40; ++i) {
    table.id.push_back(std::to_string(i));
    table.predicted.push_back(1);
    table.truth.push_back(i % 4 == 0 ? 0 : 1);
    table.probability.insert(table.probability.end(), {0.25F, 0.75F});
  }
  EXPECT_NEAR(classification_of(table).calibration.error, 0.0, 1e-12);
  table.truth[0] = 2;
  EXPECT_THROW(classification_of(table), std::invalid_argument);
}

TEST(Regression, NumbersOfASmallTable) {
  const Regression found = regression_of(
      {.name = "height", .id = {"a", "b", "c"}, .truth = {1, 2, 6}, .predicted = {2, 2, 3}});
  EXPECT_DOUBLE_EQ(found.mae, 4.0 / 3.0);
  EXPECT_DOUBLE_EQ(found.rmse, std::sqrt(10.0 / 3.0));
  EXPECT_DOUBLE_EQ(found.bias, -2.0 / 3.0);
  EXPECT_DOUBLE_EQ(found.r2, 1.0 - 10.0 / 14.0);
  EXPECT_EQ(found.worst.front().id, "c");
  double counted = 0.0;
  for (const double count : found.error_count) counted += count;
  EXPECT_EQ(counted, 3.0);
  EXPECT_THROW(regression_of({.truth = {1.0}}), std::invalid_argument);
}

data::SeriesData series_of(std::int64_t nodes, std::int64_t steps, std::int64_t horizon) {
  data::SeriesData series;
  series.num_nodes = nodes;
  series.num_steps = steps;
  series.lags = 3;
  series.horizon = horizon;
  for (std::int64_t t = 0; t < steps; ++t) {
    series.time_of_day.push_back(static_cast<float>(t % 24) / 24.0F);
    for (std::int64_t i = 0; i < nodes; ++i) {
      series.values.push_back(static_cast<float>(10 * t + i));
    }
  }
  return series;
}

TEST(ForecastErrors, ByStepNodeAndHour) {
  data::SeriesData series = series_of(3, 60, 4);
  series.null_value = 500.0F;  // step 50 of node 0
  ForecastCollector collector(series, 40);
  double sum_of_node_0 = 0.0;
  int count_of_node_0 = 0;
  for (std::int64_t window = 10; window < 50; ++window) {
    for (std::int64_t node = 0; node < 3; ++node) {
      std::vector<double> forecast;
      for (std::int64_t h = 0; h < 4; ++h) {
        const double truth = 10.0 * static_cast<double>(window + 3 + h) + static_cast<double>(node);
        forecast.push_back(truth + static_cast<double>((h + 1) * (node + 1)));
        if (node == 0 && truth != 500.0) {
          sum_of_node_0 += static_cast<double>(h + 1);
          ++count_of_node_0;
        }
      }
      collector.add(window, node, forecast);
    }
  }
  const ForecastErrors found = collector.errors();
  ASSERT_EQ(found.mae_of_step.size(), 4u);
  EXPECT_NEAR(found.mae_of_node[0], sum_of_node_0 / count_of_node_0, 1e-9);
  EXPECT_EQ(count_of_node_0, 160 - 4);
  EXPECT_NEAR(found.mae_of_node[2], 7.5, 1e-9);
  EXPECT_NEAR(found.bias_of_node[2], 7.5, 1e-9);
  EXPECT_GT(found.mae_of_step[3], found.mae_of_step[0]);
  EXPECT_EQ(found.mae_of_hour.size(), 24u);
  ASSERT_EQ(found.examples.size(), 3u);
  for (const ForecastExample& example : found.examples) {
    EXPECT_EQ(example.past.size(), 3u);
    EXPECT_EQ(example.truth.size(), 4u);
    EXPECT_EQ(example.past.back() + 10.0, example.truth.front());
  }
  EXPECT_EQ(found.examples[1].node, "1");
}

TEST(ForecastErrors, ShortHorizonsShowATrack) {
  const data::SeriesData series = series_of(2, 40, 1);
  ForecastCollector collector(series, 20);
  for (std::int64_t window = 10; window < 30; ++window) {
    for (std::int64_t node = 0; node < 2; ++node) {
      const double forecast[] = {static_cast<double>(window)};
      collector.add(window, node, forecast);
    }
  }
  const ForecastErrors found = collector.errors();
  ASSERT_EQ(found.examples.size(), 2u);
  EXPECT_EQ(found.examples[0].truth.size(), 20u);
  EXPECT_EQ(found.examples[0].first_step, 13);
  EXPECT_EQ(found.examples[0].truth[1], 140.0);
  EXPECT_EQ(found.examples[0].forecast[1], 11.0);
}

}  // namespace
}  // namespace mpssm::report
