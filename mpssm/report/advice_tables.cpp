// SPDX-License-Identifier: MIT
#include "mpssm/report/advice_tables.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "mpssm/report/answer_json.h"
#include "mpssm/report/node_name.h"

namespace mpssm::report {
namespace {

constexpr std::int64_t kSharesShown = 10;

std::string hops_text(std::int32_t hops) { return hops < 0 ? "no way" : shown(std::int64_t{hops}); }

std::string signed_number(double value) { return fmt::format("{:+.4g}", value); }

std::string edges_named(const data::BareGraph& graph,
                        const std::vector<analysis::GraphEdit::Edge>& edges) {
  std::string text;
  for (const auto& [u, v] : edges) text += (text.empty() ? "" : ", ") + edge_name(graph, u, v);
  return text.empty() ? "none" : text;
}

nlohmann::ordered_json shares_json(const data::BareGraph& graph, const std::vector<double>& of_node,
                                   const std::vector<std::int32_t>& hops) {
  auto list = nlohmann::ordered_json::array();
  for (const analysis::NodeShare& share :
       analysis::largest_shares(of_node, hops, std::ssize(of_node))) {
    list.push_back({{"node", node_json(graph, share.node)},
                    {"hops", count_json(share.hops)},
                    {"share", share.value}});
  }
  return list;
}

}  // namespace

std::string edge_name(const data::BareGraph& graph, std::int32_t u, std::int32_t v) {
  const char* way = graph.graph.is_symmetric() ? " - " : " -> ";
  return node_name(graph, u) + way + node_name(graph, v);
}

nlohmann::ordered_json edge_json(const data::BareGraph& graph, std::int32_t u, std::int32_t v) {
  return {node_json(graph, u), node_json(graph, v)};
}

AdviceTable depth_table(const data::BareGraph& graph, const analysis::DepthAdvice& advice) {
  AdviceTable table{.heading = fmt::format("{}: hops until {} % of the limit has arrived",
                                           graph.name, percent(advice.share)),
                    .rows = {{"of the pairs", "hops", "blocks of 4", "blocks of 16"}}};
  for (const analysis::DepthStep& step : advice.steps) {
    const std::string pairs = percent(step.of_pairs) + " %";
    if (!step.hops) {
      table.rows.push_back({pairs, fmt::format("more than {}", advice.max_tau), "", ""});
      continue;
    }
    const auto blocks = [&](std::int64_t size) { return shown((*step.hops + size - 1) / size); };
    table.rows.push_back({pairs, shown(*step.hops), blocks(4), blocks(16)});
  }
  if (advice.seconds_per_hop == 0.0) return table;  // not measured
  table.note = fmt::format(
      "One hop of {} channels takes {:.3g} ms here (a product with A, measured now); the backward "
      "pass of a diagonal W takes about twice the products of the forward pass, in the memory of "
      "one hop. An MLP after every block costs extra.",
      advice.channels, 1e3 * advice.seconds_per_hop);
  return table;
}

AdviceTable rewire_table(const data::BareGraph& graph, const analysis::RewireAnswer& answer) {
  AdviceTable table{
      .heading = fmt::format("{}: from {} to {} in {} hops: {}", graph.name,
                             node_name(graph, answer.source), node_name(graph, answer.target),
                             answer.tau, shown(answer.value)),
      .rows = {{"with the edge", "then", "times", "slope"}}};
  for (const analysis::AdvisedEdge& edge : answer.edges) {
    table.rows.push_back(
        {edge_name(graph, edge.u, edge.v), shown(edge.value),
         answer.value > 0.0 ? fmt::format("{:.4g}", edge.value / answer.value) : "-",
         shown(edge.slope)});
  }
  table.note = fmt::format(
      "Each edge alone, with weight {:g}. Of {} pairs that are no edge {} were looked at, the "
      "others cannot have a larger slope; the {} of largest slope were recomputed.",
      answer.weight, answer.candidates, answer.looked_at, answer.confirmed);
  return table;
}

AdviceTable rounds_table(const data::BareGraph& graph,
                         const std::vector<analysis::RewireRound>& rounds, std::int64_t tau) {
  AdviceTable table{.heading = fmt::format("{}: one edge after the other, each for the pair that "
                                           "is worst by then, in {} hops",
                                           graph.name, tau),
                    .rows = {{"edge", "from", "to", "before", "then"}},
                    .note =
                        "mpssm advise --save FILE keeps them, mpssm train --rewired FILE trains "
                        "on the graph with them."};
  for (const analysis::RewireRound& round : rounds) {
    table.rows.push_back({edge_name(graph, round.u, round.v), node_name(graph, round.source),
                          node_name(graph, round.target), shown(round.before), shown(round.after)});
  }
  return table;
}

AdviceTable spare_table(const data::BareGraph& graph, const analysis::RemovalAnswer& answer) {
  AdviceTable table{
      .heading = fmt::format("{}: from {} to {} in {} hops: {}; edges that it misses "
                             "least",
                             graph.name, node_name(graph, answer.source),
                             node_name(graph, answer.target), answer.tau, shown(answer.value)),
      .rows = {{"without the edge", "then", "times", "slope"}},
      .note = fmt::format("Each edge alone, for this pair: others may miss it more. {} "
                          "of {} were recomputed; {} are left out, since to take one "
                          "cuts the graph.",
                          answer.confirmed, answer.candidates, counted(answer.bridges, "bridge"))};
  for (const analysis::SpareEdge& edge : answer.edges) {
    table.rows.push_back(
        {edge_name(graph, edge.u, edge.v), shown(edge.value),
         answer.value > 0.0 ? fmt::format("{:.4g}", edge.value / answer.value) : "-",
         shown(edge.slope)});
  }
  return table;
}

std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::EdgesAnswer& edges) {
  AdviceTable harmful{.heading = fmt::format(
                          "edges that the loss of the {} part ({:.4g}) wants gone: {} of {}",
                          edges.part, edges.loss, shown(edges.harmful_count), shown(edges.edges)),
                      .rows = {{"edge", "d loss / d weight", "loss without it", "change"}}};
  for (const analysis::EdgeEffect& edge : edges.harmful) {
    harmful.rows.push_back(
        {edge_name(graph, edge.u, edge.v), shown(edge.slope),
         edge.loss_without ? fmt::format("{:.6g}", *edge.loss_without) : "-",
         edge.loss_without ? signed_number(*edge.loss_without - edges.loss) : "-"});
  }
  harmful.note =
      "The derivative is that of a small change of the weight; an edge taken out is a large one, "
      "so "
      "the network was run without each edge alone";
  if (edges.loss_without_harmful) {
    harmful.note +=
        fmt::format(", and without all that are listed: {:.6g} ({})", *edges.loss_without_harmful,
                    signed_number(*edges.loss_without_harmful - edges.loss));
  }
  harmful.note += ". The weights were learned with them; trained anew, it may come out otherwise.";
  AdviceTable useful{.heading = "edges that it needs most",
                     .rows = {{"edge", "d loss / d weight"}}};
  for (const analysis::EdgeEffect& edge : edges.useful) {
    useful.rows.push_back({edge_name(graph, edge.u, edge.v), shown(edge.slope)});
  }
  return {harmful, useful};
}

