// SPDX-License-Identifier: MIT
// What a table of predicted numbers says: how far off, which way, for whom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpssm::report {

/// Labelled samples of one target.
struct NumberTable {
  std::string name = {};
  std::vector<std::string> id = {};    ///< [n]
  std::vector<double> truth = {};      ///< [n]
  std::vector<double> predicted = {};  ///< [n]
};

struct NumberError {
  std::string id = {};
  double truth = 0.0;
  double predicted = 0.0;
};

struct Regression {
  std::string name = {};
  std::int64_t count = 0;
  double mae = 0.0;
  double rmse = 0.0;
  double bias = 0.0;  ///< mean of predicted - truth
  double r2 = 0.0;    ///< 1 - squared error over that of the mean; NaN if all truths are equal
  std::vector<double> truth = {};         ///< of some samples, evenly spaced over the table
  std::vector<double> predicted = {};     ///< of the same
  std::vector<double> error_centre = {};  ///< histogram of predicted - truth
  std::vector<double> error_count = {};
  std::vector<NumberError> worst = {};  ///< largest error first
};

inline constexpr std::size_t kMaxScatter = 1500;
inline constexpr std::size_t kMaxNumberErrors = 100;

/// Throws std::invalid_argument if sizes differ.
Regression regression_of(const NumberTable& table);

}  // namespace mpssm::report
