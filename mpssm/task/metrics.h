// SPDX-License-Identifier: MIT
// Quality of predictions, exact with ties, on plain arrays.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::task {

/// By name; names as in metric_info.
using Metrics = std::map<std::string, double>;

/// "name 0x1.8p+1" in lines: every bit of a number, and NaN. Read back to the same.
std::string to_text(const Metrics& metrics);
Metrics metrics_from_text(const std::string& text);

/// A forecast that needs no training, to compare with.
struct Reference {
  std::string name;
  Metrics test;
};

// All sums run in double in index order. Sizes that differ throw std::invalid_argument. A metric
// that is not defined on its input (no samples, a class missing) is NaN, and so is one of
// predictions that hold a NaN. Any byte but 0 is positive.

/// Share of equal entries.
double accuracy(std::span<const std::int64_t> predicted, std::span<const std::int64_t> truth);

/// Probability that a random positive scores above a random negative, ties counting half.
/// O(n log n).
double roc_auc(std::span<const float> score, std::span<const std::uint8_t> positive);

/// Area under the precision-recall steps, sum over thresholds of (R_i - R_(i-1)) P_i, ties in one
/// step, as scikit-learn's average_precision_score. Needs a positive; without negatives it is 1.
double average_precision(std::span<const float> score, std::span<const std::uint8_t> positive);

/// Unweighted mean of average_precision over the columns of [n, num_labels] that have both
/// classes. Throws std::invalid_argument unless num_labels divides the size.
double mean_average_precision(std::span<const float> score, std::span<const std::uint8_t> positive,
                              std::int64_t num_labels);

/// Errors of predictions; entries whose truth equals `null_value`, or is NaN, are left out.
struct Errors {
  double mae = 0.0;
  double mse = 0.0;
  double rmse = 0.0;
  double mape = 0.0;  ///< percent, over entries whose truth is not 0
  std::int64_t count = 0;
};
Errors errors(std::span<const float> predicted, std::span<const float> truth,
              std::optional<float> null_value = {});

/// How well each of `num_classes` classes is told apart. Classes that the truth does not have are
/// left out of the means.
struct ClassScores {
  double balanced_accuracy = 0.0;  ///< mean over classes of the share that was found
  double macro_f1 = 0.0;           ///< mean over classes of 2 P R / (P + R), 0 where none is found
  double f1 = 0.0;                 ///< of class 1
};
ClassScores class_scores(std::span<const std::int64_t> predicted,
                         std::span<const std::int64_t> truth, std::int64_t num_classes);

/// 1 - squared error over that of the truth's own mean; NaN if the truth is constant.
double r2(std::span<const float> predicted, std::span<const float> truth);

/// All metrics of classes: `output` [n, columns] holds one logit of class 1 (columns 1, two
/// classes) or one for each class, `truth` class numbers, NaN for none.
Metrics class_metrics(std::span<const float> output, std::int64_t columns,
                      std::span<const float> truth);
/// mae, mse, rmse and r2.
Metrics value_metrics(std::span<const float> predicted, std::span<const float> truth);
/// Share of the edges that score above the k-th best of the other pairs; NaN of fewer than k of
/// these.
double hits_at(std::int64_t k, std::span<const float> of_edges, std::span<const float> of_others);
/// roc_auc, average_precision, hits_20, hits_50 and hits_100.
Metrics link_metrics(std::span<const float> of_edges, std::span<const float> of_others);
/// Row by row the class that a row of outputs says.
std::vector<std::int64_t> chosen_classes(std::span<const float> output, std::int64_t columns);

struct MetricInfo {
  std::string_view name;   ///< "roc_auc"
  std::string_view title;  ///< "ROC AUC"
  bool higher_is_better = true;
};
/// accuracy, balanced_accuracy, f1, macro_f1, roc_auc, average_precision, hits_20, hits_50,
/// hits_100, r2, mse, log10_mse, mae, rmse, mape, loss. Throws std::invalid_argument listing the
/// names.
const MetricInfo& metric_info(std::string_view name);

/// 95 % interval of the mean of few numbers, by drawing them anew, each as likely as any other: how
/// far it would be another with other numbers of the kind. The same for the same numbers.
struct MeanInterval {
  double low = 0.0;
  double high = 0.0;
};
MeanInterval bootstrap_interval(std::span<const double> values);

/// Mean and sample standard deviation (ddof 1; 0 for one value), NaN if any value is.
struct Summary {
  double mean = 0.0;
  double std = 0.0;
  std::int64_t count = 0;
};
Summary summarise(std::span<const double> values);

}  // namespace mpssm::task
