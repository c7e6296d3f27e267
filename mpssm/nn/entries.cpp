// SPDX-License-Identifier: MIT
#include "mpssm/nn/entries.h"

#include <cmath>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/ops/edge_softmax.h"
#include "mpssm/ops/linear.h"

namespace mpssm::nn {
namespace {

torch::Tensor own_values(const graph::Gso& gso, const torch::Tensor& like) {
  const auto values = gso.values<double>();
  return torch::tensor(at::ArrayRef<double>(values.data(), values.size()), torch::kDouble)
      .to(like.scalar_type());
}

/// [nonzeros, 1]: one at the entries (i, i).
torch::Tensor diagonal_of(const graph::Gso& gso, const torch::Tensor& like) {
  torch::Tensor mask = torch::zeros({gso.num_nonzeros(), 1}, torch::kDouble);
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      if (gso.col()[e] == i) mask.data_ptr<double>()[e] = 1.0;
    }
  }
  return mask.to(like.scalar_type());
}

}  // namespace

EntriesImpl::EntriesImpl(const EntriesOptions& options) : options_(options) {
  switch (options.kind) {
    case EntriesKind::kFixed:
      TORCH_CHECK_VALUE(false, "Entries: expected entries to learn, got fixed ones");
      break;
    case EntriesKind::kFree:
      TORCH_CHECK_VALUE(options.num_entries >= 1,
                        "Entries: free entries need the one operator they belong to, got ",
                        options.num_entries, " nonzeros");
      change = register_parameter("change", torch::zeros({options.num_entries}));
      break;
    case EntriesKind::kGin:
      epsilon = register_parameter("epsilon", torch::zeros({1}));
      break;
    case EntriesKind::kAttention:
      attention = register_parameter("attention", torch::empty({options.channels, 2}));
      const double bound = std::sqrt(6.0 / static_cast<double>(options.channels + 1));
      torch::nn::init::uniform_(attention, -bound, bound);
      break;
  }
}

const graph::Gso& EntriesImpl::pattern(const graph::Gso& gso) {
  if (options_.kind != EntriesKind::kGin) return gso;
  // A training comes back to its operator; `seen_` keeps its memory, so no other can lie there.
  if (seen_.col().data() != gso.col().data() ||
      seen_.values<double>().data() != gso.values<double>().data()) {
    whole_ = graph::with_whole_diagonal(gso);
    seen_ = gso;
  }
  return whole_;
}

torch::Tensor EntriesImpl::forward(const torch::Tensor& c, const graph::Gso& pattern) {
  switch (options_.kind) {
    case EntriesKind::kFree:
      TORCH_CHECK_VALUE(options_.num_entries == pattern.num_nonzeros(), "Entries: has ",
                        options_.num_entries, " free entries, got an operator with ",
                        pattern.num_nonzeros());
      return own_values(pattern, change) + change;
    case EntriesKind::kGin:
      // A product, whose gradient is summed in a fixed order.
      return own_values(pattern, epsilon) +
             ops::matmul(diagonal_of(pattern, epsilon), (epsilon + 1.0).unsqueeze(0)).flatten();
    default:
      TORCH_CHECK_VALUE(c.numel() == pattern.num_nodes() * options_.channels,
                        "Entries: attention takes the features of one graph, [N=",
                        pattern.num_nodes(), ", C=", options_.channels, "], got ", c.sizes());
      const torch::Tensor scores =
          ops::matmul(c.reshape({pattern.num_nodes(), options_.channels}), attention);
      return ops::edge_softmax(pattern, scores.select(1, 0), scores.select(1, 1));
  }
}

}  // namespace mpssm::nn
