// SPDX-License-Identifier: MIT
// The node-link JSON of NetworkX and D3: nodes and links with attributes.
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/attribute_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/file.h"

namespace mpssm::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

AttributeTable table_of_objects(const std::string& where, const OrderedJson& list) {
  const auto fail = [&](const std::string& expected, const OrderedJson& got) {
    throw base::Error({.where = where, .expected = expected, .got = got.type_name()});
  };
  AttributeTable table(where);
  if (!list.is_array()) fail("a list", list);
  for (std::size_t row = 0; row < list.size(); ++row) {
    if (!list[row].is_object()) fail(fmt::format("an object at {}", row), list[row]);
    table.add_row();
    for (const auto& [name, value] : list[row].items()) {
      if (value.is_structured()) {
        table.leave_out(name);
      } else if (value.is_string()) {
        table.set(name, value.get_ref<const std::string&>());
      } else {
        table.set(name, value.is_null() ? std::string() : value.dump());
      }
    }
  }
  return table;
}

OrderedJson parse_ordered(const std::filesystem::path& path) {
  const std::string text = io::read_file(path, kMaxAttributeBytes);
  return OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

bool is_node_link(const std::filesystem::path& path) {
  const OrderedJson json = parse_ordered(path);
  return json.is_object() && json.contains("nodes") &&
         (json.contains("links") || json.contains("edges"));
}

Dataset read_node_link_json(const std::filesystem::path& path, const LoadOptions& options) {
  const OrderedJson json = parse_ordered(path);
  const char* links = json.contains("links") ? "links" : "edges";
  AttributeGraph graph{
      .nodes = table_of_objects(shown(path) + ": nodes", json["nodes"]),
      .edges = table_of_objects(fmt::format("{}: {}", shown(path), links), json[links]),
      .directed = json.contains("directed") && json["directed"] == true};
  return read_attribute_graph(path, std::move(graph), options);
}

}  // namespace mpssm::data
