// SPDX-License-Identifier: MIT
// As in recurrence.cpp, a step waits for the rows that it gathers: here two lines of cache bring 64
// numbers of a node and not 32.
#include "mpssm/kernels/recurrence_bf16.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/recurrence_bf16.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kPrefetchEntries = 16;

/// A row of `kLanes` numbers as vectors of words.
template <std::int64_t kLanes>
struct Row {
  static constexpr std::int64_t kWords = kLanes / 2;
  using D = hn::CappedTag<float, static_cast<std::size_t>(kWords)>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));  // words
  static constexpr int kVectors = static_cast<int>(kWords / kWidth);
};

/// Writes a row: `even` and `odd` numbers of each of its vectors.
template <std::int64_t kLanes, bool kRounds>
MPSSM_BF16_DOT HWY_INLINE void store_row(const typename Row<kLanes>::V* even,
                                         const typename Row<kLanes>::V* odd, Bf16* y) {
  using R = Row<kLanes>;
  const typename R::D d;
  for (int v = 0; v < R::kVectors; ++v) {
    Bf16* const to = y + 2 * v * R::kWidth;
#if MPSSM_HAS_BF16_DOT
    if constexpr (kRounds && R::kWidth == 16) {
      // Even ones in the lower half, odd ones in the upper; then in turns.
      const __m512i turns =
          _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                           6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
      const __m512bh both = _mm512_cvtne2ps_pbh(odd[v].raw, even[v].raw);
      _mm512_storeu_si512(to, _mm512_permutexvar_epi16(turns, reinterpret_cast<__m512i>(both)));
      continue;
    }
#endif
    bf16::store_words(d, bf16::join(d, even[v], odd[v]), to);
  }
}

/// even[], odd[] = row `row` of A x.
template <std::int64_t kLanes>
MPSSM_BF16_DOT HWY_INLINE void gather(const CsrView<float>& a, const Bf16* HWY_RESTRICT x,
                                      std::int64_t row, std::int64_t last_entry,
                                      typename Row<kLanes>::V* even, typename Row<kLanes>::V* odd) {
  using R = Row<kLanes>;
  const typename R::D d;
  for (int v = 0; v < R::kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    const Bf16* ahead = x + a.col[std::min(e + kPrefetchEntries, last_entry)] * kLanes;
    hwy::Prefetch(ahead);
    if constexpr (kLanes * sizeof(Bf16) > 64) hwy::Prefetch(ahead + 64 / sizeof(Bf16));
    const Bf16* HWY_RESTRICT source = x + a.col[e] * kLanes;
    const auto entry = hn::Set(d, a.value[e]);
    for (int v = 0; v < R::kVectors; ++v) {
      const auto words = bf16::load_words(d, source + 2 * v * R::kWidth);
      even[v] = hn::MulAdd(entry, bf16::even_of(d, words), even[v]);
      odd[v] = hn::MulAdd(entry, bf16::odd_of(d, words), odd[v]);
    }
  }
}

template <std::int64_t kLanes, bool kScaled, bool kRounds>
MPSSM_BF16_DOT HWY_INLINE void step_rows(const Bf16SliceStep& p) {
  using R = Row<kLanes>;
  const typename R::D d;
  const std::int64_t last_entry = p.a.row_ptr[p.a.num_rows] - 1;
  for (std::int64_t row = 0; row < p.a.num_rows; ++row) {
    typename R::V even[R::kVectors];
    typename R::V odd[R::kVectors];
    gather<kLanes>(p.a, p.x, row, last_entry, even, odd);
    if constexpr (kScaled) {
      for (int v = 0; v < R::kVectors; ++v) {
        const auto re = hn::LoadU(d, p.sigma_re + v * R::kWidth);
        const auto im = hn::LoadU(d, p.sigma_im + v * R::kWidth);
        const auto sum_re = even[v];
        const auto sum_im = odd[v];
        even[v] = hn::NegMulAdd(sum_im, im, hn::Mul(sum_re, re));
        odd[v] = hn::MulAdd(sum_re, im, hn::Mul(sum_im, re));
      }
    }
    if (p.add != nullptr) {
      for (int v = 0; v < R::kVectors; ++v) {
        const auto words = bf16::load_words(d, p.add + row * kLanes + 2 * v * R::kWidth);
        even[v] = hn::Add(even[v], bf16::even_of(d, words));
        odd[v] = hn::Add(odd[v], bf16::odd_of(d, words));
      }
    }
    store_row<kLanes, kRounds>(even, odd, p.y + row * kLanes);
  }
}

