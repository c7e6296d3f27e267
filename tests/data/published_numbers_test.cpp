// SPDX-License-Identifier: MIT
// Evidence for docs/errata.md: published numbers that simple predictors give, computed from the
// real files if they are there.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/data/load.h"

#include "tests/data/files.h"
#include "tests/support/real_data.h"

namespace mpssm::data {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

bool is_here(const char* file) { return std::filesystem::exists(testing::real_data() / file); }

Dataset load_real(const char* name) { return load(name, {.data_dir = testing::real_data()}); }

/// log10 of the plain mean, over batches of test graphs, of the error of the train mean: what the
/// published code prints for a network that learns nothing.
double constant_predictor(const GraphsData& data, std::size_t batch, double scale) {
  const auto mean_over_nodes = [&](std::size_t graph, const auto& value) {
    double sum = 0.0;
    for (auto i = data.node_ptr[graph]; i < data.node_ptr[graph + 1]; ++i) {
      sum += value(data.target.values[i] / scale);
    }
    return sum / static_cast<double>(data.node_ptr[graph + 1] - data.node_ptr[graph]);
  };
  double constant = 0.0;
  std::size_t num_train = 0;
  for (std::size_t g = 0; g < data.part.size(); ++g) {
    if (data.part[g] != Part::kTrain) continue;
    constant += mean_over_nodes(g, [](double y) { return y; });
    ++num_train;
  }
  constant /= static_cast<double>(num_train);
  std::vector<double> errors;
  for (std::size_t g = 0; g < data.part.size(); ++g) {
    if (data.part[g] != Part::kTest) continue;
    errors.push_back(mean_over_nodes(g, [&](double y) { return (y - constant) * (y - constant); }));
  }
  double sum = 0.0;
  double num_batches = 0.0;
  for (std::size_t begin = 0; begin < errors.size(); begin += batch, ++num_batches) {
    const std::size_t end = std::min(begin + batch, errors.size());
    double of_batch = 0.0;
    for (std::size_t i = begin; i < end; ++i) of_batch += errors[i];
    sum += of_batch / static_cast<double>(end - begin);
  }
  return std::log10(sum / num_batches);
}

TEST(PublishedNumbers, ConstantOnTheLaplacianColumnGivesThePrintedSsspRows) {
  if (!is_here("gpp/gpp_25-35.npz")) GTEST_SKIP() << "gpp/gpp_25-35.npz is not here";
  const Dataset dataset = load_real("gpp-published-sssp");
  const auto& data = std::get<GraphsData>(dataset.content);
  // Printed: Linear GCN -1.5822, -1.5823, -1.5821; GCN 0.9499.
  EXPECT_NEAR(constant_predictor(data, 128, data.label_scale), -1.5821, 1e-4);
  EXPECT_NEAR(constant_predictor(data, 512, 1.0), 0.9503, 1e-4);
  // The other two ways to combine scale and batch do not fit.
  EXPECT_NEAR(constant_predictor(data, 128, 1.0), 0.9165, 1e-4);
  EXPECT_NEAR(constant_predictor(data, 512, data.label_scale), -1.5484, 1e-4);
}

// The paper's table has MP-SSM on labels divided by their training maximum and the other models on
// raw labels. On one scale A-DGN and GPS are ahead of it but for "Eccentricity".
TEST(PublishedNumbers, OtherModelsOnTheScaleOfMpssm) {
  if (!is_here("gpp/gpp_25-35.npz")) GTEST_SKIP() << "gpp/gpp_25-35.npz is not here";
  struct Task {
    const char* name;
    double largest, mpssm, a_dgn, gps;  // as printed
    double a_dgn_here, gps_here;        // as docs/results.md and README.md have them
  };
  for (const auto& task :
       {Task{"diameter", 33.0, -3.2353, -0.5188, -0.5121, -3.5558, -3.5491},
        Task{"gpp-published-sssp", 17.755381, -4.6321, -3.2417, -3.5990, -5.7404, -6.0977},
        Task{"gpp-published-eccentricity", 30.0, -2.9724, 0.4296, 0.6077, -2.5246, -2.3465}}) {
    const Dataset dataset = load_real(task.name);
    const auto& data = std::get<GraphsData>(dataset.content);
    double largest = 0.0;
    const bool of_nodes = data.target.values.size() != data.part.size();
    for (std::size_t g = 0; g < data.part.size(); ++g) {
      if (data.part[g] != Part::kTrain) continue;
      const std::size_t begin = of_nodes ? data.node_ptr[g] : g;
      const std::size_t end = of_nodes ? data.node_ptr[g + 1] : g + 1;
      for (std::size_t i = begin; i < end; ++i) {
        largest = std::max<double>(largest, data.target.values[i]);
      }
    }
    EXPECT_NEAR(largest, task.largest, 1e-5) << task.name;
    EXPECT_NEAR(data.label_scale, task.largest, 1e-5) << task.name;
    // An error of labels divided by c is smaller by c, its square by c^2.
    const double shift = 2.0 * std::log10(largest);
    EXPECT_NEAR(task.a_dgn - shift, task.a_dgn_here, 1e-4) << task.name;
    EXPECT_NEAR(task.gps - shift, task.gps_here, 1e-4) << task.name;
    const bool is_ahead = std::min(task.a_dgn_here, task.gps_here) < task.mpssm;
    EXPECT_EQ(is_ahead, std::string(task.name) != "gpp-published-eccentricity") << task.name;
  }
}

/// Windows [begin, end), all nodes below each other: the lags and a constant, and what follows.
struct Regression {
  MatrixXd inputs;
  VectorXd targets;

