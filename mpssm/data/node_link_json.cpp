// SPDX-License-Identifier: MIT
// The node-link JSON of NetworkX and D3: nodes and links with attributes, read as the two tables
// that they are.
#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"

namespace mpssm::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Objects as a table: one column per attribute, in the order of their first appearance.
class ObjectTable {
 public:
  ObjectTable(std::string where, const OrderedJson& list) : where_(std::move(where)) {
    if (!list.is_array()) fail("a list", list);
    for (std::size_t row = 0; row < list.size(); ++row) {
      if (!list[row].is_object()) fail(fmt::format("an object at {}", row), list[row]);
      for (const auto& [name, value] : list[row].items()) add_column(name, value);
    }
    for (const auto& [name, number] : names_)
      text_ += (number == 0 ? "" : ",") + io::csv_cell(name);
    text_ += "\n";
    for (const OrderedJson& object : list) {
      for (const auto& [name, number] : names_) {
        if (number > 0) text_ += ",";
        const auto found = object.find(name);
        if (found != object.end()) text_ += cell(*found);
      }
      text_ += "\n";
    }
  }

  bool has(const std::string& name) const { return number_of_.contains(name); }
  const std::vector<std::string>& nested() const { return nested_; }
  std::string take() { return std::move(text_); }
  const std::string& where() const { return where_; }

 private:
  void add_column(const std::string& name, const OrderedJson& value) {
    if (value.is_structured()) {
      if (std::find(nested_.begin(), nested_.end(), name) == nested_.end()) nested_.push_back(name);
      return;
    }
    constexpr std::size_t kMaxColumns = 10'000;
    if (!number_of_.emplace(name, names_.size()).second) return;
    names_.emplace_back(name, names_.size());
    if (names_.size() > kMaxColumns || name.empty()) {
      throw base::Error(
          where_, fmt::format("expected at most {} attributes, each with a name", kMaxColumns));
    }
  }

  static std::string cell(const OrderedJson& value) {
    if (value.is_null() || value.is_structured()) return {};
    if (value.is_string()) return io::csv_cell(value.get<std::string>());
    return value.dump();
  }

  [[noreturn]] void fail(const std::string& expected, const OrderedJson& got) const {
    throw base::Error(where_, fmt::format("expected {}, got {}", expected, got.type_name()));
  }

  std::string where_;
  std::vector<std::pair<std::string, std::size_t>> names_;
  std::unordered_map<std::string, std::size_t> number_of_;
  std::vector<std::string> nested_;  // attributes that are lists or objects
  std::string text_;
};

OrderedJson parse_ordered(const std::filesystem::path& path) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;
  const std::string text = io::read_file(path, kMaxBytes);
  return OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

bool is_node_link(const std::filesystem::path& path) {
  const OrderedJson json = parse_ordered(path);
  return json.is_object() && json.contains("nodes") &&
         (json.contains("links") || json.contains("edges"));
}

Dataset read_node_link_json(const std::filesystem::path& path, const LoadOptions& given) {
  const OrderedJson json = parse_ordered(path);
  const char* links = json.contains("links") ? "links" : "edges";
  ObjectTable nodes(shown(path) + ": nodes", json["nodes"]);
  ObjectTable edges(fmt::format("{}: {}", shown(path), links), json[links]);
  if (!edges.has("source") || !edges.has("target")) {
    throw base::Error(edges.where() + ": expected each link with 'source' and 'target', got none");
  }
  LoadOptions options = given;
  const bool is_directed = json.contains("directed") && json["directed"] == true;
  if (is_directed && !options.directed) options.directed = EdgeUse::kForward;
  Dataset dataset = read_node_tables(io::read_csv(io::CsvReader(nodes.where(), nodes.take())),
                                     io::CsvReader(edges.where(), edges.take()), options);
  dataset.source = shown(path);
  for (const ObjectTable* table : {&nodes, &edges}) {
    if (table->nested().empty()) continue;
    dataset.notes.push_back(table->where() + ": not used, since they are lists or objects: " +
                            listed("attribute", table->nested()));
  }
  return dataset;
}

}  // namespace mpssm::data
