// SPDX-License-Identifier: MIT
// One exponential, one division and some ten multiply-adds a number.
#include "mpssm/kernels/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/gelu.cpp"
// clang-format off
// foreach_target.h comes before every header that depends on the target.
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Phi(x), the normal distribution, and its density without the factor 1 / sqrt(2 pi).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_cdf(D d, V x, V& exponential) {
  // With z = |x| / sqrt(2): erfc(z) = t (a1 + t (a2 + ...)) exp(-z^2), t = 1 / (1 + p z).
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678f));
  const V t = hn::Div(hn::Set(d, 1.0f), hn::MulAdd(z, hn::Set(d, 0.3275911f), hn::Set(d, 1.0f)));
  V series = hn::Set(d, 1.061405429f);
  series = hn::MulAdd(series, t, hn::Set(d, -1.453152027f));
  series = hn::MulAdd(series, t, hn::Set(d, 1.421413741f));
  series = hn::MulAdd(series, t, hn::Set(d, -0.284496736f));
  series = hn::MulAdd(series, t, hn::Set(d, 0.254829592f));
  exponential = hn::Exp(d, hn::Neg(hn::Mul(z, z)));
  const V tail = hn::Mul(hn::Mul(hn::Mul(series, t), exponential), hn::Set(d, 0.5f));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail));
}

struct Forward {
  template <class D>
  HWY_INLINE static void at(D d, const float* x, const float*, float* y) {
    const auto value = hn::LoadU(d, x);
    auto unused = value;
    hn::StoreU(hn::Mul(value, normal_cdf(d, value, unused)), d, y);
  }
};

struct Adjoint {
  template <class D>
  HWY_INLINE static void at(D d, const float* x, const float* grad, float* out) {
    const auto value = hn::LoadU(d, x);
    auto exponential = value;
    const auto cdf = normal_cdf(d, value, exponential);
    const auto density = hn::Mul(exponential, hn::Set(d, 0.39894228f));
    hn::StoreU(hn::Mul(hn::LoadU(d, grad), hn::MulAdd(value, density, cdf)), d, out);
  }
};

template <class Function>
HWY_INLINE void for_range(const float* x, const float* grad, float* y, std::int64_t begin,
                          std::int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) Function::at(d, x + i, grad + i, y + i);
  for (; i < end; ++i) Function::at(one, x + i, grad + i, y + i);
}

void Gelu(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for_range<Forward>(x, x, y, begin, end);
}
void GeluAdjoint(const float* x, const float* grad, float* grad_x, std::int64_t begin,
                 std::int64_t end) {
  for_range<Adjoint>(x, grad, grad_x, begin, end);
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(Gelu);
HWY_EXPORT(GeluAdjoint);

void gelu(const float* x, float* y, std::int64_t begin, std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(Gelu)(x, y, begin, end);
}
void gelu_adjoint(const float* x, const float* grad, float* grad_x, std::int64_t begin,
                  std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluAdjoint)(x, grad, grad_x, begin, end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
