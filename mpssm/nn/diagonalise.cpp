// SPDX-License-Identifier: MIT
#include "mpssm/nn/diagonalise.h"

#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <torch/types.h>

namespace mpssm::nn {
namespace {

/// Columns 2j and 2j+1: real and imaginary part of complex column j.
at::Tensor columns_as_pairs(const at::Tensor& complex_matrix) {
  return at::view_as_real(complex_matrix.contiguous()).flatten(-2);
}

}  // namespace

Diagonalised diagonalise(const Block& block, double tolerance) {
  const BlockOptions& from = block->options();
  TORCH_CHECK_VALUE(from.state.kind == StateKind::kDense,
                    "diagonalise: expected a block with a dense W, got ",
                    std::string(to_string(from.state.kind)));
  const torch::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(block->options().group_shares.size() < 2,
                    "diagonalise: expected one operator for all channels, got groups");
  const at::Tensor w = block->w_state->weight;
  const auto [values, vectors] = at::linalg_eig(w.to(at::kDouble));
  const double condition = at::linalg_cond(vectors).item<double>();
  const double precision = w.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                          : std::numeric_limits<float>::epsilon();
  TORCH_CHECK_VALUE(condition * precision <= tolerance,
                    "diagonalise: the eigenvectors of W have condition number ", condition,
                    ", so rounding could grow to ", condition * precision,
                    ", more than the tolerance ", tolerance,
                    "; keep the dense block or allow a larger tolerance");
  const at::Tensor inverse = at::linalg_inv(vectors);

  // One of each conjugate pair stands for both: twice its real part.
  std::vector<std::int64_t> kept;
  std::vector<double> scale;
  const at::Tensor imaginary = at::imag(values).contiguous();
  for (std::int64_t j = 0; j < values.numel(); ++j) {
    const double im = imaginary.data_ptr<double>()[j];
    if (im < 0.0) continue;
    kept.push_back(j);
    scale.push_back(im > 0.0 ? 2.0 : 1.0);
  }
  const at::Tensor index = torch::tensor(kept);
  const at::Tensor factor = torch::tensor(scale, at::kDouble).unsqueeze(-1);

  const at::Tensor b = block->w_in.to(at::kDouble).to(at::kComplexDouble);
  const at::Tensor w_in = columns_as_pairs(at::matmul(b, vectors.index_select(1, index)));
  // X = Re(Z V^-1): rows Re and -Im of each kept row of V^-1.
  const at::Tensor back = inverse.index_select(0, index);  // [M, C]
  const at::Tensor w_back =
      at::stack({at::real(back) * factor, -at::imag(back) * factor}, 1).flatten(0, 1);  // [2 M, C]

  BlockOptions to = from;
  to.state_channels = w_in.size(1);
  to.state.kind = StateKind::kDiagonal;
  to.plan = engine::Plan::kAuto;
  const bool has_norm = from.state_norm != NormKind::kNone;
  if (has_norm) to.mix_channels = from.mix_channels > 0 ? from.mix_channels : from.state_channels;

  Diagonalised result{Block(to), condition};
  Block& out = result.block;
  out->to(w.scalar_type());
  const auto assign = [&](torch::Tensor& parameter, const at::Tensor& value) {
    parameter.copy_(value.to(parameter.scalar_type()));
  };
  assign(out->w_in, w_in);
  assign(out->w_state->sigma, at::view_as_real(values.index_select(0, index)));
  const at::Tensor mixed =
      from.mix_channels > 0 ? at::matmul(w_back, block->w_out.to(at::kDouble)) : w_back;
  if (has_norm) {
    assign(out->w_out, mixed);
    assign(out->mlp_in->weight, block->mlp_in->weight);
    const auto source = block->state_norm->named_parameters();
    for (auto& item : out->state_norm->named_parameters()) assign(item.value(), source[item.key()]);
    const auto buffers = block->state_norm->named_buffers();
    // With their type: a count of batches is no float.
    for (auto& item : out->state_norm->named_buffers()) {
      item.value().set_data(buffers[item.key()].clone());
    }
  } else {
    // Linear keeps its weight transposed: [hidden, C].
    assign(out->mlp_in->weight, at::matmul(mixed, block->mlp_in->weight.to(at::kDouble).t()).t());
  }
  assign(out->mlp_in->bias, block->mlp_in->bias);
  assign(out->mlp_out->weight, block->mlp_out->weight);
  assign(out->mlp_out->bias, block->mlp_out->bias);
  out->train(block->is_training());
  return result;
}

}  // namespace mpssm::nn
