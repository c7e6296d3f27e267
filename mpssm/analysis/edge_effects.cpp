// SPDX-License-Identifier: MIT
#include "mpssm/analysis/edge_effects.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <torch/torch.h>

#include "mpssm/analysis/evaluating.h"
#include "mpssm/analysis/graph_edit.h"
#include "mpssm/graph/gso_gradient.h"
#include "mpssm/nn/model.h"

namespace mpssm::analysis {
namespace {

/// The network with the entries of the operator as a leaf.
class WithEntries final : public nn::GraphModule {
 public:
  WithEntries(nn::ModelImpl& model, torch::Tensor entries)
      : model_(model), entries_(std::move(entries)) {}
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override {
    return model_.forward_with_entries(x, gso, entries_);
  }

 private:
  nn::ModelImpl& model_;
  torch::Tensor entries_;
};

/// The network on another graph than the one it is handed.
class OnOtherGraph final : public nn::GraphModule {
 public:
  OnOtherGraph(nn::GraphModule& network, graph::Operators gso)
      : network_(network), gso_(std::move(gso)) {}
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators&) override {
    return network_.forward(x, gso_);
  }

 private:
  nn::GraphModule& network_;
  graph::Operators gso_;
};

double loss_without(const EdgesQuestion& question, const std::vector<EdgeEffect>& edges) {
  GraphEdit edit;
  for (const EdgeEffect& edge : edges) edit.remove.emplace_back(edge.u, edge.v);
  const torch::NoGradGuard no_grad;
  OnOtherGraph changed(question.network, graph::make_gso(edited(question.graph, edit),
                                                         {.kind = question.gso.kind()}));
  return question.loss(changed).item<double>();
}

}  // namespace

std::vector<double> edge_gradient(const EdgesQuestion& question, double* loss) {
  nn::ModelImpl& model = model_with_fixed_entries(question.network, "edges");
  if (model.options().precision != engine::Precision::kFloat32) {
    throw std::invalid_argument("edges: expected a network in float32");
  }
  const Evaluating evaluating(model);
  const torch::AutoGradMode with_grad(true);
  const auto own = question.gso.values<double>();
  const torch::Tensor entries =
      torch::tensor(at::ArrayRef<double>(own.data(), own.size()), torch::kDouble)
          .to(model.encoder()->weight.scalar_type())
          .requires_grad_();
  WithEntries network(model, entries);
  const torch::Tensor value = question.loss(network);
  if (loss != nullptr) *loss = value.item<double>();
  const torch::Tensor gradient =
      torch::autograd::grad({value}, {entries})[0].to(torch::kDouble).contiguous();
  const auto* numbers = gradient.data_ptr<double>();
  return graph::weight_gradient(question.graph, question.gso,
                                {numbers, static_cast<std::size_t>(gradient.numel())});
}

EdgesAnswer answer(const EdgesQuestion& question) {
  EdgesAnswer answer{.part = question.part};
  const std::vector<double> gradient = edge_gradient(question, &answer.loss);
  const graph::Graph& graph = question.graph;
  const bool is_directed = !graph.is_symmetric();
  std::vector<EdgeEffect> all;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = graph.col()[e];
      if (j == i || (!is_directed && j > i)) continue;
      double slope = gradient[e];
      if (!is_directed) {
        // The other entry of the edge, (j, i).
        const auto begin = graph.col().begin() + graph.row_ptr()[j];
        const auto end = graph.col().begin() + graph.row_ptr()[j + 1];
        slope += gradient[std::lower_bound(begin, end, static_cast<std::int32_t>(i)) -
                          graph.col().begin()];
      }
      all.push_back({j, static_cast<std::int32_t>(i), graph.weight()[e], slope});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const EdgeEffect& a, const EdgeEffect& b) {
    return a.expected_gain() > b.expected_gain();
  });
  answer.edges = std::ssize(all);
  answer.harmful_count =
      std::partition_point(all.begin(), all.end(),
                           [](const EdgeEffect& edge) { return edge.expected_gain() > 0.0; }) -
      all.begin();
  const std::int64_t shown = std::min(question.count, answer.harmful_count);
  answer.harmful.assign(all.begin(), all.begin() + shown);
  std::reverse(all.begin(), all.end());
  const std::int64_t useful = std::min(question.count, answer.edges - answer.harmful_count);
  for (const EdgeEffect& edge : all) {
    if (std::ssize(answer.useful) == useful || edge.expected_gain() == 0.0) break;
    answer.useful.push_back(edge);
  }
  const Evaluating evaluating(question.network);
  for (std::int64_t k = 0; k < std::min<std::int64_t>(shown, question.confirm); ++k) {
    answer.harmful[k].loss_without = loss_without(question, {answer.harmful[k]});
  }
  if (question.confirm > 0 && shown > 0) {
    answer.loss_without_harmful = loss_without(question, answer.harmful);
  }
  return answer;
}

}  // namespace mpssm::analysis
