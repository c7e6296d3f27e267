// SPDX-License-Identifier: MIT
// One graph, a prediction for each node.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/encoded_features.h"
#include "mpssm/task/node_share.h"
#include "mpssm/task/plain_references.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::Part;

/// Labelled nodes of a part.
struct Rows {
  std::vector<std::int64_t> nodes;
  torch::Tensor weight;  // [N]: what each node counts in the loss; adds up to 1
};

/// values[i] for the nodes i.
template <typename T>
std::vector<T> gather(std::span<const T> values, const std::vector<std::int64_t>& nodes) {
  std::vector<T> result;
  result.reserve(nodes.size());
  for (const std::int64_t i : nodes) result.push_back(values[i]);
  return result;
}

class NodeProblem final : public Problem {
 public:
  /// `share`: what this rank has of the nodes; null: all of them.
  NodeProblem(const data::Dataset& dataset, const ProblemOptions& options,
              const Preprocessing* learned, const NodeShare* share)
      : name_(dataset.name),
        task_(dataset.task),
        is_new_(dataset.is_new),
        data_(std::get<data::NodeData>(dataset.content)),
        class_names_(learned != nullptr ? learned->class_names : data_.class_names),
        share_(share),
        gso_(share != nullptr ? graph::Operators(share->gso)
                              : data::make_operators(data_.graph, options.gso, data_.edge_table)),
        encoded_(data_.graph, options.encodings, data_.edge_table, learned),
        x_(encoded_.append(tensor_of(data_.features))) {
    if (learned != nullptr) {
      mean_ = learned->mean;
      scale_ = learned->scale;
    }
    const bool has_labels = std::any_of(data_.target.begin(), data_.target.end(),
                                        [](float y) { return !std::isnan(y); });
    if (!has_labels && share == nullptr) return;  // new data, to be predicted only
    const auto num_splits = static_cast<std::int64_t>(data_.splits.size());
    if (options.split >= num_splits) {
      throw base::Error("data.split", fmt::format("{} has splits 0 to {}, got {}", dataset.name,
                                                  num_splits - 1, options.split));
    }
    split_ = &data_.splits[options.split];
    target_ = torch::zeros({num_nodes()});
    for (std::int64_t i = 0; i < num_nodes(); ++i) {
      if (is_labelled(i)) target_.data_ptr<float>()[i] = data_.target[i];
    }
    for (const Part part : {Part::kTrain, Part::kVal, Part::kTest}) {
      Rows& rows = rows_[static_cast<std::size_t>(part)];
      for (std::int64_t i = 0; i < num_nodes(); ++i) {
        if ((*split_)[i] == part && is_labelled(i)) rows.nodes.push_back(i);
      }
      num_in_part_[static_cast<std::size_t>(part)] =
          static_cast<std::int64_t>(sum_over(part, [](std::int64_t) { return 1.0; }));
      rows.weight = weights_of(part, part == Part::kTrain && options.class_weights);
    }
    use_mae_ = options.loss == Loss::kMae;
    if (task_ == data::Task::kNodeRegression && learned == nullptr) fit_scale();
  }

  ProblemShape shape() const override {
    return {.in_channels = x_.size(1),
            .out_channels = is_multiclass() ? num_classes() : 1,
            .num_nodes = share_ != nullptr ? share_->num_nodes : num_nodes()};
  }

  graph::Operators largest_gso(std::int64_t) const override { return gso_; }
  std::int64_t num_train() const override { return 1; }
  std::int64_t data_bytes() const override {
    return num_nodes() * (12 * data_.features.columns + 450) + 4 * encoded_.bytes() +
           36 * gso_.num_nonzeros();
  }

  torch::Tensor loss(nn::GraphModule& model, std::span<const std::int64_t>) const override {
    const torch::Tensor x = model.is_training() ? encoded_.flipped(x_) : x_;
    return loss_of(predict(model, x), Part::kTrain);
  }

  torch::Tensor loss_of_part(nn::GraphModule& model, Part part) const override {
    nodes_of(part);
    return loss_of(predict(model), part);
  }

  Metrics evaluate(nn::GraphModule& model, Part part) const override {
    const std::vector<std::int64_t>& nodes = nodes_of(part);
    const torch::Tensor output = predict(model);
    NodeShare::Rows rows{.truth = gather<float>(data_.target, nodes), .columns = output.size(1)};
    for (const std::int64_t i : nodes) {
      const float* row = output.data_ptr<float>() + i * rows.columns;
      rows.output.insert(rows.output.end(), row, row + rows.columns);
    }
    const auto find = [this](const NodeShare::Rows& all) {
      return task_ == data::Task::kNodeRegression
                 ? value_metrics(all.output, all.truth)
                 : class_metrics(all.output, all.columns, all.truth);
    };
    if (share_ != nullptr) rows.number = gather<std::int64_t>(share_->number, nodes);
    Metrics metrics = share_ != nullptr ? share_->evaluate(rows, find) : find(rows);
    metrics["loss"] = loss_of(output, part).item<double>();
    return metrics;
  }

