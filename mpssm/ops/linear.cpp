// SPDX-License-Identifier: MIT
#include "mpssm/ops/linear.h"

#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/linear.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

using engine::Precision;
using engine::RowPlace;
using engine::Transpose;

at::Tensor rows_of(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// y = x W (+ bias); W is w (kNo) or its transpose (kYes). All contiguous.
at::Tensor forward(const at::Tensor& x, const at::Tensor& w, Transpose transpose,
                   const at::Tensor& bias, Precision precision) {
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = w.size(transpose == Transpose::kYes ? 0 : 1);
  at::Tensor y = empty_tensor(shape, x.options());
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    engine::MatmulBatch<T> args;
    args.inner = x.size(-1);
    args.columns = y.size(-1);
    args.rows = x.numel() / args.inner;
    args.x = numbers<T>(x);
    args.add = numbers<T>(bias);
    args.add_is_bias = true;
    args.y = numbers<T>(y);
    const Threads threads;
    const CallMemory memory(
        engine::matmul_scratch(args.inner, args.columns, precision, threads.workers()) * sizeof(T));
    engine::matmul(args, transpose, numbers<const T>(w), memory.data<T>(), threads, precision);
  });
  return y;
}

at::Tensor column_sums(const at::Tensor& g, RowPlace place) {
  at::Tensor sums = at::empty({g.size(1)}, g.options());
  with_real_type(g, [&](auto zero) {
    using T = decltype(zero);
    const CallMemory memory(engine::column_sums_scratch(g.size(0), g.size(1)) * sizeof(T));
    engine::column_sums(numbers<const T>(g), g.size(0), g.size(1), numbers<T>(sums),
                        memory.data<T>(), Threads(), place);
  });
  return sums;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& w, const at::Tensor& bias_or_empty,
                            Transpose transpose, Precision precision, RowPlace place) {
    context->saved_data["all_rows"] = place.all;
    context->save_for_backward({x, w});
    context->saved_data["precision"] = static_cast<std::int64_t>(precision);
    context->saved_data["transposed"] = transpose == Transpose::kYes;
    return ops::forward(x, w, transpose, absent_if_empty(bias_or_empty), precision);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("linear:");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    const auto precision = static_cast<Precision>(context->saved_data["precision"].toInt());
    const bool transposed = context->saved_data["transposed"].toBool();
    const RowPlace place{.all = context->saved_data["all_rows"].toInt()};
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x, grad_w, grad_bias;
    if (context->needs_input_grad(0)) {
      grad_x = ops::forward(grad, w, transposed ? Transpose::kNo : Transpose::kYes, {}, precision);
    }
    if (context->needs_input_grad(1)) {
      grad_w = transposed ? transposed_matmul(rows_of(grad), rows_of(x), precision, place)
                          : transposed_matmul(rows_of(x), rows_of(grad), precision, place);
    }
    if (context->needs_input_grad(2)) grad_bias = column_sums(rows_of(grad), place);
    return {grad_x, grad_w, grad_bias, {}, {}, {}};
  }
};

at::Tensor apply(const at::Tensor& x, const at::Tensor& w, Transpose transpose,
                 const at::Tensor& bias, Precision precision, RowPlace place) {
  const bool records = at::GradMode::is_enabled() && (x.requires_grad() || w.requires_grad() ||
                                                      (bias.defined() && bias.requires_grad()));
  return records
             ? LinearFunction::apply(x, w, empty_if_absent(bias, x), transpose, precision, place)
             : forward(x, w, transpose, bias, precision);
}

}  // namespace

at::Tensor transposed_matmul(const at::Tensor& any_x, const at::Tensor& any_g, Precision precision,
                             RowPlace place) {
  const at::Tensor x = canonical(any_x);
  const at::Tensor g = canonical(any_g);
  TORCH_CHECK_VALUE(has_kernel({x, g}) && x.dim() == 2 && g.dim() == 2 && x.size(0) == g.size(0),
                    "transposed_matmul: expected x of shape [rows, left] and g of shape [rows, "
                    "right], both float or both double on the CPU, got ",
                    x.sizes(), " ", x.scalar_type(), " and ", g.sizes(), " ", g.scalar_type());
  ensure_runtime();
  check_precision("transposed_matmul", precision, x);
  at::Tensor out = at::empty({x.size(1), g.size(1)}, x.options());
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    const Threads threads;
    const CallMemory memory(sizeof(T) * engine::transposed_matmul_scratch(
                                            x.size(0), x.size(1), g.size(1), threads.workers()));
    engine::transposed_matmul(numbers<const T>(x), numbers<const T>(g), x.size(0), x.size(1),
                              g.size(1), numbers<T>(out), memory.data<T>(), threads, precision,
                              place);
  });
  return out;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Precision precision, RowPlace place) {
  ensure_runtime();
  TORCH_CHECK_VALUE(weight.defined() && weight.dim() == 2,
                    "linear: expected weight of shape [out, in], got ", describe(weight));
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= 1 && x.size(-1) == weight.size(1) &&
                        (!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1)),
                    "linear: expected x of shape [..., in=", weight.size(1),
                    "] and a bias of shape [out=", weight.size(0), "], got ", describe(x), " and ",
                    bias.defined() ? describe(bias) : "no bias");
  check_same_device("linear", {{"x", x}, {"weight", weight}, {"bias", bias}});
  check_precision("linear", precision, x);
  const at::Tensor dense_bias = canonical(bias);
  if (!has_kernel({x, weight, bias}) || x.numel() == 0) {
    return at::linear(canonical(x), canonical(weight), dense_bias);
  }
  return apply(canonical(x), canonical(weight), Transpose::kYes, dense_bias, precision, place);
}

at::Tensor matmul(const at::Tensor& x, const at::Tensor& w, Precision precision, RowPlace place) {
  ensure_runtime();
  TORCH_CHECK_VALUE(
      x.defined() && w.defined() && x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(0),
      "matmul: expected x of shape [..., in] and w of shape [in, out], got ", describe(x), " and ",
      describe(w));
  check_same_device("matmul", {{"x", x}, {"w", w}});
  check_precision("matmul", precision, x);
  if (!has_kernel({x, w}) || x.numel() == 0) return at::matmul(canonical(x), canonical(w));
  return apply(canonical(x), canonical(w), Transpose::kNo, {}, precision, place);
}

}  // namespace mpssm::ops