  Regression(const SeriesData& series, std::int64_t begin, std::int64_t end)
      : inputs((end - begin) * series.num_nodes, series.lags + 1), targets(inputs.rows()) {
    const auto value = [&](std::int64_t t, std::int64_t i) {
      return static_cast<double>(series.values[t * series.num_nodes + i]);
    };
    for (std::int64_t row = 0; row < inputs.rows(); ++row) {
      const std::int64_t window = begin + row / series.num_nodes;
      const std::int64_t node = row % series.num_nodes;
      for (std::int64_t lag = 0; lag < series.lags; ++lag) {
        inputs(row, lag) = value(window + lag, node);
      }
      inputs(row, series.lags) = 1.0;
      targets(row) = value(window + series.lags, node);
    }
  }
  VectorXd line() const {
    return (inputs.transpose() * inputs).ldlt().solve(inputs.transpose() * targets);
  }
  double error(const VectorXd& line) const {
    return (inputs * line - targets).squaredNorm() / static_cast<double>(targets.size());
  }
  /// Standard error of error(line), the numbers of one of `groups` equal parts taken together.
  double standard_error(const VectorXd& line, std::int64_t groups) const {
    const VectorXd squared = (inputs * line - targets).array().square();
    const VectorXd means =
        squared.reshaped(squared.size() / groups, groups).colwise().mean().transpose();
    const double variance =
        (means.array() - means.mean()).square().sum() / static_cast<double>(groups - 1);
    return std::sqrt(variance / static_cast<double>(groups));
  }
  double zero() const { return targets.squaredNorm() / static_cast<double>(targets.size()); }
};

TEST(PublishedNumbers, SeriesAreWhatALineAndZeroGive) {
  struct Expected {
    const char* name;
    const char* file;
    double zero, line, line_of_test;
  };
  // Printed MP-SSM: Chickenpox 0.748, PedalMe 0.647; printed baselines with the broadcast mistake:
  // 1.11 to 1.13 and 1.46 to 1.62.
  for (const auto& expected :
       {Expected{"chickenpox", "chickenpox/chickenpox.json", 1.1172, 0.8188, 0.761},
        Expected{"pedalme", "pedalme/pedalme_london.json", 1.4888, 1.392, 0.642}}) {
    if (!is_here(expected.file)) GTEST_SKIP() << expected.file << " is not here";
    const Dataset dataset = load_real(expected.name);
    const auto& series = std::get<SeriesData>(dataset.content);
    const WindowSplit split = window_split(series);
    const Regression train(series, 0, split.test);
    const Regression test(series, split.test, split.end);
    EXPECT_NEAR(test.zero(), expected.zero, 1e-4) << expected.name;
    EXPECT_NEAR(test.error(train.line()), expected.line, 2e-3) << expected.name;
    EXPECT_NEAR(test.error(test.line()), expected.line_of_test, 1e-3) << expected.name;
  }
}

// The series that stands in for WikiMath's: its sizes, and that it is as easy for a line as the
// record of its reconstruction says. Printed for the original: MP-SSM 0.509, HMM4G 0.542.
TEST(PublishedNumbers, WikiMathReconstructed) {
  if (!is_here("wikimath/wikimath_reconstructed.npz")) {
    GTEST_SKIP() << "wikimath/wikimath_reconstructed.npz is not here";
  }
  for (const auto& [train_ratio, expected] : {std::pair(0.9, 0.549), std::pair(0.8, 0.613)}) {
    const Dataset dataset = load("wikimath-reconstructed",
                                 {.data_dir = testing::real_data(), .train_ratio = train_ratio});
    const auto& series = std::get<SeriesData>(dataset.content);
    EXPECT_EQ(series.num_nodes, 1068);
    EXPECT_EQ(series.num_steps, 731);
    EXPECT_EQ(series.lags, 8);
    EXPECT_EQ(series.graph.num_edges(), 27079);
    const WindowSplit split = window_split(series);
    const Regression train(series, 0, split.test);
    const Regression test(series, split.test, split.end);
    EXPECT_NEAR(test.error(train.line()), expected, 1e-3) << train_ratio;
    if (train_ratio < 0.9) continue;
    EXPECT_EQ(split.test, 650);
    EXPECT_EQ(split.end, 723);
    EXPECT_NEAR(test.zero(), 0.831, 5e-4);
    // Each node has mean 0 and deviation 1 over all time: the test part is looked at, as upstream.
    for (std::int64_t node = 0; node < series.num_nodes; node += 97) {
      double sum = 0.0;
      double squares = 0.0;
      for (std::int64_t t = 0; t < series.num_steps; ++t) {
        const double x = series.values[t * series.num_nodes + node];
        sum += x;
        squares += x * x;
      }
      EXPECT_NEAR(sum, 0.0, 1e-2);
      EXPECT_NEAR(squares / static_cast<double>(series.num_steps), 1.0, 2e-2);
    }
  }
}

// How much the test error would change with other test data: far more than it does with the seed.
// On Chickenpox the 20 counties of a week go up and down together, so weeks are counted.
TEST(PublishedNumbers, TestPartsOfTheSeriesAreSmall) {
  struct Expected {
    const char* name;
    const char* file;
    double train_ratio;
    std::int64_t num_test;
    bool by_weeks;
    double standard_error;
  };
  for (const auto& expected :
       {Expected{"pedalme", "pedalme/pedalme_london.json", 0.9, 60, false, 0.320},
        Expected{"pedalme", "pedalme/pedalme_london.json", 0.8, 105, false, 0.207},
        Expected{"chickenpox", "chickenpox/chickenpox.json", 0.9, 52 * 20, true, 0.164},
        Expected{"chickenpox", "chickenpox/chickenpox.json", 0.8, 104 * 20, true, 0.093}}) {
    if (!is_here(expected.file)) GTEST_SKIP() << expected.file << " is not here";
    const Dataset dataset = load(
        expected.name, {.data_dir = testing::real_data(), .train_ratio = expected.train_ratio});
    const auto& series = std::get<SeriesData>(dataset.content);
    const WindowSplit split = window_split(series);
    const Regression train(series, 0, split.test);
    const Regression test(series, split.test, split.end);
    ASSERT_EQ(test.targets.size(), expected.num_test) << expected.name;
    const std::int64_t groups = expected.by_weeks ? split.end - split.test : expected.num_test;
    EXPECT_NEAR(test.standard_error(train.line(), groups), expected.standard_error, 2e-3)
        << expected.name << " " << expected.train_ratio;
  }
}

// The error of PedalMe's 60 numbers is that of the last week of four.
TEST(PublishedNumbers, OneWeekDecidesPedalMe) {
  if (!is_here("pedalme/pedalme_london.json")) GTEST_SKIP() << "pedalme is not here";
  const Dataset dataset = load_real("pedalme");
  const auto& series = std::get<SeriesData>(dataset.content);
  const WindowSplit split = window_split(series);
  const VectorXd line = Regression(series, 0, split.test).line();
  const double all = Regression(series, split.test, split.end).error(line);
  const double last = Regression(series, split.end - 1, split.end).error(line);
  EXPECT_GT(last / 4.0, 0.9 * all);
}

/// Forecasts of traffic an hour ahead without a network: per sensor, from its own readings.
class TrafficReferences {
 public:
  explicit TrafficReferences(const SeriesData& series)
      : series_(series), split_(window_split(series)), ahead_(series.lags + series.horizon - 1) {
    make_weekly_mean();
  }

