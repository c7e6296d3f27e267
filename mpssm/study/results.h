// SPDX-License-Identifier: MIT
// What came out of the experiments, as kept in results/<experiment>.jsonl: one line per run, each
// complete in itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/report/run_record.h"
#include "mpssm/study/provenance.h"

namespace mpssm::study {

/// One training of a row.
struct RunResult {
  std::int64_t seed = 0;
  std::int64_t split = 0;
  double value = 0.0;  ///< test, selected on validation; in the unit of the metric, not scaled
  std::optional<double> validation = {};  ///< the same of the validation part
  std::map<std::string, double> also = {};
  std::optional<double> raw = {};
  std::optional<double> refit = {};
  std::optional<double> best_test = {};
  std::int64_t best_step = 0;
  std::int64_t steps = 0;
  double seconds = 0.0;
  double peak_mib = 0.0;
  Provenance code = {};
  std::string config = {};  ///< TOML, whole
};

/// The runs of a row and what they have in common.
struct RowResult {
  std::string experiment;
  std::string row;
  std::string dataset;
  std::string metric;
  std::string protocol;
  std::string version;          ///< of the program that recorded it
  bool version_matches = true;  ///< false: settings or numbers are not those of that version
  std::int64_t parameters = 0;
  std::int64_t planned = 0;  ///< runs of the whole protocol
  /// How many settings were compared on validation, 1 if the row names no candidates; none: not
  /// kept. What people tried by hand before the row was written is not in it.
  std::optional<std::int64_t> compared = {};
  std::string chosen = {};  ///< the candidate that won, "train.lr=0.003 model.hops=5"
  std::vector<report::RunRecord::Reference> references = {};  ///< of the first run
  std::vector<RunResult> runs = {};
};

std::filesystem::path results_path(const std::filesystem::path& folder,
                                   const std::string& experiment);

/// All rows of a file, in its order; none if there is no such file. Throws base::Error with file
/// and line if one is damaged, twice there or contradicts another.
std::vector<RowResult> read_results(const std::filesystem::path& path);

/// That of a row, or nullptr.
const RowResult* find_result(const std::vector<RowResult>& results, std::string_view row);

/// What is recorded in a folder, by the name of the experiment.
using AllResults = std::map<std::string, std::vector<RowResult>>;
AllResults read_all_results(const std::filesystem::path& folder);

/// Puts a row in the place of what was recorded of it; lines of other rows stay as they are. The
/// file is replaced whole or not at all, one process after the other.
void record_result(const std::filesystem::path& path, const RowResult& result);

}  // namespace mpssm::study
