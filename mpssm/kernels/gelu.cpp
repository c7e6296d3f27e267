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

template <class D, class V = hn::Vec<D>>
HWY_INLINE V slope_of(D d, V x, V cdf, V exponential) {
  return hn::MulAdd(x, hn::Mul(exponential, hn::Set(d, 0.39894228f)), cdf);
}

/// at(d, i) for the vectors of numbers [begin, end), d of one number for the last ones.
template <class Function>
HWY_INLINE void for_range(std::int64_t begin, std::int64_t end, const Function& at) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) at(d, i);
  for (; i < end; ++i) at(one, i);
}

void Gelu(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for_range(begin, end, [=](auto d, std::int64_t i) {
    const auto value = hn::LoadU(d, x + i);
    auto unused = value;
    hn::StoreU(hn::Mul(value, normal_cdf(d, value, unused)), d, y + i);
  });
}
void GeluAndSlope(const float* x, float* y, float* slope, std::int64_t begin, std::int64_t end) {
  for_range(begin, end, [=](auto d, std::int64_t i) {
    const auto value = hn::LoadU(d, x + i);
    auto exponential = value;
    const auto cdf = normal_cdf(d, value, exponential);
    hn::StoreU(hn::Mul(value, cdf), d, y + i);
    hn::StoreU(slope_of(d, value, cdf, exponential), d, slope + i);
  });
}
void GeluAdjoint(const float* x, const float* grad, float* grad_x, std::int64_t begin,
                 std::int64_t end) {
  for_range(begin, end, [=](auto d, std::int64_t i) {
    const auto value = hn::LoadU(d, x + i);
    auto exponential = value;
    const auto cdf = normal_cdf(d, value, exponential);
    const auto slope = slope_of(d, value, cdf, exponential);
    hn::StoreU(hn::Mul(hn::LoadU(d, grad + i), slope), d, grad_x + i);
  });
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(Gelu);
HWY_EXPORT(GeluAndSlope);
HWY_EXPORT(GeluAdjoint);

void gelu(const float* x, float* y, std::int64_t begin, std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(Gelu)(x, y, begin, end);
}
void gelu_and_slope(const float* x, float* y, float* slope, std::int64_t begin,
                    std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluAndSlope)(x, y, slope, begin, end);
}
void gelu_adjoint(const float* x, const float* grad, float* grad_x, std::int64_t begin,
                  std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluAdjoint)(x, grad, grad_x, begin, end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
