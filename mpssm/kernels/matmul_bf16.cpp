// SPDX-License-Identifier: MIT
// Two forms of every product. `dot_*` are written in the instructions of AVX-512 BF16, which this
// Highway does not know: twelve rows by two panels are 24 sums, which with two panel vectors and a
// broadcast fill the 32 registers. The others do the same sums in the same order on floats.
#include "mpssm/kernels/matmul_bf16.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/matmul_bf16.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// As in matmul.cpp: rows that pass a panel before the next panel's turn.
inline constexpr std::int64_t kGroupRows = 96;
inline constexpr std::int64_t kPairNumbers = 2 * kPanelColumns;  // of a panel, two rows of W

/// Where number (row, column) of y lies, column the first of a panel.
template <typename Y>
HWY_INLINE std::int64_t place_in_y(const Bf16MatmulArgs<Y>& p, std::int64_t row,
                                   std::int64_t column) {
  const std::int64_t lanes = p.y_layout.lanes;
  return column / lanes * p.y_layout.slice_stride + row * lanes + column % lanes;
}

// ---- on floats --------------------------------------------------------------------------------

struct Panel {
  using D = hn::CappedTag<float, kPanelColumns>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kPanelColumns / kWidth);
};

/// sum[r][v] += the products of pairs x[r] with a panel's pairs.
template <int kCount>
HWY_INLINE void add_pair(const Bf16* HWY_RESTRICT x, std::int64_t x_stride,
                         const Bf16* HWY_RESTRICT w, Panel::V (*sum)[Panel::kVectors]) {
  const Panel::D d;
  Panel::V even[Panel::kVectors];
  Panel::V odd[Panel::kVectors];
  for (int v = 0; v < Panel::kVectors; ++v) {
    const auto words = bf16::load_words(d, w + 2 * v * Panel::kWidth);
    even[v] = bf16::even_of(d, words);
    odd[v] = bf16::odd_of(d, words);
  }
  for (int r = 0; r < kCount; ++r) {
    const auto factor0 = hn::Set(d, to_float(x[r * x_stride]));
    const auto factor1 = hn::Set(d, to_float(x[r * x_stride + 1]));
    for (int v = 0; v < Panel::kVectors; ++v) {
      sum[r][v] = hn::MulAdd(factor0, even[v], hn::MulAdd(factor1, odd[v], sum[r][v]));
    }
  }
}

HWY_INLINE void store(float sum, const float* add, float* y) {
  *y = add == nullptr ? sum : sum + *add;
}
HWY_INLINE void store(float sum, const Bf16* add, Bf16* y) {
  *y = to_bf16(add == nullptr ? sum : sum + to_float(*add));
}

template <int kCount, typename Y>
HWY_INLINE void tile(const Bf16MatmulArgs<Y>& p, std::int64_t row, std::int64_t panel) {
  const Panel::D d;
  const Bf16* HWY_RESTRICT w = p.packed + panel * kPanelColumns * p.inner;
  Panel::V sum[kCount][Panel::kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < Panel::kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const std::int64_t lanes = p.x_layout.lanes;
  const Bf16* slice = p.x + row * lanes;
  for (std::int64_t done = 0; done < p.inner; done += lanes, slice += p.x_layout.slice_stride) {
    for (std::int64_t k = 0; k < lanes; k += 2, w += kPairNumbers) {
      add_pair<kCount>(slice + k, lanes, w, sum);
    }
  }
  const std::int64_t begin = panel * kPanelColumns;
  const std::int64_t at = place_in_y(p, row, begin);
  const std::int64_t count = std::min(kPanelColumns, p.columns - begin);
  for (int r = 0; r < kCount; ++r) {
    HWY_ALIGN float numbers[kPanelColumns];
    for (int v = 0; v < Panel::kVectors; ++v) {
      hn::StoreU(sum[r][v], d, numbers + v * Panel::kWidth);
    }
    const std::int64_t to = at + r * p.y_layout.lanes;
    const Y* add = p.add == nullptr ? nullptr : p.add + (p.add_is_bias ? begin : to);
    for (std::int64_t j = 0; j < count; ++j) {
      store(numbers[j], add == nullptr ? nullptr : add + j, p.y + to + j);
    }
  }
}

template <typename Y>
HWY_INLINE void matmul_rows(const Bf16MatmulArgs<Y>& p, std::int64_t row_begin,
                            std::int64_t row_end) {
  constexpr int kRows = 4;  // with even and odd parts of a panel in 16 registers
  const std::int64_t panels = (p.columns + kPanelColumns - 1) / kPanelColumns;
  for (std::int64_t group = row_begin; group < row_end; group += kGroupRows) {
    const std::int64_t end = std::min(row_end, group + kGroupRows);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      std::int64_t row = group;
      for (; row + kRows <= end; row += kRows) tile<kRows>(p, row, panel);
      for (; row < end; ++row) tile<1>(p, row, panel);
    }
  }
}

