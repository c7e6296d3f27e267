// SPDX-License-Identifier: MIT
#include "mpssm/ops/spmm.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/spmm.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/reference.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

/// Several, so that a thread that falls behind is helped out.
constexpr std::int64_t kPartsPerThread = 4;

/// First row of part `part` of `parts` with equal shares of nonzeros plus rows.
template <typename T>
std::int64_t balanced_row(const kernels::CsrView<T>& a, std::int64_t part, std::int64_t parts) {
  const std::int64_t target = (a.row_ptr[a.num_rows] + a.num_rows) * part / parts;
  std::int64_t low = 0;
  std::int64_t high = a.num_rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (a.row_ptr[middle] + middle < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

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
    const at::Tensor flat = x.view({-1, x.size(-2), x.size(-1)});
    at::Tensor y = empty_tensor_like(flat);
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      spmm_into<T>(side == Side::kForward ? gso.view<T>() : gso.transpose_view<T>(), flat, {}, y);
    });
    return at::_unsafe_view(y, x.sizes());
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

template <typename T>
void spmm_into(const kernels::CsrView<T>& matrix, const at::Tensor& x, const at::Tensor& add,
               const at::Tensor& y) {
  const std::int64_t batch = x.size(0);
  kernels::SpmmArgs<T> args;
  args.a = matrix;
  args.width = x.size(2);
  args.x_stride = x.stride(1);
  args.y_stride = y.stride(1);
  if (add.defined()) args.add_stride = add.stride(1);
  const std::int64_t work =
      batch * (matrix.row_ptr[matrix.num_rows] + matrix.num_rows) * args.width;
  const std::int64_t wanted = kPartsPerThread * num_threads();
  const std::int64_t parts = std::max<std::int64_t>(1, wanted / std::max<std::int64_t>(batch, 1));
  const T* x_data = x.data_ptr<T>();
  const T* add_data = add.defined() ? add.data_ptr<T>() : nullptr;
  T* y_data = y.data_ptr<T>();
  run_tasks(batch * parts, work, [&](std::int64_t task) {
    const std::int64_t b = task / parts;
    const std::int64_t part = task % parts;
    kernels::SpmmArgs<T> mine = args;
    mine.x = x_data + b * x.stride(0);
    mine.y = y_data + b * y.stride(0);
    if (add_data != nullptr) mine.add = add_data + b * add.stride(0);
    kernels::spmm(mine, balanced_row(matrix, part, parts), balanced_row(matrix, part + 1, parts));
  });
}

template void spmm_into<float>(const kernels::CsrView<float>&, const at::Tensor&, const at::Tensor&,
                               const at::Tensor&);
template void spmm_into<double>(const kernels::CsrView<double>&, const at::Tensor&,
                                const at::Tensor&, const at::Tensor&);

void multiply(const kernels::CsrView<double>& a, const double* x, std::int64_t width, double* y) {
  ensure_runtime();
  kernels::SpmmArgs<double> args;
  args.a = a;
  args.x = x;
  args.y = y;
  args.x_stride = args.y_stride = args.width = width;
  const std::int64_t parts = kPartsPerThread * num_threads();
  run_tasks(parts, (a.row_ptr[a.num_rows] + a.num_rows) * width, [&](std::int64_t part) {
    kernels::spmm(args, balanced_row(a, part, parts), balanced_row(a, part + 1, parts));
  });
}

at::Tensor spmm(const graph::Gso& gso, const at::Tensor& x) {
  return apply(gso, Side::kForward, x);
}

at::Tensor spmm_transposed(const graph::Gso& gso, const at::Tensor& x) {
  return apply(gso, Side::kTransposed, x);
}

}  // namespace mpssm::ops
