// SPDX-License-Identifier: MIT
// One pair of nodes with its limit, bounds and depth; or what one node sends or hears.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "mpssm/io/error.h"

#include "cli/graph_question.h"

namespace mpssm::cli {
namespace {

using nlohmann::ordered_json;
using report::LineStyle;

struct PairBounds {
  std::vector<double> lower;  // at each tau; empty: not asked for, or not known
  std::vector<double> upper;
};

/// `entries` are |(A^tau)_ij|: W scales both sides alike, and may overflow.
PairBounds bound_pair(const GraphQuestion& question, const std::vector<double>& entries,
                      Answer& answer) {
  if (!question.options.bounds || question.limit == nullptr) return {};
  PairBounds bounds;
  bool holds = true;
  ordered_json at = ordered_json::array();
  const double limit = question.limit->limit(question.target, question.source);
  for (std::size_t t = 0; t < entries.size(); ++t) {
    const std::int64_t tau = question.taus[t];
    const double error = question.limit->error_bound(question.target, question.source, tau);
    const double lower = std::max(limit - error, 0.0);
    const double upper = limit + error;
    holds = holds && entries[t] >= lower - kRounding && entries[t] <= upper + kRounding;
    bounds.lower.push_back(question.scaled(lower, tau));
    bounds.upper.push_back(question.scaled(upper, tau));
    at.push_back({{"tau", tau}, {"lower", bounds.lower[t]}, {"upper", bounds.upper[t]}});
  }
  answer.json["bounds"] = {{"what", "limit -+ lambda*^tau sqrt((1 - q_ii)(1 - q_jj))"},
                           {"holds", holds},
                           {"lambda_star_settled", question.limit->is_certain()},
                           {"at", std::move(at)}};
  return bounds;
}

void print_pair(const GraphQuestion& question, const std::vector<double>& entries,
                const std::vector<double>& values, const PairBounds& bounds, Answer& answer) {
  std::vector<std::vector<std::string>> rows = {{"tau", "S(tau)"}};
  const double limit =
      question.limit == nullptr ? 0.0 : question.limit->limit(question.target, question.source);
  if (limit > 0.0) rows[0].push_back("% of limit");
  if (!bounds.lower.empty()) rows[0].insert(rows[0].end(), {"at least", "at most"});
  for (const std::size_t t : rows_to_show(values.size())) {
    rows.push_back({shown(question.taus[t]), shown(values[t])});
    if (limit > 0.0) rows.back().push_back(percent(entries[t] / limit));
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
      limit.y.push_back(
          question.scaled(question.limit->limit(question.target, question.source), tau));
    }
    answer.curve.curves.push_back(std::move(limit));
  }
  if (bounds.lower.empty()) return;
  // Both edges only where the lower one says something: down to zero the band would be a box over
  // the whole picture.
  const std::string name = "bound by lambda*";
  report::Band band{name, x, bounds.lower, bounds.upper};
  for (double& lower : band.lower) {
    if (lower == 0.0) lower = std::numeric_limits<double>::quiet_NaN();
  }
  answer.curve.curves.push_back({name, x, bounds.upper, LineStyle::kDotted});
  const auto says_something = [](double lower) { return !std::isnan(lower); };
  if (std::any_of(band.lower.begin(), band.lower.end(), says_something)) {
    answer.curve.bands.push_back(std::move(band));
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
              (depth ? "first after " + counted(*depth, "hop")
                     : "not within " + shown(question.options.max_tau) + " hops") +
              (sure ? "; surely from " + counted(*sure, "hop") + " on, by lambda*" : ""));
}

}  // namespace

void answer_pair(const GraphQuestion& question, Answer& answer) {
  const std::int32_t hops = analysis::hops_to(question.gso, question.target)[question.source];
  answer.json["hops"] = count_json(hops);
  answer.line("from node " + question.name(question.source) + " to node " +
              question.name(question.target) + ": " + (hops < 0 ? "no way" : counted(hops, "hop")));
  Meter meter("S(tau)");
  std::vector<double> entries =
      analysis::pair_profile(question.gso, question.source, question.target, question.taus,
                             walk_progress(question, meter));
  std::vector<double> values;
  for (std::size_t t = 0; t < entries.size(); ++t) {
    entries[t] = std::abs(entries[t]);
    values.push_back(question.scaled(entries[t], question.taus[t]));
    answer.json["profile"].push_back({{"tau", question.taus[t]}, {"value", values[t]}});
  }
  if (question.limit != nullptr) {
    const double limit = question.limit->limit(question.target, question.source);
    answer.json["limit"] = limit;
    answer.line("limit " + shown(limit) + (question.options.w == 1.0 ? "" : " times |w|^tau"));
  }
  const PairBounds bounds = bound_pair(question, entries, answer);
  print_pair(question, entries, values, bounds, answer);
  draw_pair(question, values, bounds, answer);
  if (question.options.depth) tell_depth(question, answer);
}

void answer_node(const GraphQuestion& question, Answer& answer) {
  if (question.options.depth || question.options.bounds) {
    throw io::InputError(
        "--depth and --bounds: expected --source and --target, or neither, got one of them");
  }
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
    const double most = question.scaled(reach.largest, reach.tau);
    const double least = question.scaled(reach.smallest, reach.tau);
    const double total = question.scaled(reach.total, reach.tau);
    answer.json["profile"].push_back({{"tau", reach.tau},
                                      {"value", most},
                                      {"nodes", reach.nodes},
                                      {"smallest", least},
                                      {"total", total}});
    cells.push_back(
        {shown(reach.tau), shown(reach.nodes), shown(most), shown(least), shown(total)});
    largest.x.push_back(static_cast<double>(reach.tau));
    largest.y.push_back(most);
    smallest.y.push_back(least);
  }
  smallest.x = largest.x;
  std::vector<std::vector<std::string>> rows = {
      {"tau", "nodes", "largest S", "smallest S", "sum of S"}};
  for (const std::size_t t : rows_to_show(cells.size())) rows.push_back(cells[t]);
  answer.table(rows);
  answer.curve.curves = {std::move(largest), std::move(smallest)};
}

}  // namespace mpssm::cli
