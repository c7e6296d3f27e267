// SPDX-License-Identifier: MIT
// Some 20 flops per mode and doubling, always in double: the error of z^K grows with K whatever the
// method, and double leaves room for thousands of steps. Plain loops over channels are enough: they
// are compiled once per instruction set.
#include "mpssm/kernels/geometric_series.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/geometric_series.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

struct Complex {
  V re;
  V im;
};
HWY_INLINE Complex operator*(Complex a, Complex b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}
HWY_INLINE Complex operator+(Complex a, Complex b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}

/// kVectors independent vectors of channels at once, to hide the latency of the dependent products.
template <int kVectors, bool kDerivative>
HWY_INLINE void series_tile(std::int64_t num_steps, const double* z_re, const double* z_im,
                            double* const* out) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Complex one{hn::Set(d, 1.0), hn::Zero(d)};
  const Complex zero{hn::Zero(d), hn::Zero(d)};
  Complex z[kVectors], g[kVectors], p[kVectors], dg[kVectors], dp[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    z[v] = {hn::LoadU(d, z_re + v * lanes), hn::LoadU(d, z_im + v * lanes)};
    g[v] = zero;
    p[v] = one;
    dg[v] = dp[v] = zero;
  }
  // From the highest bit of K down: (g, p) belong to the number m read so far.
  for (int bit = 63 - std::countl_zero(static_cast<std::uint64_t>(num_steps)); bit >= 0; --bit) {
    for (int v = 0; v < kVectors; ++v) {
      const Complex one_plus_p = one + p[v];
      if constexpr (kDerivative) {
        dg[v] = dg[v] * one_plus_p + g[v] * dp[v];
        const Complex p_dp = p[v] * dp[v];
        dp[v] = p_dp + p_dp;
      }
      g[v] = g[v] * one_plus_p;
      p[v] = p[v] * p[v];
      if ((num_steps >> bit & 1) != 0) {
        if constexpr (kDerivative) {
          dg[v] = g[v] + z[v] * dg[v];
          dp[v] = p[v] + z[v] * dp[v];
        }
        g[v] = one + z[v] * g[v];
        p[v] = z[v] * p[v];
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const Complex values[4] = {g[v], p[v], dg[v], dp[v]};
    for (int i = 0; i < (kDerivative ? 4 : 2); ++i) {
      hn::StoreU(values[i].re, d, out[2 * i] + v * lanes);
      hn::StoreU(values[i].im, d, out[2 * i + 1] + v * lanes);
    }
  }
}

template <bool kDerivative>
HWY_INLINE void series(std::int64_t num_steps, double lambda, const double* sigma_re,
                       const double* sigma_im, std::int64_t channels, const SeriesValues& values) {
  constexpr int kVectors = 2;
  constexpr std::int64_t kMaxTile = kVectors * static_cast<std::int64_t>(hn::MaxLanes(D()));
  double* const all[8] = {values.g_re,  values.g_im,  values.p_re,  values.p_im,
                          values.dg_re, values.dg_im, values.dp_re, values.dp_im};
  constexpr int kOutputs = kDerivative ? 8 : 4;
  HWY_ALIGN double z_re[kMaxTile] = {};
  HWY_ALIGN double z_im[kMaxTile] = {};
  HWY_ALIGN double rest[kOutputs][kMaxTile];
  for (std::int64_t begin = 0; begin < channels; begin += kMaxTile) {
    const std::int64_t count = channels - begin < kMaxTile ? channels - begin : kMaxTile;
    for (std::int64_t c = 0; c < count; ++c) {
      z_re[c] = lambda * sigma_re[begin + c];
      z_im[c] = lambda * sigma_im[begin + c];
    }
    double* out[8];
    for (int i = 0; i < kOutputs; ++i) out[i] = count == kMaxTile ? all[i] + begin : rest[i];
    series_tile<kVectors, kDerivative>(num_steps, z_re, z_im, out);
    if (count < kMaxTile) {
      for (int i = 0; i < kOutputs; ++i) {
        for (std::int64_t c = 0; c < count; ++c) all[i][begin + c] = rest[i][c];
      }
    }
  }
}

void Series(std::int64_t num_steps, double lambda, const double* sigma_re, const double* sigma_im,
            std::int64_t channels, const SeriesValues& out) {
  if (out.dg_re == nullptr) {
    series<false>(num_steps, lambda, sigma_re, sigma_im, channels, out);
  } else {
    series<true>(num_steps, lambda, sigma_re, sigma_im, channels, out);
  }
}

SeriesValues on_scratch(double* scratch, std::int64_t channels, bool derivatives) {
  SeriesValues s{scratch, scratch + channels, scratch + 2 * channels, scratch + 3 * channels};
  if (derivatives) {
    s.dg_re = scratch + 4 * channels;
    s.dg_im = scratch + 5 * channels;
    s.dp_re = scratch + 6 * channels;
    s.dp_im = scratch + 7 * channels;
  }
  return s;
}

/// to[2c], to[2c+1] (+)= value(c) * from(c), or its conjugate.
template <bool kConjugate, bool kAccumulate, typename T>
HWY_INLINE void multiply_row(const double* re, const double* im, const T* HWY_RESTRICT from,
                             T* HWY_RESTRICT to, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const double y = kConjugate ? -im[c] : im[c];
    const double out_re = re[c] * from[2 * c] - y * from[2 * c + 1];
    const double out_im = re[c] * from[2 * c + 1] + y * from[2 * c];
    to[2 * c] = static_cast<T>(kAccumulate ? to[2 * c] + out_re : out_re);
    to[2 * c + 1] = static_cast<T>(kAccumulate ? to[2 * c + 1] + out_im : out_im);
  }
}

