// SPDX-License-Identifier: MIT
#include "mpssm/ops/embedding.h"

#include <numeric>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/embedding.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

/// Rows of the table, [rows, columns].
at::Tensor table_rows(const at::Tensor& codes, std::span<const std::int32_t> vocabulary) {
  const auto columns = static_cast<std::int64_t>(vocabulary.size());
  const at::Tensor numbers_of_codes = codes.to(at::kCPU, at::kDouble).contiguous();
  at::Tensor rows = at::empty({codes.numel() / columns, columns}, at::kInt);
  const double* code = numbers_of_codes.data_ptr<double>();
  auto* row = rows.data_ptr<std::int32_t>();
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    std::int32_t first = 0;
    for (const std::int32_t size : vocabulary) {
      const bool is_known = *code >= 0.0 && *code < size;
      *row++ = is_known ? first + static_cast<std::int32_t>(*code) : -1;
      ++code;
      first += size;
    }
  }
  return rows;
}

engine::EmbeddingRows rows_in(const at::Tensor& rows) {
  return {.rows = rows.size(0), .columns = rows.size(1), .index = rows.data_ptr<std::int32_t>()};
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& bias_or_empty, const at::Tensor& rows) {
    const at::Tensor bias = absent_if_empty(bias_or_empty);
    const std::int64_t width = weight.size(0);
    const at::Tensor table = weight.t().contiguous();
    at::Tensor y = empty_tensor({rows.size(0), width}, weight.options());
    with_real_type(weight, [&](auto zero) {
      using T = decltype(zero);
      engine::embed(rows_in(rows), numbers<const T>(table), numbers<const T>(bias), width,
                    numbers<T>(y), Threads());
    });
    context->save_for_backward({rows});
    context->saved_data["num_table"] = weight.size(1);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("embedding:");
    const at::Tensor rows = context->get_saved_variables()[0];
    const at::Tensor grad = canonical(grads[0]);
    const std::int64_t num_table = context->saved_data["num_table"].toInt();
    at::Tensor grad_weight, grad_bias;
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      const auto sums = [&](const at::Tensor& index, std::int64_t count) {
        at::Tensor sum = at::empty({count, grad.size(1)}, grad.options());
        engine::embed_adjoint(rows_in(index), numbers<const T>(grad), count, grad.size(1),
                              numbers<T>(sum), Threads());
        return sum;
      };
      if (context->needs_input_grad(0)) grad_weight = sums(rows, num_table).t().contiguous();
      // The bias is a table of one row that every row has.
      if (context->needs_input_grad(1)) {
        grad_bias = sums(at::zeros({rows.size(0), 1}, at::kInt), 1)[0];
      }
    });
    return {grad_weight, grad_bias, {}};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& codes, std::span<const std::int32_t> vocabulary,
                     const at::Tensor& weight, const at::Tensor& bias) {
  ensure_runtime();
  const auto columns = static_cast<std::int64_t>(vocabulary.size());
  const std::int64_t total = std::accumulate(vocabulary.begin(), vocabulary.end(), std::int64_t{0});
  TORCH_CHECK_VALUE(columns > 0 && codes.defined() && codes.dim() >= 1 && codes.size(-1) == columns,
                    "embedding: expected codes of shape [..., columns=", columns, "], got ",
                    describe(codes));
  TORCH_CHECK_VALUE(weight.defined() && weight.dim() == 2 && weight.size(1) == total &&
                        (!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1)),
                    "embedding: expected weight of shape [out, ", total,
                    "] and a bias of shape [out], got ", describe(weight), " and ",
                    bias.defined() ? describe(bias) : "no bias");
  check_same_device("embedding", {{"codes", codes}, {"weight", weight}, {"bias", bias}});
  std::vector<std::int64_t> shape = codes.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor rows = table_rows(codes, vocabulary);
  if (!has_kernel({weight, bias})) {
    // Row `total` of the table is none's.
    const at::Tensor table =
        at::cat({weight.t(), at::zeros({1, weight.size(0)}, weight.options())});
    const at::Tensor index = at::where(rows < 0, total, rows.to(at::kLong)).to(weight.device());
    const at::Tensor y =
        table.index_select(0, index.flatten()).view({rows.size(0), columns, weight.size(0)}).sum(1);
    return (bias.defined() ? y + bias : y).view(shape);
  }
  const at::Tensor dense = canonical(weight);
  return EmbeddingFunction::apply(dense, empty_if_absent(canonical(bias), dense), rows).view(shape);
}

}  // namespace mpssm::ops
