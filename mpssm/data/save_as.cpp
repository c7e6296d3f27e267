// SPDX-License-Identifier: MIT
// One graph with attributes as node-link JSON, GraphML and GML; which format a name asks for.
#include "mpssm/data/save_as.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/utf8.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/load.h"
#include "mpssm/data/save_tables.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJsonStart = "{\"graph\":{\"written_by\":\"mpssm\"},";
constexpr std::string_view kGraphmlStart =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- written by mpssm -->\n";
constexpr std::string_view kGmlStart = "Creator \"mpssm\"\n";

/// An attribute of all nodes or of all edges; no text: this one has none.
struct WrittenAttribute {
  std::string name;
  bool is_number = true;
  std::function<std::string(std::size_t)> text;
};
using WrittenAttributes = std::vector<WrittenAttribute>;

/// One graph, ready to be written in any of the three.
struct WrittenGraph {
  std::vector<std::string> ids = {};
  std::vector<ListedEdge> edges = {};
  WrittenAttributes of_nodes = {};
  WrittenAttributes of_edges = {};
  bool directed = false;
};

WrittenGraph written_graph(const NodeData& data) {
  WrittenGraph graph{.ids = data.node_ids,
                     .edges = listed_edges(data.graph, data.edge_table),
                     .directed = !data.graph.is_symmetric()};
  for (std::int64_t i = std::ssize(graph.ids); i < data.graph.num_nodes(); ++i) {
    graph.ids.push_back(std::to_string(i));
  }
  const auto number = [](float value) {
    return std::isnan(value) ? std::string() : fmt::format("{}", value);
  };
  for (std::int64_t c = 0; c < data.features.columns; ++c) {
    graph.of_nodes.push_back({fmt::format("f{}", c), true, [&data, c, number](std::size_t i) {
                                return number(data.features.values[i * data.features.columns + c]);
                              }});
  }
  const bool has_classes = !data.class_names.empty();
  graph.of_nodes.push_back(
      {data.target_name, !has_classes, [&data, has_classes, number](std::size_t i) {
         if (!has_classes || std::isnan(data.target[i])) {
           return number(data.target[i]);
         }
         return data.class_names[static_cast<std::size_t>(data.target[i])];
       }});
  graph.of_nodes.push_back({"split", false, [&data](std::size_t i) {
                              const bool is_in =
                                  !data.splits.empty() && data.splits[0][i] != Part::kNone;
                              return std::string(is_in ? to_string(data.splits[0][i]) : "");
                            }});
  return graph;
}

// `graph` and `table` are kept where they are.
void add_edge_columns(const NodeData& data, WrittenGraph& graph) {
  if (data.graph.is_weighted()) {
    graph.of_edges.push_back({"weight", true, [&graph](std::size_t e) {
                                return io::number_text(graph.edges[e].weight);
                              }});
  }
  for (const EdgeColumn& column : data.edge_table.columns) {
    graph.of_edges.push_back({column.name, column.words.empty(), [&graph, &column](std::size_t e) {
                                const std::int64_t row = graph.edges[e].row;
                                return row < 0 ? std::string()
                                               : edge_text(column, static_cast<std::size_t>(row));
                              }});
  }
}

// ---- node-link JSON ----

std::string json_quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string json_members(const WrittenAttributes& attributes, std::size_t row) {
  std::string text;
  for (const WrittenAttribute& attribute : attributes) {
    const std::string value = attribute.text(row);
    if (value.empty()) continue;
    text += "," + json_quoted(attribute.name) + ":" +
            (attribute.is_number ? value : json_quoted(value));
  }
  return text;
}

std::string as_json(const WrittenGraph& graph) {
  std::string text(kJsonStart);
  text += fmt::format("\"directed\":{},\"multigraph\":false,\"nodes\":[", graph.directed);
  for (std::size_t i = 0; i < graph.ids.size(); ++i) {
    text += fmt::format("{}\n{{\"id\":{}{}}}", i == 0 ? "" : ",", json_quoted(graph.ids[i]),
                        json_members(graph.of_nodes, i));
  }
  text += "],\n\"links\":[";
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    text +=
        fmt::format("{}\n{{\"source\":{},\"target\":{}{}}}", e == 0 ? "" : ",",
                    json_quoted(graph.ids[graph.edges[e].src]),
                    json_quoted(graph.ids[graph.edges[e].dst]), json_members(graph.of_edges, e));
  }
  return text + "]}\n";
}

