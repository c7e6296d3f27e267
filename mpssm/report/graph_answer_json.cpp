// SPDX-License-Identifier: MIT
#include <utility>

#include "mpssm/io/json_text.h"
#include "mpssm/report/answer_json.h"
#include "mpssm/report/graph_answer.h"

namespace mpssm::report {
namespace {

using analysis::GraphAnswer;
using data::BareGraph;
using nlohmann::ordered_json;

void add_pair(ordered_json& json, const GraphAnswer& answer) {
  const analysis::PairAnswer& pair = *answer.pair;
  json["hops"] = count_json(pair.hops);
  json["profile"] = profile_json(answer.taus, pair.value);
  json["limit"] = number_json(pair.limit);
  if (pair.bounds) {
    ordered_json at = ordered_json::array();
    for (std::size_t t = 0; t < answer.taus.size(); ++t) {
      at.push_back({{"tau", answer.taus[t]},
                    {"lower", pair.bounds->lower[t]},
                    {"upper", pair.bounds->upper[t]}});
    }
    json["bounds"] = {{"what", "limit -+ lambda*^tau sqrt((1 - q_ii)(1 - q_jj))"},
                      {"holds", pair.bounds->hold},
                      {"lambda_star_settled", pair.bounds->is_certain},
                      {"at", std::move(at)}};
  }
  if (pair.depth) {
    json["depth"] = {{"share", pair.depth->share},
                     {"tau", count_json(pair.depth->first)},
                     {"sure_from", count_json(pair.depth->sure_from)}};
  }
}

void add_node(ordered_json& json, const analysis::NodeAnswer& node) {
  for (const analysis::Reach& reach : node.profile) {
    json["profile"].push_back({{"tau", reach.tau},
                               {"value", reach.largest},
                               {"nodes", reach.nodes},
                               {"smallest", reach.smallest},
                               {"total", reach.total}});
  }
}

ordered_json bounds_json(const analysis::AllPairsAnswer& all) {
  ordered_json at = ordered_json::array();
  for (std::size_t t = 0; t < all.profile.size(); ++t) {
    at.push_back({{"tau", all.profile[t].tau}, {"global_at_least", all.bounds->largest[t]}});
    if (!all.bounds->least.empty()) at.back()["least_at_least"] = all.bounds->least[t];
  }
  return {{"what",
           "max over pairs >= rho^tau / N; min over pairs >= least limit - "
           "lambda*^tau (connected, undirected, two nodes or more)"},
          {"holds", all.bounds->hold},
          {"at", std::move(at)}};
}

void add_all_pairs(ordered_json& json, const BareGraph& graph,
                   const analysis::AllPairsAnswer& all) {
  for (const analysis::Extremes& at : all.profile) {
    json["profile"].push_back({{"tau", at.tau},
                               {"value", at.largest.value},
                               {"least", at.least.value},
                               {"least_source", node_json(graph, at.least.source)},
                               {"least_target", node_json(graph, at.least.target)},
                               {"zero_pairs", at.zeros}});
  }
  if (all.bounds) json["bounds"] = bounds_json(all);
  if (!all.depth) return;
  json["depth"] = {{"share", all.depth->share}, {"tau", nullptr}};
  if (const auto& found = all.depth->found) {
    json["depth"]["tau"] = found->tau;
    json["depth"]["last_source"] = node_json(graph, found->last.source);
    json["depth"]["last_target"] = node_json(graph, found->last.target);
  }
}

ordered_json worst_json(const BareGraph& graph, const analysis::WorstPairs& worst) {
  ordered_json all = ordered_json::array();
  for (const analysis::WorstPair& pair : worst.pairs) {
    ordered_json entry = {{"source", node_json(graph, pair.source)},
                          {"target", node_json(graph, pair.target)},
                          {"hops", count_json(pair.hops)},
                          {"value", pair.value}};
    if (worst.knows_limit) entry["limit"] = pair.limit;
    if (worst.depth_share) entry["depth"] = count_json(pair.depth);
    if (worst.knows_bridges) {
      entry["bridges"] = ordered_json::array();
      for (const graph::Bridge& bridge : pair.bridges) {
        entry["bridges"].push_back({node_json(graph, bridge.a), node_json(graph, bridge.b)});
      }
    }
    all.push_back(std::move(entry));
  }
  return all;
}

ordered_json vanishing_json(const std::vector<analysis::VanishingRow>& rows) {
  ordered_json all = ordered_json::array();
  for (const analysis::VanishingRow& row : rows) {
    all.push_back({{"k", row.k},
                   {"paper", row.paper},
                   {"orthogonal", row.orthogonal},
                   {"gaussian", row.gaussian},
                   {"rank_one", row.rank_one},
                   {"rank_one_limit", row.rank_one_limit},
                   {"gcn", row.gcn}});
  }
  return all;
}

}  // namespace

std::string to_json(const BareGraph& graph, const GraphAnswer& answer) {
  ordered_json json = {{"graph", graph.name},
                       {"nodes", answer.nodes},
                       {"edges", answer.edges},
                       {"components", answer.components},
                       {"source", node_json(graph, answer.source)},
                       {"target", node_json(graph, answer.target)},
                       {"w", answer.w},
                       {"gso", answer.gso},
                       {"limit", nullptr},
                       {"lambda_star", number_json(answer.lambda_star)},
                       {"profile", ordered_json::array()},
                       {"bounds", nullptr}};
  if (answer.least_limit) json["least_limit"] = *answer.least_limit;
  if (answer.pair) add_pair(json, answer);
  if (answer.node) add_node(json, *answer.node);
  if (answer.all_pairs) add_all_pairs(json, graph, *answer.all_pairs);
  if (answer.worst) json["worst"] = worst_json(graph, *answer.worst);
  if (!answer.vanishing.empty()) json["vanishing"] = vanishing_json(answer.vanishing);
  return io::json_text(json);
}

}  // namespace mpssm::report
