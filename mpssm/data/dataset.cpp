// SPDX-License-Identifier: MIT
// Names of tasks and parts, and the cut of windows into train, val and test.
#include "mpssm/data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

void check_windows(const SeriesData& series) {
  if (series.lags < 1 || series.horizon < 1) {
    throw base::Error("windows",
                      fmt::format("expected lags and horizon of at least 1, got {} and {}",
                                  series.lags, series.horizon));
  }
  // Written so that no sum can overflow.
  if (series.lags > series.num_steps - 1 || series.horizon > series.num_steps - series.lags) {
    throw base::Error(
        "windows",
        fmt::format("expected a series of at least lags + horizon = {} + {} steps, got {}",
                    series.lags, series.horizon, series.num_steps));
  }
  const bool three_way = series.rule == WindowRule::kFractions;
  const double sum = series.train_ratio + (three_way ? series.test_ratio : 0.0);
  if (!(series.train_ratio > 0.0 && sum < 1.0 && (!three_way || series.test_ratio > 0.0))) {
    throw base::Error("windows", fmt::format("expected a train ratio between 0 and 1, got {}",
                                             series.train_ratio));
  }
}

}  // namespace

std::string_view default_metric(Task task) {
  switch (task) {
    case Task::kNodeBinary:
    case Task::kGraphBinary:
    case Task::kLinks:
      return "roc_auc";
    case Task::kNodeClasses:
    case Task::kGraphClasses:
      return "accuracy";
    case Task::kGraphLabels:
      return "average_precision";
    case Task::kNodeRegression:
    case Task::kGraphRegression:
    case Task::kForecast:
      break;
  }
  return "mae";
}

Task task_from_name(std::string_view name) {
  if (const std::optional<Task> task = table_of(Task{}).find(name)) return *task;
  throw base::Error({.where = "task",
                     .expected = "one of " + table_of(Task{}).names(),
                     .got = "'" + base::printable(name) + "'"});
}

std::string_view to_string(Part part) {
  constexpr std::array<std::string_view, 4> kNames = {"train", "val", "test", "none"};
  return kNames[static_cast<std::size_t>(part)];
}

Task choose_node_task(const std::string& where, std::size_t num_classes,
                      std::optional<Task> wanted) {
  return choose_task(where, /*of_graphs=*/false, num_classes, wanted);
}

Task choose_task(const std::string& where, bool of_graphs, std::size_t num_classes,
                 std::optional<Task> wanted) {
  const Task natural = num_classes == 0
                           ? (of_graphs ? Task::kGraphRegression : Task::kNodeRegression)
                       : num_classes == 2 ? (of_graphs ? Task::kGraphBinary : Task::kNodeBinary)
                                          : (of_graphs ? Task::kGraphClasses : Task::kNodeClasses);
  const bool two_as_many =
      is_binary(natural) && wanted == (of_graphs ? Task::kGraphClasses : Task::kNodeClasses);
  if (!wanted || *wanted == natural || two_as_many) return wanted.value_or(natural);
  throw base::Error(
      where, fmt::format("expected labels for task {}, got {} (task {})", to_string(*wanted),
                         num_classes == 0 ? "numbers" : fmt::format("{} classes", num_classes),
                         to_string(natural)));
}

WindowSplit window_split(const SeriesData& series) {
  check_windows(series);
  WindowSplit split;
  split.end = series.num_steps - series.lags - series.horizon + 1;
  const auto count = static_cast<double>(split.end);
  if (series.rule == WindowRule::kFractions) {
    // Halves to even, as Python rounds.
    split.val = static_cast<std::int64_t>(std::nearbyint(series.train_ratio * count));
    split.test = split.end - static_cast<std::int64_t>(std::nearbyint(series.test_ratio * count));
  } else {
    split.test = static_cast<std::int64_t>(series.train_ratio * count);
    split.val = split.test - std::max<std::int64_t>(1, split.test / 9);
  }
  if (split.val < 1 || split.test <= split.val || split.end <= split.test) {
    throw base::Error(
        "windows",
        fmt::format(
            "expected at least one window each in train, val and test, got {} windows in all; take "
            "fewer lags, a shorter horizon, another train ratio or a longer series",
            split.end));
  }
  return split;
}

}  // namespace mpssm::data
