// SPDX-License-Identifier: MIT
#include "mpssm/ops/pool.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

struct SavedGraphs : torch::CustomClassHolder {
  explicit SavedGraphs(graph::Operators gso_in) : gso(std::move(gso_in)) {}
  graph::Operators gso;
};

struct PoolFunction : torch::autograd::Function<PoolFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const graph::Operators& gso, Pooling pooling) {
    at::Tensor y =
        at::empty({gso.num_graphs(), engine::pooled_copies(pooling) * x.size(1)}, x.options());
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      engine::pool(pooling, gso.graph_ptr(), numbers<const T>(x), x.size(1), numbers<T>(y),
                   Threads());
    });
    context->saved_data["graphs"] =
        c10::IValue::make_capsule(c10::make_intrusive<SavedGraphs>(gso));
    context->saved_data["pooling"] = static_cast<std::int64_t>(pooling);
    context->save_for_backward({x, y});
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("pool:");
    const auto saved = context->get_saved_variables();
    const auto graphs =
        c10::static_intrusive_pointer_cast<SavedGraphs>(context->saved_data["graphs"].toCapsule());
    const auto pooling = static_cast<Pooling>(context->saved_data["pooling"].toInt());
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor out = empty_tensor_like(saved[0]);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      engine::pool_adjoint(pooling, graphs->gso.graph_ptr(), numbers<const T>(saved[0]),
                           saved[0].size(1), numbers<const T>(saved[1]), numbers<const T>(grad),
                           numbers<T>(out), Threads());
    });
    return {out, {}, {}};
  }
};

/// Plain torch, for types and devices that the engine does not know: one graph after the other.
at::Tensor reference_pool(const graph::Operators& gso, const at::Tensor& x, Pooling pooling) {
  if (pooling == Pooling::kSumMaxMean) {
    return at::cat({reference_pool(gso, x, Pooling::kSum), reference_pool(gso, x, Pooling::kMax),
                    reference_pool(gso, x, Pooling::kMean)},
                   1);
  }
  std::vector<at::Tensor> rows;
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    const at::Tensor nodes = x.slice(0, gso.graph_ptr()[g], gso.graph_ptr()[g + 1]);
    if (nodes.size(0) == 0) {
      rows.push_back(at::zeros({x.size(1)}, x.options()));
    } else if (pooling == Pooling::kMax) {
      rows.push_back(at::amax(nodes, 0));
    } else {
      rows.push_back(pooling == Pooling::kSum ? nodes.sum(0) : nodes.mean(0));
    }
  }
  return rows.empty() ? at::zeros({0, x.size(1)}, x.options()) : at::stack(rows);
}

}  // namespace

at::Tensor pool(const graph::Operators& gso, const at::Tensor& x, Pooling pooling) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && x.dim() == 2 && x.size(0) == gso.num_nodes(),
                    "pool: expected x of shape [N=", gso.num_nodes(), ", C], got ", describe(x));
  const at::Tensor dense = canonical(x);
  if (!has_kernel({x})) return reference_pool(gso, dense, pooling);
  return PoolFunction::apply(dense, gso, pooling);
}

}  // namespace mpssm::ops