// ---- GraphML ----

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      // A tab, a line feed, a return; XML has no way to say the others.
      if (c == '\t' || c == '\n' || c == '\r') result += fmt::format("&#{};", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string xml_keys(const WrittenAttributes& attributes, const char* whose, char mark) {
  std::string text;
  for (std::size_t a = 0; a < attributes.size(); ++a) {
    text += fmt::format("<key id=\"{}{}\" for=\"{}\" attr.name=\"{}\" attr.type=\"{}\"/>\n", mark,
                        a, whose, xml_text(attributes[a].name),
                        attributes[a].is_number ? "double" : "string");
  }
  return text;
}

std::string xml_data(const WrittenAttributes& attributes, std::size_t row, char mark) {
  std::string text;
  for (std::size_t a = 0; a < attributes.size(); ++a) {
    const std::string value = attributes[a].text(row);
    if (value.empty()) continue;
    text += fmt::format("<data key=\"{}{}\">{}</data>", mark, a, xml_text(value));
  }
  return text;
}

std::string as_graphml(const WrittenGraph& graph) {
  std::string text(kGraphmlStart);
  text += "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
  text += xml_keys(graph.of_nodes, "node", 'n') + xml_keys(graph.of_edges, "edge", 'e');
  text += fmt::format("<graph edgedefault=\"{}\">\n", graph.directed ? "directed" : "undirected");
  for (std::size_t i = 0; i < graph.ids.size(); ++i) {
    text += fmt::format("<node id=\"{}\">{}</node>\n", xml_text(graph.ids[i]),
                        xml_data(graph.of_nodes, i, 'n'));
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    text += fmt::format("<edge source=\"{}\" target=\"{}\">{}</edge>\n",
                        xml_text(graph.ids[graph.edges[e].src]),
                        xml_text(graph.ids[graph.edges[e].dst]), xml_data(graph.of_edges, e, 'e'));
  }
  return text + "</graph>\n</graphml>\n";
}

// ---- GML ----

// Letters, digits and _; a label is the name of a node there.
std::string gml_key(const std::string& name) {
  if (name == "label") return "class";
  std::string key;
  for (const char c : name) {
    key += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return key.empty() || std::isalpha(static_cast<unsigned char>(key[0])) == 0 ? "x" + key : key;
}

// GML is ASCII: other characters by their numbers.
std::string gml_text(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = std::max<std::size_t>(base::utf8_size(text.substr(i)), 1);
    const auto lead = static_cast<unsigned char>(text[i]);
    if (size == 1 && lead >= 0x20 && lead != '&' && lead != '"') {
      result += text[i++];
      continue;
    }
    // The bits of the first byte that count, then six of each that follows.
    std::uint32_t code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t k = 1; k < size; ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    result += fmt::format("&#{};", code);
    i += size;
  }
  return result + "\"";
}

std::string gml_members(const WrittenAttributes& attributes, std::size_t row) {
  std::string text;
  for (const WrittenAttribute& attribute : attributes) {
    const std::string value = attribute.text(row);
    if (value.empty()) continue;
    text += fmt::format(" {} {}", gml_key(attribute.name),
                        attribute.is_number ? value : gml_text(value));
  }
  return text;
}

std::string as_gml(const WrittenGraph& graph) {
  std::string text(kGmlStart);
  text += fmt::format("graph [\ndirected {}\n", graph.directed ? 1 : 0);
  for (std::size_t i = 0; i < graph.ids.size(); ++i) {
    text += fmt::format("node [ id {} label {}{} ]\n", i, gml_text(graph.ids[i]),
                        gml_members(graph.of_nodes, i));
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    text += fmt::format("edge [ source {} target {}{} ]\n", graph.edges[e].src, graph.edges[e].dst,
                        gml_members(graph.of_edges, e));
  }
  return text + "]\n";
}

struct GraphFormat {
  std::string_view ending;
  std::string_view start;  // by which files of ours are known
  std::string (*text_of)(const WrittenGraph&);
};
constexpr GraphFormat kGraphFormats[] = {
    {".json", kJsonStart, as_json},
    {".graphml", kGraphmlStart, as_graphml},
    {".gml", kGmlStart, as_gml},
};

const GraphFormat* graph_format(const fs::path& path) {
  for (const GraphFormat& format : kGraphFormats) {
    if (path.extension() == format.ending) return &format;
  }
  return nullptr;
}

}  // namespace

void check_new_data(const fs::path& path) {
  if (path.extension() == ".npz") {
    io::check_replaceable(path, io::kNpzMark);
  } else if (const GraphFormat* format = graph_format(path)) {
    io::check_replaceable(path, {.bytes = format->start, .kind = "a graph that mpssm wrote"});
  } else {
    check_new_folder(path);
  }
}

void save_as(const fs::path& path, const Dataset& dataset) {
  if (path.extension() == ".npz") return save_npz(path, dataset);
  const GraphFormat* format = graph_format(path);
  if (format == nullptr) return save_tables(path, dataset);
  const auto* data = std::get_if<NodeData>(&dataset.content);
  if (data == nullptr) {
    throw base::Error(
        {.where = shown(path),
         .expected = fmt::format("one graph, which is what {} holds", format->ending),
         .got = std::holds_alternative<GraphsData>(dataset.content) ? "many graphs" : "a series",
         .hint = "write an .npz, or tables into a folder"});
  }
  WrittenGraph graph = written_graph(*data);
  add_edge_columns(*data, graph);
  io::write_file(path, format->text_of(graph));
}

}  // namespace mpssm::data
