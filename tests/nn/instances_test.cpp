// SPDX-License-Identifier: MIT
// GCN, GAT and GIN layers are instances of a block, exactly. With k = 1 a block is
// MLP(A C W + C), C = U B: the input comes in again at the last step. A state of twice the width
// keeps it apart: B writes to the first half, W moves it to the second (and is zero elsewhere), and
// the MLP reads the second half alone, A U B W.
#include <cmath>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/nn/block.h"

#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

constexpr std::int64_t kInstanceNodes = 11;
constexpr std::int64_t kWidth = 5;
constexpr double kTolerance = 1e-12;  // the same sums in another order

graph::Graph some_graph() { return graph::make_random_connected(kInstanceNodes, 21, 4); }

/// A block whose MLP reads A C M from the second half of the state, with C = U `first`.
Block one_hop_block(EntriesKind entries, Activation activation, const torch::Tensor& first,
                    const torch::Tensor& moved) {
  Block block(BlockOptions{.in_channels = kWidth,
                           .state_channels = 2 * kWidth,
                           .out_channels = kWidth,
                           .hidden_channels = kWidth,
                           .hops = 1,
                           .state = {.kind = StateKind::kDense},
                           .activation = activation,
                           .state_norm = NormKind::kNone,
                           .entries = entries});
  block->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  block->w_in.zero_();
  block->w_in.slice(1, 0, kWidth).copy_(first);
  block->w_state->weight.zero_();
  block->w_state->weight.slice(0, 0, kWidth).slice(1, kWidth).copy_(moved);
  block->mlp_in->weight.zero_();
  block->mlp_in->weight.slice(1, kWidth).copy_(torch::eye(kWidth));
  block->mlp_in->bias.zero_();
  block->mlp_out->weight.copy_(torch::eye(kWidth));
  block->mlp_out->bias.zero_();
  return block;
}

/// relu(D^-1/2 (M + I) D^-1/2 H Theta), node by node.
torch::Tensor naive_gcn(const graph::Graph& graph, const torch::Tensor& h,
                        const torch::Tensor& theta) {
  const auto degree = [&](std::int64_t i) {
    return 1.0 + static_cast<double>(graph.row_ptr()[i + 1] - graph.row_ptr()[i]);
  };
  const torch::Tensor messages = h.matmul(theta);
  torch::Tensor out = torch::zeros_like(messages);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    out[i] += messages[i] / degree(i);
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int64_t j = graph.col()[e];
      out[i] += messages[j] / std::sqrt(degree(i) * degree(j));
    }
  }
  return torch::relu(out);
}

TEST(Instances, AGcnLayerIsABlock) {
  torch::manual_seed(1);
  const graph::Graph graph = some_graph();
  const auto u = torch::randn({kInstanceNodes, kWidth}, torch::kDouble);
  const auto theta = torch::randn({kWidth, kWidth}, torch::kDouble);
  Block block = one_hop_block(EntriesKind::kFixed, Activation::kRelu,
                              torch::eye(kWidth, torch::kDouble), theta);
  EXPECT_TRUE(mpssm::testing::close(block->forward(u, graph::make_gso(graph)),
                                    naive_gcn(graph, u, theta), kTolerance));
}

/// tanh(sum_j alpha_ij Theta h_j) over j in N(i) and i itself, with
/// alpha_ij = softmax_j leaky_relu(a_target . Theta h_i + a_source . Theta h_j), node by node. Its
/// authors take elu for tanh.
torch::Tensor naive_gat(const graph::Graph& graph, const torch::Tensor& h,
                        const torch::Tensor& theta, const torch::Tensor& a_target,
                        const torch::Tensor& a_source) {
  const torch::Tensor z = h.matmul(theta);
  torch::Tensor out = torch::zeros_like(z);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    std::vector<std::int64_t> neighbours = {i};
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      neighbours.push_back(graph.col()[e]);
    }
    double sum = 0.0;
    for (const std::int64_t j : neighbours) {
      const double score = (z[i].dot(a_target) + z[j].dot(a_source)).item<double>();
      const double weight = std::exp(score > 0.0 ? score : 0.2 * score);
      sum += weight;
      out[i] += weight * z[j];
    }
    out[i] /= sum;
  }
  return torch::tanh(out);
}

TEST(Instances, AGatLayerIsABlock) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const graph::Graph graph = some_graph();
  const auto u = torch::randn({kInstanceNodes, kWidth}, torch::kDouble);
  const auto theta = torch::randn({kWidth, kWidth}, torch::kDouble);
  const auto a = torch::randn({kWidth, 2}, torch::kDouble);
  Block block = one_hop_block(EntriesKind::kAttention, Activation::kTanh, theta,
                              torch::eye(kWidth, torch::kDouble));
  block->entries->attention.zero_();
  block->entries->attention.slice(0, 0, kWidth).copy_(a);
  // The pattern of the operator counts alone: this one has loops.
  EXPECT_TRUE(mpssm::testing::close(block->forward(u, graph::make_gso(graph)),
                                    naive_gat(graph, u, theta, a.select(1, 0), a.select(1, 1)),
                                    kTolerance));
}

/// MLP((1 + eps) h_i + sum_j h_j), a 2-layer perceptron with relu, node by node.
torch::Tensor naive_gin(const graph::Graph& graph, const torch::Tensor& h, double epsilon,
                        torch::nn::Linear first, torch::nn::Linear second) {
  torch::Tensor sums = (1.0 + epsilon) * h;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      sums[i] += h[graph.col()[e]];
    }
  }
  return second->forward(torch::relu(first->forward(sums)));
}

TEST(Instances, AGinLayerIsABlock) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const graph::Graph graph = some_graph();
  const auto u = torch::randn({kInstanceNodes, kWidth}, torch::kDouble);
  torch::nn::Linear first(kWidth, kWidth);
  torch::nn::Linear second(kWidth, kWidth);
  first->to(torch::kDouble);
  second->to(torch::kDouble);
  const auto identity = torch::eye(kWidth, torch::kDouble);
  Block block = one_hop_block(EntriesKind::kGin, Activation::kRelu, identity, identity);
  block->entries->epsilon.fill_(0.37);
  block->mlp_in->weight.slice(1, kWidth).copy_(first->weight);
  block->mlp_in->bias.copy_(first->bias);
  block->mlp_out->weight.copy_(second->weight);
  block->mlp_out->bias.copy_(second->bias);
  const graph::Gso adjacency = graph::make_gso(graph, {.kind = graph::GsoKind::kAdjacency});
  EXPECT_TRUE(mpssm::testing::close(block->forward(u, adjacency),
                                    naive_gin(graph, u, 0.37, first, second), kTolerance));
}

}  // namespace
}  // namespace mpssm::nn
