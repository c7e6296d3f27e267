// SPDX-License-Identifier: MIT
#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "mpssm/report/curve_picture.h"
#include "mpssm/report/influence_picture.h"
#include "mpssm/report/model_answer.h"
#include "mpssm/report/node_name.h"

namespace mpssm::report {
namespace {

using analysis::ModelAnswer;
using data::BareGraph;

CurvePicture curves_by_hop(const BareGraph& graph, const ModelAnswer& answer) {
  CurvePicture picture{.title = graph.name,
                       .x_label = "hops between node and prediction",
                       .y_label = "share of the influence",
                       .log_y = true};
  for (const analysis::Dependence& run : answer.runs) {
    Curve curve{.name = run.run, .y = run.share_of_hop, .markers = true};
    for (std::size_t hop = 0; hop < run.share_of_hop.size(); ++hop) {
      curve.x.push_back(static_cast<double>(hop));
    }
    picture.curves.push_back(std::move(curve));
  }
  return picture;
}

CurvePicture curves_of_blocks(const ModelAnswer& answer) {
  if (answer.blocks.empty()) return {};
  CurvePicture picture{
      .title = answer.run, .x_label = "hops tau", .y_label = "||W^tau||", .log_y = true};
  const std::vector<double> x(answer.taus.begin(), answer.taus.end());
  for (const analysis::BlockAnswer& block : answer.blocks) {
    const std::string name = fmt::format("block {}", picture.curves.size() + 1);
    picture.curves.push_back({.name = name, .x = x, .y = block.norms});
  }
  return picture;
}

std::string draw_graph(const BareGraph& graph, const ModelAnswer& answer) {
  const std::vector<double>& influence =
      answer.whole ? answer.whole->of_node : answer.runs[0].predictions[0].influence.of_node;
  const auto most = std::max_element(influence.begin(), influence.end());
  return influence_svg(
      graph, {.title = answer.run + ": influence on the prediction" +
                       (answer.predicts_graphs() ? "" : " of " + node_name(graph, answer.target)),
              .value_label = "influence",
              .centre = answer.target >= 0 ? answer.target : most - influence.begin(),
              .also_marked = answer.source,
              .value = influence});
}

}  // namespace

PictureKind usual_picture(const ModelAnswer& answer) {
  const bool is_one = answer.predicts_graphs() || answer.target >= 0;
  return is_one ? PictureKind::kGraph : PictureKind::kCurve;
}

std::string to_svg(const BareGraph& graph, const ModelAnswer& answer, PictureKind kind) {
  if (kind == PictureKind::kGraph) return draw_graph(graph, answer);
  return curve_svg(answer.runs.empty() ? curves_of_blocks(answer) : curves_by_hop(graph, answer));
}

}  // namespace mpssm::report
