// SPDX-License-Identifier: MIT
// Datasets written in the format that a name asks for.
#pragma once

#include <filesystem>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

/// Before anything is read: throws base::Error if `path` is there and holds what we did not write.
/// FILE.npz; for one graph also FILE.json (node-link), FILE.graphml and FILE.gml; any other name is
/// a folder of tables.
void check_new_data(const std::filesystem::path& path);

/// Writes what load() reads back: npz all of it, the others features as a model sees them, labels,
/// the first split, edges with weights and all that is known of them. Throws base::Error if the
/// format cannot hold such data.
void save_as(const std::filesystem::path& path, const Dataset& dataset);

}  // namespace mpssm::data
