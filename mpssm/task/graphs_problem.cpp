// SPDX-License-Identifier: MIT
// Many graphs in batches, a prediction for each graph or for each of their nodes.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numeric>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/data/incident_edges.h"
#include "mpssm/graph/edge_list.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/encoded_features.h"
#include "mpssm/task/plain_references.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::Part;
using Samples = std::span<const std::int64_t>;

graph::Graph batch_of(const data::GraphsData& data) {
  std::vector<graph::Graph> graphs;
  graphs.reserve(data.num_graphs());
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    graph::EdgeList edges;
    edges.num_nodes = data.node_ptr[g + 1] - data.node_ptr[g];
    const auto first = data.edge_ptr[g];
    const auto last = data.edge_ptr[g + 1];
    edges.src.assign(data.edge_src.begin() + first, data.edge_src.begin() + last);
    edges.dst.assign(data.edge_dst.begin() + first, data.edge_dst.begin() + last);
    if (!data.edge_weight.empty()) {
      edges.weight.assign(data.edge_weight.begin() + first, data.edge_weight.begin() + last);
    }
    graphs.push_back(graph::Graph::from_edges(edges, graph::Direction::kDirected));
  }
  return graph::make_batch(graphs);
}

class GraphsProblem final : public Problem {
 public:
  GraphsProblem(const data::Dataset& dataset, const ProblemOptions& options,
                const Preprocessing* learned)
      : name_(dataset.name),
        task_(dataset.task),
        is_new_(dataset.is_new),
        data_(std::get<data::GraphsData>(dataset.content)),
        class_names_(learned != nullptr ? learned->class_names : data_.class_names),
        has_gaps_(std::any_of(data_.target.values.begin(), data_.target.values.end(),
                              [](float y) { return std::isnan(y); })),
        encoded_(options.encodings.empty()
                     ? EncodedFeatures()
                     : EncodedFeatures(batch_of(data_), options.encodings, data_.edge_table,
                                       learned, data::edges_of_training(data_))),
        gso_(data::make_operators(batch_of(data_), options.gso, data_.edge_table)),
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
    return {.in_channels =
                encoded_.width() + (data_.codes.empty() ? data_.features.columns : num_codes_),
            .vocabulary = data_.codes.empty() ? nn::Vocabulary() : data_.vocabulary,
            .out_channels = num_outputs(),
            .readout = is_node_level() ? nn::Readout::kNode : nn::Readout::kGraph};
  }

  graph::Operators largest_gso(std::int64_t batch_size) const override {
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
    return data_.node_ptr.back() * (width + 60) + encoded_.bytes() + 40 * gso_.num_nonzeros();
  }
  std::int64_t num_train() const override { return static_cast<std::int64_t>(graphs_[0].size()); }

  torch::Tensor loss(nn::GraphModule& model, Samples samples) const override {
    std::vector<std::int64_t> graphs;
    for (const std::int64_t s : samples) graphs.push_back(graphs_[0][s]);
    const graph::Operators gso = graph::select_graphs(gso_, graphs);
    torch::Tensor x = inputs(graphs, model);
    if (model.is_training()) x = encoded_.flipped(x, ranges_of(graphs));
    return loss_of(model.forward(x, gso), graphs) / static_cast<double>(graphs.size());
  }

  Metrics evaluate(nn::GraphModule& model, Part part) const override {
    const std::vector<std::int64_t>& graphs = graphs_[static_cast<std::size_t>(part)];
    if (graphs.empty() || !has_labels()) {
      throw base::Error(name_,
                        fmt::format("expected labelled graphs{}, got none",
                                    is_new_ ? "" : fmt::format(" in {}", data::to_string(part))));
    }
    double loss = 0.0;
    torch::Tensor output = predict(model, graphs, &loss);
    torch::Tensor target = targets(graphs);
    if (!metrics_are_scaled_ && scale_ != 1.0) {
      output = output * scale_;
      target = target * scale_;
    }
    const auto count = static_cast<double>(graphs.size());
    Metrics metrics;
    if (data::is_of_classes(task_)) {
      metrics = class_metrics(numbers_of(output), num_outputs(), numbers_of(target));
    } else if (task_ == data::Task::kGraphLabels) {
      metrics["average_precision"] = label_precision(output, target);
    } else {
      metrics = value_metrics(numbers_of(output), numbers_of(target));
      if (is_node_level()) metrics["mse"] = mean_over_graphs(output, target, graphs);
      metrics["rmse"] = std::sqrt(metrics["mse"]);
      metrics["log10_mse"] = std::log10(metrics["mse"]);
      if (metrics_are_scaled_) {
        metrics["log10_mse_raw"] = metrics["log10_mse"] + 2.0 * std::log10(scale_);
      }
    }
    metrics["loss"] = loss / count;
    return metrics;
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, data_.num_graphs());
    const std::int64_t graphs[] = {index};
    // One-hot: questions about a model ask for derivatives.
    return {encoded_.append(features_of(graphs), ranges_of(graphs)),
            graph::select_graphs(gso_, graphs)};
  }

  void write_predictions(nn::GraphModule& model, const io::Sink& sink) const override {
    sink(header_of_predictions());
    std::vector<std::int64_t> all(data_.num_graphs());
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t begin = 0; begin < all.size(); begin += batch_) {
      const Samples graphs =
          Samples(all).subspan(begin, std::min<std::size_t>(batch_, all.size() - begin));
      const torch::Tensor output = predict(model, graphs, nullptr);
      const torch::Tensor shown = as_shown(output);
      const std::vector<std::int64_t> classes =
          data::is_of_classes(task_) ? chosen_classes(numbers_of(output), num_outputs())
                                     : std::vector<std::int64_t>();
      const float* row = shown.data_ptr<float>();
      std::string text;
      std::size_t sample = 0;
      for (const std::int64_t g : graphs) {
        const std::int64_t rows = is_node_level() ? num_nodes(g) : 1;
        for (std::int64_t i = 0; i < rows; ++i, row += shown.size(1), ++sample) {
          append_known(text, g, i);
          if (!classes.empty())
            text.append(",").append(io::csv_cell(class_names_[classes[sample]]));
          append_numbers(text, row, shown.size(1));
          text += "\n";
        }
      }
      sink(text);
    }
  }

  std::vector<Reference> references() const override {
    if (metrics_are_scaled_ || data_.target.columns != 1 || task_ == data::Task::kGraphLabels) {
      return {};
    }
    LabelledRows rows{.truth = data_.target.values,
                      .num_classes = static_cast<std::int64_t>(class_names_.size())};
    for (std::int64_t g = 0; g < data_.num_graphs(); ++g) {
      rows.part.insert(rows.part.end(), is_node_level() ? num_nodes(g) : 1, data_.part[g]);
    }
    if (data_.codes.empty()) rows.x = is_node_level() ? tensor_of(data_.features) : mean_features();
    return plain_references(rows);
  }

  Preprocessing preprocessing() const override {
    return {.columns = data_.columns,
            .class_names = class_names_,
            .vocabulary = data_.vocabulary,
            .edge_columns = encoded_.edge_columns(),
            .label_scale = scale_};
  }

 private:
  bool is_node_level() const { return !data::is_of_graphs(task_); }
  /// A logit for each class, but one for two.
  std::int64_t num_outputs() const {
    if (!data::is_of_classes(task_)) return data_.target.columns;
    return data::is_binary(task_) ? 1 : static_cast<std::int64_t>(class_names_.size());
  }
  bool has_labels() const {
    return std::any_of(data_.target.values.begin(), data_.target.values.end(),
                       [](float y) { return !std::isnan(y); });
  }

  std::string header_of_predictions() const {
    std::string header = is_node_level() ? "graph,node" : "graph";
    // Which part a graph of other data is in means nothing.
    if (!is_new_) header += ",split";
    if (has_labels()) {
      for (const std::string& name : data_.target_names) header += "," + io::csv_cell(name);
    }
    if (data::is_of_classes(task_)) {
      header += ",predicted";
      for (const std::string& name : class_names_) header += "," + io::csv_cell("p(" + name + ")");
      return header + "\n";
    }
    for (const std::string& name : data_.target_names) {
      const bool yes_no = task_ == data::Task::kGraphLabels;
      header += "," + io::csv_cell(yes_no ? "p(" + name + ")" : "predicted_" + name);
    }
    return header + "\n";
  }

  /// The cells "graph,node,split,label" of one line.
  void append_known(std::string& text, std::int64_t g, std::int64_t i) const {
    text += data_.graph_ids.empty() ? std::to_string(g) : io::csv_cell(data_.graph_ids[g]);
    const std::int64_t node = data_.node_ptr[g] + i;
    if (is_node_level()) {
      text +=
          "," + (data_.node_ids.empty() ? std::to_string(i) : io::csv_cell(data_.node_ids[node]));
    }
    if (!is_new_) text += fmt::format(",{}", data::to_string(data_.part[g]));
    if (!has_labels()) return;
    const std::int64_t columns = data_.target.columns;
    const float* known = data_.target.values.data() + (is_node_level() ? node : g) * columns;
    for (std::int64_t k = 0; k < columns; ++k) {
      if (std::isnan(known[k])) {
        text += ",";
      } else if (data::is_of_classes(task_)) {
        text += "," + io::csv_cell(class_names_[static_cast<std::size_t>(known[k])]);
      } else {
        append_numbers(text, known + k, 1);
      }
    }
  }

  /// Probabilities of classes and labels, values on their own scale.
  torch::Tensor as_shown(const torch::Tensor& output) const {
    if (task_ == data::Task::kGraphLabels) return torch::sigmoid(output).contiguous();
    if (!data::is_of_classes(task_)) return (output * scale_).contiguous();
    if (!data::is_binary(task_)) return torch::softmax(output, 1).contiguous();
    const torch::Tensor one = torch::sigmoid(output);
    return torch::cat({1 - one, one}, 1).contiguous();
  }

  /// Of each graph the mean of each feature and the logarithm of its size: [G, F + 1].
  torch::Tensor mean_features() const {
    const std::int64_t columns = data_.features.columns;
    torch::Tensor x = torch::zeros({data_.num_graphs(), columns + 1});
    for (std::int64_t g = 0; g < data_.num_graphs(); ++g) {
      float* row = x.data_ptr<float>() + g * (columns + 1);
      const auto size = static_cast<float>(num_nodes(g));
      for (std::int64_t i = data_.node_ptr[g]; i < data_.node_ptr[g + 1]; ++i) {
        for (std::int64_t c = 0; c < columns; ++c) {
          row[c] += data_.features.values[i * columns + c] / size;
        }
      }
      row[columns] = std::log(size);
    }
    return x;
  }

  /// Over labels that have yes and no, each over the graphs where it is known.
  double label_precision(const torch::Tensor& output, const torch::Tensor& target) const {
    const std::int64_t columns = data_.target.columns;
    double sum = 0.0;
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      std::vector<float> score;
      std::vector<std::uint8_t> positive;
      for (std::int64_t i = 0; i < target.size(0); ++i) {
        const float y = target.data_ptr<float>()[i * columns + k];
        if (std::isnan(y)) continue;
        score.push_back(output.data_ptr<float>()[i * columns + k]);
        positive.push_back(y > 0.5F ? 1 : 0);
      }
      const auto yes = std::count(positive.begin(), positive.end(), 1);
      if (yes == 0 || yes == std::ssize(positive)) continue;
      sum += average_precision(score, positive);
      ++count;
    }
    return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
  }
  std::int64_t num_nodes(std::int64_t g) const { return data_.node_ptr[g + 1] - data_.node_ptr[g]; }

  std::int64_t count_nodes(Samples graphs) const {
    std::int64_t count = 0;
    for (const std::int64_t g : graphs) count += num_nodes(g);
    return count;
  }

  std::vector<EncodedFeatures::Range> ranges_of(Samples graphs) const {
    std::vector<EncodedFeatures::Range> ranges;
    for (const std::int64_t g : graphs) {
      ranges.push_back({data_.node_ptr[g], data_.node_ptr[g + 1]});
    }
    return ranges;
  }

  /// [nodes, in]: features and encodings; categories as the model takes them.
  torch::Tensor inputs(Samples graphs, const nn::GraphModule& model) const {
    return encoded_.append(model.takes_codes() ? codes_of(graphs) : features_of(graphs),
                           ranges_of(graphs));
  }

  /// [nodes, columns]: the categories as numbers.
  torch::Tensor codes_of(Samples graphs) const {
    const std::int64_t columns = std::ssize(data_.vocabulary);
    torch::Tensor x = torch::empty({count_nodes(graphs), columns});
    float* to = x.data_ptr<float>();
    for (const std::int64_t g : graphs) {
      to = std::copy(data_.codes.begin() + data_.node_ptr[g] * columns,
                     data_.codes.begin() + data_.node_ptr[g + 1] * columns, to);
    }
    return x;
  }

  /// [nodes, features]; categories become one column per value, so that the encoder's rows are
  /// their embeddings; a code that training has not seen is none of them.
  torch::Tensor features_of(Samples graphs) const {
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

  /// Sum over the graphs of the mean loss of each, over what is known of it.
  torch::Tensor loss_of(const torch::Tensor& output, Samples graphs) const {
    torch::Tensor target = targets(graphs);
    torch::Tensor known;
    if (has_gaps_) {
      known = torch::isnan(target).logical_not().to(torch::kFloat);
      target = torch::nan_to_num(target);
    }
    torch::Tensor each;
    if (task_ == data::Task::kGraphLabels || data::is_binary(task_)) {
      each = at::binary_cross_entropy_with_logits(output, target, {}, {}, at::Reduction::None);
    } else if (data::is_of_classes(task_)) {
      each = at::cross_entropy_loss(output, target.squeeze(1).to(torch::kLong), {},
                                    at::Reduction::None)
                 .unsqueeze(1);
    } else {
      const torch::Tensor difference = output - target;
      each = use_mae_ ? difference.abs() : difference.square();
    }
    if (!is_node_level() && !has_gaps_) {
      return ordered_sum(each) / static_cast<double>(each.size(1));
    }
    return ordered_sum(each * weights_of(known, each, graphs));
  }

  /// 1 over what is known of a graph for each entry of it, 0 where nothing is.
  torch::Tensor weights_of(const torch::Tensor& known, const torch::Tensor& each,
                           Samples graphs) const {
    torch::Tensor weight = has_gaps_ ? known.contiguous() : torch::ones_like(each);
    float* to = weight.data_ptr<float>();
    for (const std::int64_t g : graphs) {
      const std::int64_t entries = (is_node_level() ? num_nodes(g) : 1) * each.size(1);
      const float count = std::accumulate(to, to + entries, 0.0F);
      for (std::int64_t i = 0; i < entries; ++i, ++to) *to /= std::max(count, 1.0F);
    }
    return weight;
  }

  double mean_over_graphs(const torch::Tensor& output, const torch::Tensor& target,
                          Samples graphs) const {
    const float* y = output.data_ptr<float>();
    const float* truth = target.data_ptr<float>();
    double sum = 0.0;
    for (const std::int64_t g : graphs) {
      double of_graph = 0.0;
      std::int64_t known = 0;
      for (std::int64_t i = 0; i < num_nodes(g); ++i, ++y, ++truth) {
        if (std::isnan(*truth)) continue;
        const double difference = static_cast<double>(*y) - *truth;
        of_graph += difference * difference;
        ++known;
      }
      if (known > 0) sum += of_graph / static_cast<double>(known);
    }
    return sum / static_cast<double>(graphs.size());
  }

  /// Outputs of all graphs, batch by batch; adds their losses to `loss` if wanted.
  torch::Tensor predict(nn::GraphModule& model, Samples graphs, double* loss) const {
    std::vector<torch::Tensor> outputs;
    for (std::size_t begin = 0; begin < graphs.size(); begin += batch_) {
      const Samples some =
          graphs.subspan(begin, std::min<std::size_t>(batch_, graphs.size() - begin));
      outputs.push_back(model.forward(inputs(some, model), graph::select_graphs(gso_, some)));
      if (loss != nullptr) *loss += loss_of(outputs.back(), some).item<double>();
    }
    return torch::cat(outputs).contiguous();
  }

  std::string name_;
  data::Task task_;
  bool is_new_;
  const data::GraphsData& data_;
  std::vector<std::string> class_names_;
  bool has_gaps_;  // labels that are not known
  EncodedFeatures encoded_;
  graph::Operators gso_;
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
