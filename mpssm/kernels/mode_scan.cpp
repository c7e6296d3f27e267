// SPDX-License-Identifier: MIT
// 8 flops per complex number read and written once: bound by memory, so the loops are left to the
// compiler, once per instruction set.
#include "mpssm/kernels/mode_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/mode_scan.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {

/// a = lambda sigma, as two runs of `channels` numbers.
template <typename T>
HWY_INLINE void load_modes(const ModeScanArgs<T>& p, std::int64_t row, T* a_re, T* a_im) {
  for (std::int64_t c = 0; c < p.channels; ++c) {
    a_re[c] = static_cast<T>(p.lambda[row] * p.sigma_re[c]);
    a_im[c] = static_cast<T>(p.lambda[row] * p.sigma_im[c]);
  }
}

/// to += a from, or conj(a) from.
template <bool kConjugate, typename T>
HWY_INLINE void multiply_add(const T* a_re, const T* a_im, const T* HWY_RESTRICT from,
                             T* HWY_RESTRICT to, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const T y = kConjugate ? -a_im[c] : a_im[c];
    to[2 * c] += a_re[c] * from[2 * c] - y * from[2 * c + 1];
    to[2 * c + 1] += a_re[c] * from[2 * c + 1] + y * from[2 * c];
  }
}

template <typename T>
HWY_INLINE void scan_rows(const ModeScanArgs<T>& p, T* v, std::int64_t row_begin,
                          std::int64_t row_end) {
  const std::int64_t width = 2 * p.channels;
  const std::int64_t time_stride = p.rows * width;
  T* a_re = p.scratch;
  T* a_im = p.scratch + p.channels;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    load_modes(p, row, a_re, a_im);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      T* z = v + b * p.num_steps * time_stride + row * width;
      if (p.initial != nullptr) {
        multiply_add<false>(a_re, a_im, p.initial + (b * p.rows + row) * width, z, p.channels);
      }
      for (std::int64_t t = 1; t < p.num_steps; ++t) {
        multiply_add<false>(a_re, a_im, z + (t - 1) * time_stride, z + t * time_stride, p.channels);
      }
    }
  }
}

/// sums(c) += lambda * grad(c) * conj(z(c))
template <typename T>
HWY_INLINE void add_products(double lambda, const T* grad, const T* z, std::int64_t channels,
                             double* re, double* im) {
  for (std::int64_t c = 0; c < channels; ++c) {
    re[c] += lambda * (grad[2 * c] * z[2 * c] + grad[2 * c + 1] * z[2 * c + 1]);
    im[c] += lambda * (grad[2 * c + 1] * z[2 * c] - grad[2 * c] * z[2 * c + 1]);
  }
}

template <typename T>
HWY_INLINE void adjoint_rows(const ModeScanArgs<T>& p, const T* z, T* grad, T* grad_initial,
                             double* grad_sigma_re, double* grad_sigma_im, std::int64_t row_begin,
                             std::int64_t row_end) {
  const std::int64_t width = 2 * p.channels;
  const std::int64_t time_stride = p.rows * width;
  T* a_re = p.scratch;
  T* a_im = p.scratch + p.channels;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    load_modes(p, row, a_re, a_im);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t at = b * p.num_steps * time_stride + row * width;
      for (std::int64_t t = p.num_steps - 1; t > 0; --t) {
        T* later = grad + at + t * time_stride;
        if (grad_sigma_re != nullptr) {
          add_products(p.lambda[row], later, z + at + (t - 1) * time_stride, p.channels,
                       grad_sigma_re, grad_sigma_im);
        }
        multiply_add<true>(a_re, a_im, later, later - time_stride, p.channels);
      }
      const std::int64_t at_initial = (b * p.rows + row) * width;
      if (p.initial != nullptr && grad_sigma_re != nullptr) {
        add_products(p.lambda[row], grad + at, p.initial + at_initial, p.channels, grad_sigma_re,
                     grad_sigma_im);
      }
      if (grad_initial != nullptr) {
        T* out = grad_initial + at_initial;
        for (std::int64_t j = 0; j < width; ++j) out[j] = T{0};
        multiply_add<true>(a_re, a_im, grad + at, out, p.channels);
      }
    }
  }
}

#define MPSSM_DEFINE(T, Name)                                                              \
  void Scan##Name(const ModeScanArgs<T>& p, T* v, std::int64_t b, std::int64_t e) {        \
    scan_rows(p, v, b, e);                                                                 \
  }                                                                                        \
  void Adjoint##Name(const ModeScanArgs<T>& p, const T* z, T* grad, T* grad_initial,       \
                     double* sigma_re, double* sigma_im, std::int64_t b, std::int64_t e) { \
    adjoint_rows(p, z, grad, grad_initial, sigma_re, sigma_im, b, e);                      \
  }
MPSSM_DEFINE(float, Float)
MPSSM_DEFINE(double, Double)
#undef MPSSM_DEFINE

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(ScanFloat);
HWY_EXPORT(ScanDouble);
HWY_EXPORT(AdjointFloat);
HWY_EXPORT(AdjointDouble);

template <>
void mode_scan<float>(const ModeScanArgs<float>& args, float* v, std::int64_t row_begin,
                      std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ScanFloat)(args, v, row_begin, row_end);
}
template <>
void mode_scan<double>(const ModeScanArgs<double>& args, double* v, std::int64_t row_begin,
                       std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ScanDouble)(args, v, row_begin, row_end);
}
template <>
void mode_scan_adjoint<float>(const ModeScanArgs<float>& args, const float* z, float* grad,
                              float* grad_initial, double* grad_sigma_re, double* grad_sigma_im,
                              std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointFloat)
  (args, z, grad, grad_initial, grad_sigma_re, grad_sigma_im, row_begin, row_end);
}
template <>
void mode_scan_adjoint<double>(const ModeScanArgs<double>& args, const double* z, double* grad,
                               double* grad_initial, double* grad_sigma_re, double* grad_sigma_im,
                               std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointDouble)
  (args, z, grad, grad_initial, grad_sigma_re, grad_sigma_im, row_begin, row_end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