HWY_INLINE void transposed_rows(const Bf16TransposedArgs& p) {
  constexpr int kLeft = 4;
  const Panel::D d;
  const std::int64_t pairs = padded_inner(p.rows) / 2;
  const std::int64_t slice = pairs * kPairNumbers;
  for (std::int64_t i = 0; i < p.left; i += kLeft) {
    for (std::int64_t j = 0; j < p.right; j += kPanelColumns) {
      const Bf16* x = p.x + i / kPanelColumns * slice + 2 * (i % kPanelColumns);
      const Bf16* g = p.g + j / kPanelColumns * slice;
      float* const sum = p.sum + i * p.right + j;
      Panel::V total[kLeft][Panel::kVectors];
      for (int r = 0; r < kLeft; ++r) {
        for (int v = 0; v < Panel::kVectors; ++v) {
          total[r][v] = hn::LoadU(d, sum + r * p.right + v * Panel::kWidth);
        }
      }
      for (std::int64_t pair = 0; pair < pairs; ++pair, x += kPairNumbers, g += kPairNumbers) {
        add_pair<kLeft>(x, 2, g, total);
      }
      for (int r = 0; r < kLeft; ++r) {
        for (int v = 0; v < Panel::kVectors; ++v) {
          hn::StoreU(total[r][v], d, sum + r * p.right + v * Panel::kWidth);
        }
      }
    }
  }
}

// ---- on the instructions for it ---------------------------------------------------------------

#if MPSSM_HAS_BF16_DOT

MPSSM_BF16_DOT HWY_INLINE __m512bh load_pairs(const Bf16* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}
MPSSM_BF16_DOT HWY_INLINE __m512bh broadcast_pair(const Bf16* from) {
  int pair;
  std::memcpy(&pair, from, sizeof(pair));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

MPSSM_BF16_DOT HWY_INLINE void store(__m512 sum, __mmask16 mask, const float* add, float* y) {
  if (add != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, add));
  _mm512_mask_storeu_ps(y, mask, sum);
}
MPSSM_BF16_DOT HWY_INLINE void store(__m512 sum, __mmask16 mask, const Bf16* add, Bf16* y) {
  if (add != nullptr) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, add));
    sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)));
  }
  _mm256_mask_storeu_epi16(y, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
}

