// SPDX-License-Identifier: MIT
// Private to data/: the readers that load() chooses from. All throw base::Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {

/// A table of nodes and a table of edges.
Dataset read_node_tables(const std::filesystem::path& nodes, const std::filesystem::path& edges,
                         const LoadOptions& options);

/// The same of tables that are open already.
Dataset read_node_tables(const io::CsvTable& nodes, io::CsvReader edges,
                         const LoadOptions& options);

/// A table of edges alone, for link prediction.
Dataset read_edge_table(const std::filesystem::path& edges, const LoadOptions& options);

/// A graph in the node-link JSON of NetworkX: {"nodes": [{"id": ...}], "links": [{"source": ...}]}.
Dataset read_node_link_json(const std::filesystem::path& path, const LoadOptions& options);
/// Whether the file is JSON with nodes and links.
bool is_node_link(const std::filesystem::path& path);

/// The same in GraphML, and in GML.
Dataset read_graphml(const std::filesystem::path& path, const LoadOptions& options);
Dataset read_gml(const std::filesystem::path& path, const LoadOptions& options);

/// A folder of the Open Graph Benchmark, one graph or many: raw/num-node-list.csv.gz is in it.
bool is_ogb_folder(const std::filesystem::path& path);
Dataset read_ogb_folder(const std::filesystem::path& folder, const LoadOptions& options);
/// The files that it would read.
std::vector<std::filesystem::path> ogb_files(const std::filesystem::path& folder);

/// Many graphs as tables; without `graphs`, something is learned of the nodes.
struct GraphTables {
  std::filesystem::path nodes = {};
  std::filesystem::path edges = {};
  std::filesystem::path graphs = {};
};
Dataset read_many_graph_tables(const GraphTables& tables, const LoadOptions& options);
/// Whether the table says of each row which graph it belongs to.
bool has_graph_column(const std::filesystem::path& path);

/// A series as a table, long (time, node, value) or wide (time, one column per node), with a table
/// of edges or of distances.
Dataset read_series_tables(const std::filesystem::path& series, const std::filesystem::path& edges,
                           const LoadOptions& options);

/// One graph as arrays: node_features, node_labels, edges, {train,val,test}_masks.
Dataset read_node_npz(const io::Npz& npz, const LoadOptions& options);

/// What packed arrays do not say themselves.
struct PackedLayout {
  std::string target = "labels";
  std::vector<std::int32_t> vocabulary = {};  ///< of the codes; empty: stored, or as found
  bool scale_by_train_maximum = false;
  bool is_own = false;  ///< not a registered file: labels are scaled by the largest in size
  std::vector<std::string> target_names = {};
};
/// Many graphs as arrays: node_ptr, edge_ptr, edge_src, edge_dst, features or codes, split, target.
Dataset read_packed_npz(const io::Npz& npz, const PackedLayout& layout, const LoadOptions& options);

/// Largest label of the training graphs, what published labels are divided by; 1 if none is
/// positive.
double train_maximum(const GraphsData& data);
/// The largest in size, whatever its sign: what own labels are divided by; 1 if all are 0.
double largest_training_label(const GraphsData& data);

struct SeriesProtocol {
  std::int64_t lags = 0;  ///< 0: 12 for series of 200 steps and more, else 4
  std::int64_t horizon = 1;
  WindowRule rule = WindowRule::kFractions;
  double train_ratio = 0.7;
  bool standardise = true;
  bool over_all_time = false;  ///< `time_periods`: each node over all time, as published
  std::optional<float> null_value = {};
  double period = 0.0;  ///< 0: by the clock, if there is one
  std::string metric = "mae";
};
/// PyTorch Geometric Temporal's.
SeriesProtocol temporal_protocol(std::int64_t lags);
/// DCRNN's.
SeriesProtocol traffic_protocol();

/// Measurements 'x', 'values' or 'speed' with a graph from the same file or from `graph`.
Dataset read_series_npz(const io::Npz& npz, const io::Npz* graph, const SeriesProtocol& protocol,
                        const LoadOptions& options);
/// PyTorch Geometric Temporal's files. `protocol.lags` 0: the lags of that library's loader.
Dataset read_series_json(const std::filesystem::path& path, const SeriesProtocol& protocol,
                         const LoadOptions& options);
/// Protocol and options into `series`, everything checked.
Dataset finish_series(const std::filesystem::path& path, SeriesData series,
                      const SeriesProtocol& protocol, const LoadOptions& options);

}  // namespace mpssm::data
