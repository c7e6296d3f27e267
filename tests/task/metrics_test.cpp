// SPDX-License-Identifier: MIT
// Metrics against their definitions, written out as slow loops.
#include "mpssm/task/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::task {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kTolerance = 1e-12;  // a few thousand roundings of double

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using Integers = std::vector<std::int64_t>;

struct Samples {
  Floats score;
  Bytes positive;
};

// Few distinct scores make many ties; 0 of them stands for continuous scores.
Samples random_samples(std::mt19937& generator, int count, int distinct, double share) {
  Samples samples;
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> pick(-distinct, distinct);
  std::bernoulli_distribution is_positive(share);
  for (int i = 0; i < count; ++i) {
    samples.positive.push_back(is_positive(generator) ? 1 : 0);
    samples.score.push_back(distinct == 0 ? normal(generator)
                                          : 0.25f * static_cast<float>(pick(generator)));
  }
  return samples;
}

double pairwise_auc(const Samples& s) {
  double won = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < s.score.size(); ++i) {
    for (std::size_t j = 0; j < s.score.size(); ++j) {
      if (s.positive[i] == 0 || s.positive[j] != 0) continue;
      won += s.score[i] > s.score[j] ? 1.0 : s.score[i] == s.score[j] ? 0.5 : 0.0;
      pairs += 1.0;
    }
  }
  return won / pairs;
}

// Precision and recall at every distinct threshold, from scratch.
double stepwise_average_precision(const Samples& s) {
  const std::set<float, std::greater<>> thresholds(s.score.begin(), s.score.end());
  const double positives = static_cast<double>(std::ranges::count(s.positive, 1));
  double area = 0.0;
  double last_recall = 0.0;
  for (const float threshold : thresholds) {
    double taken = 0.0;
    double found = 0.0;
    for (std::size_t i = 0; i < s.score.size(); ++i) {
      if (s.score[i] < threshold) continue;
      taken += 1.0;
      found += s.positive[i];
    }
    area += (found / positives - last_recall) * (found / taken);
    last_recall = found / positives;
  }
  return area;
}

template <typename Check>
void for_random_samples(const Check& check) {
  std::mt19937 generator(1);
  for (const int count : {2, 3, 7, 50, 300}) {
    for (const int distinct : {0, 1, 3, 20}) {
      for (const double share : {0.1, 0.5, 0.9}) {
        for (int repeat = 0; repeat < 5; ++repeat) {
          Samples samples = random_samples(generator, count, distinct, share);
          samples.positive[0] = 1;
          samples.positive[1] = 0;
          check(samples);
        }
      }
    }
  }
}

TEST(HitsAt, IsTheShareAboveTheKthOfTheOthers) {
  const std::vector<float> edges = {5, 4, 3, 2};
  const std::vector<float> others = {1, 4, 3.5F, 0};
  EXPECT_EQ(hits_at(1, edges, others), 0.25);  // above 4: a tie is none
  EXPECT_EQ(hits_at(2, edges, others), 0.5);
  EXPECT_EQ(hits_at(3, edges, others), 1.0);
  EXPECT_TRUE(std::isnan(hits_at(5, edges, others)));
  EXPECT_TRUE(std::isnan(hits_at(1, {}, others)));
  EXPECT_TRUE(std::isnan(hits_at(1, std::vector<float>{std::nanf("")}, others)));
}

TEST(LinkMetrics, AreThoseOfEdgesAgainstTheOthers) {
  const Metrics metrics = link_metrics(std::vector<float>{3, 1}, std::vector<float>{2, 0, -1});
  EXPECT_NEAR(metrics.at("roc_auc"), 5.0 / 6.0, 1e-12);
  EXPECT_TRUE(std::isnan(metrics.at("hits_20")));
}

TEST(Accuracy, IsTheShareOfEqualEntries) {
  EXPECT_DOUBLE_EQ(accuracy(Integers{1, 2, 3, 4}, Integers{1, 0, 3, -4}), 0.5);
  EXPECT_DOUBLE_EQ(accuracy(Integers{7}, Integers{7}), 1.0);
  EXPECT_TRUE(std::isnan(accuracy({}, {})));
}

TEST(RocAuc, EqualsTheShareOfPairsWon) {
  for_random_samples([](const Samples& s) {
    ASSERT_NEAR(roc_auc(s.score, s.positive), pairwise_auc(s), kTolerance);
  });
}

TEST(RocAuc, OrdersEveryFloat) {
  const Floats score{-kInf, -3e38f, -1.0f, -1e-45f, 0.0f, 1e-45f, 1e-3f, 1.0f, 3e38f, kInf};
  for (std::size_t cut = 1; cut < score.size(); ++cut) {
    Bytes positive(score.size(), 0);
    std::fill(positive.begin() + static_cast<std::ptrdiff_t>(cut), positive.end(), 1);
    EXPECT_EQ(roc_auc(score, positive), 1.0) << cut;
  }
}

