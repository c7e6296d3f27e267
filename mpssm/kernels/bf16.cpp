// SPDX-License-Identifier: MIT
// To bfloat16 and back: numbers in a row, and rows in pairs as products want them. `dot_*` are
// written in the instructions of AVX-512 BF16; the others do the same without.
#include "mpssm/kernels/bf16.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/bf16.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/bf16-inl.h"
#include "mpssm/kernels/matmul_bf16.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// A panel's columns as vectors.
struct Panel {
  using D = hn::CappedTag<float, kPanelColumns>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kPanelColumns / kWidth);
};

HWY_INLINE void round_all(const float* HWY_RESTRICT x, std::int64_t count, Bf16* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    hn::Vec<decltype(d)> even;
    hn::Vec<decltype(d)> odd;
    hn::LoadInterleaved2(d, x + i, even, odd);
    bf16::store_words(d, bf16::join(d, even, odd), out + i);
  }
  for (; i < count; ++i) out[i] = to_bf16(x[i]);
}

HWY_INLINE void expand_all(const Bf16* HWY_RESTRICT from, std::int64_t count,
                           float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<std::uint16_t, decltype(d)> du16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto half = hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, half))), d, to + i);
  }
  for (; i < count; ++i) to[i] = to_float(from[i]);
}

/// Whole panels of two rows (or of one and zeros) of floats, `next` being the second.
HWY_INLINE void pair_panels(const float* row, const float* next, std::int64_t panels,
                            std::int64_t slice, Bf16* out) {
  const Panel::D d;
  for (std::int64_t panel = 0; panel < panels; ++panel, out += slice) {
    for (int v = 0; v < Panel::kVectors; ++v) {
      const std::int64_t at = panel * kPanelColumns + v * Panel::kWidth;
      const auto odd = next == nullptr ? hn::Zero(d) : hn::LoadU(d, next + at);
      bf16::store_words(d, bf16::join(d, hn::LoadU(d, row + at), odd), out + 2 * v * Panel::kWidth);
    }
  }
}

/// The same of numbers that are rounded already: a panel of each row.
HWY_INLINE void pair_panel(const Bf16* row, const Bf16* next, Bf16* out) {
  const Panel::D d;
  const hn::RebindToUnsigned<Panel::D> du;
  const hn::Rebind<std::uint16_t, Panel::D> du16;
  const auto words = [&](const Bf16* from) {
    return hn::PromoteTo(du, hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from)));
  };
  for (int v = 0; v < Panel::kVectors; ++v) {
    const std::int64_t at = v * Panel::kWidth;
    auto pair = words(row + at);
    if (next != nullptr) pair = hn::Or(pair, hn::ShiftLeft<16>(words(next + at)));
    bf16::store_words(d, pair, out + 2 * at);
  }
}

#if MPSSM_HAS_BF16_DOT

MPSSM_BF16_DOT void dot_round(const float* x, std::int64_t count, Bf16* out) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const std::int64_t left = std::min<std::int64_t>(16, count - i);
    const auto mask = static_cast<__mmask16>((1u << left) - 1u);
    const __m256bh numbers = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(out + i, mask, reinterpret_cast<__m256i>(numbers));
  }
}

MPSSM_BF16_DOT void dot_pair_panels(const float* row, const float* next, std::int64_t panels,
                                    std::int64_t slice, Bf16* out) {
  // Numbers of the first row go to even places, those of the second to odd ones.
  alignas(64) std::uint16_t order[2 * kPanelColumns];
  for (int i = 0; i < 2 * kPanelColumns; ++i) {
    order[i] = static_cast<std::uint16_t>(i / 2 + (i % 2) * kPanelColumns);
  }
  const __m512i places = _mm512_load_si512(order);
  for (std::int64_t panel = 0; panel < panels; ++panel, out += slice) {
    const std::int64_t at = panel * kPanelColumns;
    const __m512 odd = next == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(next + at);
    const __m512bh both = _mm512_cvtne2ps_pbh(odd, _mm512_loadu_ps(row + at));
    _mm512_storeu_si512(out, _mm512_permutexvar_epi16(places, reinterpret_cast<__m512i>(both)));
  }
}

