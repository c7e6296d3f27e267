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

std::string metrics_table(const std::string& part, const Metrics& metrics) {
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

Mean test_mean(std::span<const RunRecord> records) {
  std::vector<double> values;
  for (const RunRecord& record : records) {
    values.push_back(record.metrics.at("test").at(record.metric));
  }
  return mean_of(values);
}

struct MetricMean {
  std::string name;
  Mean mean;
  double low = 0.0;  ///< of the 95 % interval; equal to the mean if there is but one run
  double high = 0.0;
};

/// Of the metrics that all have, the one that counts first.
std::vector<MetricMean> means_of(std::span<const Evaluation> evaluations) {
  std::vector<std::string> names = {evaluations.front().metric};
  for (const auto& [name, value] : evaluations.front().metrics) {
    if (name != names.front()) names.push_back(name);
  }
  std::vector<MetricMean> means;
  for (const std::string& name : names) {
    std::vector<double> values;
    for (const Evaluation& one : evaluations) {
      if (is_defined(one.metrics, name)) values.push_back(one.metrics.at(name));
    }
    if (values.size() != evaluations.size()) continue;
    MetricMean of{.name = name, .mean = mean_of(values)};
    of.low = of.high = of.mean.value;
    if (values.size() > 1) {
      const Difference around = difference(of.mean, {});
      of.low = around.low;
      of.high = around.high;
    }
    means.push_back(of);
  }
  return means;
}

std::string summary_of(const Evaluation& one) {
  return fmt::format("{}: {}\n{}{}", one.dataset, one.protocol,
                     metrics_table(one.part, one.metrics),
                     one.references.empty() ? "" : "\n" + one.references);
}

}  // namespace

std::string summary_of(std::span<const Evaluation> evaluations) {
  if (evaluations.size() == 1) return summary_of(evaluations.front());
  const std::vector<MetricMean> means = means_of(evaluations);
  Rows rows = {{"run"}};
  for (const MetricMean& mean : means) rows[0].push_back(mean.name);
  for (const Evaluation& one : evaluations) {
    rows.push_back({one.run});
    for (const MetricMean& mean : means) rows.back().push_back(number(one.metrics, mean.name));
  }
  Rows ends = {{evaluations.front().part, "mean", "deviation", "95 % interval of the mean"}};
  for (const MetricMean& of : means) {
    ends.push_back({of.name, fmt::format("{:.4f}", of.mean.value),
                    fmt::format("{:.4f}", of.mean.deviation),
                    fmt::format("{:.4f} to {:.4f}", of.low, of.high)});
  }
  return table(rows) + "\n" + table(ends) +
         fmt::format(
             "{} runs; of splits of one graph, which share nodes, the interval is too narrow",
             evaluations.size());
}

std::string summary_json(std::span<const Evaluation> evaluations) {
  if (evaluations.size() == 1) {
    const Evaluation& one = evaluations.front();
    return io::json_text(nlohmann::ordered_json{
        {"run", one.run}, {"dataset", one.dataset}, {"part", one.part}, {"metrics", one.metrics}});
  }
  auto runs = nlohmann::ordered_json::array();
  for (const Evaluation& one : evaluations) {
    runs.push_back({{"run", one.run}, {"dataset", one.dataset}, {"metrics", one.metrics}});
  }
  nlohmann::ordered_json means;
  for (const MetricMean& of : means_of(evaluations)) {
    means[of.name] = {
        {"mean", of.mean.value}, {"std", of.mean.deviation}, {"low", of.low}, {"high", of.high}};
  }
  return io::json_text(nlohmann::ordered_json{{"part", evaluations.front().part},
                                              {"metric", evaluations.front().metric},
                                              {"count", evaluations.size()},
                                              {"means", means},
                                              {"runs", runs}});
}

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
