// SPDX-License-Identifier: MIT
#include "mpssm/report/run_summary.h"

#include <fmt/core.h>
#include <vector>

#include "mpssm/report/text.h"

namespace mpssm::report {

std::string summary_of(const RunRecord& record) {
  Rows rows = {{"", "val", "test"}};
  const auto number = [](const Metrics& metrics, const std::string& name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::string() : fmt::format("{:.4f}", found->second);
  };
  const Metrics& val = record.metrics.at("val");
  const Metrics& test = record.metrics.at("test");
  const auto add = [&](const std::string& name) {
    rows.push_back({name, number(val, name), number(test, name)});
  };
  add(record.metric);
  for (const auto& [name, value] : test) {
    if (name != record.metric) add(name);
  }
  std::string result = table(rows);
  if (record.references.empty()) return result;

  // Predictions that need no network, on the same test part.
  rows = {{"test"}};
  std::vector<std::string> names = {record.metric};
  for (const char* name : {"mae_3", "mae_6", "mae_12", "accuracy", "balanced_accuracy", "f1",
                           "macro_f1", "rmse", "r2"}) {
    const bool is_told = record.references.front().test.contains(name) && name != record.metric;
    if (test.contains(name) && is_told) names.emplace_back(name);
  }
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  const auto add_row = [&](const std::string& title, const Metrics& metrics) {
    std::vector<std::string> row = {title};
    for (const std::string& name : names) row.push_back(number(metrics, name));
    rows.push_back(row);
  };
  add_row("this model", test);
  for (const auto& reference : record.references) add_row(reference.name, reference.test);
  return result + "\n" + table(rows);
}

}  // namespace mpssm::report
