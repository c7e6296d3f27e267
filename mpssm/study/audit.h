// SPDX-License-Identifier: MIT
// Whether recorded rows are what they say: which code ran, which seeds and splits, which settings,
// and that validation chose them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "mpssm/study/results.h"
#include "mpssm/study/rows.h"
#include "mpssm/study/selection.h"

namespace mpssm::study {

enum class Soundness {
  kSound,
  kNotAuditable,  ///< recorded before runs said this of themselves: nothing is shown either way
  kBreach,
};

struct RowAudit {
  std::string experiment;
  std::string row;
  Soundness soundness = Soundness::kSound;
  std::vector<std::string> findings = {};  ///< why it is not sound
};

/// The commits that a checkout's HEAD stands on.
struct History {
  std::set<std::string> commits;
  bool is_whole = true;  ///< false: a shallow clone, which does not know them all
};
/// Of the checkout that holds `folder`. Throws base::Error if it is in none.
History read_history(const std::filesystem::path& folder);

/// What is recorded of an experiment.
struct Records {
  const std::vector<RowResult>& results;
  const std::vector<Selection>& selections;
};

/// Recorded before validation values, commits and the number of compared settings were kept.
bool is_of_old(const RowResult& result);

/// Audits what is recorded of a row. Without `history` it is not asked whether the commits exist.
RowAudit audit_row(const Experiment& experiment, const Row& row, const RowResult& result,
                   const Records& records, const History* history = nullptr);

/// All that is recorded, rows that are no longer there included.
std::vector<RowAudit> audit_all(const AllResults& results, const AllSelections& selections,
                                const History& history);

/// "sound", "not auditable", "breach: ..."
std::string audit_words(const RowAudit& audit);

/// Every row that is not sound, and how many are; the last line is the sum.
std::string to_text(const std::vector<RowAudit>& audits, const History& history);

struct AuditReport {
  std::string text;
  bool has_breach = false;
};
/// Of all that is recorded in a folder, which is in a checkout of the repository.
AuditReport audit_folder(const std::filesystem::path& folder);

}  // namespace mpssm::study
