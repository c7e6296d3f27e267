// SPDX-License-Identifier: MIT
// All pairs of a graph: least and largest sensitivity, the depth that all need, the worst pairs and
// the bridges between them.
#include <algorithm>
#include <utility>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/graph/bridges.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/io/error.h"

#include "cli/graph_question.h"

namespace mpssm::cli {
namespace {

using analysis::Extremes;
using nlohmann::ordered_json;
using report::LineStyle;
using Rows = std::vector<std::vector<std::string>>;

void announce(const GraphQuestion& question, std::int64_t steps) {
  const std::int64_t nodes = question.num_nodes();
  if (nodes > analysis::kMaxAllPairs) {
    throw io::InputError(question.bare.name + ": " + shown(nodes) +
                         " nodes have too many pairs (up to " + shown(analysis::kMaxAllPairs) +
                         " nodes); give --source or --target");
  }
  constexpr std::int64_t kWorthSaying = 2000;
  if (nodes < kWorthSaying) return;
  constexpr double kMib = 1024.0 * 1024.0;
  say(text("all pairs of %lld nodes, up to %lld steps, in blocks: %.0f MiB beside the graph",
           static_cast<long long>(nodes), static_cast<long long>(steps),
           static_cast<double>(analysis::all_pairs_bytes(nodes)) / kMib));
}

analysis::BlockProgress progress_on(Meter& meter) {
  return [&meter](double share) { meter.update(share); };
}

struct GraphBounds {
  std::vector<double> least;    // at each tau; empty: not asked for, or not known
  std::vector<double> largest;  // at each tau; empty: not asked for
};

/// `found` as of A alone: W scales both sides alike, and may overflow.
GraphBounds bound_graph(const GraphQuestion& question, const std::vector<Extremes>& found,
                        Answer& answer) {
  if (!question.options.bounds) return {};
  const analysis::DeepLimit* limit = question.limit.get();
  const double radius = limit != nullptr ? 1.0 : graph::spectral_radius(question.gso);
  GraphBounds bounds;
  bool holds = true;
  ordered_json all = ordered_json::array();
  for (const Extremes& at : found) {
    const double largest = analysis::global_bound(radius, question.num_nodes(), at.tau);
    holds = holds && at.largest.value >= largest - kRounding;
    bounds.largest.push_back(question.scaled(largest, at.tau));
    ordered_json row = {{"tau", at.tau}, {"global_at_least", bounds.largest.back()}};
    if (const auto least = limit != nullptr ? limit->minimum_bound(at.tau) : std::nullopt) {
      holds = holds && at.least.value >= *least - kRounding;
      bounds.least.push_back(question.scaled(std::max(*least, 0.0), at.tau));
      row["least_at_least"] = bounds.least.back();
    }
    all.push_back(std::move(row));
  }
  answer.json["bounds"] = {{"what",
                            "max over pairs >= rho^tau / N; min over pairs >= least limit - "
                            "lambda*^tau (connected, undirected, two nodes or more)"},
                           {"holds", holds},
                           {"at", std::move(all)}};
  return bounds;
}

void print_extremes(const std::vector<Extremes>& found, const GraphBounds& bounds, Answer& answer) {
  Rows rows = {{"tau", "least S", "largest S", "pairs at 0"}};
  if (!bounds.least.empty()) rows[0].push_back("least >=");
  if (!bounds.largest.empty()) rows[0].push_back("largest >=");
  for (const std::size_t t : rows_to_show(found.size())) {
    const Extremes& at = found[t];
    rows.push_back(
        {shown(at.tau), shown(at.least.value), shown(at.largest.value), shown(at.zeros)});
    if (!bounds.least.empty()) rows.back().push_back(shown(bounds.least[t]));
    if (!bounds.largest.empty()) rows.back().push_back(shown(bounds.largest[t]));
  }
  answer.table(rows);
  if (!bounds.largest.empty()) answer.line(bounds_verdict(answer));
}

void draw_extremes(const std::vector<Extremes>& found, const GraphBounds& bounds, Answer& answer) {
  report::Curve largest{.name = "largest over pairs"};
  report::Curve least{.name = "least over pairs"};
  for (const Extremes& at : found) {
    largest.x.push_back(static_cast<double>(at.tau));
    largest.y.push_back(at.largest.value);
    least.y.push_back(at.least.value);
  }
  least.x = largest.x;
  answer.curve.curves = {largest, least};
  if (!bounds.largest.empty()) {
    answer.curve.curves.push_back(
        {"largest, at least", largest.x, bounds.largest, LineStyle::kDashed});
  }
  if (!bounds.least.empty()) {
    answer.curve.curves.push_back({"least, at least", largest.x, bounds.least, LineStyle::kDashed});
  }
}

void tell_depth(const GraphQuestion& question, Answer& answer) {
  const double share = *question.options.depth;
  const std::int64_t max_tau = question.options.max_tau;
  Meter meter("depth of all pairs");
  const auto depth = analysis::depth_of_all_pairs(question.gso, *question.limit, share, max_tau,
                                                  progress_on(meter));
  answer.json["depth"] = {{"share", share}, {"tau", nullptr}};
  answer.line("");
  const std::string what = percent(share) + " % of its limit";
  if (!depth) {
    answer.line("not every pair has " + what + " within " + shown(max_tau) + " hops");
    return;
  }
  answer.json["depth"] = {{"share", share},
                          {"tau", depth->tau},
                          {"last_source", node_json(question.bare, depth->last.source)},
                          {"last_target", node_json(question.bare, depth->last.target)}};
  answer.line("every pair of a component has " + what + " from " + counted(depth->tau, "hop") +
              " on; the last one is " + question.name(depth->last.source) + " to " +
              question.name(depth->last.target));
}

/// Single edges that everything between the two has to pass.
std::string bridges_between(const GraphQuestion& question, const graph::Bridges& bridges,
                            const analysis::PairValue& pair, ordered_json& entry) {
  const std::vector<graph::Bridge> found = bridges.separating(pair.source, pair.target);
  entry["bridges"] = ordered_json::array();
  std::string words;
  constexpr std::size_t kShown = 3;
  for (std::size_t b = 0; b < found.size(); ++b) {
    entry["bridges"].push_back(
        {node_json(question.bare, found[b].a), node_json(question.bare, found[b].b)});
    if (b < kShown) {
      words += (b > 0 ? ", " : "") + question.name(found[b].a) + "-" + question.name(found[b].b);
    }
  }
  if (found.empty()) return "none";
  if (found.size() > kShown) words += text(" and %zu more", found.size() - kShown);
  return words;
}

}  // namespace

void answer_all_pairs(const GraphQuestion& question, Answer& answer) {
  if (question.limit != nullptr) {
    answer.json["least_limit"] = question.limit->least_limit();
    answer.line("least limit over pairs of one component " + shown(question.limit->least_limit()));
  }
  const bool must =
      question.options.worst > 0 || question.options.depth || !question.options.plot.empty();
  if (question.num_nodes() > analysis::kMaxAllPairs && !must) {
    say("note: too many pairs for extremes over all of them; give --source or --target");
    return;
  }
  announce(question, question.options.depth ? question.options.max_tau : question.taus.back());
  Meter meter("extremes over all pairs");
  std::vector<Extremes> found = analysis::extremes(question.gso, question.taus, progress_on(meter));
  const GraphBounds bounds = bound_graph(question, found, answer);
  for (Extremes& at : found) {
    at.least.value = question.scaled(at.least.value, at.tau);
    at.largest.value = question.scaled(at.largest.value, at.tau);
    answer.json["profile"].push_back({{"tau", at.tau},
                                      {"value", at.largest.value},
                                      {"least", at.least.value},
                                      {"least_source", node_json(question.bare, at.least.source)},
                                      {"least_target", node_json(question.bare, at.least.target)},
                                      {"zero_pairs", at.zeros}});
  }
  print_extremes(found, bounds, answer);
  draw_extremes(found, bounds, answer);
  if (question.options.depth) tell_depth(question, answer);
}

void answer_worst_pairs(const GraphQuestion& question, Answer& answer) {
  const SensitivityOptions& options = question.options;
  const std::int64_t tau = question.taus.back();
  const bool by_share = options.by == "share";
  if (by_share && question.limit == nullptr) {
    throw io::InputError("--by share: there is no limit: " + question.why_no_limit);
  }
  if (question.is_pair() || question.is_single()) announce(question, tau);  // else it has been said
  Meter meter("worst pairs");
  const auto worst =
      analysis::worst_pairs(question.gso, tau, options.worst,
                            by_share ? analysis::Order::kShare : analysis::Order::kValue,
                            question.limit.get(), progress_on(meter));
  std::unique_ptr<graph::Bridges> bridges;
  if (question.bare.graph.is_symmetric()) {
    bridges = std::make_unique<graph::Bridges>(question.bare.graph);
  }
  Rows rows = {{"source", "target", "hops", "S(" + shown(tau) + ")"}};
  if (question.limit != nullptr) rows[0].insert(rows[0].end(), {"limit", "% of limit"});
  if (options.depth) rows[0].push_back("hops for " + percent(*options.depth) + " %");
  if (bridges != nullptr) rows[0].push_back("bridges between them");
  answer.json["worst"] = ordered_json::array();
  Meter depth_meter("their depths");
  for (std::size_t k = 0; k < worst.size(); ++k) {
    const analysis::PairValue& pair = worst[k];
    const double value = question.scaled(pair.value, tau);
    const std::int32_t hops = analysis::hops_to(question.gso, pair.target)[pair.source];
    ordered_json entry = {{"source", node_json(question.bare, pair.source)},
                          {"target", node_json(question.bare, pair.target)},
                          {"hops", count_json(hops)},
                          {"value", value}};
    std::vector<std::string> row = {question.name(pair.source), question.name(pair.target),
                                    hops < 0 ? "no way" : shown(std::int64_t{hops}), shown(value)};
    if (question.limit != nullptr) {
      const double limit = question.limit->limit(pair.target, pair.source);
      entry["limit"] = limit;
      row.insert(row.end(), {shown(limit), percent(pair.value / limit)});
    }
    if (options.depth) {
      const auto depth = pair_depth(question, pair.source, pair.target);
      entry["depth"] = count_json(depth);
      row.push_back(depth ? shown(*depth) : "> " + shown(options.max_tau));
      depth_meter.update(static_cast<double>(k + 1) / static_cast<double>(worst.size()));
    }
    if (bridges != nullptr) row.push_back(bridges_between(question, *bridges, pair, entry));
    rows.push_back(std::move(row));
    answer.json["worst"].push_back(std::move(entry));
  }
  answer.table(rows, "worst pairs at tau " + shown(tau) +
                         (by_share ? ", by share of the limit:" : ", by value:"));
}

}  // namespace mpssm::cli
