// SPDX-License-Identifier: MIT
// Ranking metrics walk over groups of equal scores, found by one radix sort.
#include "mpssm/task/metrics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "mpssm/base/random.h"

namespace mpssm::task {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

constexpr MetricInfo kMetrics[] = {
    {"accuracy", "Accuracy", true},
    {"balanced_accuracy", "Balanced accuracy", true},
    {"f1", "F1", true},
    {"macro_f1", "Macro F1", true},
    {"r2", "R2", true},
    {"roc_auc", "ROC AUC", true},
    {"average_precision", "Average precision", true},
    {"hits_20", "Hits@20", true},
    {"hits_50", "Hits@50", true},
    {"hits_100", "Hits@100", true},
    {"mse", "MSE", false},
    {"log10_mse", "log10 MSE", false},
    {"mae", "MAE", false},
    {"rmse", "RMSE", false},
    {"mape", "MAPE (%)", false},
    {"loss", "Loss", false},
};

void check_sizes(const char* function, const char* name, std::size_t expected, std::size_t size) {
  if (size == expected) return;
  throw std::invalid_argument(
      fmt::format("{}: expected {} of size {}, got {}", function, name, expected, size));
}

/// An integer that falls as the score rises. Adding 0 makes one zero of -0 and +0.
std::uint32_t sort_key(float score) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  return bits >> 31 != 0 ? bits : ~bits & 0x7fffffffu;
}

/// By bits 1 to 32: bit 0, the class, does not matter. Four times as fast as std::sort, whose
/// branches cannot be predicted on random scores.
void radix_sort(std::vector<std::uint64_t>& entries) {
  constexpr int kBits = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kBits;
  std::vector<std::uint64_t> sorted(entries.size());
  for (int shift = 1; shift <= 32; shift += kBits) {
    std::array<std::size_t, kBuckets> next{};
    for (const std::uint64_t entry : entries) ++next[entry >> shift & (kBuckets - 1)];
    std::size_t begin = 0;
    for (std::size_t& slot : next) begin += std::exchange(slot, begin);
    for (const std::uint64_t entry : entries) {
      sorted[next[entry >> shift & (kBuckets - 1)]++] = entry;
    }
    entries.swap(sorted);
  }
}

/// Calls visit(positives, negatives) for every group of equal scores, highest first. A NaN has no
/// rank: then there are no groups.
template <typename Visit>
void for_each_tie(std::span<const float> score, std::span<const std::uint8_t> positive,
                  const Visit& visit) {
  std::vector<std::uint64_t> entries(score.size());
  for (std::size_t i = 0; i < score.size(); ++i) {
    if (std::isnan(score[i])) return;
    entries[i] = std::uint64_t{sort_key(score[i])} << 1 | (positive[i] != 0 ? 1u : 0u);
  }
  radix_sort(entries);
  for (std::size_t i = 0; i < entries.size();) {
    const std::size_t begin = i;
    std::int64_t positives = 0;
    for (; i < entries.size() && entries[i] >> 1 == entries[begin] >> 1; ++i) {
      positives += static_cast<std::int64_t>(entries[i] & 1);
    }
    visit(positives, static_cast<std::int64_t>(i - begin) - positives);
  }
}

bool has_both_classes(std::span<const std::uint8_t> positive) {
  const auto zeros = std::count(positive.begin(), positive.end(), 0);
  return zeros != 0 && zeros != std::ssize(positive);
}

}  // namespace

std::string to_text(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format("{} {:a}\n", name, value);
  return text;
}

Metrics metrics_from_text(const std::string& text) {
  Metrics metrics;
  std::istringstream lines(text);
  std::string name;
  std::string value;
  while (lines >> name >> value) metrics[name] = std::strtod(value.c_str(), nullptr);
  return metrics;
}

double accuracy(std::span<const std::int64_t> predicted, std::span<const std::int64_t> truth) {
  check_sizes("accuracy", "predicted", truth.size(), predicted.size());
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) equal += predicted[i] == truth[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(truth.size());
}

double roc_auc(std::span<const float> score, std::span<const std::uint8_t> positive) {
  check_sizes("roc_auc", "score", positive.size(), score.size());
  std::int64_t twice_won = 0;  // integers: exact up to 2^31 samples
  std::int64_t positives = 0;
  std::int64_t negatives = 0;
  for_each_tie(score, positive, [&](std::int64_t more_positives, std::int64_t more_negatives) {
    twice_won += more_negatives * (2 * positives + more_positives);
    positives += more_positives;
    negatives += more_negatives;
  });
  if (positives == 0 || negatives == 0) return kUndefined;
  return static_cast<double>(twice_won) / (2.0 * static_cast<double>(positives * negatives));
}

