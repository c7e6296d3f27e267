// SPDX-License-Identifier: MIT
#include "mpssm/ops/feed_forward.h"

#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/engine/feed_forward.h"
#include "mpssm/ops/activation.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/layer_norm.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

using engine::Precision;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool recorded(std::initializer_list<at::Tensor> tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) return true;
  }
  return false;
}

std::vector<std::int64_t> with_last(const at::Tensor& x, std::int64_t width) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = width;
  return sizes;
}

/// What is kept of `like` for the backward pass in bfloat16: an empty tensor of its shape; of
/// another precision an undefined one.
at::Tensor rounded_copy(at::IntArrayRef sizes, const at::Tensor& like, Precision precision) {
  if (precision != Precision::kBf16) return {};
  return empty_tensor(sizes, like.options().dtype(at::kBFloat16));
}
kernels::Bf16* rounded_numbers(const at::Tensor& tensor) { return numbers<kernels::Bf16>(tensor); }

template <typename T>
engine::RowNorm<T> row_norm(const NormWeights& norm) {
  return {numbers<const T>(norm.scale), numbers<const T>(norm.shift)};
}

void check_norm(const char* name, const at::Tensor& x, const NormWeights& norm) {
  TORCH_CHECK_VALUE(
      norm.scale.defined() == norm.shift.defined() &&
          (!norm.scale.defined() || (norm.scale.dim() == 1 && norm.scale.size(0) == x.size(-1) &&
                                     norm.shift.sizes() == norm.scale.sizes())),
      name, ": expected scale and shift of shape [C=", x.size(-1), "], or neither, got ",
      describe(norm.scale), " and ", describe(norm.shift));
}

// ---- norm(x) W --------------------------------------------------------------------------------

template <typename T>
engine::NormLinear<T> norm_linear_call(const at::Tensor& x, const NormWeights& norm,
                                       const at::Tensor& w, Precision precision) {
  return {.rows = x.numel() / x.size(-1),
          .in = w.size(0),
          .out = w.size(1),
          .x = numbers<const T>(x),
          .norm = row_norm<T>(norm),
          .w = numbers<const T>(w),
          .precision = precision};
}

/// `kept_x` is filled if it is defined.
at::Tensor norm_linear_forward(const at::Tensor& x, const NormWeights& norm, const at::Tensor& w,
                               Precision precision, const at::Tensor& kept_x) {
  at::Tensor y = empty_tensor(with_last(x, w.size(1)), x.options());
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    auto call = norm_linear_call<T>(x, norm, w, precision);
    call.kept_x = rounded_numbers(kept_x);
    const Threads threads;
    const CallMemory memory(engine::forward_bytes(call, threads.workers()));
    engine::forward(call, numbers<T>(y), memory.workspace(), threads);
  });
  return y;
}

struct NormLinearFunction : torch::autograd::Function<NormLinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, const at::Tensor& w, Precision precision,
                            engine::RowPlace place) {
    context->saved_data["all_rows"] = place.all;
    const at::Tensor kept_x = rounded_copy(x.sizes(), x, precision);
    context->save_for_backward({kept_x.defined() ? kept_x : x, scale, shift, w});
    context->saved_data["precision"] = static_cast<std::int64_t>(precision);
    return norm_linear_forward(x, {absent_if_empty(scale), absent_if_empty(shift)}, w, precision,
                               kept_x);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    check_single_backward("norm_linear:");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const NormWeights norm{absent_if_empty(saved[1]), absent_if_empty(saved[2])};
    const auto precision = static_cast<Precision>(context->saved_data["precision"].toInt());
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x, grad_scale, grad_shift;
    if (context->needs_input_grad(0)) grad_x = empty_tensor(x.sizes(), grad.options());
    if (norm.scale.defined()) grad_scale = at::empty_like(norm.scale);
    if (norm.shift.defined()) grad_shift = at::empty_like(norm.shift);
    at::Tensor grad_w = at::empty_like(saved[3]);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      auto call = norm_linear_call<T>(x, norm, saved[3], precision);
      if (precision == Precision::kBf16) call.kept_x = rounded_numbers(x);
      call.place.all = context->saved_data["all_rows"].toInt();
      const Threads threads;
      const CallMemory memory(engine::backward_bytes(call, threads.workers()));
      engine::backward(call, numbers<const T>(grad), numbers<T>(grad_x), numbers<T>(grad_w),
                       {numbers<T>(grad_scale), numbers<T>(grad_shift)}, memory.workspace(),
                       threads);
    });
    return {grad_x, grad_scale, grad_shift, grad_w, {}, {}};
  }
};

// ---- feed-forward -----------------------------------------------------------------------------

/// What is no tensor of a call.
struct Setting {
  engine::Activation activation;
  engine::Drop drop_hidden;
  engine::Drop drop_out;
  Precision precision;
  engine::RowPlace place;
};
struct SavedSetting : torch::CustomClassHolder {
  explicit SavedSetting(const Setting& setting_in) : setting(setting_in) {}
  Setting setting;
};

