// SPDX-License-Identifier: MIT
#include "mpssm/run/advise.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <variant>

#include <torch/types.h>

#include "mpssm/analysis/attribution.h"
#include "mpssm/analysis/edge_effects.h"
#include "mpssm/analysis/influence.h"
#include "mpssm/analysis/robustness.h"
#include "mpssm/base/error.h"
#include "mpssm/graph/distances.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/advice.h"
#include "mpssm/run/graph_edit_file.h"
#include "mpssm/run/open_run.h"
#include "mpssm/task/problem.h"

namespace mpssm::run {
namespace {

bool asks_of_run(const AdviceRequest& request) {
  return request.edges > 0 || request.attribute || request.epsilon > 0.0;
}

void check_request(const AdviceRequest& request) {
  const char* option = request.edges > 0     ? "--edges"
                       : request.attribute   ? "--attribute"
                       : request.epsilon > 0 ? "--epsilon"
                                             : nullptr;
  if (option != nullptr && !is_run(request.what)) {
    throw base::Error(option, "expected a run, got the graph " + request.what);
  }
  const bool needs_target = request.attribute || request.epsilon > 0.0;
  if (needs_target && request.target.empty()) {
    throw base::Error(request.attribute ? "--attribute" : "--epsilon",
                      "expected --target NODE with it: which prediction is meant");
  }
  if (!request.move.empty() && !(request.epsilon > 0.0)) {
    throw base::Error("--move", "expected --epsilon with it: by how much features move");
  }
}

analysis::EdgesQuestion edges_question(const Experiment& experiment, const data::BareGraph& graph,
                                       const graph::Gso& gso, std::int64_t count) {
  return {.network = *experiment.model.module,
          .graph = graph.graph,
          .gso = gso,
          .loss =
              [problem = experiment.problem.get()](nn::GraphModule& network) {
                return problem->loss_of_part(network, data::Part::kVal);
              },
          .part = "validation",
          .count = count,
          .confirm = count};
}

analysis::Attribution attribution_of(const Experiment& experiment,
                                     analysis::AttributionQuestion question) {
  const task::Preprocessing& learned = experiment.pins.learned;
  const std::vector<std::string>& classes = learned.class_names;
  question.output = classes.empty() ? 0 : -1;
  analysis::Attribution found = analysis::answer(question);
  analysis::PathShares& shares = found.prediction;
  if (!classes.empty()) {
    const bool is_binary = data::is_binary(experiment.dataset->task);
    shares.output_name = classes[is_binary ? 1 : static_cast<std::size_t>(shares.output)];
    return found;
  }
  // On the scale of the labels.
  shares.value = shares.value * learned.scale + learned.mean;
  shares.baseline = shares.baseline * learned.scale + learned.mean;
  shares.gap *= learned.scale;
  for (double& share : shares.of_node) share *= learned.scale;
  return found;
}

void answer_of_run(const AdviceRequest& request, OpenRun& run, std::int64_t target,
                   analysis::Advice& advice) {
  const Experiment& experiment = run.experiment;
  if (!run.input.gso.is_single()) {
    throw base::Error(request.what,
                      "--edges, --attribute and --epsilon take one operator for all channels; the "
                      "run has groups (model.gso)");
  }
  const std::vector<std::string>& classes = experiment.pins.learned.class_names;
  if (request.edges > 0) {
    advice.edges = analysis::answer(
        edges_question(experiment, run.graph, run.input.gso.only(), request.edges));
  }
  if (request.attribute) {
    advice.attribution = attribution_of(experiment, {.network = *experiment.model.module,
                                                     .x = run.input.x,
                                                     .gso = run.input.gso.only(),
                                                     .target = target,
                                                     .block = request.block});
  }
  if (request.epsilon > 0.0) {
    std::vector<std::int64_t> moved;
    for (const std::string& id : request.move) moved.push_back(data::find_node(run.graph, id));
    if (moved.empty()) {
      moved.resize(static_cast<std::size_t>(run.graph.graph.num_nodes()));
      std::iota(moved.begin(), moved.end(), 0);
    }
    advice.robustness =
        analysis::answer(analysis::RobustnessQuestion{.network = *experiment.model.module,
                                                      .x = run.input.x,
                                                      .gso = run.input.gso.only(),
                                                      .target = target,
                                                      .nodes = moved,
                                                      .epsilon = request.epsilon,
                                                      .of_classes = !classes.empty(),
                                                      .scale = experiment.pins.learned.scale});
  }
}

}  // namespace

AdviceResult advise(const AdviceRequest& request, const engine::Executor& executor,
                    const analysis::Stages& stages) {
  check_request(request);
  AdviceResult result{.graph = graph_of(request.what, request.data_dir)};
  const auto node = [&](const std::string& id) {
    return id.empty() ? -1 : data::find_node(result.graph, id);
  };
  analysis::AdviceQuestion question = request.question;
  question.graph = result.graph.graph;
  question.source = node(request.source);
  question.target = node(request.target);
  question.edit = edit_of(result.graph, request.remove, request.add, request.weight);
  const bool asks = !question.edit.empty() || question.rewire > 0 || question.rounds > 0 ||
                    question.spare > 0 || question.depth || asks_of_run(request);
  if (!asks) {
    question.depth = 0.5;
    question.rewire = 5;
  }
  result.advice = analysis::advise(question, executor, stages);
  if (result.advice.what_if && is_run(request.what)) {
    result.advice.what_if->predictions =
        changed_predictions(request.what, request.data_dir, question.edit);
  }
  if (!asks_of_run(request)) return result;
  OpenRun run = open_run(request.what, {.data_dir = request.data_dir});
  take_sample(run, 0);
  try {
    answer_of_run(request, run, question.target, result.advice);
  } catch (const std::logic_error& error) {  // no such block, another kind of network
    throw base::Error(request.what, error.what());
  }
  return result;
}

AdviceResult advice_for_page(const Experiment& experiment, const std::string& node) {
  AdviceResult result{.graph = graph_in(*experiment.dataset)};
  const graph::Graph& graph = result.graph.graph;
  const auto* model = dynamic_cast<const nn::ModelImpl*>(experiment.model.module.get());
  const graph::Operators operators = experiment.problem->sample(0).gso;
  if (!operators.is_single()) return result;  // what follows is about one operator
  const graph::Gso& gso = operators.only();
  if (model != nullptr && model->options().precision == engine::Precision::kFloat32 &&
      model->options().entries == nn::EntriesKind::kFixed) {
    // The states of one block are kept, which training need not have done, beside what blocks keep
    // that do not run again; a page should not take more memory than was announced.
    const std::int64_t kept =
        4 * graph.num_nodes() * model->options().hidden_channels * (model->options().hops + 1) * 6;
    const bool is_series = model->options().mode == nn::Mode::kTemporal;
    const bool fits = !model->options().recompute &&
                      kept < std::max<std::int64_t>(experiment.model.training_bytes, 16 << 20);
    if (!is_series && fits) {
      constexpr std::int64_t kListed = 5;
      try {
        result.advice.edges =
            analysis::answer(edges_question(experiment, result.graph, gso, kListed));
      } catch (const base::Error&) {
        // No labels in the validation part: nothing to say.
      }
    }
  }
  constexpr std::int64_t kMaxPageNodes = 1000;
  if (result.advice.edges && !node.empty() && graph.num_nodes() <= kMaxPageNodes) {
    constexpr std::int64_t kSteps = 32;
    result.advice.attribution =
        attribution_of(experiment, {.network = *experiment.model.module,
                                    .x = experiment.problem->sample(0).x,
                                    .gso = gso,
                                    .target = data::find_node(result.graph, node),
                                    .steps = kSteps});
  }
  if (experiment.config.model.gso != graph::GsoKind::kSymNormalized) return result;
  const bool has_pairs = graph.num_nodes() > 1 && graph.num_nodes() <= kMaxPageNodes;
  if (!has_pairs || !analysis::why_no_deep_limit(graph).empty()) return result;
  const std::int64_t reach =
      model == nullptr ? 16 : model->options().hops * std::ssize(model->blocks());
  // With fewer hops than the graph is wide, all far pairs are equally bad.
  constexpr std::int64_t kMostHops = 128;
  const std::int64_t tau =
      std::clamp<std::int64_t>(std::max(reach, graph::diameter(graph)), 1, kMostHops);
  const analysis::AdviceQuestion question{
      .graph = graph, .depth = 0.5, .max_tau = 500, .rewire = 3, .tau = tau};
  try {
    const analysis::Advice more = analysis::advise(question, ops::Threads());
    result.advice.depth = more.depth;
    result.advice.depth->seconds_per_hop = 0.0;  // a page made again should be the same
    result.advice.rewire = more.rewire;
    const analysis::DeepLimit limit(graph);
    constexpr std::int64_t kWorstPairs = 8;
    result.worst_tau = tau;
    result.worst = analysis::worst_pairs(gso, tau, kWorstPairs, analysis::Order::kValue, &limit,
                                         ops::Threads());
    result.lambda_star = limit.lambda_star();
  } catch (const std::invalid_argument&) {
    // No two nodes are joined.
  }
  return result;
}

void save_edit(const AdviceResult& result, double weight, const std::filesystem::path& path) {
  const analysis::GraphEdit edit = analysis::advised_edit(result.advice, weight);
  if (edit.empty()) {
    throw base::Error("--save", "no edge is advised; ask for some (--rewire, --rounds, --edges)");
  }
  io::check_replaceable(path, {.bytes = edit_start(), .kind = "edges of mpssm advise"});
  io::write_file(path, edit_text(result.graph, edit));
}

std::string advice_page(const AdviceResult& result, std::int64_t tau) {
  const graph::Graph& graph = result.graph.graph;
  constexpr std::int64_t kMostHops = 200;
  const std::int64_t hops = std::min(tau, kMostHops);
  report::Explorer explorer{
      .gso = graph::make_gso(graph),
      .node_ids = result.graph.node_ids,
      .blocks = {{"the graph alone", std::vector<double>(static_cast<std::size_t>(hops) + 1, 1.0)}},
      .hops = hops};
  report::describe_graph(graph, result.lambda_star, explorer);
  report::mark_advice(result.advice, explorer);
  if (!explorer.worst.empty()) {
    explorer.target = explorer.worst[0].target;
    explorer.source = explorer.worst[0].source;
  }
  return report::advice_page_html(result.graph, result.advice, explorer);
}

Listening listening_of(const Experiment& experiment, std::int64_t count) {
  const data::Dataset& dataset = *experiment.dataset;
  if (std::holds_alternative<data::GraphsData>(dataset.content)) return {};
  // Keeps what each block needs for its way back, for which there was no memory in training.
  const auto* model = dynamic_cast<const nn::ModelImpl*>(experiment.model.module.get());
  if (model != nullptr && model->options().recompute) return {};
  const task::Problem::Sample input = experiment.problem->sample(0);
  if (input.gso.is_sequence()) return {};  // hops are those of one graph
  const std::vector<std::int64_t> targets =
      spread_over_test(dataset, experiment.config.data.split, input.gso.num_nodes(), count);
  const torch::AutoGradMode with_grad(true);
  const graph::Gso reached = graph::united(input.gso);
  Listening listening{.predictions = std::ssize(targets)};
  for (const std::int64_t target : targets) {
    const analysis::Influence influence = analysis::influence_of(
        analysis::output_jacobian(*experiment.model.module, input.x, input.gso, target), reached,
        target);
    const double total = std::accumulate(influence.of_hop.begin(), influence.of_hop.end(), 0.0);
    if (listening.share_of_hop.size() < influence.of_hop.size()) {
      listening.share_of_hop.resize(influence.of_hop.size(), 0.0);
    }
    for (std::size_t hop = 0; hop < influence.of_hop.size() && total > 0.0; ++hop) {
      listening.share_of_hop[hop] +=
          influence.of_hop[hop] / total / static_cast<double>(targets.size());
    }
    listening.mean_hop += influence.mean_hop / static_cast<double>(targets.size());
  }
  // Beyond the farthest that is heard there is nothing to show.
  while (!listening.share_of_hop.empty() && listening.share_of_hop.back() == 0.0) {
    listening.share_of_hop.pop_back();
  }
  return listening;
}

}  // namespace mpssm::run
