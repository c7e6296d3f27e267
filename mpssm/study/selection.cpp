// SPDX-License-Identifier: MIT
#include "mpssm/study/selection.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/io/json_text.h"
#include "mpssm/study/json_lines.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string candidate_line(const Selection& selection, const CandidateRun& run) {
  const ordered_json json = {{"experiment", selection.experiment},
                             {"row", selection.row},
                             {"candidate", run.candidate},
                             {"seed", run.seed},
                             {"split", run.split},
                             {"metric", selection.metric},
                             {"validation", or_null(run.validation)},
                             {"steps", run.steps},
                             {"seconds", std::round(10.0 * run.seconds) / 10.0},
                             {"commit", run.code.commit},
                             {"dirty", or_null(run.code.dirty)},
                             {"machine", run.code.machine},
                             {"libtorch", run.code.libtorch},
                             {"config", run.config}};
  return io::json_text(json) + "\n";
}

CandidateRun candidate_of(const ordered_json& json) {
  return {.candidate = words_at(json, "candidate"),
          .seed = whole_at(json, "seed"),
          .split = whole_at(json, "split"),
          .validation = or_nothing<double>(json.at("validation")),
          .steps = whole_at(json, "steps"),
          .seconds = json.at("seconds"),
          .code = {.commit = words_at(json, "commit"),
                   .dirty = or_nothing<bool>(json.at("dirty")),
                   .machine = words_at(json, "machine"),
                   .libtorch = words_at(json, "libtorch")},
          .config = json.at("config")};
}

/// Mean over the runs that decide; nullopt: not all there. NaN: one has diverged.
std::optional<double> mean_validation(const Row& row, const Selection& selection,
                                      const Settings& candidate) {
  const std::vector<PlannedRun> plan = row.plan(row.candidate_runs);
  double sum = 0.0;
  for (const PlannedRun& planned : plan) {
    const CandidateRun* run = selection.find(joined_settings(candidate), planned);
    if (run == nullptr) return {};
    sum += run->validation.value_or(std::nan(""));
  }
  return sum / static_cast<double>(plan.size());
}

}  // namespace

const CandidateRun* Selection::find(std::string_view candidate, const PlannedRun& planned) const {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const CandidateRun& run) {
    return run.candidate == candidate && run.seed == planned.seed && run.split == planned.split;
  });
  return found == runs.end() ? nullptr : &*found;
}

fs::path selection_path(const fs::path& folder, const std::string& experiment) {
  return folder / (experiment + ".selection.jsonl");
}

std::vector<Selection> read_selections(const fs::path& path) {
  std::vector<Selection> all;
  for_each_json_line(path, [&](const ordered_json& json) {
    Selection read{.experiment = words_at(json, "experiment"),
                   .row = words_at(json, "row"),
                   .metric = words_at(json, "metric")};
    CandidateRun run = candidate_of(json);
    auto known = std::find_if(all.begin(), all.end(),
                              [&](const Selection& other) { return other.row == read.row; });
    if (known == all.end()) known = all.insert(all.end(), std::move(read));
    if (known->find(run.candidate, {.split = run.split, .seed = run.seed}) != nullptr) {
      throw base::Error(fmt::format("seed {}, split {} of {} with {} is there twice", run.seed,
                                    run.split, known->row, run.candidate));
    }
    known->runs.push_back(std::move(run));
  });
  return all;
}

const Selection* find_selection(const std::vector<Selection>& selections, std::string_view row) {
  const auto found = std::find_if(selections.begin(), selections.end(),
                                  [&](const Selection& selection) { return selection.row == row; });
  return found == selections.end() ? nullptr : &*found;
}

AllSelections read_all_selections(const fs::path& folder) {
  AllSelections all;
  for (const Experiment& experiment : experiments()) {
    all[experiment.name] = read_selections(selection_path(folder, experiment.name));
  }
  return all;
}

void record_selection(const fs::path& path, const Selection& selection) {
  std::string lines;
  for (const CandidateRun& run : selection.runs) lines += candidate_line(selection, run);
  replace_lines_of(path, selection.row, lines);
}

std::int64_t num_compared(const Row& row, const Selection& selection) {
  return std::count_if(row.candidates.begin(), row.candidates.end(),
                       [&](const Settings& candidate) {
                         return mean_validation(row, selection, candidate).has_value();
                       });
}

const Settings* best_candidate(const Row& row, const Selection& selection) {
  const Settings* best = nullptr;
  double best_mean = 0.0;
  for (const Settings& candidate : row.candidates) {
    const std::optional<double> mean = mean_validation(row, selection, candidate);
    if (!mean) return nullptr;
    const bool is_better = row.lower_is_better ? *mean < best_mean : *mean > best_mean;
    if (std::isfinite(*mean) && (best == nullptr || is_better)) {
      best = &candidate;
      best_mean = *mean;
    }
  }
  return best;
}

}  // namespace mpssm::study
