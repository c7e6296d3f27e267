// SPDX-License-Identifier: MIT
// Rows come from memory once, a further pass over a row finds it in the first-level cache. A sum
// runs in sixteen partial sums, which are then added half to half: the same order on every
// instruction set.
#include "mpssm/kernels/layer_norm.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {

// Rows of a block: as many as a panel has numbers.
inline constexpr std::int64_t kBlockRows = kPanelColumns;

/// Sixteen partial sums.
template <typename T>
struct Sum {
  using P = Panel<T>;
  typename P::V part[P::kVectors];

  HWY_INLINE Sum() {
    for (auto& each : part) each = hn::Zero(typename P::D());
  }
  HWY_INLINE T total() {
    for (int half = P::kVectors / 2; half > 0; half /= 2) {
      for (int v = 0; v < half; ++v) part[v] = hn::Add(part[v], part[v + half]);
    }
    return hn::GetLane(hn::SumOfLanes(typename P::D(), part[0]));
  }
};

template <typename T>
HWY_INLINE T sum_of_row(const T* HWY_RESTRICT x, std::int64_t width) {
  using P = Panel<T>;
  Sum<T> sum;
  P::visit_row(width, [&](int v, std::int64_t j, std::int64_t n) {
    sum.part[v] = hn::Add(sum.part[v], P::load(x + j, n));
  });
  return sum.total();
}

template <typename T>
HWY_INLINE T squares_of_row(const T* HWY_RESTRICT x, T mean, std::int64_t width) {
  using P = Panel<T>;
  const auto center = hn::Set(typename P::D(), mean);
  Sum<T> sum;
  P::visit_row(width, [&](int v, std::int64_t j, std::int64_t n) {
    const auto off = P::within(hn::Sub(P::load(x + j, n), center), n);
    sum.part[v] = hn::MulAdd(off, off, sum.part[v]);
  });
  return sum.total();
}

template <typename T>
HWY_INLINE void forward_rows(const LayerNormArgs<T>& p, const T* HWY_RESTRICT shift,
                             T* HWY_RESTRICT y, std::int64_t row_begin, std::int64_t row_end) {
  using P = Panel<T>;
  const typename P::D d;
  const std::int64_t width = p.width;
  const auto count = hn::Set(d, static_cast<T>(width));
  const auto epsilon = hn::Set(d, static_cast<T>(p.epsilon));
  HWY_ALIGN T mean[kBlockRows] = {};
  HWY_ALIGN T inverse[kBlockRows] = {};
  for (std::int64_t begin = row_begin; begin < row_end; begin += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, row_end - begin);
    const T* HWY_RESTRICT x = p.x + begin * width;
    T* HWY_RESTRICT out = y + begin * width;

    for (std::int64_t r = 0; r < rows; ++r) mean[r] = sum_of_row(x + r * width, width);
    P::visit_row(kBlockRows, [&](int, std::int64_t r, std::int64_t) {
      hn::Store(hn::Div(hn::Load(d, mean + r), count), d, mean + r);
    });
    for (std::int64_t r = 0; r < rows; ++r) {
      inverse[r] = squares_of_row(x + r * width, mean[r], width);
    }
    P::visit_row(kBlockRows, [&](int, std::int64_t r, std::int64_t) {
      const auto variance = hn::Add(hn::Div(hn::Load(d, inverse + r), count), epsilon);
      hn::Store(hn::Div(hn::Set(d, T{1}), hn::Sqrt(variance)), d, inverse + r);
    });

    P::visit_row(width, [&](int, std::int64_t j, std::int64_t n) {
      const auto scale = P::load(p.scale + j, n);
      const auto level = P::load(shift + j, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto off = hn::Sub(P::load(x + r * width + j, n), hn::Set(d, mean[r]));
        const auto normal = hn::Mul(off, hn::Set(d, inverse[r]));
        P::store(hn::MulAdd(normal, scale, level), out + r * width + j, n);
      }
    });
    std::copy_n(mean, rows, p.mean + begin);
    std::copy_n(inverse, rows, p.inverse + begin);
  }
}

/// Sums over a row: of its gradient times scale, and of that times what x is off its mean.
template <typename T>
HWY_INLINE void gradient_sums(const LayerNormArgs<T>& p, const T* HWY_RESTRICT grad,
                              std::int64_t row, T& sum, T& along) {
  using P = Panel<T>;
  const T* HWY_RESTRICT x = p.x + row * p.width;
  const T* HWY_RESTRICT g = grad + row * p.width;
  const T* HWY_RESTRICT scale = p.scale;
  const auto center = hn::Set(typename P::D(), p.mean[row]);
  Sum<T> all;
  Sum<T> all_along;
  P::visit_row(p.width, [&](int v, std::int64_t j, std::int64_t n) {
    // Zero beyond the end, as the loads are.
    const auto scaled = hn::Mul(P::load(g + j, n), P::load(scale + j, n));
    all.part[v] = hn::Add(all.part[v], scaled);
    all_along.part[v] = hn::MulAdd(scaled, hn::Sub(P::load(x + j, n), center), all_along.part[v]);
  });
  sum = all.total();
  along = all_along.total();
}

template <typename T>
HWY_INLINE void adjoint_rows(const LayerNormArgs<T>& p, const T* HWY_RESTRICT grad,
                             T* HWY_RESTRICT grad_x, T* HWY_RESTRICT grad_scale,
                             T* HWY_RESTRICT grad_shift, std::int64_t row_begin,
                             std::int64_t row_end) {
  using P = Panel<T>;
  const typename P::D d;
  const auto count = hn::Set(d, static_cast<T>(p.width));
  HWY_ALIGN T sum[kBlockRows] = {};
  HWY_ALIGN T along[kBlockRows] = {};
  for (std::int64_t begin = row_begin; begin < row_end; begin += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, row_end - begin);
    const T* HWY_RESTRICT mean = p.mean + begin;
    const T* HWY_RESTRICT inverse = p.inverse + begin;
    for (std::int64_t r = 0; r < rows; ++r) gradient_sums(p, grad, begin + r, sum[r], along[r]);
    P::visit_row(rows, [&](int, std::int64_t r, std::int64_t n) {
      hn::Store(hn::Div(hn::Load(d, sum + r), count), d, sum + r);
      const auto normal = hn::Mul(hn::Load(d, along + r), P::load(inverse + r, n));
      hn::Store(hn::Div(normal, count), d, along + r);
    });

    P::visit_row(p.width, [&](int, std::int64_t j, std::int64_t n) {
      const auto scale = P::load(p.scale + j, n);
      auto scale_sum = P::load(grad_scale + j, n);
      auto shift_sum = P::load(grad_shift + j, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t at = (begin + r) * p.width + j;
        const auto g = P::load(grad + at, n);
        const auto factor = hn::Set(d, inverse[r]);
        const auto normal = hn::Mul(hn::Sub(P::load(p.x + at, n), hn::Set(d, mean[r])), factor);
        const auto level = hn::MulSub(g, scale, hn::Set(d, sum[r]));
        const auto flat = hn::NegMulAdd(normal, hn::Set(d, along[r]), level);
        P::store(hn::Mul(factor, flat), grad_x + at, n);
        scale_sum = hn::MulAdd(g, normal, scale_sum);
        shift_sum = hn::Add(shift_sum, g);
      }
      P::store(scale_sum, grad_scale + j, n);
      P::store(shift_sum, grad_shift + j, n);
    });
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
