// SPDX-License-Identifier: MIT
#include "mpssm/study/run_experiment.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/study/audit.h"
#include "mpssm/study/page.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;

/// Whether as many runs as are wanted are recorded, with the settings of today's row.
bool is_recorded(const RowResult* known, const Row& row, const ExperimentOptions& options) {
  if (known == nullptr || is_of_old(*known)) return false;
  if (known->runs.size() < row.plan(options.run.max_runs).size()) return false;
  if (row.candidates.empty()) {
    return difference_from_row(known->runs.front().config, row, false, {}, row.name).empty();
  }
  return std::any_of(row.candidates.begin(), row.candidates.end(), [&](const Settings& candidate) {
    return joined_settings(candidate) == known->chosen &&
           difference_from_row(known->runs.front().config, row, false, candidate, row.name).empty();
  });
}

/// The runs of the row's candidates that are recorded and still are what the row says.
Selection known_selection(const Experiment& experiment, const Row& row, const fs::path& path) {
  Selection selection{.experiment = experiment.name, .row = row.name, .metric = row.metric};
  const std::vector<Selection> all = read_selections(path);
  const Selection* known = find_selection(all, row.name);
  if (known == nullptr || known->metric != row.metric) return selection;
  for (const Settings& candidate : row.candidates) {
    for (const PlannedRun& planned : row.plan(row.candidate_runs)) {
      const CandidateRun* run = known->find(joined_settings(candidate), planned);
      if (run != nullptr && difference_from_row(run->config, row, false,
                                                candidate_settings(row, candidate), path.string())
                                .empty()) {
        selection.runs.push_back(*run);
      }
    }
  }
  return selection;
}

/// Compares the candidates of a row on validation; nullopt: interrupted. A quick look takes the
/// first, a row without candidates has nothing to choose.
std::optional<Settings> choose_settings(const Experiment& experiment, const Row& row,
                                        const ExperimentOptions& options,
                                        const TrainRun& train_run) {
  if (row.candidates.empty()) return Settings();
  if (options.run.quick) return row.candidates.front();
  const fs::path path = selection_path(options.results, experiment.name);
  Selection selection = known_selection(experiment, row, path);
  const auto on_run = [&] {
    record_selection(path, selection);
    options.say(fmt::format("{} of {} settings compared", num_compared(row, selection),
                            row.candidates.size()));
  };
  if (!run_candidates(experiment, row, options.run, train_run, selection, on_run)) return {};
  const Settings* best = best_candidate(row, selection);
  if (best == nullptr) {
    throw base::Error(experiment.name + " " + row.name, "every candidate diverged",
                      base::ErrorKind::kDiverged);
  }
  options.say("best on validation: " + joined_settings(*best));
  return *best;
}

/// Runs a row unless it is recorded or its files are absent; false: interrupted.
bool run_if_needed(const Experiment& experiment, const Row& row, const ExperimentOptions& options,
                   const TrainRun& train_run) {
  const fs::path path = results_path(options.results, experiment.name);
  const std::string title = experiment.name + " " + row.name;
  const std::vector<RowResult> results = read_results(path);
  const RowResult* known = options.run.quick ? nullptr : find_result(results, row.name);
  if (is_recorded(known, row, options)) {
    options.say(title + ": recorded in " + path.string());
    return true;
  }
  const bool needs_files = !options.run.quick || row.quick_dataset.empty();
  if (needs_files && is_absent(row.dataset, options.data_dir)) {
    options.say(fmt::format("{}: not run, the files of {} are absent (mpssm data info {})", title,
                            row.dataset, row.dataset));
    return true;
  }
  options.say("--- " + title);
  const auto chosen = choose_settings(experiment, row, options, train_run);
  if (!chosen) return false;
  const bool can_go_on = known != nullptr && !is_of_old(*known) && known->metric == row.metric &&
                         known->chosen == joined_settings(*chosen);
  // What there is after an interruption is recorded, unless it says less than what was there.
  const auto on_run = [&](const RowResult& so_far) {
    if (known == nullptr || is_of_old(*known) || so_far.runs.size() >= known->runs.size()) {
      record_result(path, so_far);
    }
  };
  const auto result = run_row(experiment, row, options.run, *chosen, can_go_on ? known : nullptr,
                              train_run, on_run);
  if (!result) return false;
  record_result(path, *result);
  return true;
}

}  // namespace

bool run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                    const TrainRun& train_run) {
  bool found = options.row.empty();
  std::string known;
  for (const Row& row : experiment.rows) {
    known += " " + row.name;
    if (!options.row.empty() && row.name != options.row) continue;
    found = true;
    if (!run_if_needed(experiment, row, options, train_run)) return false;
  }
  if (found) return true;
  throw base::Error(
      "--row", fmt::format("expected one of{}, got '{}'", known, base::printable(options.row)));
}

std::string outcome_of(const Experiment& experiment, const ExperimentOptions& options) {
  const auto results = read_results(results_path(options.results, experiment.name));
  if (!options.run.quick) return experiment.title + "\n\n" + experiment_table(experiment, results);
  return experiment.title +
         ", a quick look: small data, few epochs, one run. Not to be compared with the paper.\n\n" +
         quick_table(experiment, results);
}

}  // namespace mpssm::study