/// total += factor * (re, im).
template <class D>
MPSSM_BF16_DOT HWY_INLINE void add_product(D d, const float* factor_re, const float* factor_im,
                                           hn::Vec<D> re, hn::Vec<D> im, hn::Vec<D>& total_re,
                                           hn::Vec<D>& total_im) {
  const auto by_re = hn::LoadU(d, factor_re);
  const auto by_im = hn::LoadU(d, factor_im);
  total_re = hn::MulAdd(by_re, re, hn::NegMulAdd(by_im, im, total_re));
  total_im = hn::MulAdd(by_re, im, hn::MulAdd(by_im, re, total_im));
}

/// kGrad: with the inner product with `other`.
template <std::int64_t kLanes, bool kGrad, bool kRounds>
MPSSM_BF16_DOT HWY_INLINE void adjoint_rows(const Bf16SliceAdjointStep& p) {
  using R = Row<kLanes>;
  const typename R::D d;
  const std::int64_t rows = p.a_transposed.num_rows;
  const std::int64_t last_entry = p.a_transposed.row_ptr[rows] - 1;
  // Inner products are summed in float over a block of rows and then in double.
  constexpr std::int64_t kBlockRows = 256;
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    typename R::V grad_re[R::kVectors];
    typename R::V grad_im[R::kVectors];
    for (int v = 0; v < R::kVectors; ++v) grad_re[v] = grad_im[v] = hn::Zero(d);
    for (std::int64_t row = begin; row < std::min(rows, begin + kBlockRows); ++row) {
      typename R::V q_re[R::kVectors];
      typename R::V q_im[R::kVectors];
      gather<kLanes>(p.a_transposed, p.r, row, last_entry, q_re, q_im);
      for (int v = 0; v < R::kVectors; ++v) {
        const std::int64_t at = row * kLanes + 2 * v * R::kWidth;
        const std::int64_t channel = v * R::kWidth;
        if constexpr (kGrad) {
          const auto words = bf16::load_words(d, p.other + at);
          const auto other_re = bf16::even_of(d, words);
          const auto other_im = bf16::odd_of(d, words);
          grad_re[v] = hn::MulAdd(q_re[v], other_re, hn::MulAdd(q_im[v], other_im, grad_re[v]));
          grad_im[v] = hn::MulAdd(q_im[v], other_re, hn::NegMulAdd(q_re[v], other_im, grad_im[v]));
        }
        if (p.total != nullptr) {
          float* HWY_RESTRICT total = p.total + row * kLanes + channel;
          auto total_re = hn::LoadU(d, total);
          auto total_im = hn::LoadU(d, total + R::kWords);
          add_product(d, p.factor_re + channel, p.factor_im + channel, q_re[v], q_im[v], total_re,
                      total_im);
          if (p.before != nullptr) {
            const auto words = bf16::load_words(d, p.before + at);
            add_product(d, p.before_re + channel, p.before_im + channel, bf16::even_of(d, words),
                        bf16::odd_of(d, words), total_re, total_im);
          }
          hn::StoreU(total_re, d, total);
          hn::StoreU(total_im, d, total + R::kWords);
        }
      }
      store_row<kLanes, kRounds>(q_re, q_im, p.r_next + row * kLanes);
    }
    if constexpr (kGrad) {
      HWY_ALIGN float sums[kLanes];
      for (int v = 0; v < R::kVectors; ++v) {
        hn::StoreU(grad_re[v], d, sums + v * R::kWidth);
        hn::StoreU(grad_im[v], d, sums + R::kWords + v * R::kWidth);
      }
      for (std::int64_t c = 0; c < R::kWords; ++c) {
        const double re = sums[c];
        const double im = sums[R::kWords + c];
        p.grad_re[c] += p.weight_re[c] * re - p.weight_im[c] * im;
        p.grad_im[c] += p.weight_re[c] * im + p.weight_im[c] * re;
      }
    }
  }
}