  /// The last reading that is not missing.
  double last_observed() const {
    return error([&](std::int64_t window, std::int64_t node) {
      std::int64_t t = window + series_.lags - 1;
      while (t > 0 && is_missing(t, node)) --t;
      return reading(t, node);
    });
  }

  /// Least absolute deviations of a line on what the window is above or below the weekly mean (0
  /// where missing), added to the weekly mean of the time that is forecast.
  double line_on_weekly_deviations() const {
    MatrixXd lines(series_.lags + 1, series_.num_nodes);
    for (std::int64_t node = 0; node < series_.num_nodes; ++node) lines.col(node) = fit(node);
    return error([&](std::int64_t window, std::int64_t node) {
      double sum = lines(series_.lags, node) + weekly_mean(window + ahead_, node);
      for (std::int64_t lag = 0; lag < series_.lags; ++lag) {
        sum += lines(lag, node) * deviation(window + lag, node);
      }
      return sum;
    });
  }

 private:
  double reading(std::int64_t t, std::int64_t node) const {
    return series_.values[t * series_.num_nodes + node];
  }
  bool is_missing(std::int64_t t, std::int64_t node) const {
    return reading(t, node) == *series_.null_value;
  }
  double weekly_mean(std::int64_t t, std::int64_t node) const { return mean_(slot_[t], node); }
  double deviation(std::int64_t t, std::int64_t node) const {
    return is_missing(t, node) ? 0.0 : reading(t, node) - weekly_mean(t, node);
  }

