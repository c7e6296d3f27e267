// SPDX-License-Identifier: MIT
#include "mpssm/ops/linear.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/matmul.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/plans.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

using kernels::Transpose;

constexpr std::int64_t kRowsPerTask = 192;
// Rows of the transposed product that are packed at a time: with a few hundred channels they stay
// in the second-level cache.
constexpr std::int64_t kPackedRows = 96;

Transpose other(Transpose transpose) {
  return transpose == Transpose::kYes ? Transpose::kNo : Transpose::kYes;
}

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

at::Tensor rows_of(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// W is w (kNo) or its transpose (kYes).
at::Tensor forward(const at::Tensor& x, const at::Tensor& w, Transpose transpose,
                   const at::Tensor& bias) {
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = w.size(transpose == Transpose::kYes ? 0 : 1);
  at::Tensor y = empty_tensor(shape, x.options());
  matmul_into(x, w, transpose, bias, y);
  return y;
}

/// Sum over the rows of g [rows, columns], part by part.
at::Tensor column_sums(const at::Tensor& g) {
  const RowParts parts(g.size(0));
  const std::int64_t columns = g.size(1);
  at::Tensor sums = at::zeros({parts.count, columns}, g.options());
  with_real_type(g, [&](auto zero) {
    using T = decltype(zero);
    const T* data = g.data_ptr<T>();
    T* sums_data = sums.data_ptr<T>();
    run_tasks(parts.count, g.numel(), [&](std::int64_t part) {
      T* sum = sums_data + part * columns;
      for (std::int64_t row = parts.begin(part); row < parts.end(part); ++row) {
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += data[row * columns + j];
      }
    });
  });
  return sum_of_parts(sums);
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& w, const at::Tensor& bias_or_empty,
                            Transpose transpose) {
    context->save_for_backward({x, w});
    context->saved_data["transposed"] = transpose == Transpose::kYes;
    return ops::forward(x, w, transpose, absent_if_empty(bias_or_empty));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                "linear: gives first derivatives only (create_graph)");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    const bool transposed = context->saved_data["transposed"].toBool();
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x, grad_w, grad_bias;
    if (context->needs_input_grad(0)) {
      grad_x = empty_tensor_like(x);
      matmul_into(grad, w, other(transposed ? Transpose::kYes : Transpose::kNo), {}, grad_x);
    }
    if (context->needs_input_grad(1)) {
      grad_w = transposed ? transposed_matmul(rows_of(grad), rows_of(x))
                          : transposed_matmul(rows_of(x), rows_of(grad));
    }
    if (context->needs_input_grad(2)) grad_bias = column_sums(rows_of(grad));
    return {grad_x, grad_w, grad_bias, {}};
  }
};

at::Tensor apply(const at::Tensor& x, const at::Tensor& w, Transpose transpose,
                 const at::Tensor& bias) {
  const bool records = at::GradMode::is_enabled() && (x.requires_grad() || w.requires_grad() ||
                                                      (bias.defined() && bias.requires_grad()));
  return records ? LinearFunction::apply(x, w, empty_if_absent(bias, x), transpose)
                 : forward(x, w, transpose, bias);
}

}  // namespace

void matmul_into(const at::Tensor& x, const at::Tensor& w, Transpose transpose,
                 const at::Tensor& add, const at::Tensor& y) {
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    kernels::MatmulArgs<T> args;
    args.inner = x.size(-1);
    args.columns = y.size(-1);
    const at::Tensor packed =
        at::empty({kernels::packed_size(args.inner, args.columns)}, x.options());
    kernels::pack_matrix(transpose, w.data_ptr<T>(), args.inner, args.columns,
                         packed.data_ptr<T>());
    args.x = x.data_ptr<T>();
    args.x_layout = {args.inner, 0};
    args.y_layout = {args.columns, 0};
    args.packed = packed.data_ptr<T>();
    if (add.defined()) {
      args.add = add.data_ptr<T>();
      args.add_is_bias = add.dim() == 1;
    }
    args.y = y.data_ptr<T>();
    const std::int64_t rows = x.numel() / args.inner;
    run_tasks((rows + kRowsPerTask - 1) / kRowsPerTask, rows * args.inner * args.columns / 8,
              [&](std::int64_t task) {
                kernels::matmul(args, task * kRowsPerTask,
                                std::min(rows, (task + 1) * kRowsPerTask));
              });
  });
}