template <typename T>
engine::FeedForward<T> feed_forward_call(const at::Tensor& x, const FeedForwardWeights& weights,
                                         const at::Tensor& residual, const Setting& setting) {
  engine::FeedForward<T> call;
  call.in = weights.w1.size(1);
  call.hidden = weights.w1.size(0);
  call.out = weights.w2.size(0);
  call.rows = x.numel() / call.in;
  call.activation = setting.activation;
  call.drop_hidden = setting.drop_hidden;
  call.drop_out = setting.drop_out;
  call.precision = setting.precision;
  call.place = setting.place;
  call.x = numbers<const T>(x);
  call.norm = row_norm<T>(weights.norm);
  call.w1 = numbers<const T>(weights.w1);
  call.b1 = numbers<const T>(weights.b1);
  call.w2 = numbers<const T>(weights.w2);
  call.b2 = numbers<const T>(weights.b2);
  call.residual = numbers<const T>(residual);
  return call;
}

/// `kept_x` is filled if it is defined.
at::Tensor feed_forward_forward(const at::Tensor& x, const FeedForwardWeights& weights,
                                const at::Tensor& residual, const Setting& setting,
                                const at::Tensor& kept_x) {
  at::Tensor y = empty_tensor(with_last(x, weights.w2.size(0)), x.options());
  with_real_type(x, [&](auto zero) {
    using T = decltype(zero);
    auto call = feed_forward_call<T>(x, weights, residual, setting);
    call.kept_x = rounded_numbers(kept_x);
    const Threads threads;
    const CallMemory memory(engine::forward_bytes(call, threads.workers()));
    engine::forward(call, numbers<T>(y), memory.workspace(), threads);
  });
  return y;
}

/// Keeps x, rounded if the products are in bfloat16.
struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, const at::Tensor& w1, const at::Tensor& b1,
                            const at::Tensor& w2, const at::Tensor& b2, const at::Tensor& residual,
                            const Setting& setting) {
    const at::Tensor kept_x = rounded_copy(x.sizes(), x, setting.precision);
    context->saved_data["setting"] =
        c10::IValue::make_capsule(c10::make_intrusive<SavedSetting>(setting));
    context->saved_data["residual"] = residual.numel() > 0;
    context->save_for_backward({kept_x.defined() ? kept_x : x, scale, shift, w1, b1, w2});
    return feed_forward_forward(x,
                                {{absent_if_empty(scale), absent_if_empty(shift)}, w1, b1, w2, b2},
                                absent_if_empty(residual), setting, kept_x);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    check_single_backward("feed_forward:");
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const FeedForwardWeights weights{
        {absent_if_empty(saved[1]), absent_if_empty(saved[2])}, saved[3], saved[4], saved[5], {}};
    const Setting setting =
        c10::static_intrusive_pointer_cast<SavedSetting>(context->saved_data["setting"].toCapsule())
            ->setting;
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor grad_x, grad_scale, grad_shift;
    if (context->needs_input_grad(0)) grad_x = empty_tensor(x.sizes(), grad.options());
    if (weights.norm.scale.defined()) grad_scale = at::empty_like(weights.norm.scale);
    if (weights.norm.shift.defined()) grad_shift = at::empty_like(weights.norm.shift);
    at::Tensor grad_w1 = at::empty_like(weights.w1), grad_w2 = at::empty_like(weights.w2);
    at::Tensor grad_b1 = at::empty({weights.w1.size(0)}, grad.options());
    at::Tensor grad_b2 = at::empty({weights.w2.size(0)}, grad.options());
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      auto call = feed_forward_call<T>(x, weights, {}, setting);
      if (setting.precision == Precision::kBf16) call.kept_x = rounded_numbers(x);
      const Threads threads;
      const CallMemory memory(engine::backward_bytes(call, threads.workers()));
      engine::backward(call, numbers<const T>(grad),
                       {numbers<T>(grad_x),
                        numbers<T>(grad_w1),
                        numbers<T>(grad_b1),
                        numbers<T>(grad_w2),
                        numbers<T>(grad_b2),
                        {numbers<T>(grad_scale), numbers<T>(grad_shift)}},
                       memory.workspace(), threads);
    });
    const at::Tensor grad_residual =
        context->saved_data["residual"].toBool() ? grads[0] : at::Tensor();
    return {grad_x, grad_scale, grad_shift, grad_w1, grad_b1, grad_w2, grad_b2, grad_residual, {}};
  }
};

at::Tensor one_by_one(const at::Tensor& x, const FeedForwardWeights& weights,
                      const FeedForwardOptions& options) {
  const at::Tensor normal =
      weights.norm.scale.defined() ? ops::layer_norm(x, weights.norm.scale, weights.norm.shift) : x;
  const at::Tensor hidden = ops::dropout(
      activate(options.activation, ops::linear(normal, weights.w1, weights.b1, options.precision)),
      options.drop_hidden);
  const at::Tensor y = ops::dropout(ops::linear(hidden, weights.w2, weights.b2, options.precision),
                                    options.drop_out);
  return options.residual.defined() ? options.residual + y : y;
}

}  // namespace

