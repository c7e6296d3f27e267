// SPDX-License-Identifier: MIT
// A changed graph as a file: edges to put in and to take out, by the names of their nodes.
#pragma once

#include <filesystem>
#include <string>

#include "mpssm/analysis/graph_edit.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/data/dataset.h"

namespace mpssm::run {

/// {"mpssm_edges": 1, "graph": ..., "weight": ..., "add": [[u, v], ...], "remove": [...]}
std::string edit_text(const data::BareGraph& graph, const analysis::GraphEdit& edit);

/// What edit files begin with, to tell them from others.
std::string_view edit_start();

/// Reads edit_text(). Throws base::Error naming the file and what is wrong: no such file, not of
/// this kind, nodes that the graph does not have.
analysis::GraphEdit read_edit(const std::filesystem::path& path, const data::BareGraph& graph);

/// Puts the edited graph in the place of the dataset's own. Throws base::Error if that is many
/// graphs, or the edit does not fit it.
void apply_edit(const analysis::GraphEdit& edit, data::Dataset& dataset);

/// The one graph of a dataset with its names. Throws base::Error if there are many.
data::BareGraph graph_in(const data::Dataset& dataset);

}  // namespace mpssm::run