double average_precision(std::span<const float> score, std::span<const std::uint8_t> positive) {
  check_sizes("average_precision", "score", positive.size(), score.size());
  double area = 0.0;
  std::int64_t found = 0;
  std::int64_t taken = 0;
  for_each_tie(score, positive, [&](std::int64_t positives, std::int64_t negatives) {
    found += positives;
    taken += positives + negatives;
    area +=
        static_cast<double>(positives) * static_cast<double>(found) / static_cast<double>(taken);
  });
  return found == 0 ? kUndefined : area / static_cast<double>(found);
}

double mean_average_precision(std::span<const float> score, std::span<const std::uint8_t> positive,
                              std::int64_t num_labels) {
  check_sizes("mean_average_precision", "score", positive.size(), score.size());
  const std::int64_t size = std::ssize(positive);
  if (num_labels < 1 || size % num_labels != 0) {
    throw std::invalid_argument(
        fmt::format("mean_average_precision: expected num_labels that divides {} entries, got {}",
                    size, num_labels));
  }
  std::vector<float> column_score(size / num_labels);
  std::vector<std::uint8_t> column_positive(column_score.size());
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::int64_t label = 0; label < num_labels; ++label) {
    for (std::size_t i = 0; i < column_score.size(); ++i) {
      column_score[i] = score[i * num_labels + label];
      column_positive[i] = positive[i * num_labels + label];
    }
    if (!has_both_classes(column_positive)) continue;
    sum += average_precision(column_score, column_positive);
    ++count;
  }
  return count == 0 ? kUndefined : sum / static_cast<double>(count);
}

Errors errors(std::span<const float> predicted, std::span<const float> truth,
              std::optional<float> null_value) {
  check_sizes("errors", "predicted", truth.size(), predicted.size());
  double absolute = 0.0;
  double squared = 0.0;
  double relative = 0.0;
  std::int64_t count = 0;
  std::int64_t nonzero = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(truth[i]) || truth[i] == null_value) continue;
    const double error = static_cast<double>(predicted[i]) - truth[i];
    absolute += std::abs(error);
    squared += error * error;
    ++count;
    if (truth[i] == 0.0f) continue;
    relative += std::abs(error / truth[i]);
    ++nonzero;
  }
  const double mse = squared / static_cast<double>(count);
  return {.mae = absolute / static_cast<double>(count),
          .mse = mse,
          .rmse = std::sqrt(mse),
          .mape = 100.0 * relative / static_cast<double>(nonzero),
          .count = count};
}

ClassScores class_scores(std::span<const std::int64_t> predicted,
                         std::span<const std::int64_t> truth, std::int64_t num_classes) {
  check_sizes("class_scores", "predicted", truth.size(), predicted.size());
  std::vector<std::int64_t> hits(num_classes, 0);
  std::vector<std::int64_t> said(num_classes, 0);
  std::vector<std::int64_t> there(num_classes, 0);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++said.at(predicted[i]);
    ++there.at(truth[i]);
    if (predicted[i] == truth[i]) ++hits[truth[i]];
  }
  const auto f1_of = [&](std::int64_t c) {
    return 2.0 * static_cast<double>(hits[c]) / static_cast<double>(said[c] + there[c]);
  };
  ClassScores scores;
  std::int64_t count = 0;
  for (std::int64_t c = 0; c < num_classes; ++c) {
    if (there[c] == 0) continue;
    ++count;
    scores.balanced_accuracy += static_cast<double>(hits[c]) / static_cast<double>(there[c]);
    scores.macro_f1 += f1_of(c);
  }
  scores.balanced_accuracy /= static_cast<double>(count);
  scores.macro_f1 /= static_cast<double>(count);
  scores.f1 = num_classes > 1 && said[1] + there[1] > 0 ? f1_of(1) : kUndefined;
  return scores;
}

double r2(std::span<const float> predicted, std::span<const float> truth) {
  check_sizes("r2", "predicted", truth.size(), predicted.size());
  double mean = 0.0;
  std::int64_t count = 0;
  for (const float value : truth) {
    if (std::isnan(value)) continue;
    mean += value;
    ++count;
  }
  mean /= static_cast<double>(count);
  double error = 0.0;
  double spread = 0.0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(truth[i])) continue;
    error += std::pow(static_cast<double>(predicted[i]) - truth[i], 2);
    spread += std::pow(truth[i] - mean, 2);
  }
  return spread > 0.0 ? 1.0 - error / spread : kUndefined;
}

std::vector<std::int64_t> chosen_classes(std::span<const float> output, std::int64_t columns) {
  std::vector<std::int64_t> classes(output.size() / static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto row = output.subspan(i * columns, columns);
    classes[i] = columns == 1 ? (row[0] > 0.0f ? 1 : 0)
                              : std::max_element(row.begin(), row.end()) - row.begin();
  }
  return classes;
}