at::Tensor transposed_matmul(const at::Tensor& any_x, const at::Tensor& any_g) {
  const at::Tensor x = canonical(any_x);
  const at::Tensor g = canonical(any_g);
  TORCH_CHECK_VALUE(has_kernel({x, g}) && x.dim() == 2 && g.dim() == 2 && x.size(0) == g.size(0),
                    "transposed_matmul: expected x of shape [rows, left] and g of shape [rows, "
                    "right], both float or both double on the CPU, got ",
                    x.sizes(), " ", x.scalar_type(), " and ", g.sizes(), " ", g.scalar_type());
  ensure_runtime();
  const RowParts parts(x.size(0));
  const std::int64_t left = round_up(x.size(1), kernels::kLeftLanes);
  const std::int64_t right = round_up(g.size(1), kernels::kRightLanes);
  at::Tensor sums = at::zeros({parts.count, left, right}, x.options());
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    const T* x_data = x.data_ptr<T>();
    const T* g_data = g.data_ptr<T>();
    T* sums_data = sums.data_ptr<T>();
    run_tasks(parts.count, x.size(0) * left * right / 8, [&](std::int64_t part) {
      T* const packed = thread_scratch<T>(kPackedRows * (left + right));
      kernels::MatmulTransposedArgs<T> args;
      args.left = left;
      args.right = right;
      args.x = packed;
      args.g = packed + kPackedRows * left;
      args.sum = sums_data + part * left * right;
      for (std::int64_t row = parts.begin(part); row < parts.end(part); row += kPackedRows) {
        const std::int64_t rows = std::min(kPackedRows, parts.end(part) - row);
        args.x_layout = {kernels::kLeftLanes, rows * kernels::kLeftLanes};
        args.g_layout = {kernels::kRightLanes, rows * kernels::kRightLanes};
        kernels::pack_rows<kernels::kLeftLanes>(x_data + row * x.size(1), rows, x.size(1), packed);
        kernels::pack_rows<kernels::kRightLanes>(g_data + row * g.size(1), rows, g.size(1),
                                                 packed + kPackedRows * left);
        kernels::matmul_transposed(args, 0, rows);
      }
    });
  });
  const at::Tensor sum = sum_of_parts(sums);
  return sum.slice(0, 0, x.size(1)).slice(1, 0, g.size(1)).contiguous();
}

at::Tensor sum_of_parts(const at::Tensor& parts) {
  const std::int64_t count = parts.size(0);
  if (count == 1) return parts[0];
  at::Tensor out = at::zeros(parts.sizes().slice(1), parts.options());
  with_real_type(parts, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t size = out.numel();
    const T* from = parts.data_ptr<T>();
    T* to = out.data_ptr<T>();
    for_numbers(size, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = 0; part < count; ++part) {
        for (std::int64_t i = begin; i < end; ++i) to[i] += from[part * size + i];
      }
    });
  });
  return out;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  ensure_runtime();
  TORCH_CHECK_VALUE(weight.defined() && weight.dim() == 2,
                    "linear: expected weight of shape [out, in], got ", describe(weight));
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= 1 && x.size(-1) == weight.size(1) &&
                        (!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1)),
                    "linear: expected x of shape [..., in=", weight.size(1),
                    "] and a bias of shape [out=", weight.size(0), "], got ", describe(x), " and ",
                    bias.defined() ? describe(bias) : "no bias");
  check_same_device("linear", {{"x", x}, {"weight", weight}, {"bias", bias}});
  const at::Tensor dense_bias = canonical(bias);
  if (!has_kernel({x, weight, bias}) || x.numel() == 0) {
    return at::linear(canonical(x), canonical(weight), dense_bias);
  }
  return apply(canonical(x), canonical(weight), Transpose::kYes, dense_bias);
}

at::Tensor matmul(const at::Tensor& x, const at::Tensor& w) {
  ensure_runtime();
  TORCH_CHECK_VALUE(
      x.defined() && w.defined() && x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(0),
      "matmul: expected x of shape [..., in] and w of shape [in, out], got ", describe(x), " and ",
      describe(w));
  check_same_device("matmul", {{"x", x}, {"w", w}});
  if (!has_kernel({x, w}) || x.numel() == 0) return at::matmul(canonical(x), canonical(w));
  return apply(canonical(x), canonical(w), Transpose::kNo, {});
}

}  // namespace mpssm::ops
