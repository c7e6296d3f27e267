// SPDX-License-Identifier: MIT
// mpssm sensitivity on a trained model: its blocks, a pair, and the picture.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/state_norms.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/io/error.h"
#include "mpssm/io/file.h"

#include "cli/influence_picture.h"
#include "cli/run_question.h"
#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

/// The graph behind an operator, loops left out.
graph::Graph graph_of(const graph::Gso& gso) {
  graph::EdgeList edges{.num_nodes = gso.num_nodes()};
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      if (gso.col()[e] == i || gso.values<double>()[e] == 0.0) continue;
      edges.src.push_back(gso.col()[e]);
      edges.dst.push_back(i);
    }
  }
  return graph::Graph::from_edges(
      edges, gso.is_symmetric() ? graph::Direction::kUndirected : graph::Direction::kDirected);
}

RunQuestion read_question(const SensitivityOptions& options) {
  RunQuestion question{
      .options = options, .taus = parse_taus(options.tau), .run = open_run(options.what, options)};
  if (!options.source.empty()) question.source = data::find_node(question.run.bare, options.source);
  if (!options.target.empty()) question.target = data::find_node(question.run.bare, options.target);
  if (question.source >= 0 && question.target < 0) {
    throw io::InputError("--source: of a run, expected --target too: which prediction is meant");
  }
  const std::int64_t blocks =
      question.run.model() == nullptr ? 0 : std::ssize(question.run.model()->blocks());
  if (blocks > 0 && options.block > blocks) {
    throw io::InputError("--block: expected 1 to " + shown(blocks) + ", got " +
                         shown(options.block));
  }
  if (question.run.is_graph_level()) {
    if (options.predictions > 0 || !options.compare.empty()) {
      throw io::InputError(
          "--predictions and --compare: this model predicts for whole graphs, there is no distance "
          "to compare by; give --sample");
    }
    if (question.target >= 0 && question.source < 0) {
      throw io::InputError("--target: this model predicts for whole graphs; give --sample alone");
    }
  }
  if (options.picture == "map") {
    throw io::InputError("--picture map: of a run, expected curve or graph");
  }
  if (options.picture == "graph" && question.target < 0 && !question.run.is_graph_level()) {
    throw io::InputError("--picture graph: expected --target, got none");
  }
  return question;
}

void describe_run(const RunQuestion& question, Answer& answer) {
  const OpenRun& run = question.run;
  answer.json = {{"run", run.name},
                 {"dataset", run.experiment.dataset->name},
                 {"kind", run.experiment.config.model.kind},
                 {"nodes", run.num_nodes()},
                 {"edges", run.bare.graph.num_edges()},
                 {"source", node_json(run.bare, question.source)},
                 {"target", node_json(run.bare, question.target)},
                 {"limit", nullptr},
                 {"lambda_star", nullptr},
                 {"profile", ordered_json::array()},
                 {"bounds", nullptr}};
  answer.line(run.name + ": " + run.experiment.config.model.kind + " on " + run.bare.name + ", " +
              counted(run.num_nodes(), "node") + ", " +
              counted(run.bare.graph.num_edges(), "edge"));
}

std::string draw(const RunQuestion& question, const Answer& answer,
                 const std::vector<double>& influence) {
  const OpenRun& run = question.run;
  std::string kind = question.options.picture;
  const bool has_one = run.is_graph_level() || question.target >= 0;
  if (kind.empty()) kind = has_one ? "graph" : "curve";
  if (kind == "curve") return report::curve_svg(answer.curve);
  const std::int64_t centre =
      question.target >= 0 ? question.target : analysis::most_influential(influence, 1)[0];
  return influence_svg(
      run.bare, {.title = run.name + ": influence on the prediction" +
                          (run.is_graph_level() ? "" : " of " + run.name_of(question.target)),
                 .value_label = "influence",
                 .centre = centre,
                 .also_marked = question.source,
                 .value = influence});
}

}  // namespace

bool OpenRun::is_graph_level() const {
  return experiment.dataset->task == data::Task::kGraphRegression ||
         experiment.dataset->task == data::Task::kGraphLabels;
}

OpenRun open_run(const std::string& path, const SensitivityOptions& options) {
  OpenRun run{.name = std::filesystem::path(path).lexically_normal().string(),
              .experiment = train::reopen(path, {.data_dir = options.data_dir}),
              .sample = {},
              .bare = {}};
  const data::Dataset& dataset = *run.experiment.dataset;
  for (const std::string& note : dataset.notes) say("note: " + note);
  try {
    run.sample = run.experiment.problem->sample(options.sample);
  } catch (const std::out_of_range& error) {
    const bool is_one = std::holds_alternative<data::NodeData>(dataset.content);
    throw io::InputError(is_one ? "--sample: " + dataset.name + " is one graph, leave it out"
                                : "--" + std::string(error.what()));
  }
  run.bare.name = dataset.name;
  if (const auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    run.bare.graph = nodes->graph;
    run.bare.node_ids = nodes->node_ids;
  } else if (const auto* series = std::get_if<data::SeriesData>(&dataset.content)) {
    run.bare.graph = series->graph;
    run.bare.node_ids = series->node_ids;
  } else {
    run.bare.graph = graph_of(run.sample.gso);
    run.bare.name += " graph " + shown(options.sample);
  }
  return run;
}

