// SPDX-License-Identifier: MIT
// A graph alone, without features or labels: of a dataset, or of tables that have neither.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpssm/data/load.h"
#include "mpssm/graph/graph.h"

namespace mpssm::data {

struct BareGraph {
  std::string name = {};
  graph::Graph graph = {};
  std::vector<std::string> node_ids = {};  ///< [N]; empty: 0, 1, 2, ...
  std::vector<std::string> notes = {};     ///< what a user should know, one line each
};

/// The graph of whatever load() reads, if that is one graph; and of tables without labels: a .csv
/// of edges (its nodes are the ends, by first appearance), a folder with edges.csv alone, or with
/// nodes.csv, of which only the column 'id' is read. Throws base::Error.
BareGraph load_graph(const std::string& name_or_path, const LoadOptions& options = {});

/// A graph of a known family, called by its spec; see graph::make_named().
BareGraph make_graph(const std::string& spec, std::uint64_t seed = 0);

/// load_graph() or, where there is no such dataset or file, make_graph().
BareGraph load_or_make_graph(const std::string& what, const LoadOptions& options = {},
                             std::uint64_t seed = 0);

/// The node of that id, or of that number if the graph has no ids. Throws base::Error naming the
/// id and what is known.
std::int64_t find_node(const BareGraph& graph, const std::string& id);

}  // namespace mpssm::data
