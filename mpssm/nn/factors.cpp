// SPDX-License-Identifier: MIT
#include "mpssm/nn/factors.h"

#include <torch/types.h>

#include "mpssm/ops/linear.h"

namespace mpssm::nn {
namespace {

/// D^-1/2 G D^-1/2 with the row sums D of |G| has no eigenvalue above 1; G is E' E.
torch::Tensor normalised(const torch::Tensor& vectors) {
  const torch::Tensor gram = ops::matmul(vectors.t(), vectors);
  // Products, whose gradients are summed in a fixed order.
  return ops::matmul(vectors, torch::diag(gram.abs().sum(1).rsqrt()));
}

}  // namespace

FactorsImpl::FactorsImpl(const FactorsOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(
      options.num_nodes >= 1 && options.rank >= 1 && options.rank <= options.num_nodes,
      "Factors: expected a rank from 1 to the number of nodes, got ", options.rank, " for ",
      options.num_nodes, " nodes");
  hearing = register_parameter("hearing", torch::randn({options.num_nodes, options.rank}));
  heard = register_parameter("heard", torch::randn({options.num_nodes, options.rank}));
}

torch::Tensor FactorsImpl::forward() const {
  return torch::stack({normalised(hearing), normalised(heard)});
}

}  // namespace mpssm::nn