template <int kCount, int kPanels, typename Y>
MPSSM_BF16_DOT HWY_INLINE void dot_tile(const Bf16MatmulArgs<Y>& p, std::int64_t row,
                                        std::int64_t panel) {
  const std::int64_t panel_size = kPanelColumns * p.inner;
  const Bf16* HWY_RESTRICT w = p.packed + panel * panel_size;
  __m512 sum[kCount][kPanels];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kPanels; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  // Where the sums will go: a result that is larger than the cache comes in the meantime.
  for (int v = 0; v < kPanels; ++v) {
    const std::int64_t at = place_in_y(p, row, (panel + v) * kPanelColumns);
    for (int r = 0; r < kCount; ++r) {
      __builtin_prefetch(p.y + at + r * p.y_layout.lanes, 1);
      if (p.add != nullptr && !p.add_is_bias) {
        __builtin_prefetch(p.add + at + r * p.y_layout.lanes, 0);
      }
    }
  }
  const std::int64_t lanes = p.x_layout.lanes;
  const Bf16* HWY_RESTRICT slice = p.x + row * lanes;
  for (std::int64_t done = 0; done < p.inner; done += lanes, slice += p.x_layout.slice_stride) {
    if (panel == 0 && p.x_layout.slice_stride != 0) {  // the first to read them: the next ones
      const Bf16* const ahead = slice + kCount * lanes;
      for (std::int64_t i = 0; i < kCount * lanes; i += 32) __builtin_prefetch(ahead + i, 0);
    }
    for (std::int64_t k = 0; k < lanes; k += 2, w += kPairNumbers) {
      __m512bh part[kPanels];
      for (int v = 0; v < kPanels; ++v) part[v] = load_pairs(w + v * panel_size);
      for (int r = 0; r < kCount; ++r) {
        const __m512bh factor = broadcast_pair(slice + r * lanes + k);
        for (int v = 0; v < kPanels; ++v) {
          sum[r][v] = _mm512_dpbf16_ps(sum[r][v], factor, part[v]);
        }
      }
    }
  }
  for (int v = 0; v < kPanels; ++v) {
    const std::int64_t begin = (panel + v) * kPanelColumns;
    const std::int64_t at = place_in_y(p, row, begin);
    const std::int64_t count = std::min(kPanelColumns, p.columns - begin);
    const auto mask = static_cast<__mmask16>((1u << count) - 1u);
    for (int r = 0; r < kCount; ++r) {
      const std::int64_t to = at + r * p.y_layout.lanes;
      const Y* add = p.add == nullptr ? nullptr : p.add + (p.add_is_bias ? begin : to);
      store(sum[r][v], mask, add, p.y + to);
    }
  }
}

template <int kPanels, typename Y>
MPSSM_BF16_DOT HWY_INLINE void dot_group(const Bf16MatmulArgs<Y>& p, std::int64_t row,
                                         std::int64_t end, std::int64_t panel) {
  constexpr int kRows = 12;
  for (; row + kRows <= end; row += kRows) dot_tile<kRows, kPanels>(p, row, panel);
  for (; row + 4 <= end; row += 4) dot_tile<4, kPanels>(p, row, panel);
  for (; row < end; ++row) dot_tile<1, kPanels>(p, row, panel);
}

template <typename Y>
MPSSM_BF16_DOT void dot_matmul(const Bf16MatmulArgs<Y>& p, std::int64_t row_begin,
                               std::int64_t row_end) {
  const std::int64_t panels = (p.columns + kPanelColumns - 1) / kPanelColumns;
  for (std::int64_t group = row_begin; group < row_end; group += kGroupRows) {
    const std::int64_t end = std::min(row_end, group + kGroupRows);
    std::int64_t panel = 0;
    for (; panel + 2 <= panels; panel += 2) dot_group<2>(p, group, end, panel);
    if (panel < panels) dot_group<1>(p, group, end, panel);
  }
}

template <int kCount, int kPanels>
MPSSM_BF16_DOT HWY_INLINE void dot_transposed_tile(const Bf16* HWY_RESTRICT x,
                                                   const Bf16* HWY_RESTRICT g, std::int64_t slice,
                                                   std::int64_t pairs, float* sum,
                                                   std::int64_t stride) {
  __m512 total[kCount][kPanels];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kPanels; ++v) {
      total[r][v] = _mm512_loadu_ps(sum + r * stride + v * kPanelColumns);
    }
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair, x += kPairNumbers, g += kPairNumbers) {
    __m512bh part[kPanels];
    for (int v = 0; v < kPanels; ++v) part[v] = load_pairs(g + v * slice);
    for (int r = 0; r < kCount; ++r) {
      const __m512bh factor = broadcast_pair(x + 2 * r);
      for (int v = 0; v < kPanels; ++v) {
        total[r][v] = _mm512_dpbf16_ps(total[r][v], factor, part[v]);
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kPanels; ++v) {
      _mm512_storeu_ps(sum + r * stride + v * kPanelColumns, total[r][v]);
    }
  }
}

