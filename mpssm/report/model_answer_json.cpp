// SPDX-License-Identifier: MIT
#include <utility>

#include "mpssm/io/json_text.h"
#include "mpssm/report/answer_json.h"
#include "mpssm/report/model_answer.h"

namespace mpssm::report {
namespace {

using analysis::ModelAnswer;
using data::BareGraph;
using nlohmann::ordered_json;

/// Adds what is known of W.
void add_state(ordered_json& json, const ModelAnswer& answer, const analysis::BlockAnswer& block) {
  json["hops"] = block.hops;
  json["radius"] = block.radius;
  json["norm_at_hops"] = block.norm_at_hops;
  json["mean_hop"] = block.mean_hop;
  json["forgets_after"] = count_json(block.forgets_after);
  json["norms"] = profile_json(answer.taus, block.norms);
}

ordered_json blocks_json(const ModelAnswer& answer) {
  ordered_json all = ordered_json::array();
  for (const analysis::BlockAnswer& block : answer.blocks) {
    ordered_json json = {{"block", all.size() + 1}};
    add_state(json, answer, block);
    for (const analysis::BlockAnswer& group : block.groups) {
      ordered_json of_group = {{"operator", group.gso}, {"channels", group.channels}};
      add_state(of_group, answer, group);
      json["groups"].push_back(std::move(of_group));
    }
    all.push_back(std::move(json));
  }
  return all;
}

ordered_json multi_hop_json(const ModelAnswer& answer) {
  ordered_json all = ordered_json::array();
  for (const analysis::BlockHops& view : answer.multi_hop) {
    all.push_back({{"block", all.size() + 1},
                   {"weight_norm", view.weight_norm},
                   {"by_walk", view.by_walk},
                   {"by_distance", view.by_distance},
                   {"nodes_at", view.nodes_at}});
  }
  return all;
}

/// `hops` is empty if there is no distance to the target.
ordered_json top_json(const BareGraph& graph, const std::vector<std::int64_t>& top,
                      const std::vector<double>& of_node, const std::vector<std::int32_t>& hops) {
  ordered_json all = ordered_json::array();
  for (const std::int64_t node : top) {
    all.push_back({{"node", node_json(graph, node)}, {"influence", of_node[node]}});
    if (!hops.empty()) all.back()["hops"] = count_json(hops[node]);
  }
  return all;
}

ordered_json dependence_json(const BareGraph& graph, const analysis::Dependence& run) {
  ordered_json each = ordered_json::array();
  for (const analysis::Prediction& prediction : run.predictions) {
    const analysis::Influence& influence = prediction.influence;
    ordered_json hops = ordered_json::array();
    for (std::size_t hop = 0; hop < influence.of_hop.size(); ++hop) {
      hops.push_back(
          {{"hop", hop}, {"nodes", influence.nodes_at[hop]}, {"influence", influence.of_hop[hop]}});
    }
    each.push_back({{"target", node_json(graph, prediction.target)},
                    {"mean_hop", influence.mean_hop},
                    {"hops", std::move(hops)},
                    {"top", top_json(graph, prediction.top, influence.of_node, influence.hops)}});
  }
  return {{"run", run.run},
          {"mean_hop", run.mean_hop},
          {"share_of_hop", run.share_of_hop},
          {"each", std::move(each)}};
}

}  // namespace

std::string to_json(const BareGraph& graph, const ModelAnswer& answer) {
  ordered_json json = {{"run", answer.run},
                       {"dataset", answer.dataset},
                       {"kind", answer.kind},
                       {"nodes", answer.nodes},
                       {"edges", graph.graph.num_edges()},
                       {"source", node_json(graph, answer.source)},
                       {"target", node_json(graph, answer.target)},
                       {"limit", nullptr},
                       {"lambda_star", nullptr},
                       {"profile", ordered_json::array()},
                       {"bounds", nullptr},
                       {"blocks", blocks_json(answer)}};
  if (const auto& pair = answer.pair) {
    json["end_to_end"] = {{"spectral_norm", pair->end_to_end.spectral_norm},
                          {"l1", pair->end_to_end.l1},
                          {"outputs", pair->end_to_end.outputs},
                          {"inputs", pair->end_to_end.inputs}};
    json["profile"] = profile_json(answer.taus, pair->value);
    for (std::size_t g = 0; g < pair->of_group.size(); ++g) {
      json["groups"].push_back({{"operator", answer.blocks[pair->block - 1].groups[g].gso},
                                {"profile", profile_json(answer.taus, pair->of_group[g])}});
    }
    json["limit"] = number_json(pair->limit);
    json["lambda_star"] = number_json(pair->lambda_star);
  }
  if (!answer.multi_hop.empty()) json["multi_hop"] = multi_hop_json(answer);
  if (const auto& whole = answer.whole) {
    json["top"] = top_json(graph, whole->top, whole->of_node, {});
  }
  constexpr const char* kKeys[] = {"predictions", "compare"};
  for (std::size_t r = 0; r < answer.runs.size(); ++r) {
    json[kKeys[r]] = dependence_json(graph, answer.runs[r]);
  }
  return io::json_text(json);
}

}  // namespace mpssm::report
