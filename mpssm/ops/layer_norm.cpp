// SPDX-License-Identifier: MIT
#include "mpssm/ops/layer_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/layer_norm.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

template <typename T>
engine::LayerNorm<T> make_args(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& mean,
                               const at::Tensor& inverse, double epsilon) {
  return {x.numel() / x.size(-1), x.size(-1),          epsilon, numbers<T>(x), numbers<T>(scale),
          numbers<T>(mean),       numbers<T>(inverse), {}};
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
    engine::layer_norm(make_args<T>(x, scale, out.mean, out.inverse, epsilon),
                       numbers<const T>(shift), numbers<T>(out.y), Threads());
  });
  return out;
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& scale, const at::Tensor& shift, double epsilon,
                            std::int64_t all_rows) {
    context->saved_data["all_rows"] = all_rows;
    Forward out = ops::forward(x, scale, shift, epsilon);
    context->save_for_backward({x, scale, out.mean, out.inverse});
    return out.y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("layer_norm:");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x = empty_tensor_like(x);
    at::Tensor grad_scale = at::empty({x.size(-1)}, x.options());
    at::Tensor grad_shift = at::empty({x.size(-1)}, x.options());
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      auto args = make_args<T>(x, saved[1], saved[2], saved[3], 0.0);
      args.place.all = context->saved_data["all_rows"].toInt();
      const CallMemory memory(sizeof(T) * engine::layer_norm_scratch(args.rows, args.width));
      engine::layer_norm_adjoint(args, numbers<const T>(grad), numbers<T>(grad_x),
                                 numbers<T>(grad_scale), numbers<T>(grad_shift), memory.data<T>(),
                                 Threads());
    });
    return {grad_x, grad_scale, grad_shift, {}, {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double epsilon, engine::RowPlace place) {
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
    return LayerNormFunction::apply(dense, dense_scale, dense_shift, epsilon, place.all);
  }
  return forward(dense, dense_scale, dense_shift, epsilon).y;
}

}  // namespace mpssm::ops
