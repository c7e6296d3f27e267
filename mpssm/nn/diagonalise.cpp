// SPDX-License-Identifier: MIT
#include "mpssm/nn/diagonalise.h"

#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <torch/types.h>

#include "mpssm/engine/diagonal_form.h"

namespace mpssm::nn {
namespace {

at::Tensor matrix_of(const std::vector<double>& numbers, std::int64_t rows, std::int64_t columns) {
  return torch::tensor(numbers, at::kDouble).view({rows, columns});
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
  const at::Tensor wide = w.to(at::kDouble).contiguous();
  const engine::DiagonalForm form = engine::diagonal_form(wide.data_ptr<double>(), w.size(0));
  const double precision = w.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                          : std::numeric_limits<float>::epsilon();
  TORCH_CHECK_VALUE(form.condition * precision <= tolerance,
                    "diagonalise: the eigenvectors of W have condition number ", form.condition,
                    ", so rounding could grow to ", form.condition * precision,
                    ", more than the tolerance ", tolerance,
                    "; keep the dense block or allow a larger tolerance");
  const std::int64_t channels = 2 * form.num_pairs();
  const at::Tensor w_in =
      at::matmul(block->w_in.to(at::kDouble), matrix_of(form.enter, w.size(0), channels));
  const at::Tensor w_back = matrix_of(form.leave, channels, w.size(0));

  BlockOptions to = from;
  to.state_channels = channels;
  to.state.kind = StateKind::kDiagonal;
  to.plan = engine::Plan::kAuto;
  const bool has_norm = from.state_norm != NormKind::kNone;
  if (has_norm) to.mix_channels = from.mix_channels > 0 ? from.mix_channels : from.state_channels;

  Diagonalised result{Block(to), form.condition};
  Block& out = result.block;
  out->to(w.scalar_type());
  const auto assign = [&](torch::Tensor& parameter, const at::Tensor& value) {
    parameter.copy_(value.to(parameter.scalar_type()));
  };
  assign(out->w_in, w_in);
  assign(out->w_state->sigma, matrix_of(form.sigma, form.num_pairs(), 2));
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
  if (!block->entries.is_empty()) {
    for (auto& item : out->entries->named_parameters()) {
      const at::Tensor own = block->entries->named_parameters()[item.key()];
      // Attention is to what enters, U B, which is now in the other basis.
      const bool in_basis = from.entries == EntriesKind::kAttention;
      assign(item.value(), in_basis ? at::matmul(w_back, own.to(at::kDouble)) : own);
    }
  }
  out->train(block->is_training());
  return result;
}

}  // namespace mpssm::nn
