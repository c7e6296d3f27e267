// SPDX-License-Identifier: MIT
#include "mpssm/ops/edge_softmax.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/edge_softmax.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/saved_pattern.h"

namespace mpssm::ops {
namespace {

template <typename T>
engine::EdgeSoftmax<T> softmax_of(const graph::Gso& gso, const at::Tensor& target,
                                  const at::Tensor& source, double slope) {
  return {gso, numbers<const T>(target), numbers<const T>(source), static_cast<T>(slope)};
}

struct EdgeSoftmaxFunction : torch::autograd::Function<EdgeSoftmaxFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& target,
                            const at::Tensor& source, const graph::Gso& gso, double slope) {
    at::Tensor entries = at::empty({gso.num_nonzeros()}, target.options());
    with_real_type(target, [&](auto zero) {
      using T = decltype(zero);
      engine::edge_softmax(softmax_of<T>(gso, target, source, slope), numbers<T>(entries),
                           Threads());
    });
    save_pattern(*context, gso);
    context->saved_data["slope"] = slope;
    context->save_for_backward({target, source, entries});
    return entries;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("edge_softmax:");
    const auto saved = context->get_saved_variables();
    const graph::Gso pattern = saved_pattern(*context);
    const double slope = context->saved_data["slope"].toDouble();
    const at::Tensor grad = canonical(grads[0]);
    const at::Tensor grad_target = at::empty_like(saved[0]);
    const at::Tensor grad_source = at::empty_like(saved[1]);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      const CallMemory memory(saved[0].numel() * static_cast<std::int64_t>(sizeof(T)));
      engine::edge_softmax_adjoint(softmax_of<T>(pattern, saved[0], saved[1], slope),
                                   numbers<const T>(saved[2]), numbers<const T>(grad),
                                   numbers<T>(grad_target), numbers<T>(grad_source),
                                   memory.template data<T>(), Threads());
    });
    return {grad_target, grad_source, {}, {}};
  }
};

}  // namespace

at::Tensor edge_softmax(const graph::Gso& gso, const at::Tensor& target, const at::Tensor& source,
                        double slope) {
  ensure_runtime();
  for (const auto& [name, x] : {std::pair("target", &target), {"source", &source}}) {
    TORCH_CHECK_VALUE(x->defined() && x->dim() == 1 && x->size(0) == gso.num_nodes(),
                      "edge_softmax: expected ", name, " of shape [N=", gso.num_nodes(), "], got ",
                      describe(*x));
  }
  TORCH_CHECK_TYPE(has_kernel({target}) && target.scalar_type() == source.scalar_type(),
                   "edge_softmax: expected float or double on the CPU for both, got ",
                   target.scalar_type(), " and ", source.scalar_type());
  return EdgeSoftmaxFunction::apply(canonical(target), canonical(source), gso, slope);
}

}  // namespace mpssm::ops
