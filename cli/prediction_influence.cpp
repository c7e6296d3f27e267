// SPDX-License-Identifier: MIT
// What predictions of a trained model depend on, node by node and by hop distance; two runs side by
// side.
#include <algorithm>
#include <utility>

#include "mpssm/io/error.h"

#include "cli/run_question.h"
#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

using analysis::Influence;
using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

/// Some predictions of one network.
struct Dependence {
  std::string run;
  std::vector<Influence> of_target;
  std::vector<double> share_of_hop;  ///< mean over the predictions of of_hop / its sum
  double mean_hop = 0.0;             ///< mean over the predictions
};

double sum(const std::vector<double>& numbers) {
  double total = 0.0;
  for (const double number : numbers) total += number;
  return total;
}

Dependence dependence(const OpenRun& run, const std::vector<std::int64_t>& targets) {
  Dependence result{.run = run.name, .of_target = {}, .share_of_hop = {}};
  const auto count = static_cast<double>(targets.size());
  Meter meter("Jacobians of " + run.name);
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const at::Tensor jacobian =
        analysis::output_jacobian(run.network(), run.sample.x, run.sample.gso, targets[k]);
    Influence influence = analysis::influence_of(jacobian, run.sample.gso, targets[k]);
    const double total = sum(influence.of_hop);
    result.share_of_hop.resize(std::max(result.share_of_hop.size(), influence.of_hop.size()));
    for (std::size_t hop = 0; total > 0.0 && hop < influence.of_hop.size(); ++hop) {
      result.share_of_hop[hop] += influence.of_hop[hop] / total / count;
    }
    result.mean_hop += influence.mean_hop / count;
    result.of_target.push_back(std::move(influence));
    meter.update(static_cast<double>(k + 1) / count);
  }
  return result;
}

bool is_same_graph(const graph::Graph& a, const graph::Graph& b) {
  return a.num_nodes() == b.num_nodes() && std::ranges::equal(a.row_ptr(), b.row_ptr()) &&
         std::ranges::equal(a.col(), b.col());
}

/// The node asked for, or some of the test part, evenly spread over it.
std::vector<std::int64_t> choose_targets(const RunQuestion& question) {
  if (question.target >= 0) return {question.target};
  const train::Experiment& experiment = question.run.experiment;
  const auto* nodes = std::get_if<data::NodeData>(&experiment.dataset->content);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < question.run.num_nodes(); ++i) {
    const bool is_test = nodes == nullptr || nodes->splits.empty() ||
                         nodes->splits[experiment.config.data.split][i] == data::Part::kTest;
    if (is_test) all.push_back(i);
  }
  const std::int64_t count = std::min<std::int64_t>(question.options.predictions, std::ssize(all));
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < count; ++k) {
    some.push_back(all[(2 * k + 1) * std::ssize(all) / (2 * count)]);
  }
  return some;
}

ordered_json top_json(const OpenRun& run, const std::vector<double>& of_node,
                      const std::vector<std::int32_t>& hops, std::int64_t count) {
  ordered_json top = ordered_json::array();
  for (const std::int64_t node : analysis::most_influential(of_node, count)) {
    top.push_back({{"node", node_json(run.bare, node)}, {"influence", of_node[node]}});
    if (!hops.empty()) top.back()["hops"] = count_json(hops[node]);
  }
  return top;
}

ordered_json to_json(const RunQuestion& question, const std::vector<std::int64_t>& targets,
                     const Dependence& found) {
  ordered_json each = ordered_json::array();
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const Influence& influence = found.of_target[k];
    ordered_json hops = ordered_json::array();
    for (std::size_t hop = 0; hop < influence.of_hop.size(); ++hop) {
      hops.push_back(
          {{"hop", hop}, {"nodes", influence.nodes_at[hop]}, {"influence", influence.of_hop[hop]}});
    }
    each.push_back(
        {{"target", node_json(question.run.bare, targets[k])},
         {"mean_hop", influence.mean_hop},
         {"hops", std::move(hops)},
         {"top", top_json(question.run, influence.of_node, influence.hops, question.options.top)}});
  }
  return {{"run", found.run},
          {"mean_hop", found.mean_hop},
          {"share_of_hop", found.share_of_hop},
          {"each", std::move(each)}};
}

void print_by_prediction(const RunQuestion& question, const std::vector<std::int64_t>& targets,
                         const std::vector<Dependence>& runs, Answer& answer) {
  Rows rows = {{"prediction of node"}};
  for (const Dependence& found : runs) rows[0].push_back("mean hop, " + found.run);
  for (std::size_t k = 0; k < targets.size(); ++k) {
    rows.push_back({question.run.name_of(targets[k])});
    for (const Dependence& found : runs) {
      rows.back().push_back(text("%.3f", found.of_target[k].mean_hop));
    }
  }
  if (targets.size() > 1) {
    rows.push_back({"mean"});
    for (const Dependence& found : runs) rows.back().push_back(text("%.3f", found.mean_hop));
  }
  answer.table(rows);
}

