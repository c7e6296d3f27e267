// SPDX-License-Identifier: MIT
// Private to data/: what files say of edges beside their ends and weights, read and written back.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/graph/graph.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {

/// Takes the columns of a table of edges that nobody else uses, row by row.
class EdgeColumns {
 public:
  EdgeColumns(const io::CsvHeader& table, const std::set<std::size_t>& used);

  bool empty() const { return columns_.empty(); }
  /// The cells of one row.
  void add(std::span<const std::string_view> cells);
  void add(io::CsvRow row);
  std::vector<EdgeColumn> take();

 private:
  void add(std::size_t column, std::string_view cell);

  std::vector<std::size_t> sources_;
  std::vector<EdgeColumn> columns_;
  std::vector<std::unordered_map<std::string, std::size_t>> number_of_;  // of each word
};

/// A note that these columns are kept; none if there are none.
void note_kept(const std::string& where, const EdgeTable& table, std::vector<std::string>& notes);

/// 'edge_attr' [m] or [m, D], for the edges in 'listed_edges' [m, 2] or else for those of `edges`,
/// with names and words if they are there. Throws base::Error if sizes differ.
EdgeTable read_edge_attributes(const io::Npz& npz, std::int64_t num_nodes,
                               std::span<const std::int32_t> src,
                               std::span<const std::int32_t> dst);

/// The same as arrays.
void add_edge_attributes(const EdgeTable& table, std::map<std::string, io::Array>& arrays);

/// An edge as a file lists it.
struct ListedEdge {
  std::int32_t src = 0;
  std::int32_t dst = 0;
  double weight = 1.0;
  std::int64_t row = -1;  ///< of the table of what else is known; -1: nothing
};
/// The edges of a graph so that reading them gives the graph again: row by row if more is known of
/// them, else each once. `are_means`: an edge that is listed again has the same weight, not 0.
std::vector<ListedEdge> listed_edges(const graph::Graph& graph, const EdgeTable& table,
                                     bool are_means = false);

/// The value of a column in one row, as text; empty: none.
std::string edge_text(const EdgeColumn& column, std::size_t row);

}  // namespace mpssm::data
