// SPDX-License-Identifier: MIT
#include "mpssm/ops/pool.h"

#include <stdexcept>
#include <string>

#include <ATen/ATen.h>

#include "mpssm/ops/canonical.h"

namespace mpssm::ops {
namespace {

/// [G]: nodes of each graph.
at::Tensor part_sizes(const graph::Gso& gso) {
  at::Tensor sizes = at::empty({gso.num_graphs()}, at::kLong);
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    sizes.data_ptr<std::int64_t>()[g] = gso.graph_ptr()[g + 1] - gso.graph_ptr()[g];
  }
  return sizes;
}

at::Tensor reduce(const at::Tensor& x, const at::Tensor& sizes, const char* how) {
  const at::Tensor out = at::segment_reduce(x, how, sizes, {}, {}, /*axis=*/0, /*unsafe=*/true, {});
  // The maximum of nothing is minus infinity, the mean not a number.
  return at::where((sizes == 0).unsqueeze(-1), at::zeros({}, x.options()), out);
}

}  // namespace

at::Tensor pool(const graph::Gso& gso, const at::Tensor& x, Pooling pooling) {
  TORCH_CHECK_VALUE(x.defined() && x.dim() == 2 && x.size(0) == gso.num_nodes(),
                    "pool: expected x of shape [N=", gso.num_nodes(), ", C], got ", describe(x));
  if (x.is_meta()) {  // which torch's segment_reduce does not know
    const std::int64_t copies = pooling == Pooling::kSumMaxMean ? 3 : 1;
    return at::empty({gso.num_graphs(), copies * x.size(1)}, x.options());
  }
  const at::Tensor sizes = part_sizes(gso).to(x.device());
  const at::Tensor dense = canonical(x);
  switch (pooling) {
    case Pooling::kSum:
      return reduce(dense, sizes, "sum");
    case Pooling::kMean:
      return reduce(dense, sizes, "mean");
    case Pooling::kMax:
      return reduce(dense, sizes, "max");
    case Pooling::kSumMaxMean:
      break;
  }
  return at::cat(
      {reduce(dense, sizes, "sum"), reduce(dense, sizes, "max"), reduce(dense, sizes, "mean")}, 1);
}

std::string_view to_string(Pooling pooling) {
  switch (pooling) {
    case Pooling::kSum:
      return "sum";
    case Pooling::kMean:
      return "mean";
    case Pooling::kMax:
      return "max";
    case Pooling::kSumMaxMean:
      return "sum_max_mean";
  }
  return "unknown";
}

Pooling pooling_from_name(std::string_view name) {
  for (const Pooling pooling :
       {Pooling::kSum, Pooling::kMean, Pooling::kMax, Pooling::kSumMaxMean}) {
    if (name == to_string(pooling)) return pooling;
  }
  throw std::invalid_argument("pooling_from_name: expected sum, mean, max or sum_max_mean, got '" +
                              std::string(name) + "'");
}

}  // namespace mpssm::ops
