// SPDX-License-Identifier: MIT
#include "mpssm/report/run_summary.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "mpssm/io/json_text.h"
#include "mpssm/report/interval.h"
#include "mpssm/report/text.h"

namespace mpssm::report {

namespace {

std::string number(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  if (found == metrics.end()) return {};
  return std::isnan(found->second) ? "-" : fmt::format("{:.4f}", found->second);
}

/// Why a metric is not a number there.
std::string reason_of(const std::string& name) {
  if (name == "r2") return "needs two different values";
  if (name == "roc_auc") return "needs both classes";
  if (name == "average_precision") return "needs a positive one";
  if (name == "mape") return "needs values other than 0";
  if (name.starts_with("hits_")) return "needs as many pairs without an edge";
  return "needs samples";
}

/// R2 of a single sample, say, is not.
bool is_defined(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found != metrics.end() && !std::isnan(found->second);
}

}  // namespace

std::string summary_of(const RunRecord& record) {
  Rows rows = {{"", "val", "test"}};
  const Metrics& val = record.metrics.at("val");
  const Metrics& test = record.metrics.at("test");
  const auto add = [&](const std::string& name) {
    rows.push_back({name, number(val, name), number(test, name)});
  };
  add(record.metric);
  for (const auto& [name, value] : test) {
    if (name != record.metric && is_defined(test, name)) add(name);
  }
  const std::string references = references_of(record);
  return table(rows) + (references.empty() ? "" : "\n" + references);
}

std::string references_of(const RunRecord& record) {
  if (record.references.empty()) return {};
  const Metrics& test = record.metrics.at("test");
  Rows rows = {{"test"}};
  std::vector<std::string> names = {record.metric};
  for (const char* name : {"mae_3", "mae_6", "mae_12", "accuracy", "balanced_accuracy", "f1",
                           "macro_f1", "rmse", "r2", "hits_20", "hits_50", "hits_100"}) {
    const bool is_told = record.references.front().test.contains(name) && name != record.metric;
    if (is_defined(test, name) && is_told) names.emplace_back(name);
  }
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  const auto add_row = [&](const std::string& title, const Metrics& metrics) {
    std::vector<std::string> row = {title};
    for (const std::string& name : names) row.push_back(number(metrics, name));
    rows.push_back(row);
  };
  add_row("this model", test);
  for (const auto& reference : record.references) add_row(reference.name, reference.test);
  return table(rows);
}

std::string metrics_of(const std::string& part, const Metrics& metrics) {
  Rows rows = {{"metric", part}};
  std::string reasons;
  for (const auto& [name, value] : metrics) {
    rows.push_back({name, number(metrics, name)});
    if (std::isnan(value))
      reasons += fmt::format("{} is not defined: it {}\n", name, reason_of(name));
  }
  return table(rows) + reasons;
}

namespace {

/// Mean and sample deviation (0 of one run) of the test metric.
Mean test_mean(std::span<const RunRecord> records) {
  Mean mean{.count = static_cast<std::int64_t>(records.size())};
  const auto value = [](const RunRecord& record) {
    return record.metrics.at("test").at(record.metric);
  };
  const auto count = static_cast<double>(records.size());
  for (const RunRecord& record : records) mean.value += value(record);
  mean.value /= count;
  for (const RunRecord& record : records) {
    mean.deviation += (value(record) - mean.value) * (value(record) - mean.value);
  }
  mean.deviation = records.size() > 1 ? std::sqrt(mean.deviation / (count - 1.0)) : 0.0;
  return mean;
}

}  // namespace

std::string summary_of(std::span<const RunRecord> records) {
  Rows rows = {{"split", "seed", "best step", "val", "test"}};
  for (const RunRecord& record : records) {
    rows.push_back({shown(record.split), shown(record.seed), shown(record.best_step),
                    fmt::format("{:.4f}", record.metrics.at("val").at(record.metric)),
                    fmt::format("{:.4f}", record.metrics.at("test").at(record.metric))});
  }
  const Mean mean = test_mean(records);
  return table(rows) +
         fmt::format("\ntest {} {:.4f} \u00b1 {:.4f} (mean, sample deviation, {} runs)",
                     records.front().metric, mean.value, mean.deviation, mean.count);
}

std::string summary_json(const std::string& folder, std::span<const RunRecord> records,
                         int indent) {
  auto runs = nlohmann::ordered_json::array();
  for (const RunRecord& record : records) {
    runs.push_back(nlohmann::ordered_json::parse(to_json(record)));
  }
  const Mean mean = test_mean(records);
  return io::json_text(nlohmann::ordered_json{{"run", folder},
                                              {"metric", records.front().metric},
                                              {"test_mean", mean.value},
                                              {"test_std", mean.deviation},
                                              {"count", mean.count},
                                              {"runs", runs}},
                       indent);
}

}  // namespace mpssm::report