std::vector<std::vector<double>> answer_blocks(const RunQuestion& question, Answer& answer) {
  const nn::ModelImpl* model = question.run.model();
  answer.json["blocks"] = ordered_json::array();
  if (model == nullptr) {
    answer.line("no linear recurrence: only end-to-end influence can be told");
    return {};
  }
  const bool is_static = model->options().mode == nn::Mode::kStatic;
  const std::int64_t hops =
      is_static ? model->options().hops : question.run.experiment.problem->num_steps() - 1;
  std::vector<std::vector<double>> all;
  Rows rows = {{"block", "radius of W", "||W^" + shown(hops) + "||", "mean hop", "1 % after"}};
  for (const nn::Block& block : model->blocks()) {
    const at::Tensor w = block->w_state->forward().detach();
    const analysis::StateReach reach = analysis::state_reach(w, hops);
    const double last = analysis::power_norms(w, std::vector<std::int64_t>{hops})[0];
    all.push_back(analysis::power_norms(w, question.taus));
    ordered_json entry = {
        {"block", all.size()},           {"hops", hops},
        {"radius", reach.radius},        {"norm_at_hops", last},
        {"mean_hop", reach.mean_hop},    {"forgets_after", count_json(reach.forgets_after)},
        {"norms", ordered_json::array()}};
    report::Curve curve{.name = "block " + std::to_string(all.size())};
    for (std::size_t t = 0; t < question.taus.size(); ++t) {
      entry["norms"].push_back({{"tau", question.taus[t]}, {"value", all.back()[t]}});
      curve.x.push_back(static_cast<double>(question.taus[t]));
    }
    curve.y = all.back();
    answer.curve.curves.push_back(std::move(curve));
    answer.json["blocks"].push_back(std::move(entry));
    rows.push_back({std::to_string(all.size()), text("%.6g", reach.radius), text("%.4g", last),
                    text("%.2f", reach.mean_hop),
                    reach.forgets_after < 0 ? "never" : counted(reach.forgets_after, "hop")});
  }
  answer.curve.title = question.run.name;
  answer.curve.x_label = "hops tau";
  answer.curve.y_label = "||W^tau||";
  answer.curve.log_y = true;
  answer.table(rows);
  if (question.options.tau.empty()) return all;
  rows = {{"tau"}};
  for (std::size_t b = 0; b < all.size(); ++b) rows[0].push_back(text("||W%zu^tau||", b + 1));
  for (const std::size_t t : rows_to_show(question.taus.size())) {
    rows.push_back({shown(question.taus[t])});
    for (const std::vector<double>& norms : all) rows.back().push_back(text("%.4g", norms[t]));
  }
  answer.table(rows);
  return all;
}

void answer_run_pair(const RunQuestion& question,
                     const std::vector<std::vector<double>>& block_norms, Answer& answer) {
  const OpenRun& run = question.run;
  const at::Tensor jacobian =
      analysis::pair_jacobian(analysis::output_jacobian(run.network(), run.sample.x, run.sample.gso,
                                                        run.is_graph_level() ? 0 : question.target),
                              question.source);
  const double norm = analysis::spectral_norm(jacobian);
  answer.json["end_to_end"] = {{"spectral_norm", norm},
                               {"l1", jacobian.abs().sum().item<double>()},
                               {"outputs", jacobian.size(0)},
                               {"inputs", jacobian.size(1)}};
  answer.line("");
  answer.line("end to end, from the features of node " + run.name_of(question.source) +
              " to the prediction" +
              (run.is_graph_level() ? "" : " of node " + run.name_of(question.target)) +
              ": Jacobian of norm " + text("%.4g", norm));
  if (block_norms.empty()) return;
  const std::int64_t block = question.options.block;
  std::vector<double> values =
      analysis::pair_profile(run.sample.gso, question.source, question.target, question.taus);
  for (std::size_t t = 0; t < values.size(); ++t) {
    values[t] = std::abs(values[t]) * block_norms[block - 1][t];
    answer.json["profile"].push_back({{"tau", question.taus[t]}, {"value", values[t]}});
  }
  if (run.experiment.config.model.gso == "sym_normalized" &&
      analysis::why_no_deep_limit(run.bare.graph).empty()) {
    const analysis::DeepLimit limit(run.bare.graph);
    answer.json["limit"] = limit.limit(question.target, question.source);
    if (question.options.limit) answer.json["lambda_star"] = limit.lambda_star(question.source);
  }
  Rows rows = {{"tau", "S(tau)"}};
  for (const std::size_t t : rows_to_show(values.size())) {
    rows.push_back({shown(question.taus[t]), shown(values[t])});
  }
  answer.table(rows, "inside block " + shown(block) + ", from state to state:");
}

int analyse_run(const SensitivityOptions& options) {
  const RunQuestion question = read_question(options);
  Answer answer;
  describe_run(question, answer);
  const std::vector<std::vector<double>> block_norms = answer_blocks(question, answer);
  if (question.source >= 0) answer_run_pair(question, block_norms, answer);
  const std::vector<double> influence = answer_predictions(question, answer);
  if (!options.plot.empty()) {
    io::write_file(options.plot, draw(question, answer, influence));
    say("wrote " + options.plot);
  }
  answer.print(options.json);
  return 0;
}

}  // namespace mpssm::cli
