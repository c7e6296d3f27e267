// SPDX-License-Identifier: MIT
// The picture of a Minesweeper board beside the numbers of its run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/report/layout.h"
#include "mpssm/report/run_record.h"
#include "mpssm/run/experiment.h"

namespace mpssm::run {

/// A board that was made here ("board:100x100") or the public one.
bool is_board(const data::Dataset& dataset);

/// The cells as they lie, y upwards; none if it is no board.
std::vector<report::Point> board_places(const data::Dataset& dataset);

/// SVG, from predictions.csv of the run.
std::string board_picture(const Experiment& experiment, const report::RunRecord& record);

/// Writes board.svg into the run folder, and says where.
std::filesystem::path write_board(const Experiment& experiment, const report::RunRecord& record);

}  // namespace mpssm::run