Metrics class_metrics(std::span<const float> output, std::int64_t columns,
                      std::span<const float> truth) {
  check_sizes("class_metrics", "output", truth.size() * columns, output.size());
  const std::vector<std::int64_t> chosen = chosen_classes(output, columns);
  std::vector<std::int64_t> predicted;
  std::vector<std::int64_t> known;
  std::vector<float> score;
  std::vector<std::uint8_t> positive;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(truth[i])) continue;
    predicted.push_back(chosen[i]);
    known.push_back(static_cast<std::int64_t>(truth[i]));
    if (columns > 1) continue;
    score.push_back(output[i]);
    positive.push_back(truth[i] > 0.5f ? 1 : 0);
  }
  Metrics metrics;
  const ClassScores scores = class_scores(predicted, known, std::max<std::int64_t>(columns, 2));
  metrics["accuracy"] = accuracy(predicted, known);
  metrics["balanced_accuracy"] = scores.balanced_accuracy;
  if (columns > 1) {
    metrics["macro_f1"] = scores.macro_f1;
    return metrics;
  }
  metrics["f1"] = scores.f1;
  metrics["roc_auc"] = roc_auc(score, positive);
  metrics["average_precision"] = average_precision(score, positive);
  return metrics;
}

Metrics value_metrics(std::span<const float> predicted, std::span<const float> truth) {
  const Errors found = errors(predicted, truth);
  return {
      {"mae", found.mae}, {"mse", found.mse}, {"rmse", found.rmse}, {"r2", r2(predicted, truth)}};
}

double hits_at(std::int64_t k, std::span<const float> of_edges, std::span<const float> of_others) {
  if (k < 1 || std::ssize(of_others) < k || of_edges.empty()) return kUndefined;
  const auto is_nan = [](float score) { return std::isnan(score); };
  if (std::any_of(of_edges.begin(), of_edges.end(), is_nan) ||
      std::any_of(of_others.begin(), of_others.end(), is_nan)) {
    return kUndefined;
  }
  std::vector<float> others(of_others.begin(), of_others.end());
  std::nth_element(others.begin(), others.begin() + (k - 1), others.end(), std::greater<>());
  const float bar = others[static_cast<std::size_t>(k - 1)];
  const auto above =
      std::count_if(of_edges.begin(), of_edges.end(), [&](float score) { return score > bar; });
  return static_cast<double>(above) / static_cast<double>(of_edges.size());
}

Metrics link_metrics(std::span<const float> of_edges, std::span<const float> of_others) {
  std::vector<float> score(of_edges.begin(), of_edges.end());
  score.insert(score.end(), of_others.begin(), of_others.end());
  std::vector<std::uint8_t> positive(score.size(), 0);
  std::fill_n(positive.begin(), of_edges.size(), 1);
  Metrics metrics = {{"roc_auc", roc_auc(score, positive)},
                     {"average_precision", average_precision(score, positive)}};
  for (const std::int64_t k : {20, 50, 100}) {
    metrics[fmt::format("hits_{}", k)] = hits_at(k, of_edges, of_others);
  }
  return metrics;
}

const MetricInfo& metric_info(std::string_view name) {
  std::string known;
  for (const MetricInfo& metric : kMetrics) {
    if (metric.name == name) return metric;
    known += (known.empty() ? "" : ", ") + std::string(metric.name);
  }
  throw std::invalid_argument(
      fmt::format("metric_info: expected one of {}, got '{}'", known, name));
}

MeanInterval bootstrap_interval(std::span<const double> values) {
  constexpr std::size_t kDraws = 4000;
  constexpr std::size_t kOutside = kDraws / 40;  // at either end
  if (values.empty()) return {.low = kUndefined, .high = kUndefined};
  base::Random random(1);
  std::vector<double> means(kDraws, 0.0);
  for (double& mean : means) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      mean += values[static_cast<std::size_t>(random.below(std::ssize(values)))];
    }
    mean /= static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return {.low = means[kOutside], .high = means[kDraws - 1 - kOutside]};
}

Summary summarise(std::span<const double> values) {
  if (values.empty()) return {.mean = kUndefined, .std = kUndefined, .count = 0};
  double sum = 0.0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  double squared = 0.0;
  for (const double value : values) squared += (value - mean) * (value - mean);
  const double freedom = static_cast<double>(std::max<std::size_t>(values.size() - 1, 1));
  return {.mean = mean, .std = std::sqrt(squared / freedom), .count = std::ssize(values)};
}

}  // namespace mpssm::task