std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::WhatIfAnswer& answer) {
  AdviceTable whole{.heading = fmt::format("{}: without {}; with {}", graph.name,
                                           edges_named(graph, answer.edit.remove),
                                           edges_named(graph, answer.edit.add)),
                    .rows = {{"", "before", "after"}}};
  whole.rows.push_back(
      {"components", shown(answer.components_before), shown(answer.components_after)});
  if (answer.source >= 0 && answer.target >= 0) {
    whole.rows.push_back({fmt::format("from {} to {} in {} hops", node_name(graph, answer.source),
                                      node_name(graph, answer.target), answer.tau),
                          shown(answer.pair_before), shown(answer.pair_after)});
  }
  if (answer.least_before && answer.least_after) {
    whole.rows.push_back({fmt::format("least of all pairs in {} hops", answer.tau),
                          shown(answer.least_before->value), shown(answer.least_after->value)});
    const auto name = [&](const analysis::PairValue& pair) {
      return node_name(graph, pair.source) + " to " + node_name(graph, pair.target);
    };
    whole.rows.push_back({"  which is", name(*answer.least_before), name(*answer.least_after)});
  }
  std::vector<AdviceTable> tables = {whole};
  if (answer.predictions) {
    AdviceTable predicted{.heading = fmt::format("{} predicted otherwise, {} of another class",
                                                 counted(answer.predictions->changed, "node"),
                                                 shown(answer.predictions->other_class)),
                          .rows = {{"node", "predicted", "then", "value", "then", "change"}}};
    for (const analysis::PredictionChange& change : answer.predictions->largest) {
      predicted.rows.push_back({node_name(graph, change.node), change.before, change.after,
                                shown(change.value_before), shown(change.value_after),
                                shown(change.value_after - change.value_before)});
    }
    tables.push_back(predicted);
  }
  if (answer.source < 0) return tables;
  AdviceTable heard{
      .heading = fmt::format("{} hear {} otherwise in {} hops", counted(answer.changed, "node"),
                             node_name(graph, answer.source), answer.tau),
      .rows = {{"node", "before", "after", "change"}},
      .note = fmt::format("{} products; two whole walks take {}", shown(answer.products),
                          shown(answer.full_products))};
  constexpr std::size_t kHearersShown = 10;
  for (std::size_t h = 0; h < std::min(answer.hearers.size(), kHearersShown); ++h) {
    const auto& hearer = answer.hearers[h];
    heard.rows.push_back({node_name(graph, hearer.node), shown(hearer.before), shown(hearer.after),
                          shown(hearer.after - hearer.before)});
  }
  tables.push_back(heard);
  return tables;
}

