// SPDX-License-Identifier: MIT
// The report of a run: from its files, its data and its network to the plain data of a page.
#pragma once

#include <filesystem>

#include "mpssm/report/run_page.h"
#include "mpssm/run/experiment.h"

namespace mpssm::run {

/// report.html of a run folder.
std::filesystem::path report_path(const std::filesystem::path& folder);

/// Of a run whose data and network are at hand; reads metrics.csv and predictions.csv.
report::RunPage page_of(const Experiment& experiment, const report::RunRecord& record,
                        const std::filesystem::path& folder);

/// Record, settings and history of a finished run, from its folder alone. Throws base::Error if
/// there is none.
report::RunPage read_folder(const std::filesystem::path& folder);

/// Of a finished run. Where its data are gone or have changed, the page has what the folder itself
/// tells, and a note. Throws base::Error if there is no finished run.
report::RunPage read_page(const std::filesystem::path& folder,
                          const std::filesystem::path& data_dir = {});

/// The finished runs in these folders and below, each once, in the order of their names; a folder
/// with several (of seeds, splits, a search) stands for them. Throws base::Error if one has none.
std::vector<std::filesystem::path> finished_runs(const std::vector<std::string>& folders);

/// Whether there is a trained model at a path or below: a run, several, or a model's file.
bool holds_runs(const std::filesystem::path& path);

/// Runs and files of models as they are, folders of several as the finished runs in them. Throws
/// base::Error if a folder has none.
std::vector<std::string> runs_in(const std::vector<std::string>& paths);

/// The page of one run, or of several side by side.
std::string report_html(const std::vector<std::filesystem::path>& runs,
                        const std::filesystem::path& data_dir = {});

}  // namespace mpssm::run