#else

void dot_round(const float*, std::int64_t, Bf16*) {}
void dot_pair_panels(const float*, const float*, std::int64_t, std::int64_t, Bf16*) {}

#endif

}  // namespace

bool HasDot() { return bf16::dot_is_there(); }
void RoundNumbers(const float* x, std::int64_t count, Bf16* out) {
  if (bf16::dot_is_there()) return dot_round(x, count, out);
  round_all(x, count, out);
}
void ExpandNumbers(const Bf16* x, std::int64_t count, float* out) { expand_all(x, count, out); }
void PairPanels(const float* row, const float* next, std::int64_t panels, std::int64_t slice,
                Bf16* out) {
  if (bf16::dot_is_there()) return dot_pair_panels(row, next, panels, slice, out);
  pair_panels(row, next, panels, slice, out);
}
void PairPanelsOfBf16(const Bf16* row, const Bf16* next, const Layout& layout, std::int64_t panels,
                      std::int64_t slice, Bf16* out) {
  for (std::int64_t panel = 0; panel < panels; ++panel, out += slice) {
    const std::int64_t column = panel * kPanelColumns;
    const std::int64_t at = column / layout.lanes * layout.slice_stride + column % layout.lanes;
    pair_panel(row + at, next == nullptr ? nullptr : next + at, out);
  }
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(HasDot);
HWY_EXPORT(RoundNumbers);
HWY_EXPORT(ExpandNumbers);
HWY_EXPORT(PairPanels);
HWY_EXPORT(PairPanelsOfBf16);

bool has_bf16_instructions() noexcept { return HWY_DYNAMIC_DISPATCH(HasDot)(); }

void round_numbers(const float* x, std::int64_t count, Bf16* out) noexcept {
  HWY_DYNAMIC_DISPATCH(RoundNumbers)(x, count, out);
}

void expand_numbers(const Bf16* x, std::int64_t count, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(ExpandNumbers)(x, count, out);
}

void round_rows(const float* x, std::int64_t rows, std::int64_t width, Bf16* out) noexcept {
  if (width % 2 == 0) return round_numbers(x, rows * width, out);
  for (std::int64_t row = 0; row < rows; ++row, x += width, out += width + 1) {
    round_numbers(x, width, out);
    out[width] = {0};
  }
}

void pack_row_pairs(const float* x, std::int64_t rows, std::int64_t width, Bf16* pairs) noexcept {
  const std::int64_t slice = padded_inner(rows) * kPanelColumns;
  const std::int64_t whole = width / kPanelColumns;
  const std::int64_t rest = width % kPanelColumns;
  const auto pack = HWY_DYNAMIC_DISPATCH(PairPanels);
  for (std::int64_t row = 0; row < rows; row += 2, x += 2 * width, pairs += 2 * kPanelColumns) {
    const float* const next = row + 1 < rows ? x + width : nullptr;
    pack(x, next, whole, slice, pairs);
    if (rest == 0) continue;
    float ends[2][kPanelColumns] = {};
    std::copy_n(x + whole * kPanelColumns, rest, ends[0]);
    if (next != nullptr) std::copy_n(next + whole * kPanelColumns, rest, ends[1]);
    pack(ends[0], ends[1], 1, slice, pairs + whole * slice);
  }
}

void pack_row_pairs(const Bf16* x, const Layout& layout, std::int64_t begin, std::int64_t rows,
                    std::int64_t width, Bf16* pairs) noexcept {
  const std::int64_t slice = padded_inner(rows) * kPanelColumns;
  const auto pack = HWY_DYNAMIC_DISPATCH(PairPanelsOfBf16);
  x += begin * layout.lanes;
  for (std::int64_t row = 0; row < rows; row += 2, pairs += 2 * kPanelColumns) {
    const Bf16* const first = x + row * layout.lanes;
    pack(first, row + 1 < rows ? first + layout.lanes : nullptr, layout, width / kPanelColumns,
         slice, pairs);
  }
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
