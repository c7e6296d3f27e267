// SPDX-License-Identifier: MIT
// Private to study/. Recorded runs in short words: means, and differences from the printed numbers
// with their intervals.
#pragma once

#include <string>
#include <vector>

#include "mpssm/study/results.h"
#include "mpssm/study/rows.h"

namespace mpssm::study {

/// With as many digits as the row deserves.
std::string number_words(const Row& row, double value);

/// "0.9795 ± 0.0012"
std::string mean_words(const Row& row, const std::vector<double>& values);

/// get(run) of all runs, times `scale`.
template <typename Get>
std::vector<double> values_of(const RowResult& result, double scale, const Get& get) {
  std::vector<double> values;
  for (const RunResult& run : result.runs) values.push_back(scale * get(run));
  return values;
}

/// Test values, scaled.
std::vector<double> test_values(const Row& row, const RowResult& result);

/// "0.9795 ± 0.0012 (10 of 10)"; scaled.
std::string ours_of(const Row& row, const RowResult& result);

/// Ours against the printed numbers: differences with their 95 % intervals, in words. None for a
/// row of fewer runs than its protocol, or with a help that the printed number did not have.
std::string verdict_of(const Row& row, const RowResult& result);

/// The second minus the first, seed by seed and split by split; both have the same.
std::string paired_verdict(const Row& row, const RowResult& before, const RowResult& after);

/// Of the fastest run: others may have shared the machine or been paused.
double milliseconds_per_step(const RowResult& result);

}  // namespace mpssm::study