TEST(RocAuc, IsHalfWhenAllScoresTie) {
  EXPECT_EQ(roc_auc(Floats{0.3f, 0.3f, 0.3f}, Bytes{1, 0, 0}), 0.5);
  EXPECT_EQ(roc_auc(Floats{0.0f, -0.0f}, Bytes{1, 0}), 0.5);
}

TEST(RocAuc, TakesAnyByteButZeroForPositive) {
  EXPECT_EQ(roc_auc(Floats{0.1f, 0.2f, 0.3f}, Bytes{0, 2, 255}), 1.0);
}

TEST(RocAuc, IsExactOnManySamples) {
  // 60,000 positives above 60,000 negatives, but for one pair: counts beyond 32 bits.
  constexpr std::size_t kEach = 60000;
  Floats score(2 * kEach);
  Bytes positive(2 * kEach);
  for (std::size_t i = 0; i < score.size(); ++i) {
    score[i] = static_cast<float>(i);
    positive[i] = i >= kEach ? 1 : 0;
  }
  std::swap(score[kEach - 1], score[kEach]);
  const double pairs = static_cast<double>(kEach * kEach);
  EXPECT_EQ(roc_auc(score, positive), (pairs - 1.0) / pairs);
}

TEST(RocAuc, IsNanWhereItIsNotDefined) {
  EXPECT_TRUE(std::isnan(roc_auc({}, {})));
  EXPECT_TRUE(std::isnan(roc_auc(Floats{1.0f, 2.0f}, Bytes{1, 1})));
  EXPECT_TRUE(std::isnan(roc_auc(Floats{1.0f, 2.0f}, Bytes{0, 0})));
  EXPECT_TRUE(std::isnan(roc_auc(Floats{1.0f, kNan, 2.0f}, Bytes{1, 0, 0})));
  EXPECT_TRUE(std::isnan(roc_auc(Floats(100, kNan), Bytes(100, 1))));
}

TEST(AveragePrecision, EqualsTheAreaOverAllThresholds) {
  for_random_samples([](const Samples& s) {
    ASSERT_NEAR(average_precision(s.score, s.positive), stepwise_average_precision(s), kTolerance);
  });
}

TEST(AveragePrecision, EqualsTheExampleOfScikitLearn) {
  // average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) in its documentation: 0.83...
  EXPECT_NEAR(average_precision(Floats{0.1f, 0.4f, 0.35f, 0.8f}, Bytes{0, 0, 1, 1}), 5.0 / 6.0,
              kTolerance);
}

TEST(AveragePrecision, IsTheShareOfPositivesWhenAllScoresTie) {
  EXPECT_DOUBLE_EQ(average_precision(Floats{1.0f, 1.0f, 1.0f, 1.0f}, Bytes{1, 0, 0, 0}), 0.25);
}

TEST(AveragePrecision, NeedsAPositiveButNoNegative) {
  EXPECT_TRUE(std::isnan(average_precision({}, {})));
  EXPECT_TRUE(std::isnan(average_precision(Floats{1.0f, 2.0f}, Bytes{0, 0})));
  EXPECT_TRUE(std::isnan(average_precision(Floats{1.0f, kNan}, Bytes{1, 0})));
  EXPECT_EQ(average_precision(Floats{1.0f, 2.0f}, Bytes{1, 1}), 1.0);
}

TEST(MeanAveragePrecision, IsTheMeanOverColumnsWithBothClasses) {
  constexpr int kLabels = 4;
  constexpr int kCount = 50;
  std::mt19937 generator(2);
  std::vector<Samples> columns;
  columns.reserve(kLabels);
  for (int label = 0; label < kLabels; ++label) {
    columns.push_back(random_samples(generator, kCount, 5, 0.3));
  }
  columns[1].positive.assign(kCount, 0);
  columns[1].score[0] = kNan;  // a column left out spoils nothing
  columns[3].positive.assign(kCount, 1);
  Samples table;
  for (int i = 0; i < kCount; ++i) {
    for (const Samples& column : columns) {
      table.score.push_back(column.score[i]);
      table.positive.push_back(column.positive[i]);
    }
  }
  const double expected =
      0.5 * (stepwise_average_precision(columns[0]) + stepwise_average_precision(columns[2]));
  EXPECT_NEAR(mean_average_precision(table.score, table.positive, kLabels), expected, kTolerance);
}

