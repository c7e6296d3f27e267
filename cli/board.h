// SPDX-License-Identifier: MIT
// The picture of a Minesweeper board beside the numbers of its run.
#pragma once

#include "mpssm/data/dataset.h"
#include "mpssm/report/run_record.h"
#include "mpssm/train/experiment.h"

namespace mpssm::cli {

/// A board that was made here ("board:100x100") or the public one.
bool is_board(const data::Dataset& dataset);

/// Writes board.svg into the run folder.
void write_board(const train::Experiment& experiment, const report::RunRecord& record);

}  // namespace mpssm::cli