std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::Attribution& attribution) {
  const std::string target = node_name(graph, attribution.target);
  const analysis::StateShares& state = attribution.state;
  AdviceTable exact{
      .heading = fmt::format("node {}: shares of the nodes in its state in block {} (size {:.4g})",
                             target, state.block, state.size),
      .rows = {{"node", "hops", "% of the state"}},
      .note = fmt::format(
          "Exact: the state is a sum over the nodes, so these are their Shapley values, for nodes "
          "that send {} or nothing. They add up to 100 %; a negative one speaks against the "
          "others.",
          state.block == 1 ? "what their features say"
                           : "what the blocks before have left at them")};
  for (const analysis::NodeShare& share :
       analysis::largest_shares(state.of_node, attribution.hops, kSharesShown)) {
    exact.rows.push_back({node_name(graph, share.node), hops_text(share.hops),
                          fmt::format("{:.4g}", 100.0 * share.value)});
  }
  const analysis::PathShares& path = attribution.prediction;
  const std::string what = path.output_name.empty()
                               ? std::string("its prediction")
                               : fmt::format("its logit of {}", path.output_name);
  AdviceTable along{
      .heading = fmt::format("node {}: {}, {:.4g}, from {:.4g} with average features everywhere",
                             target, what, path.value, path.baseline),
      .rows = {{"node", "hops", "adds"}},
      .note = fmt::format(
          "Integrated gradients along the straight way between the two, {} points: through the "
          "whole network, which is not linear, so no Shapley values. They add up but for {:.1g}.",
          path.steps, std::abs(path.gap))};
  for (const analysis::NodeShare& share :
       analysis::largest_shares(path.of_node, attribution.hops, kSharesShown)) {
    along.rows.push_back(
        {node_name(graph, share.node), hops_text(share.hops), signed_number(share.value)});
  }
  return {exact, along};
}

