// SPDX-License-Identifier: MIT
#include "mpssm/ops/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/kernels/simd.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

/// The definition, in double.
torch::Tensor definition(torch::Tensor x, const torch::Tensor& scale, const torch::Tensor& shift) {
  x = x.to(torch::kDouble);
  x = x - x.mean(-1, true);
  return x / (x.square().mean(-1, true) + 1e-5).sqrt() * scale + shift;
}

TEST(LayerNorm, EqualsItsDefinitionForEveryWidthAndInstructionSet) {
  for (const std::string& target : kernels::simd_targets()) {
    SCOPED_TRACE(target);
    kernels::set_simd_target(target);
    torch::manual_seed(1);
    for (const std::int64_t width : {1, 2, 7, 15, 16, 17, 33, 64, 100}) {
      for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
        const auto x = 3 + 2 * torch::randn({4, 5, width}, type);
        const auto scale = torch::randn({width}, type);
        const auto shift = torch::randn({width}, type);
        EXPECT_TRUE(mpssm::testing::close(layer_norm(x, scale, shift), definition(x, scale, shift),
                                          type == torch::kDouble ? 1e-12 : 1e-5));
      }
    }
  }
  kernels::set_simd_target("");
}

TEST(LayerNorm, GradientsAreTheNumericOnes) {
  torch::manual_seed(2);
  mpssm::testing::expect_gradients(
      [](const std::vector<torch::Tensor>& x) { return layer_norm(x[0], x[1], x[2]); },
      {torch::randn({3, 5}, torch::kDouble), torch::randn({5}, torch::kDouble),
       torch::randn({5}, torch::kDouble)});
}

TEST(LayerNorm, SaysWhatIsWrong) {
  EXPECT_THAT(
      [] {
        layer_norm(torch::randn({2, 3}), torch::ones({4}), torch::zeros({4}));
      },
      ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("got [2, 3], [4] and [4]")));
}

}  // namespace
}  // namespace mpssm::ops