  /// Over the training part, by five minutes of the week and two such steps to either side.
  void make_weekly_mean() {
    constexpr std::int64_t kPerDay = 288;
    constexpr std::int64_t kPerWeek = 7 * kPerDay;
    constexpr std::int64_t kSmooth = 2;
    slot_.resize(series_.num_steps);
    std::int64_t day = 0;
    for (std::int64_t t = 0; t < series_.num_steps; ++t) {
      if (t > 0 && series_.time_of_day[t] < series_.time_of_day[t - 1]) ++day;
      slot_[t] = day % 7 * kPerDay + std::llround(series_.time_of_day[t] * kPerDay) % kPerDay;
    }
    MatrixXd sum = MatrixXd::Zero(kPerWeek, series_.num_nodes);
    MatrixXd count = sum;
    for (std::int64_t t = 0; t < split_.val + ahead_; ++t) {
      for (std::int64_t node = 0; node < series_.num_nodes; ++node) {
        if (is_missing(t, node)) continue;
        for (std::int64_t shift = -kSmooth; shift <= kSmooth; ++shift) {
          const std::int64_t slot = (slot_[t] + shift + kPerWeek) % kPerWeek;
          sum(slot, node) += reading(t, node);
          count(slot, node) += 1.0;
        }
      }
    }
    mean_ = sum.cwiseQuotient(count.cwiseMax(1.0));
    for (std::int64_t node = 0; node < series_.num_nodes; ++node) {
      const double overall = sum.col(node).sum() / count.col(node).sum();
      for (std::int64_t slot = 0; slot < kPerWeek; ++slot) {
        if (count(slot, node) == 0.0) mean_(slot, node) = overall;
      }
    }
  }

  /// By reweighted least squares.
  VectorXd fit(std::int64_t node) const {
    std::vector<std::int64_t> windows;
    for (std::int64_t w = 0; w < split_.val; ++w) {
      if (!is_missing(w + ahead_, node)) windows.push_back(w);
    }
    MatrixXd inputs(windows.size(), series_.lags + 1);
    VectorXd targets(windows.size());
    for (std::size_t row = 0; row < windows.size(); ++row) {
      for (std::int64_t lag = 0; lag < series_.lags; ++lag) {
        inputs(row, lag) = deviation(windows[row] + lag, node);
      }
      inputs(row, series_.lags) = 1.0;
      targets(row) = deviation(windows[row] + ahead_, node);
    }
    VectorXd weights = VectorXd::Ones(targets.size());
    VectorXd line;
    for (int round = 0; round < 15; ++round) {
      const MatrixXd weighted = weights.asDiagonal() * inputs;
      line = (weighted.transpose() * inputs).ldlt().solve(weighted.transpose() * targets);
      weights = (targets - inputs * line).cwiseAbs().cwiseMax(0.05).cwiseInverse();
    }
    return line;
  }