  void write_predictions(nn::GraphModule& model, const io::Sink& sink) const override {
    const torch::Tensor output = predict(model);
    const bool is_regression = task_ == data::Task::kNodeRegression;
    std::string text = "id";
    // Which part a node of other data is in means nothing.
    if (split_ != nullptr && !is_new_) text += ",split";
    if (split_ != nullptr) text += "," + io::csv_cell(data_.target_name);
    text += ",predicted";
    for (const std::string& name : class_names_) text += "," + io::csv_cell("p(" + name + ")");
    text += "\n";
    const torch::Tensor probability = is_regression ? output : probabilities(output);
    const std::vector<std::int64_t> classes =
        is_regression ? std::vector<std::int64_t>() : predicted_classes(output);
    const auto line_of = [&](std::int64_t i) {
      const std::int64_t number = share_ != nullptr ? share_->number[i] : i;
      std::string line =
          data_.node_ids.empty() ? std::to_string(number) : io::csv_cell(data_.node_ids[i]);
      if (split_ != nullptr) line += "," + known_of(i);
      line += ",";
      if (!is_regression) line += io::csv_cell(class_names_[classes[i]]);
      const float* row = probability.data_ptr<float>() + i * probability.size(1);
      for (std::int64_t c = 0; c < probability.size(1); ++c) {
        line += is_regression ? fmt::format("{:.7g}", row[c]) : fmt::format(",{:.6f}", row[c]);
      }
      return line + "\n";
    };
    if (share_ != nullptr) {
      sink(text);
      return share_->write_lines(line_of, sink);
    }
    for (std::int64_t i = 0; i < num_nodes(); ++i) {
      text += line_of(i);
      if (text.size() > (1U << 20)) {
        sink(text);
        text.clear();
      }
    }
    sink(text);
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, 1);
    return {x_, gso_};
  }

  std::vector<Reference> references() const override {
    if (split_ == nullptr || share_ != nullptr) return {};  // those look at all nodes at once
    return node_references(data_, *split_, tensor_of(data_.features));
  }

  Preprocessing preprocessing() const override {
    return {.columns = data_.columns,
            .class_names = class_names_,
            .edge_columns = encoded_.edge_columns(),
            .mean = mean_,
            .scale = scale_};
  }

 private:
  std::int64_t num_nodes() const { return x_.size(0); }
  std::int64_t num_classes() const { return static_cast<std::int64_t>(class_names_.size()); }
  bool is_multiclass() const { return task_ == data::Task::kNodeClasses; }
  bool is_labelled(std::int64_t i) const { return !std::isnan(data_.target[i]); }

  const std::vector<std::int64_t>& nodes_of(Part part) const {
    const std::vector<std::int64_t>& nodes = rows_[static_cast<std::size_t>(part)].nodes;
    if (num_in_part_[static_cast<std::size_t>(part)] > 0) return nodes;
    throw base::Error(name_,
                      fmt::format("expected labelled nodes{}, got none",
                                  is_new_ ? "" : fmt::format(" in {}", data::to_string(part))));
  }

  /// Networks start near 0 and 1; labels may lie anywhere.
  void fit_scale() {
    const auto count = static_cast<double>(num_in_part_[0]);
    mean_ = sum_over(Part::kTrain, [&](std::int64_t i) { return data_.target[i]; }) / count;
    const double squares = sum_over(
        Part::kTrain, [&](std::int64_t i) { return std::pow(data_.target[i] - mean_, 2); });
    const double deviation = std::sqrt(squares / count);
    scale_ = deviation > 0.0 ? deviation : 1.0;
  }

  /// Of a regression, on the scale of the labels; of a classification, logits.
  torch::Tensor predict(nn::GraphModule& model) const { return predict(model, x_); }
  torch::Tensor predict(nn::GraphModule& model, const torch::Tensor& x) const {
    const torch::Tensor output = model.forward(x, gso_).contiguous();
    return mean_ == 0.0 && scale_ == 1.0 ? output : output * scale_ + mean_;
  }

  std::vector<std::int64_t> predicted_classes(const torch::Tensor& output) const {
    return chosen_classes(numbers_of(output), output.size(1));
  }

  /// [N, classes]
  torch::Tensor probabilities(const torch::Tensor& output) const {
    if (share_ == nullptr) return probabilities_of_rows(output);
    std::vector<torch::Tensor> rows;
    for_parts([&](std::int64_t begin, std::int64_t end) {
      rows.push_back(probabilities_of_rows(output.slice(0, begin, end)));
    });
    return torch::cat(rows);
  }
  torch::Tensor probabilities_of_rows(const torch::Tensor& output) const {
    if (is_multiclass()) return torch::softmax(output, 1).contiguous();
    const torch::Tensor one = torch::sigmoid(output);
    return torch::cat({1 - one, one}, 1).contiguous();
  }

  /// The cells "split,label" of a node; of other data, "label".
  std::string known_of(std::int64_t i) const {
    std::string text;
    if (!is_new_) {
      text = (*split_)[i] == Part::kNone ? "" : data::to_string((*split_)[i]);
      text += ",";
    }
    if (!is_labelled(i)) return text;
    if (!class_names_.empty()) {
      return text + io::csv_cell(class_names_[static_cast<std::size_t>(data_.target[i])]);
    }
    return text + fmt::format("{:.7g}", data_.target[i]);
  }

  /// Over the labelled nodes of a part, on all ranks.
  template <typename Value>
  double sum_over(Part part, const Value& value) const {
    if (share_ == nullptr) {
      double sum = 0.0;
      for (const std::int64_t i : rows_[static_cast<std::size_t>(part)].nodes) sum += value(i);
      return sum;
    }
    return share_->total([&](std::int64_t i) {
      return (*split_)[i] == part && is_labelled(i) ? static_cast<double>(value(i)) : 0.0;
    });
  }

  torch::Tensor weights_of(Part part, bool balance) const {
    std::vector<double> of_class(std::max<std::size_t>(class_names_.size(), 1), 1.0);
    for (std::size_t c = 0; balance && c < class_names_.size(); ++c) {
      const double count = sum_over(part, [&](std::int64_t i) {
        return static_cast<std::size_t>(data_.target[i]) == c ? 1.0 : 0.0;
      });
      of_class[c] = 1.0 / std::max(count, 1.0);
    }
    const auto weight_of = [&](std::int64_t i) {
      return of_class[class_names_.empty() ? 0 : static_cast<std::size_t>(data_.target[i])];
    };
    const double sum = sum_over(part, weight_of);
    torch::Tensor weight = torch::zeros({num_nodes()});
    for (const std::int64_t i : rows_[static_cast<std::size_t>(part)].nodes) {
      weight.data_ptr<float>()[i] = static_cast<float>(weight_of(i) / sum);
    }
    return weight;
  }

  /// Over all nodes. With ranks its value is that of all of them, its gradient that of own nodes.
  torch::Tensor loss_of(const torch::Tensor& output, Part part) const {
    if (share_ == nullptr) return loss_of_rows(output, part, 0, num_nodes());
    std::vector<double> of_parts;
    torch::Tensor own = torch::zeros({});
    for_parts([&](std::int64_t begin, std::int64_t end) {
      const torch::Tensor sum = loss_of_rows(output.slice(0, begin, end), part, begin, end);
      of_parts.push_back(sum.item<double>());
      own = own + sum;
    });
    const double total = share_->total(of_parts, 1)[0];
    return own - own.detach() + total;
  }

  /// Own nodes of each part of the graph by themselves: torch takes the last few numbers of an
  /// array one by one, which rounds otherwise, so where an array ends must not depend on the ranks.
  template <typename Body>
  void for_parts(const Body& body) const {
    for (std::size_t p = 0; p + 1 < share_->bounds.size(); ++p) {
      body(share_->bounds[p], share_->bounds[p + 1]);
    }
  }

  torch::Tensor loss_of_rows(const torch::Tensor& output, Part part, std::int64_t begin,
                             std::int64_t end) const {
    const torch::Tensor weight = rows_[static_cast<std::size_t>(part)].weight.slice(0, begin, end);
    const torch::Tensor target = target_.slice(0, begin, end);
    torch::Tensor each;
    if (is_multiclass()) {
      each = at::cross_entropy_loss(output, target.to(torch::kLong), {}, at::Reduction::None);
    } else if (task_ == data::Task::kNodeBinary) {
      each = at::binary_cross_entropy_with_logits(output.squeeze(1), target, {}, {},
                                                  at::Reduction::None);
    } else {
      const torch::Tensor difference = (output.squeeze(1) - target) / scale_;
      each = use_mae_ ? difference.abs() : difference.square();
    }
    return ordered_sum(each * weight);
  }

  std::string name_;
  data::Task task_;
  bool is_new_;
  const data::NodeData& data_;
  std::vector<std::string> class_names_;
  const NodeShare* share_;
  graph::Operators gso_;
  EncodedFeatures encoded_;
  torch::Tensor x_;
  const std::vector<Part>* split_ = nullptr;
  torch::Tensor target_;
  std::array<Rows, 3> rows_;
  std::array<std::int64_t, 3> num_in_part_ = {};  // on all ranks
  bool use_mae_ = false;
  double mean_ = 0.0;  // of the labels of a regression
  double scale_ = 1.0;
};

}  // namespace

std::unique_ptr<Problem> make_node_problem(const data::Dataset& dataset,
                                           const ProblemOptions& options,
                                           const Preprocessing* learned, const NodeShare* share) {
  return std::make_unique<NodeProblem>(dataset, options, learned, share);
}

}  // namespace mpssm::task
