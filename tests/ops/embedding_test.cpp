// SPDX-License-Identifier: MIT
// Tables against one-hot columns times a matrix.
#include "mpssm/ops/embedding.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/ops/linear.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace mpssm::ops {
namespace {

const std::vector<std::int32_t> kVocabulary = {4, 1, 7};

/// Some of them beyond what is known.
torch::Tensor random_codes(std::int64_t rows, torch::ScalarType type = torch::kFloat) {
  std::vector<torch::Tensor> columns;
  for (const std::int32_t size : kVocabulary) {
    columns.push_back(torch::randint(-1, size + 1, {rows}, torch::kLong));
  }
  return torch::stack(columns, 1).to(type);
}

torch::Tensor one_hot(const torch::Tensor& codes, torch::ScalarType type) {
  std::vector<torch::Tensor> columns;
  for (std::size_t c = 0; c < kVocabulary.size(); ++c) {
    const auto known = torch::arange(kVocabulary[c], torch::kDouble);
    columns.push_back(
        (codes.select(-1, static_cast<std::int64_t>(c)).to(torch::kDouble).unsqueeze(-1) == known)
            .to(type));
  }
  return torch::cat(columns, -1);
}

TEST(Embedding, IsOneHotTimesAMatrix) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    for (const std::int64_t width : {1, 5, 16, 33}) {
      const auto weight = torch::randn({width, 12}, type);
      const auto bias = torch::randn({width}, type);
      const auto codes = random_codes(70, type);
      const double rounding = type == torch::kFloat ? 1e-6 : 1e-14;
      EXPECT_TRUE(mpssm::testing::close(ops::embedding(codes, kVocabulary, weight, bias),
                                        ops::linear(one_hot(codes, type), weight, bias), rounding));
      EXPECT_TRUE(mpssm::testing::close(ops::embedding(codes, kVocabulary, weight, {}),
                                        ops::linear(one_hot(codes, type), weight, {}), rounding));
    }
  }
  const auto weight = torch::randn({3, 12});
  const auto many = random_codes(24).view({2, 3, 4, 3});
  EXPECT_TRUE(mpssm::testing::close(ops::embedding(many, kVocabulary, weight, {}),
                                    ops::linear(one_hot(many, torch::kFloat), weight, {}), 1e-6));
  const auto half = ops::embedding(random_codes(3), kVocabulary, weight.to(torch::kHalf), {});
  EXPECT_EQ(half.scalar_type(), torch::kHalf);
}

TEST(Embedding, GradientIsTheNumericOne) {
  torch::manual_seed(2);
  const auto codes = random_codes(20);
  mpssm::testing::expect_gradients(
      [&](const std::vector<torch::Tensor>& x) {
        return ops::embedding(codes, kVocabulary, x[0], x[1]).tanh();
      },
      {torch::randn({5, 12}, torch::kDouble), torch::randn({5}, torch::kDouble)});
}

TEST(Embedding, HasTheSameBitsForAnyNumberOfThreads) {
  mpssm::testing::expect_same_bits([] {
    const auto codes = random_codes(9000);
    auto weight = torch::randn({40, 12}).requires_grad_();
    auto bias = torch::randn({40}).requires_grad_();
    const auto y = ops::embedding(codes, kVocabulary, weight, bias);
    (y * torch::randn({9000, 40})).sum(0).dot(torch::ones({40})).backward();
    return std::vector<torch::Tensor>{y.detach(), weight.grad(), bias.grad()};
  });
}

TEST(Embedding, SaysWhatIsWrong) {
  EXPECT_THAT(
      [] {
        ops::embedding(torch::zeros({4, 2}), kVocabulary, torch::zeros({3, 12}), {});
      },
      ::testing::ThrowsMessage<c10::Error>(
          ::testing::HasSubstr("embedding: expected codes of shape [..., columns=3]")));
  EXPECT_THAT(
      [] {
        ops::embedding(torch::zeros({4, 3}), kVocabulary, torch::zeros({3, 11}), {});
      },
      ::testing::ThrowsMessage<c10::Error>(
          ::testing::HasSubstr("embedding: expected weight of shape [out, 12]")));
}

}  // namespace
}  // namespace mpssm::ops
