// SPDX-License-Identifier: MIT
// The operators as torch's dispatcher sees them: what a Python caller reaches.
#include "mpssm/ops/register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/spmm.h"

#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

/// Calls torch.ops.mpssm.<name> through the dispatcher, with boxed arguments as Python does.
torch::Tensor call(const std::string& name, std::vector<c10::IValue> arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("mpssm::" + name).c_str(), "");
  op.callBoxed(&arguments);
  return arguments.at(0).toTensor();
}

class Registered : public ::testing::Test {
 protected:
  graph::Gso gso_ = graph::make_gso(graph::make_random_connected(12, 20, 1));
  c10::IValue handle_ = c10::make_intrusive<GsoHandle>(gso_);
};

TEST_F(Registered, SpmmIsTheFunction) {
  const auto x = torch::randn({12, 3});
  EXPECT_TRUE(torch::equal(call("spmm", {handle_, x}), spmm(gso_, x)));
}

TEST_F(Registered, RecurrencesAreTheFunctionsAndDifferentiable) {
  auto u = torch::randn({12, 3}).requires_grad_();
  const auto w_in = torch::randn({3, 4});
  const auto w = mpssm::testing::random_sigma(2, torch::kFloat);
  const auto out =
      call("recurrence_static", {handle_, u, w, w_in, torch::Tensor(), 5, "diagonal", false});
  EXPECT_TRUE(torch::equal(
      out, recurrence_static(gso_, u, {w, w_in}, 5, {.plan = Plan::kDiagonal}).output));
  out.sum().backward();
  EXPECT_TRUE(u.grad().defined());

  const auto sequence = torch::randn({6, 12, 3});
  EXPECT_TRUE(torch::equal(
      call("recurrence_temporal", {handle_, sequence, w, w_in, torch::Tensor(), "auto", true}),
      recurrence_temporal(gso_, sequence, {w, w_in}, {.outputs = Outputs::kAll}).output));
}

TEST_F(Registered, UnknownPlanIsNamed) {
  EXPECT_THAT(([&] {
                call("recurrence_static", {handle_, torch::randn({12, 4}), torch::eye(4),
                                           torch::Tensor(), torch::Tensor(), 5, "fast", false});
              }),
              ::testing::ThrowsMessage<std::exception>(::testing::HasSubstr("got 'fast'")));
}

}  // namespace
}  // namespace mpssm::ops
