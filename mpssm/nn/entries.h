// SPDX-License-Identifier: MIT
// Learned entries of a block's operator A.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "mpssm/graph/gso.h"
#include "mpssm/nn/kinds.h"

namespace mpssm::nn {

struct EntriesOptions {
  EntriesKind kind = EntriesKind::kFree;
  std::int64_t channels = 0;     ///< kAttention: of C = U B
  std::int64_t num_entries = 0;  ///< kFree: nonzeros of the one operator
};

/// The entries that a block puts in place of its operator's own, differentiable in its parameters:
///   kFree       A + D, D on the pattern of A, started at zero
///   kGin        A + (1 + eps) I, eps started at zero
///   kAttention  softmax over the neighbours j of node i, as A's pattern has them, of
///               leaky(a_target . C(i) + a_source . C(j)): one head, from the block's own input
///               C = U B. Static mode.
class EntriesImpl : public torch::nn::Module {
 public:
  explicit EntriesImpl(const EntriesOptions& options);

  /// The operator whose pattern the entries have: gso, for kGin with a whole diagonal.
  const graph::Gso& pattern(const graph::Gso& gso);

  /// [nonzeros] of such a pattern; c: [N, C].
  torch::Tensor forward(const torch::Tensor& c, const graph::Gso& pattern);

  const EntriesOptions& options() const { return options_; }

  torch::Tensor change;     ///< kFree: D, [nonzeros]
  torch::Tensor epsilon;    ///< kGin: [1]
  torch::Tensor attention;  ///< kAttention: a_target and a_source, [C, 2]

 private:
  EntriesOptions options_;
  graph::Gso seen_;  // the operator of the last call, and it with a whole diagonal
  graph::Gso whole_;
};
TORCH_MODULE(Entries);

}  // namespace mpssm::nn
