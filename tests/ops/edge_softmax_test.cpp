// SPDX-License-Identifier: MIT
#include "mpssm/ops/edge_softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"

#include "tests/support/gradcheck.h"
#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

TEST(EdgeSoftmax, IsTheSoftmaxOfEveryRow) {
  torch::manual_seed(1);
  for (const auto& [name, gso] : mpssm::testing::awkward_operators()) {
    SCOPED_TRACE(name);
    const auto target = 3 * torch::randn({gso.num_nodes()}, torch::kDouble);
    const auto source = 3 * torch::randn({gso.num_nodes()}, torch::kDouble);
    const auto entries = edge_softmax(gso, target, source, 0.3);
    for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
      const std::int64_t begin = gso.row_ptr()[i];
      const std::int64_t end = gso.row_ptr()[i + 1];
      if (begin == end) continue;
      std::vector<torch::Tensor> scores;
      for (std::int64_t e = begin; e < end; ++e) {
        scores.push_back(torch::leaky_relu(target[i] + source[gso.col()[e]], 0.3));
      }
      EXPECT_TRUE(mpssm::testing::close(entries.slice(0, begin, end),
                                        torch::softmax(torch::stack(scores), 0), 1e-14));
    }
  }
}

TEST(EdgeSoftmax, HasTheNumericGradients) {
  torch::manual_seed(2);
  for (const auto& [name, gso] : mpssm::testing::awkward_operators()) {
    SCOPED_TRACE(name);
    if (gso.num_nonzeros() == 0) continue;
    mpssm::testing::expect_gradients(
        [&, &op = gso](const std::vector<torch::Tensor>& x) {
          return edge_softmax(op, x[0], x[1]);
        },
        {torch::randn({gso.num_nodes()}, torch::kDouble),
         torch::randn({gso.num_nodes()}, torch::kDouble)});
  }
}

TEST(EdgeSoftmax, KeepsItsDigitsForLargeScores) {
  const graph::Gso ring = graph::make_gso(graph::make_ring(5));
  const auto entries = edge_softmax(ring, torch::full({5}, 1e4f), torch::zeros({5}));
  EXPECT_TRUE(mpssm::testing::close(entries, torch::full({15}, 1.0 / 3.0), 1e-6));
}

TEST(EdgeSoftmax, SaysWhatIsWrong) {
  const graph::Gso ring = graph::make_gso(graph::make_ring(5));
  EXPECT_THAT(
      [&] {
        edge_softmax(ring, torch::zeros({5}), torch::zeros({5, 2}));
      },
      ::testing::ThrowsMessage<c10::Error>(
          ::testing::HasSubstr("edge_softmax: expected source of shape [N=5], got [5, 2]")));
}

}  // namespace
}  // namespace mpssm::ops
