// SPDX-License-Identifier: MIT
#include "mpssm/ops/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/kernels/simd.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

TEST(Linear, EqualsTorchForEveryShapeAndInstructionSet) {
  for (const std::string& target : kernels::simd_targets()) {
    SCOPED_TRACE(target);
    kernels::set_simd_target(target);
    torch::manual_seed(1);
    for (const std::int64_t rows : {1, 2, 5, 6, 7, 13, 97, 200}) {
      for (const std::int64_t in : {1, 3, 16, 33}) {
        for (const std::int64_t out : {1, 7, 15, 16, 17, 40}) {
          for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
            const auto x = torch::randn({2, rows, in}, type);
            const auto weight = torch::randn({out, in}, type);
            const auto bias = torch::randn({out}, type);
            const double tolerance = type == torch::kDouble ? 1e-13 : 1e-5;
            EXPECT_TRUE(mpssm::testing::close(ops::linear(x, weight, bias),
                                              torch::linear(x, weight, bias), tolerance));
            EXPECT_TRUE(mpssm::testing::close(ops::linear(x, weight, {}), torch::linear(x, weight),
                                              tolerance));
          }
        }
      }
    }
  }
  kernels::set_simd_target("");
}

TEST(Linear, GradientsAreTheNumericOnes) {
  torch::manual_seed(2);
  mpssm::testing::expect_gradients(
      [](const std::vector<torch::Tensor>& x) { return ops::linear(x[0], x[1], x[2]); },
      {torch::randn({2, 3, 5}, torch::kDouble), torch::randn({4, 5}, torch::kDouble),
       torch::randn({4}, torch::kDouble)});
  mpssm::testing::expect_gradients(
      [](const std::vector<torch::Tensor>& x) { return ops::linear(x[0], x[1], {}); },
      {torch::randn({3, 5}, torch::kDouble), torch::randn({4, 5}, torch::kDouble)});
}

TEST(Linear, SaysWhatIsWrong) {
  EXPECT_THAT(
      [] {
        ops::linear(torch::randn({2, 3}), torch::ones({4, 5}), torch::zeros({4}));
      },
      ::testing::ThrowsMessage<c10::Error>(
          ::testing::HasSubstr("linear: expected x of shape [..., in=5]")));
}

}  // namespace
}  // namespace mpssm::ops