MPSSM_BF16_DOT void dot_transposed(const Bf16TransposedArgs& p) {
  constexpr int kLeft = 8;
  const std::int64_t pairs = padded_inner(p.rows) / 2;
  const std::int64_t slice = pairs * kPairNumbers;
  std::int64_t j = 0;
  for (; j + 2 * kPanelColumns <= p.right; j += 2 * kPanelColumns) {
    for (std::int64_t i = 0; i < p.left; i += kLeft) {
      dot_transposed_tile<kLeft, 2>(p.x + i / kPanelColumns * slice + 2 * (i % kPanelColumns),
                                    p.g + j / kPanelColumns * slice, slice, pairs,
                                    p.sum + i * p.right + j, p.right);
    }
  }
  for (std::int64_t i = 0; j < p.right && i < p.left; i += kLeft) {
    dot_transposed_tile<kLeft, 1>(p.x + i / kPanelColumns * slice + 2 * (i % kPanelColumns),
                                  p.g + j / kPanelColumns * slice, slice, pairs,
                                  p.sum + i * p.right + j, p.right);
  }
}

#else

template <typename Y>
void dot_matmul(const Bf16MatmulArgs<Y>&, std::int64_t, std::int64_t) {}
void dot_transposed(const Bf16TransposedArgs&) {}

#endif

}  // namespace

void MatmulToFloat(const Bf16MatmulArgs<float>& p, std::int64_t b, std::int64_t e) {
  if (bf16::dot_is_there()) return dot_matmul(p, b, e);
  matmul_rows(p, b, e);
}
void MatmulToBf16(const Bf16MatmulArgs<Bf16>& p, std::int64_t b, std::int64_t e) {
  if (bf16::dot_is_there()) return dot_matmul(p, b, e);
  matmul_rows(p, b, e);
}
void TransposedBf16(const Bf16TransposedArgs& p) {
  if (bf16::dot_is_there()) return dot_transposed(p);
  transposed_rows(p);
}
}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(MatmulToFloat);
HWY_EXPORT(MatmulToBf16);
HWY_EXPORT(TransposedBf16);

void pack_matrix(Transpose transpose, const float* w, std::int64_t inner, std::int64_t columns,
                 Bf16* packed) noexcept {
  if (transpose == Transpose::kNo) return pack_row_pairs(w, inner, columns, packed);
  // A row of w is a column of the packed matrix: its pairs lie a panel's row apart.
  constexpr std::int64_t kPiece = 128;
  const std::int64_t padded = padded_inner(inner);
  std::fill_n(packed, packed_size_bf16(inner, columns), Bf16{0});
  for (std::int64_t j = 0; j < columns; ++j) {
    Bf16* const column =
        packed + j / kPanelColumns * kPanelColumns * padded + 2 * (j % kPanelColumns);
    for (std::int64_t begin = 0; begin < inner; begin += kPiece) {
      Bf16 piece[kPiece];
      const std::int64_t count = std::min(kPiece, inner - begin);
      round_numbers(w + j * inner + begin, count, piece);
      for (std::int64_t k = 0; k < count; ++k) {
        column[(begin + k) / 2 * 2 * kPanelColumns + k % 2] = piece[k];
      }
    }
  }
}

void matmul(const Bf16MatmulArgs<float>& args, std::int64_t row_begin,
            std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulToFloat)(args, row_begin, row_end);
}
void matmul(const Bf16MatmulArgs<Bf16>& args, std::int64_t row_begin,
            std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulToBf16)(args, row_begin, row_end);
}
void matmul_transposed(const Bf16TransposedArgs& args) noexcept {
  HWY_DYNAMIC_DISPATCH(TransposedBf16)(args);
}
void add_transposed(const float* x, std::int64_t left, const float* g, std::int64_t right,
                    std::int64_t rows, float* sum, Bf16* scratch) noexcept {
  const auto whole = [](std::int64_t width) { return packed_size(1, width); };
  Bf16* const g_pairs = scratch + row_pairs_size(rows, left);
  pack_row_pairs(x, rows, left, scratch);
  pack_row_pairs(g, rows, right, g_pairs);
  matmul_transposed({whole(left), whole(right), rows, scratch, g_pairs, sum});
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
