// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <utility>

#include "mpssm/report/graph_answer.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

using analysis::GraphAnswer;
using data::BareGraph;

std::string describe(const BareGraph& graph, const GraphAnswer& answer) {
  std::string words =
      fmt::format("{}: {}, {}, {}\n", graph.name, counted(answer.nodes, "node"),
                  counted(answer.edges, answer.is_symmetric ? "edge" : "directed edge"),
                  answer.components == 1 ? "connected" : counted(answer.components, "component"));
  if (answer.lambda_star) {
    words += fmt::format(
        "lambda* {:.7f}{}: what is not yet settled shrinks by this factor per hop\n",
        *answer.lambda_star, answer.is_certain ? "" : " (approximate: the search did not settle)");
  }
  if (answer.least_limit) {
    words +=
        fmt::format("least limit over pairs of one component {}\n", shown(*answer.least_limit));
  }
  return words;
}

std::string verdict(bool bounds_hold) {
  return bounds_hold ? "the bounds hold at every tau asked for\n"
                     : "the bounds do NOT hold: please report this\n";
}

std::string tell(const analysis::PairDepth& depth, double limit) {
  if (limit == 0.0) return "\nno depth is enough: the two are in different components\n";
  return fmt::format(
      "\n"
      "{} % of the limit: {}{}\n",
      percent(depth.share),
      depth.first ? fmt::format("first after {}", counted(*depth.first, "hop"))
                  : fmt::format("not within {} hops", depth.max_tau),
      depth.sure_from
          ? fmt::format("; surely from {} on, by lambda*", counted(*depth.sure_from, "hop"))
          : "");
}

std::string tell_pair(const BareGraph& graph, const GraphAnswer& answer) {
  const analysis::PairAnswer& pair = *answer.pair;
  std::string words = fmt::format("from node {} to node {}: {}\n", node_name(graph, answer.source),
                                  node_name(graph, answer.target),
                                  pair.hops < 0 ? "no way" : counted(pair.hops, "hop"));
  const double limit = pair.limit.value_or(0.0);
  if (pair.limit) {
    words += fmt::format("limit {}{}\n", shown(limit), answer.w == 1.0 ? "" : " times |w|^tau");
  }
  Rows rows = {{"tau", "S(tau)"}};
  if (limit > 0.0) rows[0].push_back("% of limit");
  if (pair.bounds) rows[0].insert(rows[0].end(), {"at least", "at most"});
  for (const std::size_t t : rows_to_show(pair.value.size())) {
    rows.push_back({shown(answer.taus[t]), shown(pair.value[t])});
    if (limit > 0.0) rows.back().push_back(percent(pair.entry[t] / limit));
    if (pair.bounds) {
      rows.back().insert(rows.back().end(),
                         {shown(pair.bounds->lower[t]), shown(pair.bounds->upper[t])});
    }
  }
  words += fmt::format("\n{}", table(rows));
  if (pair.bounds) words += verdict(pair.bounds->hold);
  if (pair.depth) words += tell(*pair.depth, limit);
  return words;
}

std::string tell_node(const BareGraph& graph, const GraphAnswer& answer) {
  Rows rows = {{"tau", "nodes", "largest S", "smallest S", "sum of S"}};
  const std::vector<analysis::Reach>& profile = answer.node->profile;
  for (const std::size_t t : rows_to_show(profile.size())) {
    const analysis::Reach& reach = profile[t];
    rows.push_back({shown(reach.tau), shown(reach.nodes), shown(reach.largest),
                    shown(reach.smallest), shown(reach.total)});
  }
  return (answer.source >= 0 ? "what node " + node_name(graph, answer.source) + " sends\n\n"
                             : "what reaches node " + node_name(graph, answer.target) + "\n\n") +
         table(rows);
}

std::string tell(const BareGraph& graph, const analysis::AllPairsDepth& depth) {
  const std::string what = percent(depth.share) + " % of its limit";
  if (!depth.found) {
    return fmt::format("\nnot every pair has {} within {} hops\n", what, shown(depth.max_tau));
  }
  return fmt::format(
      "\n"
      "every pair of a component has {} from {} on; the last one is {} to {}\n",
      what, counted(depth.found->tau, "hop"), node_name(graph, depth.found->last.source),
      node_name(graph, depth.found->last.target));
}

