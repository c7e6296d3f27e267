// SPDX-License-Identifier: MIT
#include "mpssm/study/run_row.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/csv.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/train/preset.h"
#include "mpssm/train/search.h"

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

fs::path folder_of(const PlannedRun& run) {
  return fmt::format("split-{}-seed-{}", run.split, run.seed);
}

/// Folder of the runs of one candidate; a row without candidates has one of its own.
fs::path row_folder(const Experiment& experiment, const Row& row, const RunOptions& options,
                    const Settings& candidate) {
  const fs::path folder = options.out / experiment.name / row.name;
  return candidate.empty() ? folder : folder / train::folder_name(candidate);
}

/// The recorded run of that seed and split, if it has the settings of the row; else nullptr.
const RunResult* recorded_run(const RowResult* known, const PlannedRun& planned, const Row& row,
                              const Settings& chosen) {
  if (known == nullptr) return nullptr;
  const auto run = std::find_if(known->runs.begin(), known->runs.end(), [&](const RunResult& one) {
    return one.seed == planned.seed && one.split == planned.split;
  });
  const bool is_same = run != known->runs.end() &&
                       difference_from_row(run->config, row, false, chosen, row.name).empty();
  return is_same ? &*run : nullptr;
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

/// Trains a run and keeps whose code did: from the start, so that a run that is killed has it, too.
std::optional<report::RunRecord> train_kept(const train::Config& config, const fs::path& run,
                                            const Provenance& code, const TrainRun& train_run) {
  keep_provenance(run, code);
  try {
    return train_run(config, run);
  } catch (...) {
    if (!fs::exists(run)) forget_provenance(run);  // it never began
    throw;
  }
}

}  // namespace

train::Config config_of(const Row& row, bool quick, const Settings& candidate) {
  const bool has_quick_data = !row.quick_dataset.empty();
  const std::string& dataset = quick && has_quick_data ? row.quick_dataset : row.dataset;
  train::Config config = train::preset_config(dataset);
  config.data.name = dataset;
  for (const std::string& setting : row.settings) train::apply_setting(config, setting);
  for (const std::string& setting : candidate) train::apply_setting(config, setting);
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

bool run_candidates(const Experiment& experiment, const Row& row, const RunOptions& options,
                    const TrainRun& train_run, Selection& selection,
                    const std::function<void()>& on_run) {
  for (const Settings& candidate : row.candidates) {
    fs::path folder = row_folder(experiment, row, options, candidate);
    // Shorter runs are no runs of the row.
    if (!row.candidate_budget.empty()) folder /= "candidate";
    train::Config config = config_of(row, options.quick, candidate_settings(row, candidate));
    for (const PlannedRun& planned : row.plan(row.candidate_runs)) {
      if (selection.find(joined_settings(candidate), planned) != nullptr) continue;
      config.seed = planned.seed;
      config.data.split = planned.split;
      const fs::path run = folder / folder_of(planned);
      CandidateRun result{
          .candidate = joined_settings(candidate),
          .seed = planned.seed,
          .split = planned.split,
          .code = provenance_of(run, fs::exists(run / "record.json"), options.program)};
      try {
        const auto record = train_kept(config, run, result.code, train_run);
        if (!record) return false;
        const double validation = record->metrics.at("val").at(row.metric);
        if (std::isfinite(validation)) result.validation = validation;
        result.steps = record->steps;
        result.seconds = record->seconds;
        result.config = train::to_toml(run::read_run_config(run));
      } catch (const base::Error& error) {
        if (error.kind() != base::ErrorKind::kDiverged) throw;
        result.config = train::to_toml(config);
      }
      selection.runs.push_back(std::move(result));
      on_run();
    }
  }
  return true;
}

std::optional<RowResult> run_row(const Experiment& experiment, const Row& row,
                                 const RunOptions& options, const Settings& chosen,
                                 const RowResult* known, const TrainRun& train_run,
                                 const std::function<void(const RowResult&)>& on_run) {
  train::Config config = config_of(row, options.quick, chosen);
  RowResult result{.experiment = experiment.name,
                   .row = row.name,
                   .dataset = config.data.name,
                   .metric = row.metric,
                   .protocol = {},
                   .version = version_of(options.program),
                   .planned = options.quick ? 1 : row.num_runs(),
                   .compared = std::max<std::int64_t>(std::ssize(row.candidates), 1),
                   .chosen = joined_settings(chosen)};
  for (const PlannedRun& planned : row.plan(options.quick ? 1 : options.max_runs)) {
    config.seed = planned.seed;
    config.data.split = planned.split;
    const fs::path run = row_folder(experiment, row, options, chosen) / folder_of(planned);
    const RunResult* recorded = recorded_run(known, planned, row, chosen);
    if (recorded != nullptr && !fs::exists(run)) {
      if (result.runs.empty()) {
        result.protocol = known->protocol;
        result.parameters = known->parameters;
        result.references = known->references;
      }
      result.runs.push_back(*recorded);
      continue;
    }
    const Provenance code = provenance_of(run, is_finished(run, row), options.program);
    const auto record = train_kept(config, run, code, train_run);
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
    on_run(result);
  }
  return result;
}

std::string difference_from_row(const std::string& recorded_config, const Row& row, bool quick,
                                const Settings& candidate, const std::string& origin) {
  train::Config recorded;
  train::apply_toml(recorded, recorded_config, origin);
  train::Config wanted = config_of(row, quick, candidate);
  if (wanted.by_rules) wanted = train::with_given(recorded, wanted);
  wanted.seed = recorded.seed;
  wanted.data.split = recorded.data.split;
  // What the data decide, or that they are: a subset may have taken their place.
  wanted.data.name = recorded.data.name;
  if (wanted.data.lags == 0) wanted.data.lags = recorded.data.lags;
  if (wanted.data.horizon == 0) wanted.data.horizon = recorded.data.horizon;
  if (wanted.data.period == 0.0) wanted.data.period = recorded.data.period;
  return train::first_difference(recorded, wanted);
}

}  // namespace mpssm::study
