// SPDX-License-Identifier: MIT
// Which code trained a run, and where.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace mpssm::study {

struct Provenance {
  std::string commit;         ///< of the sources at build time, 40 digits; empty: not known
  std::optional<bool> dirty;  ///< not exactly that commit: files changed, or begun by other code
  std::string machine;        ///< processor, its number of CPUs
  std::string libtorch;

  bool operator==(const Provenance&) const = default;
};

/// Of a program on this machine that was built from `commit`, or from files changed since.
Provenance provenance_here(const std::string& commit, bool is_dirty);

/// "0.2.0+1a2b3c4d5-dirty": version, commit, and whether files were changed.
std::string version_of(const Provenance& code);

/// The same with machine and libtorch, for people.
std::string words_of(const Provenance& code);

/// That of the run in folder `run`, which `program` is about to start, go on with or, if
/// `is_finished`, read: a finished run keeps the code it was trained with. A folder of which
/// nothing was kept gives an empty one.
Provenance provenance_of(const std::filesystem::path& run, bool is_finished,
                         const Provenance& program);
/// Keeps it beside the folder, before the run begins: a process may end at any moment.
void keep_provenance(const std::filesystem::path& run, const Provenance& code);
/// For a run that did not begin.
void forget_provenance(const std::filesystem::path& run);

}  // namespace mpssm::study
