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

// Rows of the backward pass whose parts of a column's sums meet in a register.
inline constexpr std::int64_t kBlockRows = 16;

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

/// 1 / sqrt(x), without the branch that sets errno.
template <typename T>
HWY_INLINE T inverse_root(T x) {
  const hn::CappedTag<T, 1> d;
  return hn::GetLane(hn::Div(hn::Set(d, T{1}), hn::Sqrt(hn::Set(d, x))));
}

template <typename T>
HWY_INLINE void forward_rows(const LayerNormArgs<T>& p, const T* HWY_RESTRICT shift, T* y,
                             std::int64_t row_begin, std::int64_t row_end) {
  using P = Panel<T>;
  const typename P::D d;
  const T* HWY_RESTRICT scale = p.scale;
  const std::int64_t width = p.width;
  const T count = static_cast<T>(width);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* HWY_RESTRICT x = p.x + row * width;
    T* HWY_RESTRICT out = y + row * width;

    Sum<T> sum;
    P::visit_row(width, [&](int v, std::int64_t j, std::int64_t n) {
      sum.part[v] = hn::Add(sum.part[v], P::load(x + j, n));
    });
    const T mean = sum.total() / count;
    const auto center = hn::Set(d, mean);

    Sum<T> squares;
    P::visit_row(width, [&](int v, std::int64_t j, std::int64_t n) {
      const auto off = P::within(hn::Sub(P::load(x + j, n), center), n);
      squares.part[v] = hn::MulAdd(off, off, squares.part[v]);
    });
    const T inverse = inverse_root(squares.total() / count + static_cast<T>(p.epsilon));
    const auto factor = hn::Set(d, inverse);

    P::visit_row(width, [&](int, std::int64_t j, std::int64_t n) {
      const auto normal = hn::Mul(hn::Sub(P::load(x + j, n), center), factor);
      P::store(hn::MulAdd(normal, P::load(scale + j, n), P::load(shift + j, n)), out + j, n);
    });
    p.mean[row] = mean;
    p.inverse[row] = inverse;
  }
}

/// The sums over a row that its gradient needs, as means: of grad scale, and of that times normal.
template <typename T>
struct RowMeans {
  T sum;
  T along;
};

template <typename T>
HWY_INLINE RowMeans<T> row_means(const LayerNormArgs<T>& p, const T* HWY_RESTRICT grad,
                                 std::int64_t row) {
  using P = Panel<T>;
  const T* HWY_RESTRICT x = p.x + row * p.width;
  const T* HWY_RESTRICT g = grad + row * p.width;
  const T* HWY_RESTRICT scale = p.scale;
  const auto center = hn::Set(typename P::D(), p.mean[row]);
  Sum<T> sum;
  Sum<T> along;
  P::visit_row(p.width, [&](int v, std::int64_t j, std::int64_t n) {
    // Zero beyond the end, as the load is.
    const auto scaled = hn::Mul(P::load(g + j, n), P::load(scale + j, n));
    sum.part[v] = hn::Add(sum.part[v], scaled);
    along.part[v] = hn::MulAdd(scaled, hn::Sub(P::load(x + j, n), center), along.part[v]);
  });
  const T count = static_cast<T>(p.width);
  return {sum.total() / count, along.total() * p.inverse[row] / count};
}

template <typename T>
HWY_INLINE void adjoint_rows(const LayerNormArgs<T>& p, const T* grad, T* grad_x,
                             T* HWY_RESTRICT grad_scale, T* HWY_RESTRICT grad_shift,
                             std::int64_t row_begin, std::int64_t row_end) {
  using P = Panel<T>;
  const typename P::D d;
  RowMeans<T> means[kBlockRows];
  for (std::int64_t begin = row_begin; begin < row_end; begin += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, row_end - begin);
    for (std::int64_t r = 0; r < rows; ++r) means[r] = row_means(p, grad, begin + r);
    P::visit_row(p.width, [&](int, std::int64_t j, std::int64_t n) {
      const auto scale = P::load(p.scale + j, n);
      auto scale_sum = P::load(grad_scale + j, n);
      auto shift_sum = P::load(grad_shift + j, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t row = begin + r;
        const std::int64_t at = row * p.width + j;
        const auto g = P::load(grad + at, n);
        const auto inverse = hn::Set(d, p.inverse[row]);
        const auto normal =
            hn::Mul(hn::Sub(P::load(p.x + at, n), hn::Set(d, p.mean[row])), inverse);
        const auto level = hn::MulSub(g, scale, hn::Set(d, means[r].sum));
        const auto flat = hn::NegMulAdd(normal, hn::Set(d, means[r].along), level);
        P::store(hn::Mul(inverse, flat), grad_x + at, n);
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
