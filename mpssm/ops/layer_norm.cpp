// SPDX-License-Identifier: MIT
#include "mpssm/ops/layer_norm.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/layer_norm.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

/// Rows of one task. Fixed: the gradients of scale and shift are summed per task, then over tasks.
constexpr std::int64_t kTaskRows = 512;

std::int64_t num_tasks(std::int64_t rows) { return (rows + kTaskRows - 1) / kTaskRows; }

template <typename T>
kernels::LayerNormArgs<T> make_args(const at::Tensor& x, const at::Tensor& scale,
                                    const at::Tensor& mean, const at::Tensor& inverse,
                                    double epsilon) {
  kernels::LayerNormArgs<T> args;
  args.width = x.size(-1);
  args.epsilon = epsilon;
  args.x = x.data_ptr<T>();
  args.scale = scale.data_ptr<T>();
  args.mean = mean.data_ptr<T>();
  args.inverse = inverse.data_ptr<T>();
  return args;
}

struct Forward {
  at::Tensor y;
  at::Tensor mean;     // [rows]
  at::Tensor inverse;  // [rows]
};

Forward forward(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                double epsilon) {
  const std::int64_t rows = x.numel() / x.size(-1);
  Forward out{empty_tensor_like(x), at::empty({rows}, x.options()), at::empty({rows}, x.options())};
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    const auto args = make_args<T>(x, scale, out.mean, out.inverse, epsilon);
    const T* shift_data = shift.data_ptr<T>();
    T* y = out.y.data_ptr<T>();
    run_tasks(num_tasks(rows), 4 * x.numel(), [&](std::int64_t task) {
      kernels::layer_norm(args, shift_data, y, task * kTaskRows,
                          std::min(rows, (task + 1) * kTaskRows));
    });
  });
  return out;
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& scale, const at::Tensor& shift, double epsilon) {
    Forward out = ops::forward(x, scale, shift, epsilon);
    context->save_for_backward({x, scale, out.mean, out.inverse});
    return out.y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                "layer_norm: gives first derivatives only (create_graph)");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = canonical(grads[0]);
    const std::int64_t rows = x.numel() / x.size(-1);
    const std::int64_t tasks = num_tasks(rows);
    at::Tensor grad_x = empty_tensor_like(x);
    at::Tensor sums = at::zeros({2, tasks, x.size(-1)}, x.options());
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      const auto args = make_args<T>(x, saved[1], saved[2], saved[3], 0.0);
      const T* grad_data = grad.data_ptr<T>();
      T* grad_x_data = grad_x.data_ptr<T>();
      T* scale_data = sums.data_ptr<T>();
      T* shift_data = scale_data + tasks * args.width;
      run_tasks(tasks, 8 * x.numel(), [&](std::int64_t task) {
        kernels::layer_norm_adjoint(args, grad_data, grad_x_data, scale_data + task * args.width,
                                    shift_data + task * args.width, task * kTaskRows,
                                    std::min(rows, (task + 1) * kTaskRows));
      });
    });
    return {grad_x, sum_of_parts(sums[0]), sum_of_parts(sums[1]), {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double epsilon) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && scale.defined() && shift.defined() && x.dim() >= 1 &&
                        scale.dim() == 1 && scale.size(0) == x.size(-1) &&
                        shift.sizes() == scale.sizes(),
                    "layer_norm: expected x of shape [..., C], scale and shift of shape [C], got ",
                    describe(x), ", ", describe(scale), " and ", describe(shift));
  check_same_device("layer_norm", {{"x", x}, {"scale", scale}, {"shift", shift}});
  const at::Tensor dense = canonical(x);
  const at::Tensor dense_scale = canonical(scale);
  const at::Tensor dense_shift = canonical(shift);
  if (x.is_meta()) return at::empty_like(dense);  // which not every build of torch knows
  if (!has_kernel({x, scale, shift}) || x.numel() == 0) {
    return at::layer_norm(dense, {x.size(-1)}, dense_scale, dense_shift, epsilon);
  }
  if (at::GradMode::is_enabled() &&
      (x.requires_grad() || scale.requires_grad() || shift.requires_grad())) {
    return LayerNormFunction::apply(dense, dense_scale, dense_shift, epsilon);
  }
  return forward(dense, dense_scale, dense_shift, epsilon).y;
}

}  // namespace mpssm::ops
