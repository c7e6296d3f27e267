// SPDX-License-Identifier: MIT
#include "mpssm/study/verdict.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "mpssm/report/interval.h"
#include "mpssm/report/text.h"
#include "mpssm/task/metrics.h"

namespace mpssm::study {
namespace {

int digits_of(const Row& row) { return row.scale > 1.0 ? 2 : 4; }

report::Mean mean_over(const std::vector<double>& values) {
  const task::Summary summary = task::summarise(values);
  return {.value = summary.mean, .deviation = summary.std, .count = summary.count};
}

/// "better, +2.61 [+1.52, +3.70]"
std::string difference_words(const Row& row, const report::Difference& difference) {
  const bool is_better = (difference.value < 0.0) == row.lower_is_better;
  const int digits = digits_of(row);
  return (difference.holds_zero() ? "no difference shown"
          : is_better             ? "better"
                                  : "worse") +
         fmt::format(", {:+.{}f} [{:+.{}f}, {:+.{}f}]", difference.value, digits, difference.low,
                     digits, difference.high, digits);
}

std::string comparison(const Row& row, const RowResult& result, const Printed& printed) {
  const report::Mean theirs = {
      .value = on_our_scale(row, printed), .deviation = printed.std, .count = printed.runs};
  return difference_words(row, report::difference(mean_over(test_values(row, result)), theirs));
}

}  // namespace

std::string number_words(const Row& row, double value) {
  return fmt::format("{:.{}f}", value, digits_of(row));
}

std::string mean_words(const Row& row, const std::vector<double>& values) {
  const task::Summary summary = task::summarise(values);
  if (summary.count < 2) return number_words(row, summary.mean);
  return number_words(row, summary.mean) + " ± " + number_words(row, summary.std);
}

std::vector<double> test_values(const Row& row, const RowResult& result) {
  return values_of(result, row.scale, [](const RunResult& run) { return run.value; });
}

std::string ours_of(const Row& row, const RowResult& result) {
  return fmt::format("{} ({} of {})", mean_words(row, test_values(row, result)), result.runs.size(),
                     row.num_runs());
}

std::string verdict_of(const Row& row, const RowResult& result) {
  if (!row.paper) return "not in the paper";
  if (!row.comparable) return "not comparable";
  if (!row.unfair.empty()) return "no verdict, " + row.unfair;
  if (std::ssize(result.runs) < std::max<std::int64_t>(row.num_runs(), 2)) {
    return fmt::format("no verdict, {} of {} runs", std::ssize(result.runs), row.num_runs());
  }
  std::string words = comparison(row, result, *row.paper);
  for (const Printed& other : row.others) {
    words += fmt::format("; to {}: {}", other.name, comparison(row, result, other));
  }
  return words;
}

std::string paired_verdict(const Row& row, const RowResult& before, const RowResult& after) {
  std::vector<double> differences;
  for (const RunResult& run : before.runs) {
    const auto twin = std::find_if(
        after.runs.begin(), after.runs.end(),
        [&](const RunResult& other) { return other.seed == run.seed && other.split == run.split; });
    differences.push_back(row.scale * (twin->value - run.value));
  }
  const report::Mean mean = mean_over(differences);
  if (std::ssize(differences) < std::max<std::int64_t>(row.num_runs(), 2)) {
    return fmt::format("no verdict, {:+.{}f}", mean.value, digits_of(row));
  }
  return difference_words(row, report::difference(mean, {}));
}

double milliseconds_per_step(const RowResult& result) {
  double least = std::numeric_limits<double>::infinity();
  for (const RunResult& run : result.runs) {
    least = std::min(least, 1000.0 * run.seconds / static_cast<double>(run.steps));
  }
  return least;
}

}  // namespace mpssm::study
