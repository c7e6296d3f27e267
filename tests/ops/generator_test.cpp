// SPDX-License-Identifier: MIT
#include "mpssm/ops/generator.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/ops/dropout.h"

namespace mpssm::ops {
namespace {

torch::Tensor default_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

TEST(Generator, DropoutOfAnOwnGeneratorLeavesTheDefaultOneAlone) {
  const auto x = torch::ones({1000});
  const auto before = default_state();
  const auto given = ops::dropout(x, 0.5, make_generator(3));
  torch::Tensor scoped;
  {
    const GeneratorScope scope(make_generator(3));
    scoped = ops::dropout(x, 0.5);
  }
  EXPECT_TRUE(torch::equal(default_state(), before));
  EXPECT_TRUE(torch::equal(given, scoped));
  EXPECT_FALSE(torch::equal(given, ops::dropout(x, 0.5, make_generator(4))));
  EXPECT_FALSE(torch::equal(default_state(), before) &&
               torch::equal(given, ops::dropout(x, 0.5)));  // outside, the default one again
}

TEST(Generator, ScopesNestAndGoOnWhereTheyStopped) {
  const auto x = torch::ones({1000});
  const at::Generator own = make_generator(3);
  const GeneratorScope outer(own);
  const auto first = ops::dropout(x, 0.5);
  {
    const GeneratorScope inner(make_generator(3));
    EXPECT_TRUE(torch::equal(ops::dropout(x, 0.5), first));
  }
  EXPECT_FALSE(torch::equal(ops::dropout(x, 0.5), first));
}

TEST(Generator, LentToTorchGivesTheDefaultOneBackUntouched) {
  torch::manual_seed(1);
  torch::randn({3});
  const auto before = default_state();
  at::Generator own = make_generator(7);
  torch::Tensor first, second;
  {
    const DefaultGeneratorScope scope(own);
    first = torch::rand({5});
  }
  EXPECT_TRUE(torch::equal(default_state(), before));
  {
    const DefaultGeneratorScope scope(own);
    second = torch::rand({5});
  }
  EXPECT_TRUE(torch::equal(default_state(), before));
  // Together they are the first ten numbers of that seed.
  const auto both = torch::rand({10}, make_generator(7));
  EXPECT_TRUE(torch::equal(torch::cat({first, second}), both));
}

TEST(Generator, LentToTorchComesBackWhenSomethingThrows) {
  const auto before = default_state();
  try {
    const DefaultGeneratorScope scope(make_generator(7));
    torch::rand({5});
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(torch::equal(default_state(), before));
}

}  // namespace
}  // namespace mpssm::ops
