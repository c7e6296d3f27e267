// SPDX-License-Identifier: MIT
// One graph, a score for each pair of nodes: is there an edge? No edge that is asked about is in
// the operator, in training as in test.
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/data/links.h"
#include "mpssm/ops/generator.h"
#include "mpssm/task/link_scores.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::NodePair;
using data::Part;

/// Parts of the training edges, one of which is asked about at each step.
constexpr std::int64_t kFolds = 5;
/// Edges that a step asks about at most.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 16;

/// Whatever a step draws follows from one number of the run's own generator.
std::uint64_t draw_seed() {
  const at::Tensor number =
      at::randint(std::int64_t{1} << 62, {1}, ops::current_generator(), at::kLong);
  return static_cast<std::uint64_t>(number.item<std::int64_t>());
}

class LinkProblem final : public Problem {
 public:
  LinkProblem(const data::Dataset& dataset, const ProblemOptions& options)
      : name_(dataset.name),
        is_new_(dataset.is_new),
        data_(std::get<data::NodeData>(dataset.content)),
        links_(data_.links.value()),
        directed_(!links_.whole.is_symmetric()),
        gso_kinds_(options.gso),
        gso_(data::make_operators(data_.graph, options.gso, data_.edge_table)),
        x_(marked_features(data_)) {
    if (options.split != 0) {
      throw base::Error("data.split", fmt::format("link prediction has one split, 0, got {}; "
                                                  "data.split_seed draws another",
                                                  options.split));
    }
    std::vector<NodePair> edges = links_.edges[0];
    base::Random random(0);
    random.shuffle(edges);
    for (std::size_t e = 0; e < edges.size(); ++e) folds_[e % kFolds].edges.push_back(edges[e]);
  }

  ProblemShape shape() const override {
    return {.in_channels = x_.size(1),
            .out_channels = link_outputs(directed_),
            .num_nodes = data_.graph.num_nodes()};
  }

  graph::Operators largest_gso(std::int64_t) const override { return gso_; }
  std::int64_t num_train() const override { return 1; }
  std::int64_t data_bytes() const override {
    const std::int64_t pairs =
        std::min(kMostPairs, std::ssize(links_.edges[0]) / kFolds) + std::ssize(links_.edges[2]);
    return data_.graph.num_nodes() * (12 * x_.size(1) + 450) +
           36 * (kFolds + 1) * gso_.num_nonzeros() + pairs * link_outputs(directed_) * 4 * 16;
  }

  torch::Tensor loss(nn::GraphModule& model, std::span<const std::int64_t>) const override {
    base::Random random(draw_seed());
    const auto fold = static_cast<std::size_t>(random.below(kFolds));
    std::vector<NodePair> edges = folds_[fold].edges;
    const std::int64_t count = std::min(kMostPairs, std::ssize(edges));
    if (count < std::ssize(edges)) random.shuffle_front(edges, count);
    edges.resize(static_cast<std::size_t>(count));
    const torch::Tensor output = model.forward(x_, gso_without(fold));
    return loss_of(scores(output, edges), scores(output, draw_others(count, random)));
  }

  Metrics evaluate(nn::GraphModule& model, Part part) const override {
    const Question asked = question(part);
    if (asked.edges.empty()) {
      throw base::Error(name_, fmt::format("expected held-out edges{}, got none",
                                           is_new_ ? "" : fmt::format(" in {}", to_string(part))));
    }
    const torch::Tensor output = model.forward(x_, asked.gso);
    const torch::Tensor of_edges = scores(output, asked.edges).contiguous();
    const torch::Tensor of_others = scores(output, asked.others).contiguous();
    Metrics metrics = link_metrics(numbers_of(of_edges), numbers_of(of_others));
    metrics["loss"] = loss_of(of_edges, of_others).item<double>();
    return metrics;
  }