at::Tensor norm_linear(const at::Tensor& x, const NormWeights& norm, const at::Tensor& w,
                       Precision precision, engine::RowPlace place) {
  ensure_runtime();
  TORCH_CHECK_VALUE(
      x.defined() && w.defined() && x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(0),
      "norm_linear: expected x of shape [..., in] and w of shape [in, out], got ", describe(x),
      " and ", describe(w));
  check_norm("norm_linear", x, norm);
  check_same_device("norm_linear",
                    {{"x", x}, {"scale", norm.scale}, {"shift", norm.shift}, {"w", w}});
  check_precision("norm_linear", precision, x);
  if (!has_kernel({x, norm.scale, norm.shift, w}) || x.numel() == 0 || w.numel() == 0) {
    return ops::matmul(norm.scale.defined() ? ops::layer_norm(x, norm.scale, norm.shift) : x, w,
                       precision);
  }
  const at::Tensor dense = canonical(x);
  const NormWeights dense_norm{canonical(norm.scale), canonical(norm.shift)};
  const at::Tensor dense_w = canonical(w);
  if (!recorded({x, norm.scale, norm.shift, w})) {
    return norm_linear_forward(dense, dense_norm, dense_w, precision, {});
  }
  return NormLinearFunction::apply(dense, empty_if_absent(dense_norm.scale, dense),
                                   empty_if_absent(dense_norm.shift, dense), dense_w, precision,
                                   place);
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights,
                        const FeedForwardOptions& options) {
  ensure_runtime();
  const auto& [norm, w1, b1, w2, b2] = weights;
  TORCH_CHECK_VALUE(
      w1.defined() && w2.defined() && w1.dim() == 2 && w2.dim() == 2 && w2.size(1) == w1.size(0),
      "feed_forward: expected w1 of shape [hidden, in] and w2 of shape [out, "
      "hidden], got ",
      describe(w1), " and ", describe(w2));
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= 1 && x.size(-1) == w1.size(1) && b1.defined() &&
                        b1.sizes() == w1.sizes().slice(0, 1) && b2.defined() &&
                        b2.sizes() == w2.sizes().slice(0, 1),
                    "feed_forward: expected x of shape [..., in=", w1.size(1),
                    "], b1 of shape [hidden=", w1.size(0), "] and b2 of shape [out=", w2.size(0),
                    "], got ", describe(x), ", ", describe(b1), " and ", describe(b2));
  check_norm("feed_forward", x, norm);
  const at::Tensor& residual = options.residual;
  TORCH_CHECK_VALUE(!residual.defined() || residual.sizes() == with_last(x, w2.size(0)),
                    "feed_forward: expected a residual of shape ", with_last(x, w2.size(0)),
                    ", got ", describe(residual));
  for (const double probability : {options.drop_hidden, options.drop_out}) {
    TORCH_CHECK_VALUE(probability >= 0.0 && probability < 1.0,
                      "feed_forward: expected probabilities in [0, 1), got ", probability);
  }
  check_same_device("feed_forward", {{"x", x},
                                     {"scale", norm.scale},
                                     {"shift", norm.shift},
                                     {"w1", w1},
                                     {"b1", b1},
                                     {"w2", w2},
                                     {"b2", b2},
                                     {"residual", residual}});
  check_precision("feed_forward", options.precision, x);
  if (!has_kernel({x, norm.scale, norm.shift, w1, b1, w2, b2, residual}) || x.numel() == 0 ||
      w1.numel() == 0 || w2.numel() == 0) {
    return one_by_one(x, weights, options);
  }
  Setting setting{options.activation, {}, {}, options.precision, options.place};
  const auto drawn = [](double probability) -> engine::Drop {
    return {probability > 0.0 ? draw_dropout_seed() : 0, probability};
  };
  setting.drop_hidden = drawn(options.drop_hidden);
  setting.drop_out = drawn(options.drop_out);
  const at::Tensor dense = canonical(x);
  const FeedForwardWeights w{{canonical(norm.scale), canonical(norm.shift)},
                             canonical(w1),
                             canonical(b1),
                             canonical(w2),
                             canonical(b2)};
  const at::Tensor dense_residual = canonical(residual);
  if (!recorded({x, norm.scale, norm.shift, w1, b1, w2, b2, residual})) {
    return feed_forward_forward(dense, w, dense_residual, setting, {});
  }
  return FeedForwardFunction::apply(dense, empty_if_absent(w.norm.scale, dense),
                                    empty_if_absent(w.norm.shift, dense), w.w1, w.b1, w.w2, w.b2,
                                    empty_if_absent(dense_residual, dense), setting);
}

}  // namespace mpssm::ops
