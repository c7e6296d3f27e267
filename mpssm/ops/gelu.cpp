// SPDX-License-Identifier: MIT
#include "mpssm/ops/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/gelu.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

at::Tensor forward(const at::Tensor& x) {
  at::Tensor y = empty_tensor_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for_numbers(x.numel(),
              [&](std::int64_t begin, std::int64_t end) { kernels::gelu(from, to, begin, end); });
  return y;
}

struct GeluFunction : torch::autograd::Function<GeluFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return ops::forward(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(),
                                "gelu: gives first derivatives only (create_graph)");
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor out = empty_tensor_like(x);
    const float* x_data = x.data_ptr<float>();
    const float* grad_data = grad.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for_numbers(x.numel(), [&](std::int64_t begin, std::int64_t end) {
      kernels::gelu_adjoint(x_data, grad_data, to, begin, end);
    });
    return {out};
  }
};

}  // namespace

at::Tensor gelu(const at::Tensor& x) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined(), "gelu: expected a tensor, got an undefined one");
  const at::Tensor dense = canonical(x);
  if (!has_kernel({x}) || x.scalar_type() != at::kFloat) return at::gelu(dense);
  return at::GradMode::is_enabled() && x.requires_grad() ? GeluFunction::apply(dense)
                                                         : forward(dense);
}

}  // namespace mpssm::ops
