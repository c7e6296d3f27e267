// SPDX-License-Identifier: MIT
#include "mpssm/ops/call.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

namespace mpssm::ops {
namespace {

TEST(EmptyTensor, IsAnOrdinaryTensorOfKeptMemory) {
  const void* memory = nullptr;
  {
    at::Tensor large = empty_tensor({1 << 20, 10}, at::kFloat);
    EXPECT_TRUE(large.is_contiguous());
    EXPECT_EQ(large.sizes(), (at::IntArrayRef{1 << 20, 10}));
    memory = large.data_ptr();
    large.fill_(1.0);
    large.resize_({1 << 20, 12});  // moves to memory of torch's own
    EXPECT_EQ(large[5][5].item<float>(), 1.0F);
  }
  EXPECT_EQ(empty_tensor({1 << 20, 10}, at::kFloat).data_ptr(), memory);
}

}  // namespace
}  // namespace mpssm::ops
