// SPDX-License-Identifier: MIT
#include "mpssm/study/ranks.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "mpssm/study/audit.h"
#include "mpssm/study/rows.h"
#include "mpssm/study/verdict.h"
#include "mpssm/task/metrics.h"

namespace mpssm::study {
namespace {

constexpr std::size_t kShownModels = 10;
constexpr const char* kOurs = "ours";

RankTable rank_table_of(const toml::table& table) {
  RankTable result{.title = table["title"].value<std::string>().value(), .tasks = {}, .models = {}};
  for (const auto& node : *table["tasks"].as_array()) {
    const toml::table& task = *node.as_table();
    result.tasks.push_back({.name = *task["name"].value<std::string>(),
                            .experiment = *task["experiment"].value<std::string>(),
                            .row = *task["row"].value<std::string>(),
                            .higher_is_better = *task["higher_is_better"].value<bool>()});
  }
  for (const auto& node : *table["models"].as_array()) {
    const toml::table& model = *node.as_table();
    RankTable::Model one{.name = *model["name"].value<std::string>(),
                         .values = {},
                         .printed = model["rank"].value<double>()};
    for (const auto& value : *model["values"].as_array()) {
      one.values.push_back(*value.value<double>());
    }
    result.models.push_back(std::move(one));
  }
  return result;
}

/// Our mean of a task in the unit of the table, if all runs of its row are recorded.
std::optional<double> our_mean(const RankTable::Task& task, const AllResults& results) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.name != task.experiment) continue;
    const Row* row = find_row(experiment, task.row);
    const RowResult* result = find_result(results.at(experiment.name), task.row);
    if (row == nullptr || result == nullptr) return {};
    if (std::ssize(result->runs) < row->num_runs()) return {};
    return task::summarise(test_values(*row, *result)).mean;
  }
  return {};
}

std::string rank_words(double rank) { return std::isnan(rank) ? "" : fmt::format("{:.1f}", rank); }

std::string table_markdown(RankTable table, const AllResults& results) {
  std::vector<std::size_t> all(table.tasks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<double> recomputed = average_ranks(table, all);
  RankTable::Model ours{.name = kOurs, .values = {}, .printed = {}};
  std::vector<std::size_t> recorded;
  std::string names;
  for (const std::size_t i : all) {
    const std::optional<double> mean = our_mean(table.tasks[i], results);
    ours.values.push_back(mean.value_or(std::nan("")));
    if (!mean) continue;
    recorded.push_back(i);
    const RowResult* result =
        find_result(results.at(table.tasks[i].experiment), table.tasks[i].row);
    names += (names.empty() ? "" : ", ") + table.tasks[i].name +
             (is_of_old(*result) ? " (not auditable)" : "");
  }
  table.models.push_back(ours);
  const std::vector<double> shared = average_ranks(table, recorded);
  std::vector<std::size_t> order(table.models.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    const double rank =
        recorded.empty() ? recomputed[std::min(i, recomputed.size() - 1)] : shared[i];
    return std::isnan(rank) ? INFINITY : rank;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::string lines;
  std::size_t place = 0;
  for (const std::size_t i : order) {
    const RankTable::Model& model = table.models[i];
    const bool is_ours = model.name == kOurs;
    if (is_ours && recorded.empty()) continue;
    if (place++ >= kShownModels && !is_ours && model.name != "MP-SSM") continue;
    lines += fmt::format("| {} | {} | {} | {} |\n", is_ours ? "**ours**" : model.name,
                         model.printed ? rank_words(*model.printed) : "",
                         is_ours ? "" : rank_words(recomputed[i]),
                         recorded.empty() ? "" : rank_words(shared[i]));
  }
  return fmt::format(
      "\n### {}\n\nTasks that we have recorded with all runs: {}. Of {} printed models, the first "
      "{}.\n\n| model | printed | all tasks | these tasks, with ours |\n|---|---|---|---|\n{}",
      table.title, names.empty() ? "none" : names, table.models.size() - 1, kShownModels, lines);
}

}  // namespace

const std::vector<RankTable>& rank_tables() {
  static const std::vector<RankTable> all = [] {
    std::vector<RankTable> tables;
    const toml::table file = toml::parse(experiment_toml("ranks"));
    for (const auto& node : *file["table"].as_array()) {
      tables.push_back(rank_table_of(*node.as_table()));
    }
    return tables;
  }();
  return all;
}

std::vector<double> average_ranks(const RankTable& table, const std::vector<std::size_t>& tasks) {
  std::vector<double> ranks;
  for (const RankTable::Model& model : table.models) {
    double sum = 0.0;
    double count = 0.0;
    for (const std::size_t task : tasks) {
      const double own = model.values[task];
      if (std::isnan(own)) continue;
      const bool higher = table.tasks[task].higher_is_better;
      const auto is_better = [&](const RankTable::Model& other) {
        const double value = other.values[task];
        if (!std::isfinite(value)) return false;
        return std::isinf(own) || (higher ? value > own : value < own);
      };
      sum += 1.0 + static_cast<double>(
                       std::count_if(table.models.begin(), table.models.end(), is_better));
      count += 1.0;
    }
    ranks.push_back(count > 0.0 ? sum / count : std::nan(""));
  }
  return ranks;
}

std::string ranks_markdown(const AllResults& results) {
  std::string text =
      "\n## Average ranks\n\nThe mean over tasks of a model's place in the paper's printed tables, "
      "as "
      "it takes it: equal numbers share the better place,\n\"out of memory\" comes after all "
      "numbers, "
      "what is not printed does not count. \"Printed\" is the paper's own column, which "
      "\"all\ntasks\" "
      "recomputes. A mean is ranked, not its uncertainty: neighbours may not be different.\n";
  for (const RankTable& table : rank_tables()) text += table_markdown(table, results);
  return text;
}

}  // namespace mpssm::study
