// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <numeric>

#include "mpssm/report/model_answer.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

using analysis::Dependence;
using analysis::ModelAnswer;
using data::BareGraph;

std::string tell_blocks(const ModelAnswer& answer) {
  if (answer.blocks.empty()) {
    return "no linear recurrence: only end-to-end influence can be told\n";
  }
  Rows rows = {{"block", "radius of W", fmt::format("||W^{}||", answer.blocks[0].hops), "mean hop",
                "1 % after"}};
  std::size_t number = 0;
  for (const analysis::BlockAnswer& block : answer.blocks) {
    const auto add = [&](std::string name, const analysis::BlockAnswer& state) {
      rows.push_back({std::move(name), fmt::format("{:.6g}", state.radius),
                      fmt::format("{:.4g}", state.norm_at_hops),
                      fmt::format("{:.2f}", state.mean_hop),
                      state.forgets_after < 0 ? "never" : counted(state.forgets_after, "hop")});
    };
    add(std::to_string(++number), block);
    for (const analysis::BlockAnswer& group : block.groups) {
      add(fmt::format("  {} ({})", group.gso, counted(group.channels, "channel")), group);
    }
  }
  std::string words = fmt::format("\n{}", table(rows));
  if (!answer.asked_for_taus) return words;
  rows = {{"tau"}};
  for (std::size_t b = 0; b < answer.blocks.size(); ++b) {
    rows[0].push_back(fmt::format("||W{}^tau||", b + 1));
  }
  for (const std::size_t t : rows_to_show(answer.taus.size())) {
    rows.push_back({shown(answer.taus[t])});
    for (const analysis::BlockAnswer& block : answer.blocks) {
      rows.back().push_back(fmt::format("{:.4g}", block.norms[t]));
    }
  }
  return words + fmt::format("\n{}", table(rows));
}

std::string tell_multi_hop(const ModelAnswer& answer) {
  std::string words;
  for (std::size_t b = 0; b < answer.multi_hop.size(); ++b) {
    const analysis::BlockHops& view = answer.multi_hop[b];
    const auto share = [](const std::vector<double>& parts, std::size_t at) {
      const double total = std::accumulate(parts.begin(), parts.end(), 0.0);
      if (at >= parts.size()) return std::string("0");
      return total > 0.0 ? percent(parts[at] / total) : std::string("-");
    };
    Rows rows = {{"hop", "||B W^hop||", "% by walks of", "% from nodes at", "nodes there"}};
    for (const std::size_t hop : rows_to_show(view.weight_norm.size())) {
      const bool is_there = hop < view.nodes_at.size();
      rows.push_back({std::to_string(hop), fmt::format("{:.4g}", view.weight_norm[hop]),
                      share(view.by_walk, hop), share(view.by_distance, hop),
                      fmt::format("{:.4g}", is_there ? view.nodes_at[hop] : 0.0)});
    }
    words += fmt::format("\nblock {}, hop by hop:\n{}", b + 1, table(rows));
  }
  return words;
}

std::string tell_pair(const BareGraph& graph, const ModelAnswer& answer) {
  const analysis::ModelPairAnswer& pair = *answer.pair;
  std::string words = fmt::format(
      "\n"
      "end to end, from the features of node {} to the prediction{}: Jacobian of norm {:.4g}\n",
      node_name(graph, answer.source),
      answer.predicts_graphs() ? "" : " of node " + node_name(graph, answer.target),
      pair.end_to_end.spectral_norm);
  if (pair.value.empty()) return words;
  Rows rows = {{"tau", "S(tau)"}};
  for (const analysis::BlockAnswer& group : answer.blocks[pair.block - 1].groups) {
    rows[0].push_back(group.gso);
  }
  for (const std::size_t t : rows_to_show(pair.value.size())) {
    rows.push_back({shown(answer.taus[t]), shown(pair.value[t])});
    for (const auto& of_group : pair.of_group) rows.back().push_back(shown(of_group[t]));
  }
  return fmt::format(
      "{}\n"
      "inside block {}, from state to state:\n"
      "{}",
      words, shown(pair.block), table(rows));
}

