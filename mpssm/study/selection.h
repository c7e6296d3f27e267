// SPDX-License-Identifier: MIT
// The settings that a row was chosen from: what each gave on validation, as kept in
// results/<experiment>.selection.jsonl, a line per run. There is no test value in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/study/provenance.h"
#include "mpssm/study/rows.h"

namespace mpssm::study {

/// One training of one candidate.
struct CandidateRun {
  std::string candidate;  ///< joined_settings() of it
  std::int64_t seed = 0;
  std::int64_t split = 0;
  std::optional<double> validation = {};  ///< in the unit of the metric; none: it diverged
  std::int64_t steps = 0;
  double seconds = 0.0;
  Provenance code = {};
  std::string config = {};  ///< TOML, whole
};

/// The runs of all candidates of a row, as far as they have ended.
struct Selection {
  std::string experiment;
  std::string row;
  std::string metric;
  std::vector<CandidateRun> runs = {};

  const CandidateRun* find(std::string_view candidate, const PlannedRun& planned) const;
};

std::filesystem::path selection_path(const std::filesystem::path& folder,
                                     const std::string& experiment);

/// All of a file; none if there is no such file. Throws base::Error with file and line if one is
/// damaged or twice there.
std::vector<Selection> read_selections(const std::filesystem::path& path);
const Selection* find_selection(const std::vector<Selection>& selections, std::string_view row);

/// What is recorded in a folder, by the name of the experiment.
using AllSelections = std::map<std::string, std::vector<Selection>>;
AllSelections read_all_selections(const std::filesystem::path& folder);

/// Puts it in the place of what was recorded of its row.
void record_selection(const std::filesystem::path& path, const Selection& selection);

/// How many of the row's candidates have all their runs.
std::int64_t num_compared(const Row& row, const Selection& selection);

/// The candidate with the best mean on validation, the first of equals; one that diverged in any
/// run is out. Nullptr unless all candidates have all their runs, or if all are out.
const Settings* best_candidate(const Row& row, const Selection& selection);

}  // namespace mpssm::study