template <std::int64_t kLanes, bool kRounds>
MPSSM_BF16_DOT HWY_INLINE void step_lanes(const Bf16SliceStep& p) {
  if (p.sigma_re == nullptr) return step_rows<kLanes, false, kRounds>(p);
  step_rows<kLanes, true, kRounds>(p);
}
template <std::int64_t kLanes, bool kRounds>
MPSSM_BF16_DOT HWY_INLINE void adjoint_lanes(const Bf16SliceAdjointStep& p) {
  if (p.other == nullptr) return adjoint_rows<kLanes, false, kRounds>(p);
  adjoint_rows<kLanes, true, kRounds>(p);
}

template <bool kRounds>
MPSSM_BF16_DOT void step(const Bf16SliceStep& p) {
  if (p.lanes == 8) return step_lanes<8, kRounds>(p);
  if (p.lanes == 16) return step_lanes<16, kRounds>(p);
  if (p.lanes == 32) return step_lanes<32, kRounds>(p);
  if (p.lanes == 64) step_lanes<64, kRounds>(p);
}
template <bool kRounds>
MPSSM_BF16_DOT void adjoint(const Bf16SliceAdjointStep& p) {
  if (p.lanes == 8) return adjoint_lanes<8, kRounds>(p);
  if (p.lanes == 16) return adjoint_lanes<16, kRounds>(p);
  if (p.lanes == 32) return adjoint_lanes<32, kRounds>(p);
  if (p.lanes == 64) adjoint_lanes<64, kRounds>(p);
}

/// to = (re, im) as pairs + add, for `count` pairs.
HWY_INLINE void pairs_plus(const float* HWY_RESTRICT re, const float* HWY_RESTRICT im,
                           const float* HWY_RESTRICT add, std::int64_t count,
                           float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    hn::Vec<decltype(d)> add_re;
    hn::Vec<decltype(d)> add_im;
    hn::LoadInterleaved2(d, add + 2 * c, add_re, add_im);
    hn::StoreInterleaved2(hn::Add(hn::LoadU(d, re + c), add_re),
                          hn::Add(hn::LoadU(d, im + c), add_im), d, to + 2 * c);
  }
  for (; c < count; ++c) {
    to[2 * c] = re[c] + add[2 * c];
    to[2 * c + 1] = im[c] + add[2 * c + 1];
  }
}

}  // namespace

void StepBf16(const Bf16SliceStep& p) {
  if (bf16::dot_is_there()) return step<true>(p);
  step<false>(p);
}
void AdjointBf16(const Bf16SliceAdjointStep& p) {
  if (bf16::dot_is_there()) return adjoint<true>(p);
  adjoint<false>(p);
}
void PairsPlus(const float* re, const float* im, const float* add, std::int64_t count, float* to) {
  pairs_plus(re, im, add, count, to);
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(StepBf16);
HWY_EXPORT(AdjointBf16);
HWY_EXPORT(PairsPlus);

void slice_step(const Bf16SliceStep& step) noexcept { HWY_DYNAMIC_DISPATCH(StepBf16)(step); }
void slice_adjoint_step(const Bf16SliceAdjointStep& step) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointBf16)(step);
}

void pack_slice(const float* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, Bf16* slice, const std::int32_t* order) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    Bf16* const to = slice + row * lanes;
    round_numbers(source + (order == nullptr ? row : order[row]) * stride, width, to);
    if (width < lanes) std::fill(to + width, to + lanes, Bf16{0});
  }
}

void copy_slice(const Bf16* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, Bf16* slice, const std::int32_t* order) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    Bf16* const to = slice + row * lanes;
    std::copy_n(source + (order == nullptr ? row : order[row]) * stride, width, to);
    std::fill(to + width, to + lanes, Bf16{0});
  }
}

void unpack_slice(const Bf16* slice, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  float* target, std::int64_t stride, const std::int32_t* order) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    expand_numbers(slice + (order == nullptr ? row : order[row]) * lanes, width,
                   target + row * stride);
  }
}

void unpack_total(const float* total, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  const float* base, float* target, std::int64_t stride,
                  const std::int32_t* order) noexcept {
  const auto pairs_plus = HWY_DYNAMIC_DISPATCH(PairsPlus);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const re = total + (order == nullptr ? row : order[row]) * lanes;
    pairs_plus(re, re + lanes / 2, base + row * stride, width / 2, target + row * stride);
  }
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
