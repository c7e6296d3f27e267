// SPDX-License-Identifier: MIT
#include "mpssm/analysis/state_norms.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

double norm_of(const torch::Tensor& matrix) {
  return std::get<1>(torch::linalg_svd(matrix)).max().item<double>();
}

TEST(StateNorms, NormsAreThoseOfThePowersWhetherDenseOrDiagonal) {
  torch::manual_seed(1);
  const std::int64_t taus[] = {9, 0, 1, 4, 9};
  for (int draw = 0; draw < 10; ++draw) {
    const auto dense = torch::randn({6, 6}, torch::kDouble);
    const auto sigma = testing::random_sigma(3, torch::kDouble);
    const auto dense_norms = power_norms(dense, taus);
    const auto sigma_norms = power_norms(sigma, taus);
    for (std::size_t i = 0; i < dense_norms.size(); ++i) {
      const double expected = norm_of(torch::matrix_power(dense, taus[i]));
      EXPECT_NEAR(dense_norms[i], expected, 1e-10 * expected);
      EXPECT_NEAR(sigma_norms[i],
                  norm_of(torch::matrix_power(testing::real_state_matrix(sigma), taus[i])), 1e-12);
    }
    EXPECT_NEAR(spectral_radius(sigma), spectral_radius(testing::real_state_matrix(sigma)), 1e-10);
  }
}

TEST(StateNorms, NilpotentWIsUsedUpExactly) {
  auto w = torch::zeros({4, 4}, torch::kDouble);
  for (std::int64_t i = 0; i < 3; ++i) w[i][i + 1] = 2.0;
  const std::int64_t taus[] = {0, 1, 3, 4, 1000};
  EXPECT_EQ(power_norms(w, taus), (std::vector<double>{1.0, 2.0, 8.0, 0.0, 0.0}));
  EXPECT_NEAR(spectral_radius(w), 0.0, 1e-12);
  EXPECT_EQ(state_reach(w, 8).forgets_after, 4);
  const auto zero = torch::zeros({2}, torch::kComplexDouble);
  EXPECT_EQ(power_norms(zero, taus), (std::vector<double>{1.0, 0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(state_reach(zero, 8).forgets_after, 1);
}

TEST(StateNorms, DeepPowersNeitherVanishNorOverflowOnTheWay) {
  const auto w = 0.5 * torch::eye(3, torch::kDouble);
  const std::int64_t taus[] = {1000, 2000};
  const auto shrinking = power_norms(w, taus);
  EXPECT_NEAR(std::log2(shrinking[0]), -1000.0, 1e-9);
  EXPECT_EQ(shrinking[1], 0.0);  // below what a double holds
  EXPECT_EQ(power_norms(4.0 * w, taus)[1], std::numeric_limits<double>::infinity());
  // A growing and a shrinking direction: the norm is that of the growing one.
  const auto mixed = torch::diag(torch::tensor({1.0, 0.1}, torch::kDouble));
  EXPECT_NEAR(power_norms(mixed, taus)[1], 1.0, 1e-12);
}

TEST(StateNorms, ReachIsTheFirstTauBelowOnePercent) {
  torch::manual_seed(2);
  std::vector<torch::Tensor> all = {0.9 * testing::random_dense_w(5, torch::kDouble),
                                    0.3 * torch::randn({5, 5}, torch::kDouble),
                                    testing::random_sigma(4, torch::kDouble) * 0.95};
  for (const auto& w : all) {
    const auto reach = state_reach(w, 4);
    if (reach.forgets_after < 0) continue;
    std::vector<std::int64_t> taus;
    for (std::int64_t tau = 0; tau <= reach.forgets_after; ++tau) taus.push_back(tau);
    const auto norms = power_norms(w, taus);
    for (std::size_t tau = 0; tau + 1 < norms.size(); ++tau) EXPECT_GE(norms[tau], 0.01);
    EXPECT_LT(norms.back(), 0.01);
  }
  EXPECT_GT(state_reach(all[0], 4).forgets_after, 0);
  EXPECT_EQ(state_reach(torch::eye(3), 4).forgets_after, -1);
  EXPECT_DOUBLE_EQ(state_reach(torch::eye(3), 4).mean_hop, 2.0);
}

TEST(StateNorms, WhatIsNoStateMatrixIsRefused) {
  const std::int64_t taus[] = {1};
  const std::int64_t negative[] = {-1};
  EXPECT_THROW(power_norms(torch::zeros({2, 3}), taus), std::invalid_argument);
  EXPECT_THROW(power_norms(torch::zeros({3}), taus), std::invalid_argument);
  EXPECT_THROW(power_norms(torch::full({2, 2}, std::nan("")), taus), std::invalid_argument);
  EXPECT_THROW(power_norms(torch::eye(2), negative), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::analysis
