// SPDX-License-Identifier: MIT
#include "mpssm/ops/gelu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/activation.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

at::Tensor forward(const at::Tensor& x) {
  at::Tensor y = empty_tensor_like(x);
  engine::activate(engine::Activation::kGelu, numbers<const float>(x), x.numel(), numbers<float>(y),
                   Threads());
  return y;
}

struct GeluFunction : torch::autograd::Function<GeluFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return ops::forward(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("gelu:");
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor out = empty_tensor_like(x);
    engine::activate_adjoint(engine::Activation::kGelu, numbers<const float>(x),
                             numbers<const float>(grad), x.numel(), numbers<float>(out), Threads());
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