  /// The pairs of val and test.
  void write_predictions(nn::GraphModule& model, const io::Sink& sink) const override {
    const LinkEnds ends = link_ends(model.forward(x_, gso_), directed_);
    std::string text = is_new_ ? "src,dst,edge,score\n" : "src,dst,split,edge,score\n";
    for (const Part part : {Part::kVal, Part::kTest}) {
      const auto p = static_cast<std::size_t>(part);
      for (const bool is_edge : {true, false}) {
        const std::vector<NodePair>& pairs = is_edge ? links_.edges[p] : links_.others[p];
        const torch::Tensor score = link_scores(ends, pairs).contiguous();
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          text += pair_cells(data_, pairs[i]) + ",";
          if (!is_new_) text += std::string(to_string(part)) + ",";
          text += fmt::format("{},{:.6f}\n", is_edge ? "yes" : "no",
                              link_share(score.data_ptr<float>()[i]));
        }
      }
    }
    sink(text);
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, 1);
    return {x_, gso_};
  }

  std::vector<Reference> references() const override { return link_references(data_); }

  Preprocessing preprocessing() const override { return {.columns = data_.columns}; }

 private:
  struct Fold {
    std::vector<NodePair> edges = {};
    mutable std::optional<graph::Operators> gso = {};  // made when it is first needed
  };

  struct Question {
    std::vector<NodePair> edges;
    std::vector<NodePair> others;
    graph::Operators gso;
  };

  /// Of train, the first fold stands for all: the others are in the operator.
  Question question(Part part) const {
    const auto p = static_cast<std::size_t>(part);
    if (part != Part::kTrain) return {links_.edges[p], links_.others[p], gso_};
    base::Random random(0);
    const auto count = std::min(kMostPairs, std::ssize(folds_[0].edges));
    return {{folds_[0].edges.begin(), folds_[0].edges.begin() + count},
            draw_others(count, random),
            gso_without(0)};
  }

  const graph::Operators& gso_without(std::size_t fold) const {
    std::optional<graph::Operators>& gso = folds_[fold].gso;
    if (!gso) {
      std::vector<NodePair> out = folds_[fold].edges;
      for (const std::size_t p : {1, 2}) {
        out.insert(out.end(), links_.edges[p].begin(), links_.edges[p].end());
      }
      std::sort(out.begin(), out.end());
      gso = data::make_operators(data::without_edges(links_.whole, out), gso_kinds_,
                                 data_.edge_table);
    }
    return *gso;
  }

  /// Pairs without a training edge: whether one of them is held out is not known to a training.
  std::vector<NodePair> draw_others(std::int64_t count, base::Random& random) const {
    std::vector<NodePair> pairs;
    for (std::int64_t i = 0; i < count; ++i) {
      pairs.push_back(data::draw_other(data_.graph, directed_, random));
    }
    return pairs;
  }

  torch::Tensor scores(const torch::Tensor& output, std::span<const NodePair> pairs) const {
    return link_scores(link_ends(output, directed_), pairs);
  }

  static torch::Tensor loss_of(const torch::Tensor& of_edges, const torch::Tensor& of_others) {
    const auto cost = [](const torch::Tensor& score, float truth) {
      return at::binary_cross_entropy_with_logits(score, torch::full_like(score, truth), {}, {},
                                                  at::Reduction::None);
    };
    const double count = static_cast<double>(of_edges.numel() + of_others.numel());
    return (ordered_sum(cost(of_edges, 1.0F)) + ordered_sum(cost(of_others, 0.0F))) / count;
  }

  std::string name_;
  bool is_new_;
  const data::NodeData& data_;
  const data::Links& links_;
  bool directed_;
  graph::GsoGroups gso_kinds_;
  graph::Operators gso_;  // of the training edges
  torch::Tensor x_;
  std::array<Fold, kFolds> folds_;
};

}  // namespace

std::unique_ptr<Problem> make_link_problem(const data::Dataset& dataset,
                                           const ProblemOptions& options) {
  return std::make_unique<LinkProblem>(dataset, options);
}

}  // namespace mpssm::task
