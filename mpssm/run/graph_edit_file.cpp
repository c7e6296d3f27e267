// SPDX-License-Identifier: MIT
#include "mpssm/run/graph_edit_file.h"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <variant>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"

namespace mpssm::run {
namespace {

using nlohmann::ordered_json;

ordered_json edges_json(const data::BareGraph& graph,
                        const std::vector<analysis::GraphEdit::Edge>& edges) {
  ordered_json list = ordered_json::array();
  const auto name = [&](std::int32_t node) {
    return graph.node_ids.empty() ? std::to_string(node) : graph.node_ids[node];
  };
  for (const auto& [u, v] : edges) list.push_back({name(u), name(v)});
  return list;
}

}  // namespace

std::string_view edit_start() { return "{\"mpssm_edges\":1,"; }

std::string edit_text(const data::BareGraph& graph, const analysis::GraphEdit& edit) {
  return io::json_text(ordered_json{{"mpssm_edges", 1},
                                    {"graph", graph.name},
                                    {"weight", edit.weight},
                                    {"saw_validation", edit.saw_validation},
                                    {"add", edges_json(graph, edit.add)},
                                    {"remove", edges_json(graph, edit.remove)}}) +
         "\n";
}

analysis::GraphEdit read_edit(const std::filesystem::path& path, const data::BareGraph& graph) {
  constexpr std::int64_t kMaxBytes = 64 << 20;
  const std::string origin = path.string();
  const base::Error unreadable(
      origin, "expected edges to put in and take out, as `mpssm advise --save FILE` writes them");
  analysis::GraphEdit edit;
  ordered_json json;
  try {
    json = ordered_json::parse(io::read_file(path, kMaxBytes));
    if (json.at("mpssm_edges") != 1) throw unreadable;
    json.at("weight").get_to(edit.weight);
    edit.saw_validation = json.value("saw_validation", false);
    for (const char* list : {"add", "remove"}) {
      for (const ordered_json& edge : json.at(list)) {
        if (!edge.is_array() || edge.size() != 2) throw unreadable;
        std::int32_t end[2];
        for (int k = 0; k < 2; ++k) {
          try {
            end[k] = static_cast<std::int32_t>(
                data::find_node(graph, edge[static_cast<std::size_t>(k)].get<std::string>()));
          } catch (const base::Error& error) {
            throw error.within(origin);
          }
        }
        (*list == 'a' ? edit.add : edit.remove).emplace_back(end[0], end[1]);
      }
    }
  } catch (const ordered_json::exception&) {
    throw unreadable;
  }
  if (!std::isfinite(edit.weight) || edit.weight <= 0.0) throw unreadable;
  return edit;
}

data::BareGraph graph_in(const data::Dataset& dataset) {
  if (const auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    return {.name = dataset.name, .graph = nodes->graph, .node_ids = nodes->node_ids};
  }
  if (const auto* series = std::get_if<data::SeriesData>(&dataset.content)) {
    return {.name = dataset.name, .graph = series->graph, .node_ids = series->node_ids};
  }
  throw base::Error(dataset.name, "these are many graphs; expected one");
}

void apply_edit(const analysis::GraphEdit& edit, data::Dataset& dataset) {
  if (edit.empty()) return;
  const graph::Graph changed = analysis::edited(graph_in(dataset).graph, edit);
  if (auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    nodes->graph = changed;
  } else {
    std::get<data::SeriesData>(dataset.content).graph = changed;
  }
  dataset.notes.push_back(fmt::format("the graph is rewired: {} edges put in, {} taken out",
                                      edit.add.size(), edit.remove.size()));
  if (edit.saw_validation) {
    dataset.notes.emplace_back(
        "its edges were chosen by labels of the validation part: val values judge this run too "
        "kindly");
  }
}

}  // namespace mpssm::run
