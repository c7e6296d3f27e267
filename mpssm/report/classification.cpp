// SPDX-License-Identifier: MIT
#include "mpssm/report/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace mpssm::report {
namespace {

constexpr int kCalibrationBins = 10;
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

void check_class_table(const ClassTable& table) {
  const std::size_t n = table.truth.size();
  const std::size_t classes = table.class_names.size();
  const auto exists = [&](std::int32_t c) {
    return c >= 0 && static_cast<std::size_t>(c) < classes;
  };
  if (table.id.size() != n || table.predicted.size() != n ||
      table.probability.size() != n * classes ||
      !std::all_of(table.truth.begin(), table.truth.end(), exists) ||
      !std::all_of(table.predicted.begin(), table.predicted.end(), exists)) {
    throw std::invalid_argument(
        "classification_of: expected columns of one size, classes that exist");
  }
}

Calibration calibration_of(const ClassTable& table) {
  const std::size_t classes = table.class_names.size();
  std::vector<double> confidence(kCalibrationBins, 0.0), right(kCalibrationBins, 0.0);
  Calibration result{.count = std::vector<std::int64_t>(kCalibrationBins, 0)};
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    const double p = table.probability[i * classes + static_cast<std::size_t>(table.predicted[i])];
    const int bin = std::clamp(static_cast<int>(p * kCalibrationBins), 0, kCalibrationBins - 1);
    ++result.count[bin];
    confidence[bin] += p;
    right[bin] += table.predicted[i] == table.truth[i] ? 1.0 : 0.0;
  }
  for (int bin = 0; bin < kCalibrationBins; ++bin) {
    const auto count = static_cast<double>(result.count[bin]);
    result.confidence.push_back(count > 0 ? confidence[bin] / count : kUndefined);
    result.accuracy.push_back(count > 0 ? right[bin] / count : kUndefined);
    if (count > 0) result.error += std::abs(confidence[bin] - right[bin]);
  }
  result.error /= static_cast<double>(std::max<std::size_t>(table.truth.size(), 1));
  return result;
}

std::vector<Mistake> worst_mistakes(const ClassTable& table) {
  const std::size_t classes = table.class_names.size();
  const auto p = [&](std::size_t i, std::int32_t c) {
    return table.probability[i * classes + static_cast<std::size_t>(c)];
  };
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    if (table.truth[i] != table.predicted[i]) wrong.push_back(i);
  }
  std::stable_sort(wrong.begin(), wrong.end(), [&](std::size_t a, std::size_t b) {
    return p(a, table.truth[a]) < p(b, table.truth[b]);
  });
  wrong.resize(std::min(wrong.size(), kMaxMistakes));
  std::vector<Mistake> worst;
  for (const std::size_t i : wrong) {
    worst.push_back({table.id[i], table.truth[i], table.predicted[i], p(i, table.truth[i]),
                     p(i, table.predicted[i])});
  }
  return worst;
}

ClassCurve curve_of_class(const ClassTable& table, std::size_t c) {
  const std::size_t classes = table.class_names.size();
  std::vector<float> score;
  std::vector<bool> positive;
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    score.push_back(table.probability[i * classes + c]);
    positive.push_back(static_cast<std::size_t>(table.truth[i]) == c);
  }
  return class_curve(table.class_names[c], score, positive);
}

std::vector<ClassCurve> curves_of(const ClassTable& table) {
  const std::size_t classes = table.class_names.size();
  if (classes == 2) return {curve_of_class(table, 1)};
  std::vector<std::int64_t> size(classes, 0);
  for (const std::int32_t c : table.truth) ++size[c];
  std::vector<std::size_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });
  order.resize(std::min(order.size(), kMaxClassCurves));
  std::vector<ClassCurve> curves;
  for (const std::size_t c : order) curves.push_back(curve_of_class(table, c));
  return curves;
}

}  // namespace

ClassCurve class_curve(std::string name, const std::vector<float>& score,
                       const std::vector<bool>& positive) {
  std::vector<std::size_t> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
  const auto positives = static_cast<double>(std::count(positive.begin(), positive.end(), true));
  const double negatives = static_cast<double>(score.size()) - positives;
  ClassCurve curve{.name = std::move(name)};
  curve.share = positives / static_cast<double>(std::max<std::size_t>(score.size(), 1));
  curve.false_positive_rate = {0.0};
  curve.true_positive_rate = {0.0};
  double hits = 0.0, alarms = 0.0;
  for (std::size_t i = 0; i < order.size();) {
    const float threshold = score[order[i]];
    for (; i < order.size() && score[order[i]] == threshold; ++i) {
      (positive[order[i]] ? hits : alarms) += 1.0;
    }
    const double x = negatives > 0 ? alarms / negatives : kUndefined;
    const double y = positives > 0 ? hits / positives : kUndefined;
    curve.roc_auc +=
        (x - curve.false_positive_rate.back()) * (y + curve.true_positive_rate.back()) / 2;
    const double precision = hits / (hits + alarms);
    curve.average_precision += (y - curve.true_positive_rate.back()) * precision;
    curve.false_positive_rate.push_back(x);
    curve.true_positive_rate.push_back(y);
    curve.recall.push_back(y);
    curve.precision.push_back(precision);
  }
  if (positives == 0 || negatives == 0) curve.roc_auc = kUndefined;
  if (positives == 0) curve.average_precision = kUndefined;
  return curve;
}

Classification classification_of(const ClassTable& table) {
  check_class_table(table);
  const std::size_t classes = table.class_names.size();
  Classification result{.class_names = table.class_names,
                        .count = static_cast<std::int64_t>(table.truth.size())};
  result.confusion.assign(classes * classes, 0);
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    ++result.confusion[static_cast<std::size_t>(table.truth[i]) * classes +
                       static_cast<std::size_t>(table.predicted[i])];
    if (table.truth[i] != table.predicted[i]) ++result.wrong;
  }
  result.curves = curves_of(table);
  result.calibration = calibration_of(table);
  result.worst = worst_mistakes(table);
  return result;
}

}  // namespace mpssm::report