void print_by_hop(const std::vector<Dependence>& runs, Answer& answer) {
  Rows rows = {{"hop", "nodes"}};
  std::size_t end = 0;  // beyond the last hop that anything comes from
  for (const Dependence& found : runs) {
    rows[0].push_back("% of influence, " + found.run);
    for (std::size_t hop = end; hop < found.share_of_hop.size(); ++hop) {
      if (found.share_of_hop[hop] > 0.0) end = hop + 1;
    }
  }
  for (std::size_t hop = 0; hop < end; ++hop) {
    double nodes = 0.0;
    for (const Influence& influence : runs[0].of_target) {
      if (hop < influence.nodes_at.size()) nodes += static_cast<double>(influence.nodes_at[hop]);
    }
    rows.push_back(
        {std::to_string(hop), text("%.4g", nodes / static_cast<double>(runs[0].of_target.size()))});
    for (const Dependence& found : runs) rows.back().push_back(percent(found.share_of_hop[hop]));
  }
  answer.table(rows);
}

void print_top(const OpenRun& run, const std::string& heading, const std::vector<double>& of_node,
               const std::vector<std::int32_t>& hops, std::int64_t count, Answer& answer) {
  Rows rows = {{"node", "influence", "% of all"}};
  if (!hops.empty()) rows[0].push_back("hops");
  const double total = sum(of_node);
  for (const std::int64_t node : analysis::most_influential(of_node, count)) {
    if (of_node[node] == 0.0) break;
    rows.push_back(
        {run.name_of(node), text("%.4g", of_node[node]), percent(of_node[node] / total)});
    if (!hops.empty()) {
      rows.back().push_back(hops[node] < 0 ? "no way" : shown(std::int64_t{hops[node]}));
    }
  }
  if (rows.size() > 1) answer.table(rows, heading);
}

void draw_by_hop(const OpenRun& run, const std::vector<Dependence>& runs, Answer& answer) {
  answer.curve = {};
  answer.curve.title = run.bare.name;
  answer.curve.x_label = "hops between node and prediction";
  answer.curve.y_label = "share of the influence";
  answer.curve.log_y = true;
  for (const Dependence& found : runs) {
    report::Curve curve{.name = found.run, .markers = true};
    for (std::size_t hop = 0; hop < found.share_of_hop.size(); ++hop) {
      curve.x.push_back(static_cast<double>(hop));
      curve.y.push_back(found.share_of_hop[hop]);
    }
    answer.curve.curves.push_back(std::move(curve));
  }
}

/// One prediction for the whole graph: there is no distance to it.
std::vector<double> answer_graph_prediction(const RunQuestion& question, Answer& answer) {
  const OpenRun& run = question.run;
  std::vector<double> of_node = analysis::influence_of_nodes(
      analysis::output_jacobian(run.network(), run.sample.x, run.sample.gso, 0));
  answer.json["top"] = top_json(run, of_node, {}, question.options.top);
  print_top(run, "the prediction for this graph depends most on:", of_node, {},
            question.options.top, answer);
  return of_node;
}

}  // namespace

std::vector<double> answer_predictions(const RunQuestion& question, Answer& answer) {
  if (question.run.is_graph_level()) return answer_graph_prediction(question, answer);
  const SensitivityOptions& options = question.options;
  const std::vector<std::int64_t> targets = choose_targets(question);
  if (targets.empty()) {
    if (options.compare.empty()) return {};
    throw io::InputError("--compare: expected --target or --predictions with it");
  }
  std::vector<Dependence> runs = {dependence(question.run, targets)};
  answer.json["predictions"] = to_json(question, targets, runs[0]);
  if (!options.compare.empty()) {
    const OpenRun other = open_run(options.compare, options);
    if (!is_same_graph(other.bare.graph, question.run.bare.graph) || other.is_graph_level()) {
      throw io::InputError("--compare: expected a run on the same graph as " + question.run.name +
                           ", got " + other.name + " on " + other.bare.name);
    }
    runs.push_back(dependence(other, targets));
    answer.json["compare"] = to_json(question, targets, runs[1]);
  }
  print_by_prediction(question, targets, runs, answer);
  print_by_hop(runs, answer);
  draw_by_hop(question.run, runs, answer);
  const Influence& first = runs[0].of_target[0];
  if (question.target >= 0) {
    print_top(question.run,
              "prediction of node " + question.run.name_of(question.target) + " depends most on:",
              first.of_node, first.hops, options.top, answer);
  }
  return first.of_node;
}

}  // namespace mpssm::cli
