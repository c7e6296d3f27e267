// SPDX-License-Identifier: MIT
#include "mpssm/report/advice.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/io/json_text.h"
#include "mpssm/report/answer_json.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

constexpr std::size_t kHearersShown = 10;

std::string edge_name(const data::BareGraph& graph, std::int32_t u, std::int32_t v) {
  return node_name(graph, u) + " - " + node_name(graph, v);
}

std::string edges_named(const data::BareGraph& graph,
                        const std::vector<analysis::GraphEdit::Edge>& edges) {
  std::string text;
  for (const auto& [u, v] : edges) text += (text.empty() ? "" : ", ") + edge_name(graph, u, v);
  return text.empty() ? "none" : text;
}

nlohmann::ordered_json edge_json(const data::BareGraph& graph, std::int32_t u, std::int32_t v) {
  return {node_json(graph, u), node_json(graph, v)};
}

nlohmann::ordered_json pair_json(const data::BareGraph& graph,
                                 const std::optional<analysis::PairValue>& pair) {
  if (!pair) return nullptr;
  return {{"source", node_json(graph, pair->source)},
          {"target", node_json(graph, pair->target)},
          {"value", pair->value}};
}

std::string depth_text(const data::BareGraph& graph, const analysis::DepthAdvice& advice) {
  std::string out = fmt::format("{}: hops until {} % of the limit has arrived\n\n", graph.name,
                                percent(advice.share));
  Rows rows = {{"of the pairs", "hops", "blocks of 4", "blocks of 16"}};
  for (const analysis::DepthStep& step : advice.steps) {
    const std::string pairs = percent(step.of_pairs) + " %";
    if (!step.hops) {
      rows.push_back({pairs, fmt::format("more than {}", advice.max_tau), "", ""});
      continue;
    }
    const auto blocks = [&](std::int64_t size) { return shown((*step.hops + size - 1) / size); };
    rows.push_back({pairs, shown(*step.hops), blocks(4), blocks(16)});
  }
  out += table(rows);
  out += fmt::format(
      "\nOne hop of {} channels takes {:.3g} ms here (a product with A, measured now); the "
      "backward "
      "pass of a diagonal W takes about twice the products of the forward pass, in the memory of "
      "one hop. An MLP after every block costs extra.\n",
      advice.channels, 1e3 * advice.seconds_per_hop);
  return out;
}

std::string rewire_text(const data::BareGraph& graph, const analysis::RewireAnswer& answer) {
  std::string out = fmt::format("{}: from {} to {} in {} hops: {}\n\n", graph.name,
                                node_name(graph, answer.source), node_name(graph, answer.target),
                                answer.tau, shown(answer.value));
  Rows rows = {{"with the edge", "then", "times", "slope"}};
  for (const analysis::AdvisedEdge& edge : answer.edges) {
    rows.push_back({edge_name(graph, edge.u, edge.v), shown(edge.value),
                    answer.value > 0.0 ? fmt::format("{:.4g}", edge.value / answer.value) : "-",
                    shown(edge.slope)});
  }
  return out + table(rows) +
         fmt::format(
             "\nEach edge alone, with weight {:g}. Of {} pairs that are no edge {} were looked at, "
             "the others cannot have a larger slope; the {} of largest slope were recomputed.\n",
             answer.weight, answer.candidates, answer.looked_at, answer.confirmed);
}

std::string predictions_text(const data::BareGraph& graph,
                             const analysis::PredictionChanges& changes) {
  std::string out = fmt::format("{} predicted otherwise, {} of another class\n\n",
                                counted(changes.changed, "node"), shown(changes.other_class));
  Rows rows = {{"node", "predicted", "then", "value", "then", "change"}};
  for (const analysis::PredictionChange& change : changes.largest) {
    rows.push_back({node_name(graph, change.node), change.before, change.after,
                    shown(change.value_before), shown(change.value_after),
                    shown(change.value_after - change.value_before)});
  }
  return rows.size() > 1 ? out + table(rows) : out;
}

std::string what_if_text(const data::BareGraph& graph, const analysis::WhatIfAnswer& answer) {
  std::string out =
      fmt::format("{}: without {}; with {}\n\n", graph.name, edges_named(graph, answer.edit.remove),
                  edges_named(graph, answer.edit.add));
  Rows rows = {{"", "before", "after"}};
  rows.push_back({"components", shown(answer.components_before), shown(answer.components_after)});
  if (answer.source >= 0 && answer.target >= 0) {
    rows.push_back({fmt::format("from {} to {} in {} hops", node_name(graph, answer.source),
                                node_name(graph, answer.target), answer.tau),
                    shown(answer.pair_before), shown(answer.pair_after)});
  }
  if (answer.least_before && answer.least_after) {
    rows.push_back({fmt::format("least of all pairs in {} hops", answer.tau),
                    shown(answer.least_before->value), shown(answer.least_after->value)});
    const auto name = [&](const analysis::PairValue& pair) {
      return node_name(graph, pair.source) + " to " + node_name(graph, pair.target);
    };
    rows.push_back({"  which is", name(*answer.least_before), name(*answer.least_after)});
  }
  out += table(rows);
  if (answer.predictions) out += "\n" + predictions_text(graph, *answer.predictions);
  if (answer.source < 0) return out;
  out += fmt::format("\n{} hear {} otherwise in {} hops\n\n", counted(answer.changed, "node"),
                     node_name(graph, answer.source), answer.tau);
  rows = {{"node", "before", "after", "change"}};
  for (std::size_t h = 0; h < std::min(answer.hearers.size(), kHearersShown); ++h) {
    const auto& hearer = answer.hearers[h];
    rows.push_back({node_name(graph, hearer.node), shown(hearer.before), shown(hearer.after),
                    shown(hearer.after - hearer.before)});
  }
  if (rows.size() > 1) out += table(rows) + "\n";
  return out + fmt::format("{} products; two whole walks take {}\n", shown(answer.products),
                           shown(answer.full_products));
}

}  // namespace

std::string to_text(const data::BareGraph& graph, const analysis::Advice& advice) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : "\n") + part; };
  if (advice.depth) add(depth_text(graph, *advice.depth));
  if (advice.rewire) add(rewire_text(graph, *advice.rewire));
  if (advice.what_if) add(what_if_text(graph, *advice.what_if));
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
