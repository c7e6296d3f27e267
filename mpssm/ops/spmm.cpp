// SPDX-License-Identifier: MIT
#include "mpssm/ops/spmm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/spmm.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/reference.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

enum class Side { kForward, kTransposed };

at::Tensor apply(const graph::Gso& gso, Side side, const at::Tensor& x);

struct SavedGso : torch::CustomClassHolder {
  SavedGso(graph::Gso gso_in, Side side_in) : gso(std::move(gso_in)), side(side_in) {}
  graph::Gso gso;
  Side side;
};

/// The gradient of A x is A' g, again an spmm, so any order of derivative follows.
struct SpmmFunction : torch::autograd::Function<SpmmFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const graph::Gso& gso, Side side) {
    context->saved_data["gso"] =
        c10::IValue::make_capsule(c10::make_intrusive<SavedGso>(gso, side));
    at::Tensor y = empty_tensor_like(x);
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      engine::SpmmBatch<T> args;
      args.a = side == Side::kForward ? gso.view<T>() : gso.transpose_view<T>();
      args.width = x.size(-1);
      args.x_stride = args.y_stride = x.size(-2) * x.size(-1);
      args.batch = x.numel() / args.x_stride;
      args.x = numbers<T>(x);
      args.y = numbers<T>(y);
      const std::int64_t scratch = engine::spmm_scratch(args);
      if (scratch == 0) return engine::spmm(args, Threads());
      const CallMemory memory(scratch * static_cast<std::int64_t>(sizeof(T)));
      args.scratch = memory.template data<T>();
      engine::spmm(args, Threads());
    });
    return y;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedGso>(context->saved_data["gso"].toCapsule());
    const Side back = saved->side == Side::kForward ? Side::kTransposed : Side::kForward;
    return {ops::apply(saved->gso, back, grads[0]), {}, {}};
  }
};

at::Tensor apply(const graph::Gso& gso, Side side, const at::Tensor& x) {
  ensure_runtime();
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= 2 && x.size(-2) == gso.num_nodes(),
                    "spmm: expected x of shape [..., N=", gso.num_nodes(), ", C], got ",
                    describe(x));
  TORCH_CHECK_TYPE(x.is_floating_point() || x.is_complex(),
                   "spmm: expected x of a floating or complex type, got ", x.scalar_type());
  if (!has_kernel({x})) {
    TORCH_CHECK_NOT_IMPLEMENTED(side == Side::kForward,
                                "spmm_transposed: expected float or double on the CPU, got ",
                                x.scalar_type(), " on ", x.device());
    return reference_spmm(gso, x);
  }
  const at::Tensor dense = canonical(x);
  if (x.numel() == 0) return at::zeros_like(dense);
  return SpmmFunction::apply(dense, gso, side);
}

}  // namespace

at::Tensor spmm(const graph::Gso& gso, const at::Tensor& x) {
  return apply(gso, Side::kForward, x);
}

at::Tensor spmm_transposed(const graph::Gso& gso, const at::Tensor& x) {
  return apply(gso, Side::kTransposed, x);
}

}  // namespace mpssm::ops
