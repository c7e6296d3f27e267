// SPDX-License-Identifier: MIT
#include "mpssm/study/run_row.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/csv.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/train/preset.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;

/// A column of a run's metrics.csv.
std::vector<double> history_of(const fs::path& run, const std::string& name) {
  const io::CsvTable table = io::read_csv(run / "metrics.csv");
  const auto column = table.column(name);
  if (!column) throw base::Error(run.string() + ": metrics.csv has no " + name);
  std::vector<double> values;
  for (const auto& line : table.rows) values.push_back(io::to_number(line[*column]).value());
  return values;
}

fs::path refit_of(const fs::path& run) { return run.string() + "-refit"; }

bool is_finished(const fs::path& run, const Row& row) {
  return fs::exists(run / "record.json") &&
         (!row.refit || fs::exists(refit_of(run) / "record.json"));
}

/// Trains `selected`'s run again with the validation part; false: interrupted.
bool refit(const train::Config& config, const fs::path& selected, const Row& row,
           const TrainRun& train_run, RunResult& result) {
  const fs::path run = refit_of(selected);
  train::Config with_validation = config;
  with_validation.train.on_validation = true;
  if (!train_run(with_validation, run)) return false;
  const std::vector<double> steps = history_of(selected, "step");
  const auto best = std::find(steps.begin(), steps.end(), static_cast<double>(result.best_step));
  const std::vector<double> tests = history_of(run, "test_" + row.metric);
  // One line per evaluation in both, so the same line is the same epoch.
  result.refit = tests.at(static_cast<std::size_t>(best - steps.begin()));
  result.best_test = row.lower_is_better ? *std::min_element(tests.begin(), tests.end())
                                         : *std::max_element(tests.begin(), tests.end());
  return true;
}

/// (split, seed) of the runs in order: every split with every seed.
std::vector<std::pair<std::int64_t, std::int64_t>> plan_of(const Row& row,
                                                           const RunOptions& options) {
  std::vector<std::pair<std::int64_t, std::int64_t>> plan;
  for (std::int64_t split = 0; split < row.splits; ++split) {
    for (const std::int64_t seed : row.seeds) plan.emplace_back(split, seed);
  }
  const std::int64_t wanted = options.quick ? 1 : options.max_runs;
  if (wanted > 0 && wanted < std::ssize(plan)) plan.resize(static_cast<std::size_t>(wanted));
  return plan;
}

/// What the row shows of a run that has ended.
RunResult result_of(const Row& row, const report::RunRecord& record, const fs::path& run) {
  const report::Metrics& test = record.metrics.at("test");
  if (!std::isfinite(test.at(row.metric))) {
    throw base::Error(run.string(), fmt::format("{} of the test part is not defined", row.metric));
  }
  RunResult result{.seed = record.seed,
                   .split = record.split,
                   .value = test.at(row.metric),
                   .validation = record.metrics.at("val").at(row.metric),
                   .best_step = record.best_step,
                   .steps = record.steps,
                   .seconds = record.seconds,
                   .peak_mib = record.peak_mib,
                   .config = train::to_toml(run::read_run_config(run))};
  for (const std::string& metric : row.also) result.also[metric] = test.at(metric);
  if (!row.raw_metric.empty()) result.raw = test.at(row.raw_metric);
  return result;
}

}  // namespace

train::Config config_of(const Row& row, bool quick) {
  const bool has_quick_data = !row.quick_dataset.empty();
  const std::string& dataset = quick && has_quick_data ? row.quick_dataset : row.dataset;
  train::Config config = train::preset_config(dataset);
  config.data.name = dataset;
  for (const std::string& setting : row.settings) train::apply_setting(config, setting);
  if (row.refit) train::apply_setting(config, "train.track_test=true");
  if (quick) train::apply_setting(config, has_quick_data ? "train.epochs=150" : "train.epochs=2");
  train::check(config);
  return config;
}

bool is_absent(const std::string& dataset, const fs::path& data_dir) {
  data::LoadOptions load;
  load.data_dir = data_dir;
  const data::DatasetInfo* info = data::find_dataset(dataset);
  return info != nullptr && !info->files.empty() && !data::is_present(*info, load);
}

std::optional<RowResult> run_row(const Experiment& experiment, const Row& row,
                                 const RunOptions& options, const TrainRun& train_run) {
  train::Config config = config_of(row, options.quick);
  RowResult result{.experiment = experiment.name,
                   .row = row.name,
                   .dataset = config.data.name,
                   .metric = row.metric,
                   .protocol = {},
                   .version = version_of(options.program),
                   .planned = options.quick ? 1 : row.num_runs()};
  for (const auto& [split, seed] : plan_of(row, options)) {
    config.seed = seed;
    config.data.split = split;
    const fs::path run =
        options.out / experiment.name / row.name / (fmt::format("split-{}-seed-{}", split, seed));
    const Provenance code = provenance_of(run, is_finished(run, row), options.program);
    const auto record = train_run(config, run);
    keep_provenance(run, code);
    if (!record) return {};
    RunResult one = result_of(row, *record, run);
    one.code = code;
    if (row.refit && !refit(config, run, row, train_run, one)) return {};
    if (result.runs.empty()) {
      result.protocol = record->protocol;
      result.parameters = record->num_parameters;
      result.references = record->references;
    }
    result.runs.push_back(std::move(one));
  }
  return result;
}

Recorded is_recorded(const RowResult* known, const Row& row, const RunOptions& options,
                     const std::string& origin) {
  if (known == nullptr || known->runs.size() < plan_of(row, options).size()) return Recorded::kNo;
  train::Config recorded;
  train::apply_toml(recorded, known->runs.front().config, origin);
  train::Config wanted = config_of(row, options.quick);
  if (wanted.by_rules) wanted = train::with_given(recorded, wanted);
  wanted.seed = recorded.seed;
  wanted.data.split = recorded.data.split;
  // What the data decide, or that they are: a subset may have taken their place.
  wanted.data.name = recorded.data.name;
  if (wanted.data.lags == 0) wanted.data.lags = recorded.data.lags;
  if (wanted.data.horizon == 0) wanted.data.horizon = recorded.data.horizon;
  const bool is_same = train::to_toml(recorded) == train::to_toml(wanted);
  return is_same ? Recorded::kYes : Recorded::kOtherSettings;
}

}  // namespace mpssm::study
