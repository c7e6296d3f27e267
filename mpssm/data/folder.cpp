// SPDX-License-Identifier: MIT
#include "mpssm/data/folder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/paths.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

struct Tables {
  fs::path nodes = {};
  fs::path edges = {};
  fs::path graphs = {};
  fs::path series = {};
  fs::path distances = {};

  bool is_series() const { return !series.empty(); }
  // Of a series, either will do.
  const fs::path& links() const { return edges.empty() ? distances : edges; }
};

Tables find_tables(const fs::path& path) {
  const fs::path folder = is_folder(path) ? path : path.parent_path();
  Tables tables{.nodes = table_in(folder, "nodes"),
                .edges = table_in(folder, "edges"),
                .graphs = table_in(folder, "graphs"),
                .series = table_in(folder, "series"),
                .distances = table_in(folder, "distances")};
  if (!is_folder(path)) {
    const std::string name = table_name(path);
    const bool is_known =
        name == "edges" || name == "graphs" || name == "series" || name == "distances";
    // A table of another name is one of nodes, and no series is looked for beside nodes.
    if (!is_known) tables.nodes = path;
    if (!is_known || name == "graphs") tables.series.clear();
  }
  if (tables.is_series()) {
    tables.nodes.clear();
    tables.graphs.clear();
  } else {
    tables.distances.clear();
  }
  return tables;
}

// Tables of other names that a user may expect to count.
void note_other_tables(const fs::path& folder, const std::vector<fs::path>& used,
                       std::vector<std::string>& notes) {
  std::vector<std::string> others;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const auto is_same = [&](const fs::path& path) {
      return path.filename() == entry.path().filename();
    };
    if (is_csv(entry.path()) && std::none_of(used.begin(), used.end(), is_same)) {
      others.push_back(entry.path().filename());
    }
  }
  std::sort(others.begin(), others.end());
  if (!others.empty()) notes.push_back(shown(folder) + ": not used: " + listed("table", others));
}

bool are_edges(const fs::path& path) { return has_ends(io::CsvReader(path).head()); }

Dataset read_tables(const fs::path& folder, const Tables& tables, const LoadOptions& options) {
  if (tables.is_series()) {
    if (!tables.links().empty()) {
      return read_series_tables(tables.series, tables.links(), options);
    }
    throw base::Error(shown(folder) +
                      ": expected edges.csv or distances.csv beside series.csv, got neither");
  }
  const bool of_links = options.task == Task::kLinks;
  if (of_links && tables.nodes.empty() && !tables.edges.empty()) {
    return read_edge_table(tables.edges, options);
  }
  if (of_links && tables.edges.empty() && !tables.nodes.empty() && are_edges(tables.nodes)) {
    return read_edge_table(tables.nodes, options);
  }
  for (const auto& [path, name] :
       {std::pair(tables.nodes, "nodes.csv"), {tables.edges, "edges.csv"}}) {
    if (!path.empty()) continue;
    throw base::Error(shown(folder) +
                      ": expected a folder with nodes.csv and edges.csv (or series.csv), got no " +
                      name);
  }
  if (!tables.graphs.empty() || has_graph_column(tables.nodes)) {
    return read_many_graph_tables(
        {.nodes = tables.nodes, .edges = tables.edges, .graphs = tables.graphs}, options);
  }
  return read_node_tables(tables.nodes, tables.edges, options);
}

}  // namespace

Dataset read_folder(const fs::path& folder, const LoadOptions& options) {
  const Tables tables = find_tables(folder);
  Dataset dataset = read_tables(folder, tables, options);
  note_other_tables(folder, tables_of(folder), dataset.notes);
  return dataset;
}

Dataset read_beside(const fs::path& path, const LoadOptions& options) {
  const fs::path folder = path.parent_path();
  return read_tables(folder.empty() ? "." : folder, find_tables(path), options);
}

std::vector<fs::path> tables_of(const fs::path& path) {
  std::vector<fs::path> paths;
  const Tables tables = find_tables(path);
  if (tables.is_series()) return {tables.series, tables.links()};
  for (const fs::path& table : {tables.nodes, tables.edges, tables.graphs}) {
    if (!table.empty()) paths.push_back(table);
  }
  return paths;
}

}  // namespace mpssm::data
