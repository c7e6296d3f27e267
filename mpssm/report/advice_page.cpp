// SPDX-License-Identifier: MIT
#include "mpssm/report/advice_page.h"

#include <fmt/core.h>

#include "mpssm/graph/bridges.h"
#include "mpssm/report/advice.h"
#include "mpssm/report/advice_tables.h"
#include "mpssm/report/explorer.h"
#include "mpssm/report/page_text.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

std::string as_html(const std::vector<AdviceTable>& tables) {
  std::string out;
  for (const AdviceTable& part : tables) {
    page::Table table{.caption = part.heading};
    if (part.rows.size() < 2) {
      out += fmt::format("<p>{}: none.</p>\n", svg::escaped(part.heading));
      continue;
    }
    for (std::size_t c = 0; c < part.rows[0].size(); ++c) {
      table.columns.push_back({part.rows[0][c], c > 0});
    }
    table.rows.assign(part.rows.begin() + 1, part.rows.end());
    out += page::table_html(table);
    if (!part.note.empty())
      out += fmt::format("<p class=\"muted\">{}</p>\n", svg::escaped(part.note));
  }
  return out;
}

}  // namespace

std::string advice_html(const data::BareGraph& graph, const analysis::Advice& advice) {
  std::string out;
  if (advice.depth) out += as_html({depth_table(graph, *advice.depth)});
  if (advice.rewire) out += as_html({rewire_table(graph, *advice.rewire)});
  if (!advice.rounds.empty()) {
    out += as_html({rounds_table(graph, advice.rounds, advice.rounds_tau)});
  }
  if (advice.spare) out += as_html({spare_table(graph, *advice.spare)});
  if (advice.what_if) out += as_html(tables_of(graph, *advice.what_if));
  if (advice.edges) out += as_html(tables_of(graph, *advice.edges));
  if (advice.attribution) out += as_html(tables_of(graph, *advice.attribution));
  if (advice.robustness) out += as_html(tables_of(graph, *advice.robustness));
  return out;
}

void mark_advice(const analysis::Advice& advice, Explorer& explorer) {
  const auto add = [](std::vector<Explorer::Edge>& list, std::int32_t u, std::int32_t v) {
    list.emplace_back(u, v);
  };
  if (advice.rewire) {
    for (const analysis::AdvisedEdge& edge : advice.rewire->edges) {
      add(explorer.advised, edge.u, edge.v);
    }
    explorer.worst.push_back({advice.rewire->source, advice.rewire->target});
    explorer.worst_hops = advice.rewire->tau;
  }
  for (const analysis::RewireRound& round : advice.rounds) {
    add(explorer.advised, round.u, round.v);
    explorer.worst.push_back({round.source, round.target});
    explorer.worst_hops = advice.rounds_tau;
  }
  if (advice.what_if) {
    for (const auto& [u, v] : advice.what_if->edit.add) add(explorer.advised, u, v);
    for (const auto& [u, v] : advice.what_if->edit.remove) add(explorer.harmful, u, v);
  }
  if (advice.spare) {
    explorer.worst.push_back({advice.spare->source, advice.spare->target});
    explorer.worst_hops = advice.spare->tau;
    for (const analysis::SpareEdge& edge : advice.spare->edges)
      add(explorer.harmful, edge.u, edge.v);
  }
  if (advice.edges) {
    for (const analysis::EdgeEffect& edge : advice.edges->harmful) {
      add(explorer.harmful, edge.u, edge.v);
    }
  }
  if (!advice.attribution) return;
  const analysis::Attribution& found = *advice.attribution;
  const std::string node =
      explorer.node_ids.empty() ? std::to_string(found.target) : explorer.node_ids[found.target];
  explorer.colours.push_back(
      {.name = fmt::format("share in the state of {}, block {}", node, found.state.block),
       .value = found.state.of_node});
  explorer.colours.push_back({.name = fmt::format("what it adds to the prediction of {}", node),
                              .value = found.prediction.of_node});
  explorer.target = found.target;
}

void describe_graph(const graph::Graph& graph, double lambda_star, Explorer& explorer) {
  if (!graph.is_symmetric()) return;
  constexpr std::size_t kMostBridges = 2000;
  const graph::Bridges bridges(graph);
  for (const graph::Bridge& bridge : bridges.all()) {
    if (explorer.bridges.size() == kMostBridges) break;
    explorer.bridges.emplace_back(bridge.a, bridge.b);
  }
  if (!analysis::why_no_deep_limit(graph).empty()) return;
  explorer.degree = analysis::degrees_with_loops(graph);
  explorer.lambda_star = lambda_star;
}

std::string advice_page_html(const data::BareGraph& graph, const analysis::Advice& advice,
                             const Explorer& explorer) {
  return page::page_html(
      {.title = graph.name + ": advice",
       .lead = fmt::format("{} nodes, {} edges", page::grouped(graph.graph.num_nodes()),
                           page::grouped(graph.graph.num_edges())),
       .sections = {{"advice", "Advice", advice_html(graph, advice)},
                    {"explorer", "The graph: who reaches whom", explorer_html(explorer)}},
       .has_explorer = true});
}

}  // namespace mpssm::report
