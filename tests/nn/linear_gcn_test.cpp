// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/linear_gcn.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/nn/model.h"

#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using mpssm::testing::to_dense;

LinearGcnOptions small(bool shared, bool mlp) {
  return {.in_channels = 3,
          .hidden_channels = 5,
          .out_channels = 2,
          .num_blocks = 2,
          .hops = 3,
          .shared = shared,
          .mlp = mlp,
          .activation = Activation::kTanh};
}

TEST(LinearGcn, IsItsFormula) {
  torch::manual_seed(1);
  const auto gso = graph::make_gso(graph::make_clique_chain(2, 4));
  const auto a = to_dense(gso).to(torch::kFloat);
  const auto x = torch::randn({gso.num_nodes(), 3});
  for (const bool shared : {false, true}) {
    for (const bool mlp : {false, true}) {
      LinearGcn gcn(small(shared, mlp));
      auto p = gcn->named_parameters();
      const auto apply = [&](const std::string& layer, const torch::Tensor& h) {
        return torch::linear(h, p[layer + ".weight"], p[layer + ".bias"]);
      };
      auto h = apply("encoder", x);
      for (int block = 0; block < 2; ++block) {
        for (int hop = 0; hop < 3; ++hop) {
          h = apply("hop_" + std::to_string(shared ? block : 3 * block + hop), a.mm(h));
        }
        if (!mlp) continue;
        h = torch::tanh(apply("mlp_in_" + std::to_string(block), h));
        h = apply("mlp_out_" + std::to_string(block), h);
      }
      EXPECT_TRUE(close(gcn->forward(x, gso), apply("readout_0", h), 1e-5));
    }
  }
}

TEST(LinearGcn, WithoutMlpItIsAffineAndWithItIsNot) {
  torch::manual_seed(2);
  const auto gso = graph::make_gso(graph::make_ring(7));
  const auto x = 30 * torch::randn({7, 3});
  const auto y = 30 * torch::randn({7, 3});
  const auto zero = torch::zeros({7, 3});
  for (const bool mlp : {false, true}) {
    LinearGcn gcn(small(true, mlp));
    const auto bend = gcn->forward(x + y, gso) - gcn->forward(x, gso) - gcn->forward(y, gso) +
                      gcn->forward(zero, gso);
    EXPECT_EQ(bend.abs().max().item<float>() > 1e-4F, mlp);
  }
}

TEST(LinearGcn, SharingSavesWeightsAndBadShapesAreNamed) {
  // Encoder 20, readout 12, 30 for each 5 x 5 layer with its bias.
  EXPECT_EQ(num_parameters(*LinearGcn(small(false, false))), 20 + 12 + 6 * 30);
  EXPECT_EQ(num_parameters(*LinearGcn(small(true, false))), 20 + 12 + 2 * 30);
  EXPECT_EQ(num_parameters(*LinearGcn(small(true, true))), 20 + 12 + 6 * 30);
  const auto gso = graph::make_gso(graph::make_ring(7));
  EXPECT_THROW(LinearGcn(small(true, true))->forward(torch::zeros({7, 4}), gso), c10::Error);
  LinearGcnOptions none = small(true, true);
  none.hops = 0;
  EXPECT_THROW(LinearGcn{none}, c10::Error);
}

}  // namespace
}  // namespace mpssm::nn
