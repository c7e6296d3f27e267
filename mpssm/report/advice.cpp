// SPDX-License-Identifier: MIT
#include "mpssm/report/advice.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/io/json_text.h"
#include "mpssm/report/advice_tables.h"
#include "mpssm/report/answer_json.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

nlohmann::ordered_json pair_json(const data::BareGraph& graph,
                                 const std::optional<analysis::PairValue>& pair) {
  if (!pair) return nullptr;
  return {{"source", node_json(graph, pair->source)},
          {"target", node_json(graph, pair->target)},
          {"value", pair->value}};
}

std::string as_text(const std::vector<AdviceTable>& tables) {
  std::string out;
  for (const AdviceTable& part : tables) {
    out += (out.empty() ? "" : "\n") + part.heading + "\n";
    if (part.rows.size() > 1) out += "\n" + table(part.rows);
    if (!part.note.empty()) out += "\n" + part.note + "\n";
  }
  return out;
}

}  // namespace

std::string to_text(const data::BareGraph& graph, const analysis::Advice& advice) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : "\n") + part; };
  if (advice.depth) add(as_text({depth_table(graph, *advice.depth)}));
  if (advice.rewire) add(as_text({rewire_table(graph, *advice.rewire)}));
  if (!advice.rounds.empty()) {
    add(as_text({rounds_table(graph, advice.rounds, advice.rounds_tau)}));
  }
  if (advice.spare) add(as_text({spare_table(graph, *advice.spare)}));
  if (advice.what_if) add(as_text(tables_of(graph, *advice.what_if)));
  if (advice.edges) add(as_text(tables_of(graph, *advice.edges)));
  if (advice.attribution) add(as_text(tables_of(graph, *advice.attribution)));
  if (advice.robustness) add(as_text(tables_of(graph, *advice.robustness)));
  return out;
}

std::string to_json(const data::BareGraph& graph, const analysis::Advice& advice) {
  nlohmann::ordered_json json = {{"graph", graph.name}};
  if (advice.depth) {
    auto steps = nlohmann::ordered_json::array();
    for (const analysis::DepthStep& step : advice.depth->steps) {
      steps.push_back({{"of_pairs", step.of_pairs}, {"hops", count_json(step.hops)}});
    }
    json["depth"] = {{"share", advice.depth->share},
                     {"steps", steps},
                     {"channels", advice.depth->channels},
                     {"seconds_per_hop", advice.depth->seconds_per_hop}};
  }
  if (advice.rewire) {
    auto edges = nlohmann::ordered_json::array();
    for (const analysis::AdvisedEdge& edge : advice.rewire->edges) {
      edges.push_back({{"edge", edge_json(graph, edge.u, edge.v)},
                       {"value", edge.value},
                       {"slope", edge.slope}});
    }
    json["rewire"] = {{"tau", advice.rewire->tau},
                      {"source", node_json(graph, advice.rewire->source)},
                      {"target", node_json(graph, advice.rewire->target)},
                      {"value", advice.rewire->value},
                      {"weight", advice.rewire->weight},
                      {"edges", edges},
                      {"candidates", advice.rewire->candidates},
                      {"looked_at", advice.rewire->looked_at},
                      {"confirmed", advice.rewire->confirmed}};
  }
  if (!advice.rounds.empty()) {
    auto rounds = nlohmann::ordered_json::array();
    for (const analysis::RewireRound& round : advice.rounds) {
      rounds.push_back({{"edge", edge_json(graph, round.u, round.v)},
                        {"source", node_json(graph, round.source)},
                        {"target", node_json(graph, round.target)},
                        {"before", round.before},
                        {"after", round.after}});
    }
    json["rounds"] = {{"tau", advice.rounds_tau}, {"edges", rounds}};
  }
  if (advice.spare) {
    auto edges = nlohmann::ordered_json::array();
    for (const analysis::SpareEdge& edge : advice.spare->edges) {
      edges.push_back({{"edge", edge_json(graph, edge.u, edge.v)},
                       {"value", edge.value},
                       {"slope", edge.slope}});
    }
    json["spare"] = {{"tau", advice.spare->tau},
                     {"source", node_json(graph, advice.spare->source)},
                     {"target", node_json(graph, advice.spare->target)},
                     {"value", advice.spare->value},
                     {"edges", edges},
                     {"candidates", advice.spare->candidates},
                     {"bridges", advice.spare->bridges},
                     {"confirmed", advice.spare->confirmed}};
  }
  if (advice.edges) json["edges"] = to_json_value(graph, *advice.edges);
  if (advice.attribution) json["attribution"] = to_json_value(graph, *advice.attribution);
  if (advice.robustness) json["robustness"] = to_json_value(graph, *advice.robustness);
  if (advice.what_if) {
    const analysis::WhatIfAnswer& answer = *advice.what_if;
    const auto list = [&](const std::vector<analysis::GraphEdit::Edge>& edges) {
      auto out = nlohmann::ordered_json::array();
      for (const auto& [u, v] : edges) out.push_back(edge_json(graph, u, v));
      return out;
    };
    auto hearers = nlohmann::ordered_json::array();
    for (const auto& hearer : answer.hearers) {
      hearers.push_back({{"node", node_json(graph, hearer.node)},
                         {"before", hearer.before},
                         {"after", hearer.after}});
    }
    json["what_if"] = {{"remove", list(answer.edit.remove)},
                       {"add", list(answer.edit.add)},
                       {"tau", answer.tau},
                       {"source", node_json(graph, answer.source)},
                       {"target", node_json(graph, answer.target)}};
    if (answer.source >= 0 && answer.target >= 0) {
      json["what_if"]["pair"] = {{"before", answer.pair_before}, {"after", answer.pair_after}};
    }
    json["what_if"]["least"] = {{"before", pair_json(graph, answer.least_before)},
                                {"after", pair_json(graph, answer.least_after)}};
    json["what_if"]["components"] = {{"before", answer.components_before},
                                     {"after", answer.components_after}};
    if (answer.predictions) {
      auto largest = nlohmann::ordered_json::array();
      for (const analysis::PredictionChange& change : answer.predictions->largest) {
        largest.push_back(
            {{"node", node_json(graph, change.node)},
             {"predicted", {{"before", change.before}, {"after", change.after}}},
             {"value", {{"before", change.value_before}, {"after", change.value_after}}}});
      }
      json["what_if"]["predictions"] = {{"changed", answer.predictions->changed},
                                        {"other_class", answer.predictions->other_class},
                                        {"largest", largest}};
    }
    json["what_if"]["hearers"] = hearers;
    json["what_if"]["products"] = answer.products;
  }
  return io::json_text(json);
}

}  // namespace mpssm::report