template <typename T>
HWY_INLINE void forward_rows(const ModeSeriesArgs<T>& p, T* output, std::int64_t row_begin,
                             std::int64_t row_end) {
  const SeriesValues s = on_scratch(p.scratch, p.channels, false);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    Series(p.num_steps, p.lambda[row], p.sigma_re, p.sigma_im, p.channels, s);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t at = b * p.batch_stride + row * 2 * p.channels;
      multiply_row<false, false>(s.g_re, s.g_im, p.input + at, output + at, p.channels);
      if (p.initial != nullptr) {
        multiply_row<false, true>(s.p_re, s.p_im, p.initial + at, output + at, p.channels);
      }
    }
  }
}

/// grad_sigma(c) += lambda * grad(c) * conj(derivative(c) * value(c))
template <typename T>
HWY_INLINE void sigma_row(double lambda, const double* d_re, const double* d_im, const T* value,
                          const T* grad, std::int64_t channels, double* out_re, double* out_im) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const double y_re = d_re[c] * value[2 * c] - d_im[c] * value[2 * c + 1];
    const double y_im = d_re[c] * value[2 * c + 1] + d_im[c] * value[2 * c];
    out_re[c] += lambda * (grad[2 * c] * y_re + grad[2 * c + 1] * y_im);
    out_im[c] += lambda * (grad[2 * c + 1] * y_re - grad[2 * c] * y_im);
  }
}

template <typename T>
HWY_INLINE void adjoint_rows(const ModeSeriesArgs<T>& p, const T* grad, T* grad_input,
                             T* grad_initial, double* grad_sigma_re, double* grad_sigma_im,
                             std::int64_t row_begin, std::int64_t row_end) {
  const SeriesValues s = on_scratch(p.scratch, p.channels, grad_sigma_re != nullptr);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const double lambda = p.lambda[row];
    Series(p.num_steps, lambda, p.sigma_re, p.sigma_im, p.channels, s);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t at = b * p.batch_stride + row * 2 * p.channels;
      multiply_row<true, false>(s.g_re, s.g_im, grad + at, grad_input + at, p.channels);
      if (grad_initial != nullptr) {
        multiply_row<true, false>(s.p_re, s.p_im, grad + at, grad_initial + at, p.channels);
      }
      if (grad_sigma_re == nullptr) continue;
      sigma_row(lambda, s.dg_re, s.dg_im, p.input + at, grad + at, p.channels, grad_sigma_re,
                grad_sigma_im);
      if (p.initial != nullptr) {
        sigma_row(lambda, s.dp_re, s.dp_im, p.initial + at, grad + at, p.channels, grad_sigma_re,
                  grad_sigma_im);
      }
    }
  }
}

#define MPSSM_DEFINE(T, Name)                                                                   \
  void Forward##Name(const ModeSeriesArgs<T>& p, T* output, std::int64_t b, std::int64_t e) {   \
    forward_rows(p, output, b, e);                                                              \
  }                                                                                             \
  void Adjoint##Name(const ModeSeriesArgs<T>& p, const T* grad, T* grad_input, T* grad_initial, \
                     double* sigma_re, double* sigma_im, std::int64_t b, std::int64_t e) {      \
    adjoint_rows(p, grad, grad_input, grad_initial, sigma_re, sigma_im, b, e);                  \
  }
MPSSM_DEFINE(float, Float)
MPSSM_DEFINE(double, Double)
#undef MPSSM_DEFINE

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(Series);
HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(AdjointFloat);
HWY_EXPORT(AdjointDouble);

void geometric_series(std::int64_t num_steps, double lambda, const double* sigma_re,
                      const double* sigma_im, std::int64_t channels,
                      const SeriesValues& out) noexcept {
  HWY_DYNAMIC_DISPATCH(Series)(num_steps, lambda, sigma_re, sigma_im, channels, out);
}

template <>
void mode_series<float>(const ModeSeriesArgs<float>& args, float* output, std::int64_t row_begin,
                        std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(args, output, row_begin, row_end);
}
template <>
void mode_series<double>(const ModeSeriesArgs<double>& args, double* output, std::int64_t row_begin,
                         std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(args, output, row_begin, row_end);
}
template <>
void mode_series_adjoint<float>(const ModeSeriesArgs<float>& args, const float* grad,
                                float* grad_input, float* grad_initial, double* grad_sigma_re,
                                double* grad_sigma_im, std::int64_t row_begin,
                                std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointFloat)
  (args, grad, grad_input, grad_initial, grad_sigma_re, grad_sigma_im, row_begin, row_end);
}
template <>
void mode_series_adjoint<double>(const ModeSeriesArgs<double>& args, const double* grad,
                                 double* grad_input, double* grad_initial, double* grad_sigma_re,
                                 double* grad_sigma_im, std::int64_t row_begin,
                                 std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointDouble)
  (args, grad, grad_input, grad_initial, grad_sigma_re, grad_sigma_im, row_begin, row_end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
