// SPDX-License-Identifier: MIT
// Many graphs in batches, a prediction for each graph or for each of their nodes.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/graph/edge_list.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::Part;
using Samples = std::span<const std::int64_t>;

graph::Gso operator_of(const data::GraphsData& data, graph::GsoKind kind) {
  std::vector<graph::Graph> graphs;
  graphs.reserve(data.num_graphs());
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    graph::EdgeList edges;
    edges.num_nodes = data.node_ptr[g + 1] - data.node_ptr[g];
    const auto first = data.edge_ptr[g];
    const auto last = data.edge_ptr[g + 1];
    edges.src.assign(data.edge_src.begin() + first, data.edge_src.begin() + last);
    edges.dst.assign(data.edge_dst.begin() + first, data.edge_dst.begin() + last);
    graphs.push_back(graph::Graph::from_edges(edges, graph::Direction::kDirected));
  }
  return graph::make_gso(graph::make_batch(graphs), {.kind = kind});
}

class GraphsProblem final : public Problem {
 public:
  GraphsProblem(const data::Dataset& dataset, const ProblemOptions& options,
                const Preprocessing* learned)
      : task_(dataset.task),
        is_new_(dataset.is_new),
        data_(std::get<data::GraphsData>(dataset.content)),
        gso_(operator_of(data_, options.gso)),
        scale_(learned != nullptr ? learned->label_scale : data_.label_scale),
        metrics_are_scaled_(dataset.metric == "log10_mse"),
        batch_(options.batch),
        use_mae_(options.loss == Loss::kMae ||
                 (options.loss == Loss::kAuto && dataset.metric == "mae")) {
    if (options.split != 0 && !dataset.is_new) {
      throw base::Error("data.split",
                        fmt::format("{} has split 0 only, got {}", dataset.name, options.split));
    }
    for (std::int64_t g = 0; g < data_.num_graphs(); ++g) {
      if (data_.part[g] != Part::kNone) {
        graphs_[static_cast<std::size_t>(data_.part[g])].push_back(g);
      }
    }
    for (const std::int32_t size : data_.vocabulary) {
      first_code_.push_back(num_codes_);
      num_codes_ += size;
    }
  }

  ProblemShape shape() const override {
    return {.in_channels = data_.codes.empty() ? data_.features.columns : num_codes_,
            .out_channels = data_.target.columns,
            .readout = is_node_level() ? nn::Readout::kNode : nn::Readout::kGraph};
  }

