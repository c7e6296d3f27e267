// SPDX-License-Identifier: MIT
#include "mpssm/ops/causal_convolution.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/causal_convolution.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

template <typename T>
engine::CausalConvolution<T> convolution_args(const at::Tensor& x, const at::Tensor& kernel) {
  return {.batch = x.numel() / (x.size(-3) * x.size(-2) * x.size(-1)),
          .steps = x.size(-3),
          .nodes = x.size(-2),
          .width = x.size(-1),
          .taps = kernel.size(0),
          .x = numbers<T>(x),
          .kernel = numbers<T>(kernel)};
}

struct ConvolutionFunction : torch::autograd::Function<ConvolutionFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& kernel) {
    at::Tensor y = empty_tensor_like(x);
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      engine::causal_convolution(convolution_args<T>(x, kernel), numbers<T>(y), Threads());
    });
    context->save_for_backward({x, kernel});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("causal_convolution:");
    const auto saved = context->get_saved_variables();
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x = empty_tensor_like(saved[0]);
    at::Tensor grad_kernel = at::empty_like(saved[1]);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      const auto args = convolution_args<T>(saved[0], saved[1]);
      const CallMemory memory(static_cast<std::int64_t>(sizeof(T)) *
                              engine::causal_convolution_scratch(args));
      engine::causal_convolution_adjoint(args, numbers<const T>(grad), numbers<T>(grad_x),
                                         numbers<T>(grad_kernel), memory.data<T>(), Threads());
    });
    return {grad_x, grad_kernel};
  }
};

}  // namespace

at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& kernel) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && kernel.defined() && x.dim() >= 3 && kernel.dim() == 2 &&
                        kernel.size(0) >= 1 && kernel.size(1) == x.size(-1),
                    "causal_convolution: expected x of shape [..., T, N, C] and a kernel of shape "
                    "[taps, C], got ",
                    describe(x), " and ", describe(kernel));
  TORCH_CHECK_NOT_IMPLEMENTED(has_kernel({x, kernel}),
                              "causal_convolution: expected float or double on the CPU, got ",
                              x.scalar_type(), " on ", x.device());
  if (x.numel() == 0) return at::zeros_like(x);
  return ConvolutionFunction::apply(canonical(x), canonical(kernel));
}

}  // namespace mpssm::ops
