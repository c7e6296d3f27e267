// SPDX-License-Identifier: MIT
#include "mpssm/ops/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

graph::Gso three_graphs() {
  const std::vector<graph::Graph> parts = {graph::make_path(3), graph::Graph(),
                                           graph::make_ring(4)};
  return graph::make_gso(graph::make_batch(parts));
}

TEST(Pool, ReducesEachGraphByItself) {
  torch::manual_seed(1);
  const auto x = torch::randn({7, 2}, torch::kDouble);
  const auto first = x.slice(0, 0, 3);
  const auto last = x.slice(0, 3);
  const auto none = torch::zeros({2}, torch::kDouble);
  const auto gso = three_graphs();
  ASSERT_EQ(gso.num_graphs(), 3);
  const auto sum = torch::stack({first.sum(0), none, last.sum(0)});
  const auto mean = torch::stack({first.mean(0), none, last.mean(0)});
  const auto max = torch::stack({first.amax(0), none, last.amax(0)});
  EXPECT_TRUE(mpssm::testing::close(pool(gso, x, Pooling::kSum), sum, 1e-14));
  EXPECT_TRUE(mpssm::testing::close(pool(gso, x, Pooling::kMean), mean, 1e-14));
  EXPECT_TRUE(mpssm::testing::close(pool(gso, x, Pooling::kMax), max, 0));
  EXPECT_TRUE(mpssm::testing::close(pool(gso, x, Pooling::kSumMaxMean),
                                    torch::cat({sum, max, mean}, 1), 1e-14));
}

TEST(Pool, GradientIsTheNumericOne) {
  torch::manual_seed(2);
  for (const Pooling pooling :
       {Pooling::kSum, Pooling::kMean, Pooling::kMax, Pooling::kSumMaxMean}) {
    SCOPED_TRACE(to_string(pooling));
    mpssm::testing::expect_gradients(
        [&](const std::vector<torch::Tensor>& x) { return pool(three_graphs(), x[0], pooling); },
        {torch::randn({7, 2}, torch::kDouble)});
  }
}

TEST(Pool, SaysWhatIsWrong) {
  EXPECT_THAT(
      [] {
        pool(three_graphs(), torch::randn({6, 2}), Pooling::kSum);
      },
      ::testing::ThrowsMessage<c10::Error>(
          ::testing::HasSubstr("pool: expected x of shape [N=7, C], got [6, 2]")));
  EXPECT_THAT([] { engine::pooling_from_name("median"); },
              ::testing::ThrowsMessage<std::invalid_argument>(::testing::HasSubstr("'median'")));
}

}  // namespace
}  // namespace mpssm::ops