TEST(MeanAveragePrecision, IsNanWithoutAUsableColumn) {
  EXPECT_TRUE(std::isnan(mean_average_precision({}, {}, 3)));
  EXPECT_TRUE(std::isnan(mean_average_precision(Floats{1, 2, 3, 4}, Bytes{1, 0, 1, 0}, 2)));
  EXPECT_TRUE(std::isnan(mean_average_precision(Floats{1, kNan}, Bytes{1, 0}, 1)));
}

TEST(Errors, EqualTheirDefinitionsOverTheKnownEntries) {
  std::mt19937 generator(3);
  std::uniform_int_distribution<int> pick(-4, 4);
  std::normal_distribution<float> normal;
  Floats truth(500);
  Floats predicted(500);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const int value = pick(generator);
    truth[i] = value == 4 ? kNan : static_cast<float>(value);
    predicted[i] = value >= 3 ? kNan : normal(generator);  // unknown where the truth is left out
  }
  double mae = 0.0, mse = 0.0, mape = 0.0, count = 0.0, nonzero = 0.0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!(truth[i] < 3.0f)) continue;
    const double error = std::abs(static_cast<double>(predicted[i]) - truth[i]);
    mae += error;
    mse += error * error;
    count += 1.0;
    if (truth[i] == 0.0f) continue;
    mape += 100.0 * error / std::abs(truth[i]);
    nonzero += 1.0;
  }
  const Errors result = errors(predicted, truth, 3.0f);
  EXPECT_EQ(static_cast<double>(result.count), count);
  EXPECT_NEAR(result.mae, mae / count, kTolerance);
  EXPECT_NEAR(result.mse, mse / count, kTolerance);
  EXPECT_NEAR(result.rmse, std::sqrt(mse / count), kTolerance);
  EXPECT_NEAR(result.mape, mape / nonzero, 100.0 * kTolerance);
}