std::string tell_by_prediction(const BareGraph& graph, const std::vector<Dependence>& runs) {
  Rows rows = {{"prediction of node"}};
  for (const Dependence& run : runs) rows[0].push_back("mean hop, " + run.run);
  const std::size_t count = runs[0].predictions.size();
  for (std::size_t k = 0; k < count; ++k) {
    rows.push_back({node_name(graph, runs[0].predictions[k].target)});
    for (const Dependence& run : runs) {
      rows.back().push_back(fmt::format("{:.3f}", run.predictions[k].influence.mean_hop));
    }
  }
  if (count > 1) {
    rows.push_back({"mean"});
    for (const Dependence& run : runs) rows.back().push_back(fmt::format("{:.3f}", run.mean_hop));
  }
  return fmt::format("\n{}", table(rows));
}

std::string tell_by_hop(const std::vector<Dependence>& runs) {
  Rows rows = {{"hop", "nodes"}};
  std::size_t end = 0;  // beyond the last hop that anything comes from
  for (const Dependence& run : runs) {
    rows[0].push_back("% of influence, " + run.run);
    for (std::size_t hop = end; hop < run.share_of_hop.size(); ++hop) {
      if (run.share_of_hop[hop] > 0.0) end = hop + 1;
    }
  }
  for (std::size_t hop = 0; hop < end; ++hop) {
    double nodes = 0.0;
    for (const analysis::Prediction& prediction : runs[0].predictions) {
      const std::vector<std::int64_t>& nodes_at = prediction.influence.nodes_at;
      if (hop < nodes_at.size()) nodes += static_cast<double>(nodes_at[hop]);
    }
    const auto count = static_cast<double>(runs[0].predictions.size());
    rows.push_back({std::to_string(hop), fmt::format("{:.4g}", nodes / count)});
    for (const Dependence& run : runs) rows.back().push_back(percent(run.share_of_hop[hop]));
  }
  return fmt::format("\n{}", table(rows));
}

/// `hops` is empty if there is no distance to the target.
std::string tell_top(const BareGraph& graph, const std::string& heading,
                     const std::vector<std::int64_t>& top, const std::vector<double>& of_node,
                     const std::vector<std::int32_t>& hops) {
  Rows rows = {{"node", "influence", "% of all"}};
  if (!hops.empty()) rows[0].push_back("hops");
  const double total = std::accumulate(of_node.begin(), of_node.end(), 0.0);
  for (const std::int64_t node : top) {
    if (of_node[node] == 0.0) break;
    rows.push_back({node_name(graph, node), fmt::format("{:.4g}", of_node[node]),
                    percent(of_node[node] / total)});
    if (!hops.empty()) {
      rows.back().push_back(hops[node] < 0 ? "no way" : shown(std::int64_t{hops[node]}));
    }
  }
  return rows.size() > 1 ? fmt::format("\n{}\n{}", heading, table(rows)) : "";
}

}  // namespace

std::string to_text(const BareGraph& graph, const ModelAnswer& answer) {
  std::string words = fmt::format(
      "{}: {} on {}, {}, {}\n"
      "{}",
      answer.run, answer.kind, graph.name, counted(answer.nodes, "node"),
      counted(graph.graph.num_edges(), "edge"), tell_blocks(answer));
  words += tell_multi_hop(answer);
  if (answer.pair) words += tell_pair(graph, answer);
  if (const auto& whole = answer.whole) {
    words += tell_top(graph, "the prediction for this graph depends most on:", whole->top,
                      whole->of_node, {});
  }
  if (answer.runs.empty()) return words;
  words += tell_by_prediction(graph, answer.runs) + tell_by_hop(answer.runs);
  if (answer.target < 0) return words;
  const analysis::Prediction& first = answer.runs[0].predictions[0];
  return words +
         tell_top(graph,
                  "prediction of node " + node_name(graph, answer.target) + " depends most on:",
                  first.top, first.influence.of_node, first.influence.hops);
}

}  // namespace mpssm::report
