// SPDX-License-Identifier: MIT
// Names of tasks and parts, and the cut of windows into train, val and test.
#include "mpssm/data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "mpssm/data/tasks.h"
#include "mpssm/io/error.h"

namespace mpssm::data {
namespace {

struct TaskName {
  Task task;
  std::string_view name;
  std::string_view metric;
};
constexpr std::array<TaskName, 6> kTasks = {{
    {Task::kNodeBinary, "node_binary", "roc_auc"},
    {Task::kNodeClasses, "node_classes", "accuracy"},
    {Task::kNodeRegression, "node_regression", "mae"},
    {Task::kGraphRegression, "graph_regression", "mae"},
    {Task::kGraphLabels, "graph_labels", "average_precision"},
    {Task::kForecast, "forecast", "mae"},
}};

const TaskName& row_of(Task task) {
  return *std::find_if(kTasks.begin(), kTasks.end(),
                       [task](const TaskName& row) { return row.task == task; });
}

void check_windows(const SeriesData& series) {
  if (series.lags < 1 || series.horizon < 1) {
    throw io::InputError("windows: expected lags and horizon of at least 1, got " +
                         std::to_string(series.lags) + " and " + std::to_string(series.horizon));
  }
  // Written so that no sum can overflow.
  if (series.lags > series.num_steps - 1 || series.horizon > series.num_steps - series.lags) {
    throw io::InputError(
        "windows: expected a series of at least lags + horizon = " + std::to_string(series.lags) +
        " + " + std::to_string(series.horizon) + " steps, got " + std::to_string(series.num_steps));
  }
  const bool three_way = series.rule == WindowRule::kFractions;
  const double sum = series.train_ratio + (three_way ? series.test_ratio : 0.0);
  if (!(series.train_ratio > 0.0 && sum < 1.0 && (!three_way || series.test_ratio > 0.0))) {
    throw io::InputError("windows: expected a train ratio between 0 and 1, got " +
                         std::to_string(series.train_ratio));
  }
}

}  // namespace

std::string_view to_string(Task task) { return row_of(task).name; }
std::string_view default_metric(Task task) { return row_of(task).metric; }

Task task_from_name(std::string_view name) {
  std::string known;
  for (const TaskName& row : kTasks) {
    if (row.name == name) return row.task;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw io::InputError("task: expected one of " + known + ", got '" + io::printable(name) + "'");
}

std::string_view to_string(Part part) {
  constexpr std::array<std::string_view, 4> kNames = {"train", "val", "test", "none"};
  return kNames[static_cast<std::size_t>(part)];
}

Task choose_node_task(const std::string& where, std::size_t num_classes,
                      std::optional<Task> wanted) {
  const Task natural = num_classes == 0   ? Task::kNodeRegression
                       : num_classes == 2 ? Task::kNodeBinary
                                          : Task::kNodeClasses;
  const bool two_as_many = natural == Task::kNodeBinary && wanted == Task::kNodeClasses;
  if (!wanted || *wanted == natural || two_as_many) return wanted.value_or(natural);
  throw io::InputError(where + ": expected labels for task " + std::string(to_string(*wanted)) +
                       ", got " +
                       (num_classes == 0 ? "numbers" : std::to_string(num_classes) + " classes") +
                       " (task " + std::string(to_string(natural)) + ")");
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
    throw io::InputError("windows: expected at least one window each in train, val and test, got " +
                         std::to_string(split.end) +
                         " windows in all; take fewer lags, a shorter "
                         "horizon, another train ratio or a longer series");
  }
  return split;
}

}  // namespace mpssm::data