std::vector<AdviceTable> tables_of(const data::BareGraph& graph,
                                   const analysis::Robustness& robustness) {
  const bool is_all = std::ssize(robustness.nodes) == graph.graph.num_nodes();
  std::string who = is_all ? "every node" : "";
  if (!is_all) {
    for (const std::int64_t node : robustness.nodes) {
      who += (who.empty() ? "" : ", ") + node_name(graph, node);
    }
    who = (robustness.nodes.size() == 1 ? "node " : "nodes ") + who;
  }
  AdviceTable table{
      .heading = fmt::format("node {}: if the features of {} move by up to {:g}",
                             node_name(graph, robustness.target), who, robustness.epsilon),
      .rows = {{"", "is", "can move by at most", "was moved by", "% of the bound"}}};
  const auto tightness = [](double found, double bound) {
    return bound > 0.0 ? fmt::format("{:.3g}", 100.0 * found / bound) : "-";
  };
  for (const analysis::StateBound& state : robustness.states) {
    table.rows.push_back({fmt::format("state in block {}", state.block), shown(state.size),
                          shown(state.bound), shown(state.found),
                          tightness(state.found, state.bound)});
  }
  table.note =
      "No change of that size (Euclidean, of each node's features as the network sees them) passes "
      "the bound; the last columns are what a search from two starts found. Blocks after the first "
      "are bounded through the MLPs between them, which makes the bound wide.";
  if (!robustness.output_bound) return {table};
  table.rows.push_back({robustness.of_classes ? "lead of the class" : "prediction",
                        shown(robustness.output), shown(*robustness.output_bound),
                        shown(robustness.output_found),
                        tightness(robustness.output_found, *robustness.output_bound)});
  if (robustness.of_classes) {
    table.note += *robustness.output_bound < std::abs(robustness.output)
                      ? " The predicted class cannot change: that is certain."
                      : " Whether the predicted class can change is not settled by the bound.";
  }
  return {table};
}

nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::EdgesAnswer& edges) {
  const auto list = [&](const std::vector<analysis::EdgeEffect>& effects) {
    auto out = nlohmann::ordered_json::array();
    for (const analysis::EdgeEffect& edge : effects) {
      out.push_back({{"edge", edge_json(graph, edge.u, edge.v)},
                     {"weight", edge.weight},
                     {"slope", edge.slope},
                     {"loss_without", number_json(edge.loss_without)}});
    }
    return out;
  };
  return {{"part", edges.part},
          {"loss", edges.loss},
          {"count", edges.edges},
          {"harmful_count", edges.harmful_count},
          {"harmful", list(edges.harmful)},
          {"useful", list(edges.useful)},
          {"loss_without_harmful", number_json(edges.loss_without_harmful)}};
}

nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::Attribution& attribution) {
  const analysis::PathShares& path = attribution.prediction;
  return {{"target", node_json(graph, attribution.target)},
          {"state",
           {{"method", "exact Shapley values"},
            {"block", attribution.state.block},
            {"size", attribution.state.size},
            {"shares", shares_json(graph, attribution.state.of_node, attribution.hops)}}},
          {"prediction",
           {{"method", "integrated gradients"},
            {"output", path.output_name.empty() ? nlohmann::ordered_json(path.output)
                                                : nlohmann::ordered_json(path.output_name)},
            {"value", path.value},
            {"baseline", path.baseline},
            {"steps", path.steps},
            {"gap", path.gap},
            {"shares", shares_json(graph, path.of_node, attribution.hops)}}}};
}

nlohmann::ordered_json to_json_value(const data::BareGraph& graph,
                                     const analysis::Robustness& robustness) {
  auto nodes = nlohmann::ordered_json::array();
  for (const std::int64_t node : robustness.nodes) nodes.push_back(node_json(graph, node));
  auto states = nlohmann::ordered_json::array();
  for (const analysis::StateBound& state : robustness.states) {
    states.push_back({{"block", state.block},
                      {"size", state.size},
                      {"bound", state.bound},
                      {"found", state.found}});
  }
  nlohmann::ordered_json json = {{"target", node_json(graph, robustness.target)},
                                 {"nodes", nodes},
                                 {"epsilon", robustness.epsilon},
                                 {"states", states}};
  if (robustness.output_bound) {
    json["output"] = {{"is", robustness.of_classes ? "lead" : "prediction"},
                      {"value", robustness.output},
                      {"bound", *robustness.output_bound},
                      {"found", robustness.output_found}};
  }
  return json;
}

}  // namespace mpssm::report