TEST(Errors, AreNanWithoutKnownEntries) {
  for (const Errors& result : {errors({}, {}), errors(Floats{1.0f, 2.0f}, Floats{kNan, kNan}),
                               errors(Floats{1.0f, 2.0f}, Floats{-1.0f, kNan}, -1.0f)}) {
    EXPECT_EQ(result.count, 0);
    for (const double value : {result.mae, result.mse, result.rmse, result.mape}) {
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST(Errors, CountZerosExceptInThePercentage) {
  const Errors some = errors(Floats{1.0f, 3.0f}, Floats{0.0f, 2.0f});
  EXPECT_EQ(some.count, 2);
  EXPECT_DOUBLE_EQ(some.mae, 1.0);
  EXPECT_DOUBLE_EQ(some.mape, 50.0);
  const Errors only_zeros = errors(Floats{1.0f}, Floats{0.0f});
  EXPECT_DOUBLE_EQ(only_zeros.mse, 1.0);
  EXPECT_TRUE(std::isnan(only_zeros.mape));
  EXPECT_EQ(errors(Floats{1.0f, 3.0f}, Floats{-0.0f, 2.0f}, 0.0f).count, 1);
}

TEST(Errors, AreNanIfAPredictionIs) {
  const Errors result = errors(Floats{kNan, 1.0f}, Floats{1.0f, 1.0f});
  EXPECT_EQ(result.count, 2);
  EXPECT_TRUE(std::isnan(result.mae));
  EXPECT_TRUE(std::isnan(result.mape));
}

TEST(Metrics, RefuseSizesThatDiffer) {
  const Floats two{1.0f, 2.0f};
  const Bytes three{1, 0, 1};
  EXPECT_THAT([&] { roc_auc(two, three); }, ThrowsMessage<std::invalid_argument>(
                                                StrEq("roc_auc: expected score of size 3, got 2")));
  EXPECT_THROW(average_precision(two, three), std::invalid_argument);
  EXPECT_THROW(mean_average_precision(two, three, 1), std::invalid_argument);
  EXPECT_THROW(accuracy(Integers{1}, Integers{}), std::invalid_argument);
  EXPECT_THROW(errors(two, Floats{1.0f}), std::invalid_argument);
  EXPECT_THROW(mean_average_precision(two, Bytes{1, 0}, 0), std::invalid_argument);
  EXPECT_THAT(
      [&] {
        mean_average_precision(Floats{1, 2, 3}, three, 2);
      },
      ThrowsMessage<std::invalid_argument>(
          StrEq("mean_average_precision: expected num_labels that divides 3 entries, "
                "got 2")));
}

TEST(MetricInfo, KnowsWhichWayIsBetter) {
  EXPECT_EQ(metric_info("roc_auc").title, "ROC AUC");
  for (const char* name : {"accuracy", "roc_auc", "average_precision"}) {
    EXPECT_TRUE(metric_info(name).higher_is_better) << name;
  }
  for (const char* name : {"mse", "log10_mse", "mae", "rmse", "mape", "loss"}) {
    EXPECT_FALSE(metric_info(name).higher_is_better) << name;
  }
  EXPECT_THAT([] { metric_info("auc"); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("metric_info: expected one of accuracy, balanced_accuracy, f1, macro_f1, "
                        "r2, roc_auc, average_precision, hits_20, hits_50, hits_100, mse, "
                        "log10_mse, mae, rmse, mape, loss, got 'auc'")));
}

TEST(ClassScores, EqualTheirDefinitions) {
  const std::vector<std::int64_t> truth = {0, 0, 0, 1, 1, 2};
  const std::vector<std::int64_t> predicted = {0, 0, 1, 1, 2, 0};
  // Found 2 of 3, 1 of 2, 0 of 1; said 3, 2, 1 times. The fourth class is nowhere.
  const ClassScores scores = class_scores(predicted, truth, 4);
  EXPECT_DOUBLE_EQ(scores.balanced_accuracy, (2.0 / 3.0 + 0.5 + 0.0) / 3.0);
  EXPECT_DOUBLE_EQ(scores.macro_f1, (2.0 * 2 / 6 + 2.0 * 1 / 4 + 0.0) / 3.0);
  EXPECT_DOUBLE_EQ(scores.f1, 0.5);
}

TEST(R2, IsOneForTheTruthAndZeroForItsMean) {
  const std::vector<float> truth = {1, 2, 6, static_cast<float>(kNan)};
  EXPECT_DOUBLE_EQ(r2(std::vector<float>{1, 2, 6, 9}, truth), 1.0);
  EXPECT_DOUBLE_EQ(r2(std::vector<float>{3, 3, 3, 9}, truth), 0.0);
  EXPECT_TRUE(std::isnan(r2(std::vector<float>{1, 2}, std::vector<float>{4, 4})));
}

TEST(ClassMetrics, LeaveOutWhatHasNoLabel) {
  const auto nan = static_cast<float>(kNan);
  const Metrics two =
      class_metrics(std::vector<float>{1, -1, 2, -5}, 1, std::vector<float>{1, 0, nan, 1});
  EXPECT_DOUBLE_EQ(two.at("accuracy"), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(two.at("roc_auc"), 0.5);
  const Metrics three = class_metrics(std::vector<float>{1, 0, 0, 0, 0, 1, 0, 1, 0}, 3,
                                      std::vector<float>{0, 2, nan});
  EXPECT_DOUBLE_EQ(three.at("accuracy"), 1.0);
  EXPECT_FALSE(three.contains("roc_auc"));
}

// Of numbers that are nearly normal: the mean and 1.96 standard errors to either side.
TEST(BootstrapInterval, IsThatOfTheMean) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(3.0, 2.0);
  std::vector<double> values(150);
  for (double& value : values) value = normal(random);
  const Summary summary = summarise(values);
  const MeanInterval interval = bootstrap_interval(values);
  const double width = 1.96 * summary.std / std::sqrt(150.0);
  EXPECT_NEAR(interval.low, summary.mean - width, 0.1 * width);
  EXPECT_NEAR(interval.high, summary.mean + width, 0.1 * width);
  EXPECT_EQ(bootstrap_interval(values).low, interval.low);
  const MeanInterval same = bootstrap_interval(std::vector<double>(5, 2.5));
  EXPECT_EQ(same.low, 2.5);
  EXPECT_EQ(same.high, 2.5);
  EXPECT_TRUE(std::isnan(bootstrap_interval({}).low));
}

TEST(Summary, IsMeanAndSampleDeviation) {
  const Summary summary = summarise(std::vector<double>{1.0, 2.0, 3.0, 6.0});
  EXPECT_DOUBLE_EQ(summary.mean, 3.0);
  EXPECT_DOUBLE_EQ(summary.std, std::sqrt(14.0 / 3.0));
  EXPECT_EQ(summary.count, 4);
}

TEST(Summary, OfOneValueHasNoDeviation) {
  const Summary summary = summarise(std::vector<double>{0.1});
  EXPECT_EQ(summary.mean, 0.1);
  EXPECT_EQ(summary.std, 0.0);
}

TEST(Summary, IsNanForNoValuesOrNan) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, std::vector<double>{kNan}, std::vector<double>{1.0, kNan, 2.0}}) {
    const Summary summary = summarise(values);
    EXPECT_TRUE(std::isnan(summary.mean));
    EXPECT_TRUE(std::isnan(summary.std));
    EXPECT_EQ(summary.count, std::ssize(values));
  }
}

}  // namespace
}  // namespace mpssm::task
