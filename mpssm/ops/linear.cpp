// SPDX-License-Identifier: MIT
#include "mpssm/ops/linear.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/matmul.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/plans.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

using kernels::Transpose;

constexpr std::int64_t kRowsPerTask = 192;

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = weight.size(0);
  at::Tensor y = empty_tensor(shape, x.options());
  matmul_into(x, weight, Transpose::kYes, bias, y);
  return y;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& bias_or_empty) {
    context->save_for_backward({x, weight});
    return ops::forward(x, weight, absent_if_empty(bias_or_empty));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                "linear: gives first derivatives only (create_graph)");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor rows = grad.view({-1, grad.size(-1)});
    at::Tensor grad_x, grad_weight, grad_bias;
    if (context->needs_input_grad(0)) {
      grad_x = empty_tensor_like(x);
      matmul_into(grad, weight, Transpose::kNo, {}, grad_x);
    }
    if (context->needs_input_grad(1)) {
      grad_weight = at::mm(rows.t(), x.view({-1, x.size(-1)}));
    }
    if (context->needs_input_grad(2)) grad_bias = rows.sum(0);
    return {grad_x, grad_weight, grad_bias};
  }
};

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

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= 1 && weight.dim() == 2 &&
                        x.size(-1) == weight.size(1) &&
                        (!bias.defined() || bias.sizes() == weight.sizes().slice(0, 1)),
                    "linear: expected x of shape [..., in=", weight.size(-1),
                    "] and a bias of shape [out=", weight.size(0), "], got ",
                    x.defined() ? c10::str(x.sizes()) : "an undefined tensor", " and ",
                    bias.defined() ? c10::str(bias.sizes()) : "no bias");
  const bool has_kernel = x.device().is_cpu() && x.layout() == at::kStrided &&
                          (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble) &&
                          weight.scalar_type() == x.scalar_type() &&
                          (!bias.defined() || bias.scalar_type() == x.scalar_type());
  if (!has_kernel || x.numel() == 0) return at::linear(x, weight, bias);
  const at::Tensor dense = x.contiguous();
  const at::Tensor dense_weight = weight.contiguous();
  const bool records = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad() ||
                                                      (bias.defined() && bias.requires_grad()));
  return records ? LinearFunction::apply(dense, dense_weight, empty_if_absent(bias, x))
                 : forward(dense, dense_weight, bias);
}

}  // namespace mpssm::ops
