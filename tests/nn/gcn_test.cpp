// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/gcn.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"

#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;

torch::Tensor dense_of(const graph::Gso& gso) {
  torch::Tensor dense = torch::zeros({gso.num_nodes(), gso.num_nodes()});
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      dense[i][gso.col()[e]] = gso.values<float>()[e];
    }
  }
  return dense;
}

TEST(Gcn, IsItsFormula) {
  torch::manual_seed(1);
  const auto gso = graph::make_gso(graph::make_clique_chain(2, 4));
  const auto a = dense_of(gso);
  const auto x = torch::randn({gso.num_nodes(), 3});
  for (const bool residual : {false, true}) {
    Gcn gcn(LayeredOptions{.in_channels = 3,
                           .hidden_channels = 5,
                           .out_channels = 2,
                           .num_layers = 3,
                           .activation = Activation::kTanh,
                           .residual = residual});
    auto p = gcn->named_parameters();
    auto h = torch::linear(x, p["encoder.weight"], p["encoder.bias"]);
    for (int i = 0; i < 3; ++i) {
      const std::string layer = "layer_" + std::to_string(i);
      const auto y = torch::tanh(torch::linear(a.mm(h), p[layer + ".weight"], p[layer + ".bias"]));
      h = residual ? h + y : y;
    }
    EXPECT_TRUE(close(gcn->forward(x, gso),
                      torch::linear(h, p["readout_0.weight"], p["readout_0.bias"]), 1e-5));
  }
}

TEST(Gcn, ReadsOutGraphsAndNamesBadShapes) {
  const std::vector<graph::Graph> parts = {graph::make_path(5), graph::make_ring(7)};
  const auto gso = graph::make_gso(graph::make_batch(parts));
  Gcn gcn(LayeredOptions{.in_channels = 3,
                         .hidden_channels = 4,
                         .norm = NormKind::kLayer,
                         .dropout = 0.5,
                         .readout = {.pools = true, .pooling = engine::Pooling::kSumMaxMean}});
  EXPECT_EQ(gcn->forward(torch::randn({12, 3}), gso).sizes(), torch::IntArrayRef({2, 1}));
  EXPECT_THROW(gcn->forward(torch::randn({12, 4}), gso), c10::Error);
}

}  // namespace
}  // namespace mpssm::nn
