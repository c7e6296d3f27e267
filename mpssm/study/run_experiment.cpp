// SPDX-License-Identifier: MIT
#include "mpssm/study/run_experiment.h"

#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/study/page.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;

/// Runs a row unless it is recorded or its files are absent; false: interrupted.
bool run_if_needed(const Experiment& experiment, const Row& row, const ExperimentOptions& options,
                   const TrainRun& train_run) {
  const fs::path path = results_path(options.results, experiment.name);
  const std::string title = experiment.name + " " + row.name;
  if (!options.run.quick) {
    const auto results = read_results(path);
    switch (is_recorded(find_result(results, row.name), row, options.run, path.string())) {
      case Recorded::kYes:
        options.say(title + ": recorded in " + path.string());
        return true;
      case Recorded::kOtherSettings:
        options.say(fmt::format("{}: {} was had with other settings", path.string(), row.name));
        break;
      case Recorded::kNo:
        break;
    }
  }
  const bool needs_files = !options.run.quick || row.quick_dataset.empty();
  if (needs_files && is_absent(row.dataset, options.data_dir)) {
    options.say(fmt::format("{}: not run, the files of {} are absent (mpssm data info {})", title,
                            row.dataset, row.dataset));
    return true;
  }
  options.say("--- " + title);
  const auto result = run_row(experiment, row, options.run, train_run);
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
