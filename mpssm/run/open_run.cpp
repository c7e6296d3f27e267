// SPDX-License-Identifier: MIT
#include "mpssm/run/open_run.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_operators.h"

namespace mpssm::run {
namespace {

/// The graph behind an operator, loops left out.
graph::Graph graph_behind(const graph::Gso& gso) {
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

}  // namespace

OpenRun open_run(const std::filesystem::path& path, const ReopenOptions& options) {
  ReopenOptions exact = options;
  exact.in_float32 = true;  // questions about derivatives want their digits
  return {.name = path.lexically_normal().string(), .experiment = reopen(path, exact)};
}

void take_sample(OpenRun& run, std::int64_t index) {
  const data::Dataset& dataset = *run.experiment.dataset;
  const auto* nodes = std::get_if<data::NodeData>(&dataset.content);
  if (nodes != nullptr && index != 0) {
    throw base::Error("sample", dataset.name + " is one graph, leave it out");
  }
  run.input = run.experiment.problem->sample(index);
  run.graph.name = dataset.name;
  if (nodes != nullptr) {
    run.graph.graph = nodes->graph;
    run.graph.node_ids = nodes->node_ids;
  } else if (const auto* series = std::get_if<data::SeriesData>(&dataset.content)) {
    if (run.input.gso.is_sequence()) {
      throw base::Error(dataset.name,
                        "its graph changes with time (data.graph_over_time), and this question is "
                        "about one graph");
    }
    run.graph.graph = series->graph;
    run.graph.node_ids = series->node_ids;
  } else {
    run.graph.graph = graph_behind(graph::united(run.input.gso));
    run.graph.name += fmt::format(" graph {}", index);
  }
  run.predicts_graphs = data::is_of_graphs(dataset.task);
}

bool is_run(const std::filesystem::path& path) {
  std::error_code ignored;
  return is_regular_file(path / "config.toml", ignored);
}

data::BareGraph graph_of(const std::string& run_or_graph, const std::filesystem::path& data_dir) {
  const std::filesystem::path path = run_or_graph;
  if (!is_run(path)) {
    return data::load_or_make_graph(run_or_graph, {.data_dir = data_dir});
  }
  OpenRun run = open_run(path, {.data_dir = data_dir});
  if (std::holds_alternative<data::GraphsData>(run.experiment.dataset->content)) {
    throw base::Error(run_or_graph, "the run learned on many graphs; expected one");
  }
  take_sample(run, 0);
  return run.graph;
}

analysis::PredictionChanges changed_predictions(const std::filesystem::path& path,
                                                const std::filesystem::path& data_dir,
                                                const analysis::GraphEdit& edit,
                                                std::int64_t count) {
  const torch::NoGradGuard no_grad;
  OpenRun run = open_run(path, {.data_dir = data_dir});
  take_sample(run, 0);
  if (run.experiment.dataset->task == data::Task::kLinks) {
    throw base::Error(run.name,
                      "predicts edges; what an edge does to them is asked by "
                      "mpssm predict --pairs");
  }
  if (!run.experiment.config.data.encodings.empty()) {
    throw base::Error(run.name,
                      "predictions after a change of edges need data.encodings of the changed "
                      "graph; train on it instead (mpssm train --rewired)");
  }
  const graph::Operators after =
      data::make_operators(analysis::edited(run.graph.graph, edit), run.experiment.config.model.gso,
                           data::edge_table_of(*run.experiment.dataset));
  const task::Preprocessing& learned = run.experiment.pins.learned;
  const std::vector<std::string>& classes = learned.class_names;
  // [N, outputs]: probabilities of the classes, or numbers on the scale of the labels.
  const auto predict = [&](const graph::Operators& gso) {
    const torch::Tensor output =
        run.experiment.model.module->forward(run.input.x, gso).to(torch::kDouble);
    if (classes.empty()) {
      const torch::Tensor scaled = output * learned.scale + learned.mean;
      return (run.input.base.defined() ? scaled + run.input.base : scaled).contiguous();
    }
    if (output.size(1) > 1) return torch::softmax(output, 1).contiguous();
    const torch::Tensor one = torch::sigmoid(output);
    return torch::cat({1 - one, one}, 1).contiguous();
  };
  const torch::Tensor values[] = {predict(run.input.gso), predict(after)};
  const std::int64_t width = values[0].size(1);
  analysis::PredictionChanges changes;
  for (std::int64_t i = 0; i < values[0].size(0); ++i) {
    const double* row[] = {values[0].data_ptr<double>() + i * width,
                           values[1].data_ptr<double>() + i * width};
    std::int64_t best[] = {0, 0};
    for (int k = 0; k < 2 && !classes.empty(); ++k) {
      best[k] = std::max_element(row[k], row[k] + width) - row[k];
    }
    analysis::PredictionChange change{.node = static_cast<std::int32_t>(i),
                                      .value_before = row[0][best[0]],
                                      .value_after = row[1][best[0]]};
    if (!classes.empty()) {
      change.before = classes[best[0]];
      change.after = classes[best[1]];
    }
    // A network in single precision: what is smaller may be rounding.
    const double rounding = 1e-6 * std::max(1.0, std::abs(change.value_before));
    if (std::abs(change.value_after - change.value_before) <= rounding) continue;
    ++changes.changed;
    changes.other_class += best[0] != best[1] ? 1 : 0;
    changes.largest.push_back(std::move(change));
  }
  std::stable_sort(
      changes.largest.begin(), changes.largest.end(), [](const auto& a, const auto& b) {
        return std::abs(a.value_after - a.value_before) > std::abs(b.value_after - b.value_before);
      });
  changes.largest.resize(std::min<std::size_t>(changes.largest.size(), count));
  return changes;
}

analysis::GraphEdit edit_of(const data::BareGraph& graph, const std::vector<std::string>& remove,
                            const std::vector<std::string>& add, double weight) {
  analysis::GraphEdit edit{.weight = weight};
  for (const bool is_added : {false, true}) {
    for (const std::string& text : is_added ? add : remove) {
      const std::string where = fmt::format("--{} {}", is_added ? "add" : "remove", text);
      const std::size_t comma = text.find(',');
      if (comma == std::string::npos) throw base::Error(where, "expected u,v");
      const std::int64_t u = data::find_node(graph, text.substr(0, comma));
      const std::int64_t v = data::find_node(graph, text.substr(comma + 1));
      if (analysis::has_edge(graph.graph, v, u) == is_added) {
        throw base::Error(where, is_added ? "it is there already" : "there is no such edge");
      }
      (is_added ? edit.add : edit.remove)
          .emplace_back(static_cast<std::int32_t>(u), static_cast<std::int32_t>(v));
    }
  }
  return edit;
}

std::vector<std::int64_t> spread_over_test(const OpenRun& run, std::int64_t count) {
  return spread_over_test(*run.experiment.dataset, run.experiment.config.data.split,
                          run.input.gso.num_nodes(), count);
}

std::vector<std::int64_t> spread_over_test(const data::Dataset& dataset, std::int64_t split,
                                           std::int64_t num_nodes, std::int64_t count) {
  const auto* nodes = std::get_if<data::NodeData>(&dataset.content);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < num_nodes; ++i) {
    const bool is_test = nodes == nullptr || nodes->splits.empty() ||
                         nodes->splits[static_cast<std::size_t>(split)][i] == data::Part::kTest;
    if (is_test) all.push_back(i);
  }
  count = std::min<std::int64_t>(count, std::ssize(all));
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < count; ++k) {
    some.push_back(all[(2 * k + 1) * std::ssize(all) / (2 * count)]);
  }
  return some;
}

bool have_same_graph(const OpenRun& a, const OpenRun& b) {
  return a.graph.graph.num_nodes() == b.graph.graph.num_nodes() &&
         std::ranges::equal(a.graph.graph.row_ptr(), b.graph.graph.row_ptr()) &&
         std::ranges::equal(a.graph.graph.col(), b.graph.graph.col());
}

}  // namespace mpssm::run
