// SPDX-License-Identifier: MIT
// Private to data/: graphs whose nodes and edges carry attributes by name, as the two tables that
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"

namespace mpssm::data {

/// What a file of one of these formats may hold at most.
inline constexpr std::int64_t kMaxAttributeBytes = std::int64_t{1} << 30;

/// Objects as a table: one column per attribute, in the order of their first appearance.
class AttributeTable {
 public:
  /// `where` begins messages: "g.json: nodes".
  explicit AttributeTable(std::string where) : where_(std::move(where)) {}

  void add_row() { rows_.emplace_back(); }
  /// Of the last row. Throws base::Error for a name that is empty, and beyond 10,000 columns.
  void set(std::string_view name, std::string_view value);
  /// An attribute that no table can hold; a note tells of it.
  void leave_out(std::string_view name);

  bool has(std::string_view name) const { return number_of_.contains(std::string(name)); }
  bool empty() const { return rows_.empty(); }
  const std::string& where() const { return where_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// As CSV; the rows are given away.
  std::string take();

 private:
  std::string where_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> number_of_;
  std::vector<std::vector<std::pair<std::uint32_t, std::string>>> rows_;
  std::vector<std::string> left_out_;
};

/// A graph as such tables: nodes have an 'id', edges 'source' and 'target'.
struct AttributeGraph {
  AttributeTable nodes;
  AttributeTable edges;
  bool directed = false;
};
Dataset read_attribute_graph(const std::filesystem::path& path, AttributeGraph graph,
                             const LoadOptions& options);

}  // namespace mpssm::data
