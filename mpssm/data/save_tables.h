// SPDX-License-Identifier: MIT
// Datasets as tables.
#pragma once

#include <filesystem>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

/// Throws base::Error unless `folder` can be made, or is there and empty.
void check_new_folder(const std::filesystem::path& folder);

/// Writes nodes.csv and edges.csv (graphs.csv, series.csv) into a folder that is new or empty. What
/// tables do not hold is left out: all splits but the first, time of day, further features of a
/// series. Features are those that a model sees; data.standardise=false reads them back as they
/// are. Throws base::Error for codes of categories.
void save_tables(const std::filesystem::path& folder, const Dataset& dataset);

}  // namespace mpssm::data
