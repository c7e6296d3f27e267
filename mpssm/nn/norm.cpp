// SPDX-License-Identifier: MIT
#include "mpssm/nn/norm.h"

#include <torch/types.h>

#include "mpssm/ops/layer_norm.h"
#include "mpssm/ops/linear.h"

namespace mpssm::nn {
namespace {

/// Batch normalisation in training. Torch's adds up per thread; here sums over rows, and those that
/// the backward pass takes where a row was spread, are matrix products with ones: the same bits for
/// any number of threads.
torch::Tensor batch_norm(torch::nn::BatchNorm1dImpl& batch, const torch::Tensor& rows) {
  const auto count = static_cast<double>(rows.size(0));
  const torch::Tensor row_of_ones =
      torch::ones({1, rows.size(0)}, rows.options().dtype(torch::kDouble));
  const torch::Tensor column_of_ones = torch::ones({rows.size(0), 1}, rows.options());
  const auto mean_of = [&](const torch::Tensor& x) {
    return (ops::matmul(row_of_ones, x.to(torch::kDouble)) / count).to(x.scalar_type());
  };
  const auto spread = [&](const torch::Tensor& row) { return ops::matmul(column_of_ones, row); };
  const torch::Tensor mean = mean_of(rows);
  const torch::Tensor centred = rows - spread(mean);
  const torch::Tensor variance = mean_of(centred.square());
  {
    const torch::NoGradGuard no_grad;
    const double momentum = batch.options.momentum().value_or(0.1);
    batch.running_mean.lerp_(mean.squeeze(0), momentum);
    batch.running_var.lerp_(variance.squeeze(0) * (count / (count - 1.0)), momentum);
    batch.num_batches_tracked += 1;
  }
  const torch::Tensor factor = (variance + batch.options.eps()).rsqrt() * batch.weight.unsqueeze(0);
  return centred * spread(factor) + spread(batch.bias.unsqueeze(0));
}

}  // namespace

NormImpl::NormImpl(NormKind kind, std::int64_t channels) {
  if (kind == NormKind::kLayer) {
    scale_ = register_parameter("scale", torch::ones({channels}));
    shift_ = register_parameter("shift", torch::zeros({channels}));
  } else if (kind == NormKind::kBatch) {
    batch_ = register_module("batch", torch::nn::BatchNorm1d(channels));
  }
}

torch::Tensor NormImpl::forward(const torch::Tensor& x, engine::RowPlace place) {
  if (scale_.defined()) return ops::layer_norm(x, scale_, shift_, /*epsilon=*/1e-5, place);
  if (!batch_.is_empty()) {
    const torch::Tensor rows = x.reshape({-1, x.size(-1)});
    // One row has no variance, which torch says.
    const bool is_own = batch_->is_training() && rows.size(0) > 1;
    return (is_own ? batch_norm(*batch_, rows) : batch_->forward(rows)).view(x.sizes());
  }
  return x;
}

}  // namespace mpssm::nn
