// SPDX-License-Identifier: MIT
// What a table of predicted classes says: who is taken for whom, how the errors trade, whether
// probabilities mean what they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpssm::report {

/// Labelled samples with the probability of each class.
struct ClassTable {
  std::vector<std::string> class_names = {};
  std::vector<std::string> id = {};          ///< [n]
  std::vector<std::int32_t> truth = {};      ///< [n] class
  std::vector<std::int32_t> predicted = {};  ///< [n] class
  std::vector<float> probability = {};       ///< [n, classes]
};

/// One class against the rest, by falling threshold. Ties are one step.
struct ClassCurve {
  std::string name = {};
  std::vector<double> false_positive_rate = {};  ///< from 0 to 1
  std::vector<double> true_positive_rate = {};
  std::vector<double> recall = {};
  std::vector<double> precision = {};
  double roc_auc = 0.0;
  double average_precision = 0.0;
  double share = 0.0;  ///< of the samples that have the class: the precision of guessing
};

/// Samples by the probability of the class that was predicted, in equal bins.
struct Calibration {
  std::vector<std::int64_t> count = {};
  std::vector<double> confidence = {};  ///< mean in the bin; NaN: nobody there
  std::vector<double> accuracy = {};
  double error = 0.0;  ///< mean distance of the two, weighted by count
};

struct Mistake {
  std::string id = {};
  std::int32_t truth = 0;
  std::int32_t predicted = 0;
  double p_truth = 0.0;
  double p_predicted = 0.0;
};

struct Classification {
  std::vector<std::string> class_names = {};
  std::int64_t count = 0;
  std::int64_t wrong = 0;
  std::vector<std::int64_t> confusion = {};  ///< [truth, predicted]
  std::vector<ClassCurve> curves = {};       ///< two classes: of the second; else of the largest
  Calibration calibration = {};
  std::vector<Mistake> worst = {};  ///< least probability of the truth first
};

inline constexpr std::size_t kMaxClassCurves = 6;
inline constexpr std::size_t kMaxMistakes = 100;

/// Throws std::invalid_argument if sizes differ or a class does not exist.
Classification classification_of(const ClassTable& table);

/// One class against the rest from its scores; classes that are missing or alone give NaN areas.
ClassCurve class_curve(std::string name, const std::vector<float>& score,
                       const std::vector<bool>& positive);

}  // namespace mpssm::report
