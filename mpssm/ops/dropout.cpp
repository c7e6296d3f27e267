// SPDX-License-Identifier: MIT
#include "mpssm/ops/dropout.h"

#include <mutex>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/dropout.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

at::Tensor apply_mask(const at::Tensor& dense, std::uint64_t seed, double probability) {
  at::Tensor y = empty_tensor_like(dense);
  with_real_type(dense, [&](auto real) {
    using Real = decltype(real);
    engine::dropout(numbers<const Real>(dense), dense.numel(), seed, probability, numbers<Real>(y),
                    Threads());
  });
  return y;
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::int64_t seed, double probability) {
    context->saved_data["seed"] = seed;
    context->saved_data["probability"] = probability;
    return apply_mask(x, static_cast<std::uint64_t>(seed), probability);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("dropout:");
    const auto seed = static_cast<std::uint64_t>(context->saved_data["seed"].toInt());
    return {apply_mask(canonical(grads[0]), seed, context->saved_data["probability"].toDouble()),
            {},
            {}};
  }
};

}  // namespace

std::uint64_t draw_dropout_seed(const at::Generator& given) {
  at::Generator generator = given.defined() ? given : current_generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

at::Tensor dropout(const at::Tensor& x, double probability, const at::Generator& given) {
  TORCH_CHECK_VALUE(probability >= 0.0 && probability < 1.0,
                    "dropout: expected a probability in [0, 1), got ", probability);
  TORCH_CHECK_VALUE(x.defined(), "dropout: expected a tensor, got an undefined one");
  if (probability == 0.0) return x;
  ensure_runtime();
  const at::Tensor dense = canonical(x);
  if (x.is_meta()) return at::empty_like(dense);  // which not every build of torch knows
  // Other devices have generators of their own.
  if (!x.device().is_cpu()) return at::dropout(dense, probability, /*train=*/true);
  at::Generator generator = given.defined() ? given : current_generator();
  if (!has_kernel({x})) {
    TORCH_CHECK_TYPE(x.is_floating_point() || x.is_complex(),
                     "dropout: expected a floating or complex type, got ", x.scalar_type());
    const at::Tensor kept = at::empty(x.sizes(), dense.options().dtype(at::kFloat))
                                .bernoulli_(1.0 - probability, generator);
    return dense * (kept / (1.0 - probability)).to(x.scalar_type());
  }
  return DropoutFunction::apply(dense, static_cast<std::int64_t>(draw_dropout_seed(generator)),
                                probability);
}

}  // namespace mpssm::ops
