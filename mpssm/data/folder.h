// SPDX-License-Identifier: MIT
// Private to data/: folders of tables, and what their names and columns say that they hold.
#pragma once

#include <filesystem>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"

namespace mpssm::data {

/// nodes.csv and edges.csv; the same with a column 'graph' for many graphs, and graphs.csv for what
/// is to be learned of each; or series.csv with edges.csv or distances.csv. All may end in .csv.gz.
Dataset read_folder(const std::filesystem::path& folder, const LoadOptions& options);

/// The folder of which this is a table; a table of another name stands for nodes.csv.
Dataset read_beside(const std::filesystem::path& path, const LoadOptions& options);

/// The tables that one of the two would read.
std::vector<std::filesystem::path> tables_of(const std::filesystem::path& path);

}  // namespace mpssm::data