  graph::Gso largest_gso(std::int64_t batch_size) const override {
    std::vector<std::int64_t> order(data_.num_graphs());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return num_nodes(a) > num_nodes(b); });
    order.resize(std::min<std::size_t>(order.size(), batch_size));
    return graph::select_graphs(gso_, order);
  }

  std::int64_t data_bytes() const override {
    const auto width =
        data_.codes.empty() ? 8 * data_.features.columns : std::ssize(data_.vocabulary);
    return data_.node_ptr.back() * (width + 60) + 40 * gso_.num_nonzeros();
  }
  std::int64_t num_train() const override { return static_cast<std::int64_t>(graphs_[0].size()); }

  torch::Tensor loss(nn::GraphModule& model, Samples samples) const override {
    std::vector<std::int64_t> graphs;
    for (const std::int64_t s : samples) graphs.push_back(graphs_[0][s]);
    const graph::Gso gso = graph::select_graphs(gso_, graphs);
    return loss_of(model.forward(inputs(graphs), gso), graphs) / static_cast<double>(graphs.size());
  }

  Metrics evaluate(nn::GraphModule& model, Part part) const override {
    const std::vector<std::int64_t>& graphs = graphs_[static_cast<std::size_t>(part)];
    double loss = 0.0;
    torch::Tensor output = predict(model, graphs, &loss);
    torch::Tensor target = targets(graphs);
    if (!metrics_are_scaled_ && scale_ != 1.0) {
      output = output * scale_;
      target = target * scale_;
    }
    const auto count = static_cast<double>(graphs.size());
    Metrics metrics;
    metrics["loss"] = loss / count;
    if (task_ == data::Task::kGraphLabels) {
      std::vector<std::uint8_t> positive;
      for (const float y : numbers_of(target)) positive.push_back(y > 0.5F ? 1 : 0);
      metrics["average_precision"] =
          mean_average_precision(numbers_of(output), positive, data_.target.columns);
      return metrics;
    }
    add_error_metrics(errors(numbers_of(output), numbers_of(target)), metrics);
    if (is_node_level()) metrics["mse"] = mean_over_graphs(output, target, graphs);
    metrics["rmse"] = std::sqrt(metrics["mse"]);
    metrics["log10_mse"] = std::log10(metrics["mse"]);
    if (metrics_are_scaled_)
      metrics["log10_mse_raw"] = metrics["log10_mse"] + 2.0 * std::log10(scale_);
    return metrics;
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, data_.num_graphs());
    const std::int64_t graphs[] = {index};
    return {inputs(graphs), graph::select_graphs(gso_, graphs)};
  }

  void write_predictions(nn::GraphModule& model, const io::Sink& sink) const override {
    // Which part a graph of other data is in means nothing.
    std::string header = is_node_level() ? "graph,node" : "graph";
    if (!is_new_) header += ",split";
    const bool has_labels = !std::isnan(data_.target.values.front());
    if (has_labels) {
      for (const std::string& name : data_.target_names) header += "," + io::csv_cell(name);
    }
    for (const std::string& name : data_.target_names) {
      const bool yes_no = task_ == data::Task::kGraphLabels;
      header += "," + io::csv_cell(yes_no ? "p(" + name + ")" : "predicted_" + name);
    }
    sink(header + "\n");
    std::vector<std::int64_t> all(data_.num_graphs());
    std::iota(all.begin(), all.end(), 0);
    const std::int64_t columns = data_.target.columns;
    for (std::size_t begin = 0; begin < all.size(); begin += batch_) {
      const Samples graphs =
          Samples(all).subspan(begin, std::min<std::size_t>(batch_, all.size() - begin));
      torch::Tensor output = predict(model, graphs, nullptr);
      output = task_ == data::Task::kGraphLabels ? torch::sigmoid(output) : output * scale_;
      const float* row = output.data_ptr<float>();
      std::string text;
      for (const std::int64_t g : graphs) {
        const std::int64_t rows = is_node_level() ? num_nodes(g) : 1;
        for (std::int64_t i = 0; i < rows; ++i, row += columns) {
          text += std::to_string(g);
          if (is_node_level()) text += fmt::format(",{}", i);
          if (!is_new_) text += fmt::format(",{}", data::to_string(data_.part[g]));
          const std::int64_t first = is_node_level() ? data_.node_ptr[g] + i : g;
          if (has_labels) {
            append_numbers(text, data_.target.values.data() + first * columns, columns);
          }
          append_numbers(text, row, columns);
          text += "\n";
        }
      }
      sink(text);
    }
  }

  Preprocessing preprocessing() const override {
    return {.vocabulary = data_.vocabulary, .label_scale = scale_};
  }

 private:
  bool is_node_level() const { return task_ == data::Task::kNodeRegression; }
  std::int64_t num_nodes(std::int64_t g) const { return data_.node_ptr[g + 1] - data_.node_ptr[g]; }

  std::int64_t count_nodes(Samples graphs) const {
    std::int64_t count = 0;
    for (const std::int64_t g : graphs) count += num_nodes(g);
    return count;
  }

  /// [nodes, in]; categories become one column per value, so that the encoder's rows are their
  /// embeddings; a code that training has not seen is none of them.
  torch::Tensor inputs(Samples graphs) const {
    const std::int64_t nodes = count_nodes(graphs);
    if (data_.codes.empty()) return rows_of(data_.features, graphs, data_.node_ptr, nodes);
    torch::Tensor x = torch::zeros({nodes, num_codes_});
    float* row = x.data_ptr<float>();
    const auto columns = static_cast<std::int64_t>(data_.vocabulary.size());
    for (const std::int64_t g : graphs) {
      for (std::int64_t i = data_.node_ptr[g]; i < data_.node_ptr[g + 1]; ++i, row += num_codes_) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const std::uint8_t code = data_.codes[i * columns + c];
          if (code < data_.vocabulary[c]) row[first_code_[c] + code] = 1.0F;
        }
      }
    }
    return x;
  }

  static torch::Tensor rows_of(const data::Matrix& matrix, Samples graphs,
                               const std::vector<std::int64_t>& ptr, std::int64_t count) {
    torch::Tensor rows = torch::empty({count, matrix.columns});
    float* to = rows.data_ptr<float>();
    for (const std::int64_t g : graphs) {
      to = std::copy(matrix.values.begin() + ptr[g] * matrix.columns,
                     matrix.values.begin() + ptr[g + 1] * matrix.columns, to);
    }
    return rows;
  }

  /// [graphs, K] or [nodes, 1], on the scale of training.
  torch::Tensor targets(Samples graphs) const {
    torch::Tensor target;
    if (is_node_level()) {
      target = rows_of(data_.target, graphs, data_.node_ptr, count_nodes(graphs));
    } else {
      target = torch::empty({static_cast<std::int64_t>(graphs.size()), data_.target.columns});
      float* to = target.data_ptr<float>();
      for (const std::int64_t g : graphs) {
        const auto from = data_.target.values.begin() + g * data_.target.columns;
        to = std::copy(from, from + data_.target.columns, to);
      }
    }
    return scale_ == 1.0 ? target : target / scale_;
  }

  /// Sum over the graphs of the mean loss of each.
  torch::Tensor loss_of(const torch::Tensor& output, Samples graphs) const {
    const torch::Tensor target = targets(graphs);
    if (task_ == data::Task::kGraphLabels) {
      const torch::Tensor each =
          at::binary_cross_entropy_with_logits(output, target, {}, {}, at::Reduction::None);
      return ordered_sum(each) / static_cast<double>(data_.target.columns);
    }
    const torch::Tensor difference = output - target;
    const torch::Tensor each = use_mae_ ? difference.abs() : difference.square();
    if (!is_node_level()) return ordered_sum(each) / static_cast<double>(data_.target.columns);
    torch::Tensor weight = torch::empty({output.size(0), 1});
    float* to = weight.data_ptr<float>();
    for (const std::int64_t g : graphs) {
      to = std::fill_n(to, num_nodes(g), 1.0F / static_cast<float>(num_nodes(g)));
    }
    return ordered_sum(each * weight);
  }

  double mean_over_graphs(const torch::Tensor& output, const torch::Tensor& target,
                          Samples graphs) const {
    const float* y = output.data_ptr<float>();
    const float* truth = target.data_ptr<float>();
    double sum = 0.0;
    for (const std::int64_t g : graphs) {
      double of_graph = 0.0;
      for (std::int64_t i = 0; i < num_nodes(g); ++i, ++y, ++truth) {
        const double difference = static_cast<double>(*y) - *truth;
        of_graph += difference * difference;
      }
      sum += of_graph / static_cast<double>(num_nodes(g));
    }
    return sum / static_cast<double>(graphs.size());
  }

  /// Outputs of all graphs, batch by batch; adds their losses to `loss` if wanted.
  torch::Tensor predict(nn::GraphModule& model, Samples graphs, double* loss) const {
    std::vector<torch::Tensor> outputs;
    for (std::size_t begin = 0; begin < graphs.size(); begin += batch_) {
      const Samples some =
          graphs.subspan(begin, std::min<std::size_t>(batch_, graphs.size() - begin));
      outputs.push_back(model.forward(inputs(some), graph::select_graphs(gso_, some)));
      if (loss != nullptr) *loss += loss_of(outputs.back(), some).item<double>();
    }
    return torch::cat(outputs).contiguous();
  }

  data::Task task_;
  bool is_new_;
  const data::GraphsData& data_;
  graph::Gso gso_;
  double scale_;
  bool metrics_are_scaled_;  // published on divided labels; else on the labels as they are
  std::int64_t batch_;
  bool use_mae_;
  std::array<std::vector<std::int64_t>, 3> graphs_;
  std::vector<std::int64_t> first_code_;
  std::int64_t num_codes_ = 0;
};

}  // namespace

std::unique_ptr<Problem> make_graphs_problem(const data::Dataset& dataset,
                                             const ProblemOptions& options,
                                             const Preprocessing* learned) {
  return std::make_unique<GraphsProblem>(dataset, options, learned);
}

}  // namespace mpssm::task