  /// Mean absolute error of the last step ahead over the test windows, missing targets left out.
  template <typename Forecast>
  double error(const Forecast& forecast) const {
    double sum = 0.0;
    double count = 0.0;
    for (std::int64_t window = split_.test; window < split_.end; ++window) {
      for (std::int64_t node = 0; node < series_.num_nodes; ++node) {
        if (is_missing(window + ahead_, node)) continue;
        sum += std::abs(forecast(window, node) - reading(window + ahead_, node));
        count += 1.0;
      }
    }
    return sum / count;
  }

  const SeriesData& series_;
  WindowSplit split_;
  std::int64_t ahead_;
  std::vector<std::int64_t> slot_;
  MatrixXd mean_;
};

// Ours: 4.04 and 2.21, one seed each. The model is a little better than a line.
TEST(PublishedNumbers, TrafficIsNearlyWhatALineOnWeeklyDeviationsGives) {
  struct Expected {
    const char* name;
    const char* file;
    double last_observed, line;
  };
  for (const auto& expected :
       {Expected{"metr-la-29", "traffic/metr_la_subset29.npz", 5.650, 4.070},
        Expected{"pems-bay-67", "traffic/pems_bay_subset67.npz", 3.096, 2.3}}) {
    if (!is_here(expected.file)) GTEST_SKIP() << expected.file << " is not here";
    const Dataset dataset = load_real(expected.name);
    const TrafficReferences references(std::get<SeriesData>(dataset.content));
    EXPECT_NEAR(references.last_observed(), expected.last_observed, 1e-3) << expected.name;
    EXPECT_NEAR(references.line_on_weekly_deviations(), expected.line, 5e-3) << expected.name;
  }
}

// (y_j - p_i)^2 over all pairs instead of over i = j is least where every p_i is the mean of y.
TEST(PublishedNumbers, BroadcastLossTeachesOneConstant) {
  const VectorXd y = (VectorXd(5) << 1.0, -2.0, 0.5, 4.0, 3.0).finished();
  VectorXd p = VectorXd::Zero(5);
  for (int step = 0; step < 200; ++step) {
    p -= 0.05 * (2.0 * (5.0 * p - VectorXd::Constant(5, y.sum())) / 5.0);
  }
  const auto broadcast_loss = [&](const VectorXd& at) {
    double sum = 0.0;
    for (const double truth : y) sum += (at.array() - truth).square().sum();
    return sum / 25.0;
  };
  EXPECT_LT((p.array() - y.mean()).abs().maxCoeff(), 1e-6);
  EXPECT_LT(broadcast_loss(p), broadcast_loss(y));  // the truth itself is worse
}

TEST(PublishedNumbers, SeriesHaveOtherSizesThanPrinted) {
  if (!is_here("chickenpox/chickenpox.json") || !is_here("pedalme/pedalme_london.json")) {
    GTEST_SKIP() << "chickenpox or pedalme is not here";
  }
  const Dataset chickenpox = load_real("chickenpox");
  const Dataset pedalme = load_real("pedalme");
  const auto& weeks = std::get<SeriesData>(chickenpox.content);
  EXPECT_EQ(weeks.num_steps, 521);  // printed: 512
  EXPECT_EQ(weeks.graph.num_entries(), 102);
  EXPECT_EQ(weeks.graph.num_self_loops(), 20);
  const auto& deliveries = std::get<SeriesData>(pedalme.content);
  EXPECT_EQ(deliveries.num_steps, 35);  // printed: 15
  EXPECT_EQ(deliveries.graph.num_entries(), 225);
  EXPECT_EQ(deliveries.graph.num_self_loops(), 15);
}

}  // namespace
}  // namespace mpssm::data
