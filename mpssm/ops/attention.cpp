// SPDX-License-Identifier: MIT
#include "mpssm/ops/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/attention.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/saved_pattern.h"

namespace mpssm::ops {
namespace {

template <typename T>
engine::Attention<T> attention_args(const graph::Gso& pattern, const at::Tensor& x,
                                    const at::Tensor& to, const at::Tensor& from, double slope) {
  return {.pattern = pattern.view<T>(),
          .heads = to.size(1),
          .width = x.size(1) / to.size(1),
          .slope = static_cast<T>(slope),
          .x = numbers<T>(x),
          .to = numbers<T>(to),
          .from = numbers<T>(from)};
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& to, const at::Tensor& from, const graph::Gso& pattern,
                            double slope) {
    at::Tensor y = empty_tensor_like(x);
    at::Tensor weight = empty_tensor({to.size(1), pattern.num_nonzeros()}, x.options());
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      engine::attend(attention_args<T>(pattern, x, to, from, slope), numbers<T>(weight),
                     numbers<T>(y), Threads());
    });
    save_pattern(*context, pattern);
    context->saved_data["slope"] = slope;
    context->save_for_backward({x, to, from, weight});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("attention:");
    const auto saved = context->get_saved_variables();
    const graph::Gso pattern = saved_pattern(*context);
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x = empty_tensor_like(saved[0]);
    at::Tensor grad_to = at::empty_like(saved[1]);
    at::Tensor grad_from = at::empty_like(saved[2]);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      const auto args = attention_args<T>(pattern, saved[0], saved[1], saved[2],
                                          context->saved_data["slope"].toDouble());
      const CallMemory memory(engine::attend_adjoint_bytes(args));
      engine::attend_adjoint(args, numbers<const T>(saved[3]), numbers<const T>(grad),
                             numbers<T>(grad_x), numbers<T>(grad_to), numbers<T>(grad_from),
                             memory.workspace(), Threads());
    });
    return {grad_x, grad_to, grad_from, {}, {}};
  }
};

}  // namespace

at::Tensor attention(const graph::Gso& pattern, const at::Tensor& x, const at::Tensor& to,
                     const at::Tensor& from, double slope) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && to.defined() && from.defined() && x.dim() == 2 &&
                        to.dim() == 2 && x.size(0) == pattern.num_nodes() &&
                        to.size(0) == x.size(0) && to.size(1) >= 1 && x.size(1) % to.size(1) == 0 &&
                        from.sizes() == to.sizes(),
                    "attention: expected x of shape [N=", pattern.num_nodes(),
                    ", heads * width], to and from of shape [N, heads], got ", describe(x), ", ",
                    describe(to), " and ", describe(from));
  TORCH_CHECK_NOT_IMPLEMENTED(has_kernel({x, to, from}),
                              "attention: expected float or double on the CPU, got ",
                              x.scalar_type(), " on ", x.device());
  return AttentionFunction::apply(canonical(x), canonical(to), canonical(from), pattern, slope);
}

}  // namespace mpssm::ops
