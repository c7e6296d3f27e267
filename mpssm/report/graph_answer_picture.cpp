// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "mpssm/report/advice.h"
#include "mpssm/report/curve_picture.h"
#include "mpssm/report/graph_answer.h"
#include "mpssm/report/heat_map.h"
#include "mpssm/report/influence_picture.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/run_page.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

using analysis::GraphAnswer;
using data::BareGraph;

void add_curves(CurvePicture& picture, const std::vector<double>& x,
                const analysis::PairAnswer& pair) {
  picture.curves.push_back({.name = "S(tau)", .x = x, .y = pair.value});
  if (pair.limit) picture.curves.push_back({"limit", x, pair.limit_value, LineStyle::kDashed});
  if (!pair.bounds) return;
  // Both edges only where the lower one says something: down to zero the band would be a box over
  // the whole picture.
  const std::string name = "bound by lambda*";
  Band band{name, x, pair.bounds->lower, pair.bounds->upper};
  for (double& lower : band.lower) {
    if (lower == 0.0) lower = std::numeric_limits<double>::quiet_NaN();
  }
  picture.curves.push_back({name, x, pair.bounds->upper, LineStyle::kDotted});
  const auto says_something = [](double lower) { return !std::isnan(lower); };
  if (std::any_of(band.lower.begin(), band.lower.end(), says_something)) {
    picture.bands.push_back(std::move(band));
  }
}

void add_curves(CurvePicture& picture, const std::vector<double>& x,
                const analysis::NodeAnswer& node) {
  Curve largest{.name = "largest", .x = x};
  Curve smallest{.name = "smallest above 0", .x = x};
  for (const analysis::Reach& reach : node.profile) {
    largest.y.push_back(reach.largest);
    smallest.y.push_back(reach.smallest);
  }
  picture.curves = {std::move(largest), std::move(smallest)};
}

void add_curves(CurvePicture& picture, const std::vector<double>& x,
                const analysis::AllPairsAnswer& all) {
  Curve largest{.name = "largest over pairs", .x = x};
  Curve least{.name = "least over pairs", .x = x};
  for (const analysis::Extremes& at : all.profile) {
    largest.y.push_back(at.largest.value);
    least.y.push_back(at.least.value);
  }
  picture.curves = {std::move(largest), std::move(least)};
  if (!all.bounds) return;
  picture.curves.push_back({"largest, at least", x, all.bounds->largest, LineStyle::kDashed});
  if (all.bounds->least.empty()) return;
  picture.curves.push_back({"least, at least", x, all.bounds->least, LineStyle::kDashed});
}

std::string title(const BareGraph& graph, const GraphAnswer& answer) {
  const auto name = [&](std::int64_t node) { return node_name(graph, node); };
  if (answer.pair) {
    return fmt::format("{}: from {} to {}{}", graph.name, name(answer.source), name(answer.target),
                       answer.pair->hops < 0 ? ": no way, S is 0" : "");
  }
  if (answer.source >= 0) return fmt::format("{}: what {} sends", graph.name, name(answer.source));
  if (answer.target >= 0) return fmt::format("{}: what {} hears", graph.name, name(answer.target));
  return graph.name + ": all pairs";
}

std::string draw_curve(const BareGraph& graph, const GraphAnswer& answer) {
  constexpr std::int64_t kManyHops = 200;
  CurvePicture picture{.title = title(graph, answer),
                       .x_label = "hops tau",
                       .y_label = "sensitivity S(tau)",
                       .log_x = answer.taus.back() > kManyHops && answer.taus.front() > 0,
                       .log_y = true};
  const std::vector<double> x(answer.taus.begin(), answer.taus.end());
  if (answer.pair) add_curves(picture, x, *answer.pair);
  if (answer.node) add_curves(picture, x, *answer.node);
  if (answer.all_pairs) add_curves(picture, x, *answer.all_pairs);
  return curve_svg(picture);
}

std::string draw_map(const BareGraph& graph, const GraphAnswer& answer) {
  return heat_map_svg(
      {.title = fmt::format("{}: S after {} hops", graph.name, shown(answer.taus.back())),
       .row_label = "target i",
       .column_label = "source j",
       .value_label = "S_ij",
       .rows = answer.nodes,
       .columns = answer.nodes,
       .values = answer.map,
       .log_scale = true});
}

std::string draw_graph(const BareGraph& graph, const GraphAnswer& answer) {
  // Of a pair, what the target hears: the source is one of many.
  const bool hears = answer.target >= 0;
  const std::int64_t node = hears ? answer.target : answer.source;
  return influence_svg(
      graph, {.title = fmt::format("{}: what {}{}{} hops", graph.name, node_name(graph, node),
                                   hears ? " hears in " : " sends in ", shown(answer.taus.back())),
              .value_label = "sensitivity",
              .centre = node,
              .also_marked = hears ? answer.source : -1,
              .value = answer.of_node});
}

}  // namespace

PictureKind usual_picture(std::int64_t source, std::int64_t target) {
  if (source >= 0 && target >= 0) return PictureKind::kCurve;
  return source >= 0 || target >= 0 ? PictureKind::kGraph : PictureKind::kMap;
}

std::string to_svg(const BareGraph& graph, const GraphAnswer& answer, PictureKind kind) {
  switch (kind) {
    case PictureKind::kCurve:
      return draw_curve(graph, answer);
    case PictureKind::kMap:
      return draw_map(graph, answer);
    case PictureKind::kGraph:
      break;
  }
  return draw_graph(graph, answer);
}

std::string to_html(const data::BareGraph& graph, const graph::Gso& gso,
                    const analysis::GraphAnswer& answer) {
  constexpr std::int64_t kMostHops = 200;
  Explorer explorer{
      .gso = gso,
      .node_ids = graph.node_ids,
      .target = answer.target >= 0 ? answer.target : std::max<std::int64_t>(answer.source, 0),
      .source = answer.source};
  HopNorms norms{.name = "W = " + shown(answer.w)};
  const std::int64_t hops = std::min(answer.taus.back(), kMostHops);
  for (std::int64_t tau = 0; tau <= hops; ++tau) {
    norms.norm.push_back(std::pow(std::abs(answer.w), static_cast<double>(tau)));
  }
  explorer.blocks = {std::move(norms)};
  explorer.hops = std::min<std::int64_t>(hops, 4);
  if (gso.kind() == graph::GsoKind::kSymNormalized) {
    describe_graph(graph.graph, answer.lambda_star.value_or(0.0), explorer);
  }
  if (answer.worst) {
    explorer.worst_hops = answer.worst->tau;
    for (const auto& pair : answer.worst->pairs) {
      explorer.worst.push_back({pair.source, pair.target});
    }
  }
  return explorer_page_html(
      graph.name,
      fmt::format("{}, {}, operator {}, W = {}", counted(answer.nodes, "node"),
                  counted(answer.edges, "edge"), answer.gso, shown(answer.w)),
      explorer);
}

}  // namespace mpssm::report
