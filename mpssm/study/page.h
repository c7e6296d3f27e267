// SPDX-License-Identifier: MIT
// What was recorded, as text for people: tables for a terminal, the page docs/results.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/io/file.h"
#include "mpssm/study/results.h"
#include "mpssm/study/rows.h"
#include "mpssm/study/selection.h"
#include "mpssm/study/timing.h"

namespace mpssm::study {

/// All rows: how many runs, whether the files are here, what is recorded and how sound that is.
/// `folder` is that of the results.
std::string list_table(const std::filesystem::path& folder, const std::filesystem::path& data_dir);

/// An experiment; rows without a result say so.
std::string experiment_table(const Experiment& experiment, const std::vector<RowResult>& results);
/// The same of a quick look: no comparison, the data are others.
std::string quick_table(const Experiment& experiment, const std::vector<RowResult>& results);

/// How that page begins.
inline constexpr io::FileMark kPageMark = {
    .bytes = "# Results\n\nWritten by `mpssm reproduce --page", .kind = "a page of results"};

/// The whole page docs/results.md, from the folder of the results.
std::string results_page(const std::filesystem::path& folder);
/// Parts of it; nullopt: not measured, which they say.
std::string runtime_markdown(const std::optional<RuntimeTable>& table);
std::string figure_markdown(const std::optional<FigureTable>& table);

}  // namespace mpssm::study
