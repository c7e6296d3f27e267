// SPDX-License-Identifier: MIT
// One pair of nodes with its limit, bounds and depth; or what one node sends or hears.
#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/graph_question.h"

namespace mpssm::cli {
namespace {

using nlohmann::ordered_json;
using report::LineStyle;

struct PairBounds {
  std::vector<double> lower;  // at each tau; empty: not asked for, or not known
  std::vector<double> upper;
};

PairBounds bound_pair(const GraphQuestion& question, const std::vector<double>& values,
                      Answer& answer) {
  if (!question.options.bounds || question.limit == nullptr) return {};
  PairBounds bounds;
  bool holds = true;
  ordered_json at = ordered_json::array();
  const double limit = question.limit->limit(question.target, question.source);
  for (std::size_t t = 0; t < values.size(); ++t) {
    const std::int64_t tau = question.taus[t];
    const double error = question.limit->error_bound(question.target, question.source, tau);
    const double scale = question.w_power(tau);
    bounds.lower.push_back(std::max(limit - error, 0.0) * scale);
    bounds.upper.push_back((limit + error) * scale);
    const double slack = kRounding * scale;
    holds = holds && values[t] >= bounds.lower[t] - slack && values[t] <= bounds.upper[t] + slack;
    at.push_back({{"tau", tau}, {"lower", bounds.lower[t]}, {"upper", bounds.upper[t]}});
  }
  answer.json["bounds"] = {{"what", "limit -+ lambda*^tau sqrt((1 - q_ii)(1 - q_jj))"},
                           {"holds", holds},
                           {"lambda_star_settled", question.limit->is_certain()},
                           {"at", std::move(at)}};
  return bounds;
}

void print_pair(const GraphQuestion& question, const std::vector<double>& values,
                const PairBounds& bounds, Answer& answer) {
  std::vector<std::vector<std::string>> rows = {{"tau", "S(tau)"}};
  const double limit =
      question.limit == nullptr ? 0.0 : question.limit->limit(question.target, question.source);
  if (limit > 0.0) rows[0].push_back("% of limit");
  if (!bounds.lower.empty()) rows[0].insert(rows[0].end(), {"at least", "at most"});
  for (const std::size_t t : rows_to_show(values.size())) {
    rows.push_back({shown(question.taus[t]), shown(values[t])});
    if (limit > 0.0) {
      rows.back().push_back(percent(values[t] / (limit * question.w_power(question.taus[t]))));
    }
    if (!bounds.lower.empty()) {
      rows.back().insert(rows.back().end(), {shown(bounds.lower[t]), shown(bounds.upper[t])});
    }
  }
  answer.table(rows);
  if (!bounds.lower.empty()) answer.line(bounds_verdict(answer));
}

void draw_pair(const GraphQuestion& question, const std::vector<double>& values,
               const PairBounds& bounds, Answer& answer) {
  const std::vector<double> x(question.taus.begin(), question.taus.end());
  answer.curve.curves.push_back({.name = "S(tau)", .x = x, .y = values});
  if (question.limit != nullptr) {
    report::Curve limit{.name = "limit", .x = x, .style = LineStyle::kDashed};
    for (const std::int64_t tau : question.taus) {
      limit.y.push_back(question.limit->limit(question.target, question.source) *
                        question.w_power(tau));
    }
    answer.curve.curves.push_back(std::move(limit));
  }
  if (!bounds.lower.empty()) {
    answer.curve.bands.push_back({"bound by lambda*", x, bounds.lower, bounds.upper});
  }
}

void tell_depth(const GraphQuestion& question, Answer& answer) {
  const double share = *question.options.depth;
  const auto depth = pair_depth(question, question.source, question.target);
  const auto sure = question.limit->sure_depth(question.target, question.source, share);
  answer.json["depth"] = {
      {"share", share}, {"tau", count_json(depth)}, {"sure_from", count_json(sure)}};
  answer.line("");
  if (question.limit->limit(question.target, question.source) == 0.0) {
    answer.line("no depth is enough: the two are in different components");
    return;
  }
  answer.line(percent(share) + " % of the limit: " +
              (depth ? "first after " + shown(*depth) + " hops"
                     : "not within " + shown(question.options.max_tau) + " hops") +
              (sure ? "; surely from " + shown(*sure) + " hops on, by lambda*" : ""));
}

}  // namespace

void answer_pair(const GraphQuestion& question, Answer& answer) {
  const std::int32_t hops = analysis::hops_to(question.gso, question.target)[question.source];
  answer.json["hops"] = count_json(hops);
  answer.line("from node " + question.name(question.source) + " to node " +
              question.name(question.target) + ": " +
              (hops < 0 ? "no way" : shown(std::int64_t{hops}) + " hops"));
  Meter meter("S(tau)");
  std::vector<double> values =
      analysis::pair_profile(question.gso, question.source, question.target, question.taus,
                             walk_progress(question, meter));
  for (std::size_t t = 0; t < values.size(); ++t) {
    values[t] = std::abs(values[t]) * question.w_power(question.taus[t]);
    answer.json["profile"].push_back({{"tau", question.taus[t]}, {"value", values[t]}});
  }
  if (question.limit != nullptr) {
    const double limit = question.limit->limit(question.target, question.source);
    answer.json["limit"] = limit;
    answer.line("limit " + shown(limit) + (question.options.w == 1.0 ? "" : " times |w|^tau"));
  }
  const PairBounds bounds = bound_pair(question, values, answer);
  print_pair(question, values, bounds, answer);
  draw_pair(question, values, bounds, answer);
  if (question.options.depth) tell_depth(question, answer);
}

void answer_node(const GraphQuestion& question, Answer& answer) {
  const bool sends = question.source >= 0;
  const std::int64_t node = sends ? question.source : question.target;
  answer.line((sends ? "what node " : "what reaches node ") + question.name(node) +
              (sends ? " sends" : ""));
  Meter meter("profile");
  const std::vector<analysis::Reach> profile = analysis::reach_profile(
      question.gso, node, sends ? analysis::View::kFromSource : analysis::View::kToTarget,
      question.taus, walk_progress(question, meter));
  report::Curve largest{.name = "largest"};
  report::Curve smallest{.name = "smallest above 0"};
  std::vector<std::vector<std::string>> cells;
  for (const analysis::Reach& reach : profile) {
    const double scale = question.w_power(reach.tau);
    answer.json["profile"].push_back({{"tau", reach.tau},
                                      {"value", reach.largest * scale},
                                      {"nodes", reach.nodes},
                                      {"smallest", reach.smallest * scale},
                                      {"total", reach.total * scale}});
    cells.push_back({shown(reach.tau), shown(reach.nodes), shown(reach.largest * scale),
                     shown(reach.smallest * scale), shown(reach.total * scale)});
    largest.x.push_back(static_cast<double>(reach.tau));
    largest.y.push_back(reach.largest * scale);
    smallest.y.push_back(reach.smallest * scale);
  }
  smallest.x = largest.x;
  std::vector<std::vector<std::string>> rows = {
      {"tau", "nodes", "largest S", "smallest S", "sum of S"}};
  for (const std::size_t t : rows_to_show(cells.size())) rows.push_back(cells[t]);
  answer.table(rows);
  answer.curve.curves = {std::move(largest), std::move(smallest)};
}

}  // namespace mpssm::cli
