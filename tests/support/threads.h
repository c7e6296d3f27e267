// SPDX-License-Identifier: MIT
// The same computation on several numbers of threads, ours and torch's.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/ops/runtime.h"

namespace mpssm::testing {

/// Puts back the numbers of threads that it found.
class KeepThreads {
 public:
  KeepThreads() : torch_(at::get_num_threads()) {}
  KeepThreads(const KeepThreads&) = delete;
  KeepThreads& operator=(const KeepThreads&) = delete;
  ~KeepThreads() {
    ops::set_num_threads(0);
    at::set_num_threads(torch_);
  }

 private:
  int torch_;
};

/// Expects the tensors that `run` makes to have the same bits on 1, 2, 3, 4 and 7 threads.
template <typename Run>
void expect_same_bits(const Run& run) {
  const KeepThreads keep;
  std::vector<torch::Tensor> first;
  for (const int threads : {1, 2, 3, 4, 7}) {
    ops::set_process_threads(threads);
    torch::manual_seed(12);
    const std::vector<torch::Tensor> results = run();
    if (first.empty()) first = results;
    ASSERT_EQ(results.size(), first.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(torch::equal(results[i], first[i]))
          << "result " << i << " on " << threads << " threads";
    }
  }
}

}  // namespace mpssm::testing