std::string tell_all_pairs(const BareGraph& graph, const analysis::AllPairsAnswer& all) {
  const bool has_least = all.bounds && !all.bounds->least.empty();
  Rows rows = {{"tau", "least S", "largest S", "pairs at 0"}};
  if (has_least) rows[0].push_back("least >=");
  if (all.bounds) rows[0].push_back("largest >=");
  for (const std::size_t t : rows_to_show(all.profile.size())) {
    const analysis::Extremes& at = all.profile[t];
    rows.push_back(
        {shown(at.tau), shown(at.least.value), shown(at.largest.value), shown(at.zeros)});
    if (has_least) rows.back().push_back(shown(all.bounds->least[t]));
    if (all.bounds) rows.back().push_back(shown(all.bounds->largest[t]));
  }
  std::string words = fmt::format("\n{}", table(rows));
  if (all.bounds) words += verdict(all.bounds->hold);
  if (all.depth) words += tell(graph, *all.depth);
  return words;
}

/// Single edges that everything between the two has to pass.
std::string list(const BareGraph& graph, const std::vector<graph::Bridge>& bridges) {
  if (bridges.empty()) return "none";
  constexpr std::size_t kShown = 3;
  std::string words;
  for (std::size_t b = 0; b < bridges.size() && b < kShown; ++b) {
    words += fmt::format("{}{}-{}", b > 0 ? ", " : "", node_name(graph, bridges[b].a),
                         node_name(graph, bridges[b].b));
  }
  if (bridges.size() > kShown) words += fmt::format(" and {} more", bridges.size() - kShown);
  return words;
}

std::string tell_worst(const BareGraph& graph, const analysis::WorstPairs& worst) {
  Rows rows = {{"source", "target", "hops", fmt::format("S({})", worst.tau)}};
  if (worst.knows_limit) rows[0].insert(rows[0].end(), {"limit", "% of limit"});
  if (worst.depth_share) rows[0].push_back("hops for " + percent(*worst.depth_share) + " %");
  if (worst.knows_bridges) rows[0].push_back("bridges between them");
  for (const analysis::WorstPair& pair : worst.pairs) {
    std::vector<std::string> row = {node_name(graph, pair.source), node_name(graph, pair.target),
                                    pair.hops < 0 ? "no way" : shown(std::int64_t{pair.hops}),
                                    shown(pair.value)};
    if (worst.knows_limit) row.insert(row.end(), {shown(pair.limit), percent(pair.share)});
    if (worst.depth_share) {
      row.push_back(pair.depth ? shown(*pair.depth) : fmt::format("> {}", worst.max_tau));
    }
    if (worst.knows_bridges) row.push_back(list(graph, pair.bridges));
    rows.push_back(std::move(row));
  }
  const bool by_share = worst.order == analysis::Order::kShare;
  return fmt::format(
      "\n"
      "worst pairs at tau {}{}{}",
      shown(worst.tau),
      by_share ? ", by share of the limit:\n"
                 ""
               : ", by value:\n",
      table(rows));
}

std::string tell_vanishing(const std::vector<analysis::VanishingRow>& found) {
  Rows rows = {
      {"k", "2^(-k/2)", "orthogonal W", "Gaussian W", "rank-one W", "2^(1/2-k)", "ReLU GCN here"}};
  for (const analysis::VanishingRow& row : found) {
    rows.push_back({shown(row.k), shown(row.paper), shown(row.orthogonal), shown(row.gaussian),
                    shown(row.rank_one), shown(row.rank_one_limit), shown(row.gcn)});
  }
  return "\nwhat k random masks (or, last, the ReLUs of a k-layer GCN) leave of the signal:\n" +
         table(rows);
}

}  // namespace

std::vector<std::string> cost_notes(std::int64_t num_nodes,
                                    std::optional<std::int64_t> steps_of_all_pairs,
                                    std::int64_t all_pairs_bytes) {
  constexpr std::int64_t kLarge = 100'000;
  constexpr std::int64_t kManyPairs = 2000;
  constexpr double kMib = 1024.0 * 1024.0;
  std::vector<std::string> notes;
  if (num_nodes >= kLarge) {
    notes.push_back(fmt::format(
        "two vectors of {} nodes: {:.0f} MiB beside the graph, one sparse product a step",
        num_nodes, 2.0 * sizeof(double) * static_cast<double>(num_nodes) / kMib));
  }
  if (steps_of_all_pairs && num_nodes >= kManyPairs) {
    notes.push_back(
        fmt::format("all pairs of {} nodes, up to {} steps, in blocks: {:.0f} MiB beside the graph",
                    num_nodes, *steps_of_all_pairs, static_cast<double>(all_pairs_bytes) / kMib));
  }
  return notes;
}

std::string to_text(const BareGraph& graph, const GraphAnswer& answer) {
  std::string words = describe(graph, answer);
  if (answer.pair) words += tell_pair(graph, answer);
  if (answer.node) words += tell_node(graph, answer);
  if (answer.all_pairs) words += tell_all_pairs(graph, *answer.all_pairs);
  if (answer.worst) words += tell_worst(graph, *answer.worst);
  if (!answer.vanishing.empty()) words += tell_vanishing(answer.vanishing);
  return words;
}

}  // namespace mpssm::report
