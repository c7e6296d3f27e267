// SPDX-License-Identifier: MIT
// Each row is read twice from cache and once from memory; all sums of a row run in one vector of
// partial sums, whose number of lanes is fixed (kLanes) so that every instruction set adds in the
// same order.
#include "mpssm/kernels/layer_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {

inline constexpr std::int64_t kLanes = 16;

/// Sum of term(j) for j < width.
template <typename T, typename Term>
HWY_INLINE T sum_row(std::int64_t width, const Term& term) {
  T partial[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) partial[lane] += term(j + lane);
  }
  for (; j < width; ++j) partial[j % kLanes] += term(j);
  T total = 0;
  for (const T each : partial) total += each;
  return total;
}

template <typename T>
HWY_INLINE void forward_rows(const LayerNormArgs<T>& p, const T* HWY_RESTRICT shift, T* y,
                             std::int64_t row_begin, std::int64_t row_end) {
  const T count = static_cast<T>(p.width);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* HWY_RESTRICT x = p.x + row * p.width;
    T* HWY_RESTRICT out = y + row * p.width;
    const T mean = sum_row<T>(p.width, [&](std::int64_t j) { return x[j]; }) / count;
    const T variance =
        sum_row<T>(p.width, [&](std::int64_t j) { return (x[j] - mean) * (x[j] - mean); }) / count;
    const T inverse = T{1} / std::sqrt(variance + static_cast<T>(p.epsilon));
    for (std::int64_t j = 0; j < p.width; ++j) {
      out[j] = (x[j] - mean) * inverse * p.scale[j] + shift[j];
    }
    p.mean[row] = mean;
    p.inverse[row] = inverse;
  }
}

template <typename T>
HWY_INLINE void adjoint_rows(const LayerNormArgs<T>& p, const T* grad, T* grad_x,
                             T* HWY_RESTRICT grad_scale, T* HWY_RESTRICT grad_shift,
                             std::int64_t row_begin, std::int64_t row_end) {
  const T count = static_cast<T>(p.width);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* HWY_RESTRICT x = p.x + row * p.width;
    const T* HWY_RESTRICT g = grad + row * p.width;
    T* HWY_RESTRICT out = grad_x + row * p.width;
    const T mean = p.mean[row];
    const T inverse = p.inverse[row];
    const T sum = sum_row<T>(p.width, [&](std::int64_t j) { return g[j] * p.scale[j]; }) / count;
    const T along =
        sum_row<T>(p.width, [&](std::int64_t j) { return g[j] * p.scale[j] * (x[j] - mean); }) *
        inverse / count;
    for (std::int64_t j = 0; j < p.width; ++j) {
      const T normal = (x[j] - mean) * inverse;
      out[j] = inverse * (g[j] * p.scale[j] - sum - normal * along);
      grad_scale[j] += g[j] * normal;
      grad_shift[j] += g[j];
    }
  }
}

#define MPSSM_DEFINE(T, Name)                                                            \
  void Forward##Name(const LayerNormArgs<T>& p, const T* shift, T* y, std::int64_t b,    \
                     std::int64_t e) {                                                   \
    forward_rows(p, shift, y, b, e);                                                     \
  }                                                                                      \
  void Adjoint##Name(const LayerNormArgs<T>& p, const T* grad, T* grad_x, T* grad_scale, \
                     T* grad_shift, std::int64_t b, std::int64_t e) {                    \
    adjoint_rows(p, grad, grad_x, grad_scale, grad_shift, b, e);                         \
  }
MPSSM_DEFINE(float, Float)
MPSSM_DEFINE(double, Double)
#undef MPSSM_DEFINE

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(AdjointFloat);
HWY_EXPORT(AdjointDouble);

void layer_norm(const LayerNormArgs<float>& args, const float* shift, float* y,
                std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(args, shift, y, row_begin, row_end);
}
void layer_norm(const LayerNormArgs<double>& args, const double* shift, double* y,
                std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(args, shift, y, row_begin, row_end);
}
void layer_norm_adjoint(const LayerNormArgs<float>& args, const float* grad, float* grad_x,
                        float* grad_scale, float* grad_shift, std::int64_t row_begin,
                        std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointFloat)
  (args, grad, grad_x, grad_scale, grad_shift, row_begin, row_end);
}
void layer_norm_adjoint(const LayerNormArgs<double>& args, const double* grad, double* grad_x,
                        double* grad_scale, double* grad_shift, std::int64_t row_begin,
                        std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointDouble)
  (args, grad, grad_x, grad_scale, grad_shift, row_begin, row_end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
