// SPDX-License-Identifier: MIT
// mpssm sensitivity on a bare graph: from the question to the answer and its picture.
#include <cmath>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/analysis/vanishing.h"
#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/report/heat_map.h"

#include "cli/graph_question.h"
#include "cli/influence_picture.h"

namespace mpssm::cli {
namespace {

void answer_vanishing(const GraphQuestion& question, Answer& answer) {
  analysis::VanishingOptions settings;
  settings.seed = settings.gcn.seed = static_cast<std::uint64_t>(question.options.seed);
  std::vector<std::vector<std::string>> rows = {
      {"k", "2^(-k/2)", "orthogonal W", "Gaussian W", "rank-one W", "2^(1/2-k)", "ReLU GCN here"}};
  answer.json["vanishing"] = nlohmann::ordered_json::array();
  for (const analysis::VanishingRow& row : analysis::vanishing_table(question.gso, settings)) {
    rows.push_back({shown(row.k), shown(row.paper), shown(row.orthogonal), shown(row.gaussian),
                    shown(row.rank_one), shown(row.rank_one_limit), shown(row.gcn)});
    answer.json["vanishing"].push_back({{"k", row.k},
                                        {"paper", row.paper},
                                        {"orthogonal", row.orthogonal},
                                        {"gaussian", row.gaussian},
                                        {"rank_one", row.rank_one},
                                        {"rank_one_limit", row.rank_one_limit},
                                        {"gcn", row.gcn}});
  }
  answer.table(rows,
               "what k random masks (or, last, the ReLUs of a k-layer GCN) leave of the signal:");
}

std::string draw_curve(const GraphQuestion& question, report::CurvePicture picture) {
  constexpr std::int64_t kManyHops = 200;
  picture.title = question.title();
  picture.x_label = "hops tau";
  picture.y_label = "sensitivity S(tau)";
  picture.log_x = question.taus.back() > kManyHops && question.taus.front() > 0;
  picture.log_y = true;
  if (question.is_pair() && analysis::hops_to(question.gso, question.target)[question.source] < 0) {
    picture.title += ": no way, S is 0";
  }
  return report::curve_svg(picture);
}

std::string draw_map(const GraphQuestion& question) {
  const std::int64_t tau = question.taus.back();
  std::vector<double> power = analysis::dense_power(question.gso, tau);
  for (double& entry : power) entry = question.scaled(std::abs(entry), tau);
  return report::heat_map_svg({.title = question.bare.name + ": S after " + shown(tau) + " hops",
                               .row_label = "target i",
                               .column_label = "source j",
                               .value_label = "S_ij",
                               .rows = question.num_nodes(),
                               .columns = question.num_nodes(),
                               .values = power,
                               .log_scale = true});
}

std::string draw_graph(const GraphQuestion& question) {
  // Of a pair, what the target hears: the source is one of many.
  const bool hears = question.target >= 0;
  const std::int64_t node = hears ? question.target : question.source;
  const std::int64_t tau = question.taus.back();
  analysis::Walk walk(question.gso, node,
                      hears ? analysis::View::kToTarget : analysis::View::kFromSource);
  while (walk.tau() < tau) walk.step();
  std::vector<double> value;
  for (const double entry : walk.values()) {
    value.push_back(question.scaled(std::abs(entry), tau));
  }
  return influence_svg(question.bare,
                       {.title = question.bare.name + ": what " + question.name(node) +
                                 (hears ? " hears in " : " sends in ") + shown(tau) + " hops",
                        .value_label = "sensitivity",
                        .centre = node,
                        .also_marked = hears ? question.source : -1,
                        .value = value});
}

/// The picture asked for, or the one that fits the question. Throws before the work is done if it
/// cannot be drawn.
std::string choose_picture(const GraphQuestion& question) {
  std::string kind = question.options.picture;
  if (kind.empty()) kind = question.is_pair() ? "curve" : question.is_single() ? "graph" : "map";
  if (kind == "map" && question.num_nodes() > analysis::kMaxDensePower) {
    throw io::InputError("--picture map: expected at most " + shown(analysis::kMaxDensePower) +
                         " nodes, got " + shown(question.num_nodes()) +
                         "; take --picture curve, or give --source");
  }
  if (kind == "graph" && question.source < 0 && question.target < 0) {
    throw io::InputError("--picture graph: expected --source or --target, got neither");
  }
  return kind;
}

}  // namespace

int analyse_graph(const SensitivityOptions& options) {
  const GraphQuestion question = read_question(options);
  const std::string picture = options.plot.empty() ? "" : choose_picture(question);
  Answer answer;
  describe_graph(question, answer);
  if (question.is_pair()) {
    answer_pair(question, answer);
  } else if (question.is_single()) {
    answer_node(question, answer);
  } else {
    answer_all_pairs(question, answer);
  }
  if (options.worst > 0) answer_worst_pairs(question, answer);
  if (options.vanishing) answer_vanishing(question, answer);
  if (!picture.empty()) {
    io::write_file(options.plot, picture == "curve" ? draw_curve(question, answer.curve)
                                 : picture == "map" ? draw_map(question)
                                                    : draw_graph(question));
    say("wrote " + options.plot);
  }
  answer.print(options.json);
  return 0;
}

}  // namespace mpssm::cli
