// SPDX-License-Identifier: MIT
// The steps of recurrence.h on slices in bfloat16: half the bytes per gathered row. Sums are floats
// and are rounded once, when a row is written.
//
// A row of a slice holds its numbers in the order of the tensor, complex ones as pairs (re, im): a
// pair is a 32-bit word, from which real and imaginary parts come by themselves.
#pragma once

#include <cstdint>

#include "mpssm/kernels/bf16.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::kernels {

/// Rounds `width` <= lanes numbers of each of `rows` rows, `stride` apart, into a slice; the rest
/// of the lanes become zero. With `order`, row i of the slice is row order[i] of the source.
void pack_slice(const float* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, Bf16* slice, const std::int32_t* order = nullptr) noexcept;

/// The same from numbers that are rounded already.
void copy_slice(const Bf16* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, Bf16* slice, const std::int32_t* order = nullptr) noexcept;

/// The way back: the first `width` numbers of each row. With `order`, row i of the target is row
/// order[i] of the slice.
void unpack_slice(const Bf16* slice, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  float* target, std::int64_t stride, const std::int32_t* order = nullptr) noexcept;

/// One step, y = sigma * (A x) + add, all rows; 8, 16, 32 or 64 lanes.
struct Bf16SliceStep {
  CsrView<float> a;
  std::int64_t lanes = 0;
  const Bf16* x = nullptr;          // [N][lanes]
  const Bf16* add = nullptr;        // [N][lanes], optional
  const float* sigma_re = nullptr;  // [lanes / 2]; both absent: sigma = 1
  const float* sigma_im = nullptr;
  Bf16* y = nullptr;  // [N][lanes], not x
};
void slice_step(const Bf16SliceStep& step) noexcept;

/// One step backwards, without sigma on the way: rounded at every step, a number that shrinks by
/// less than its last bit would not shrink at all. With q = A' r, complex factors per channel:
///   r_next = q
///   total += factor * q (+ factor_before * before)
///   grad  += weight * sum over nodes of q * conj(other)
struct Bf16SliceAdjointStep {
  CsrView<float> a_transposed;
  std::int64_t lanes = 0;
  const Bf16* r = nullptr;  // [N][lanes]
  Bf16* r_next = nullptr;   // [N][lanes], not r
  /// [N][lanes], optional: a row's real parts, then its imaginary parts. Floats, because a long sum
  /// of small terms would stand still in bfloat16; two steps at a time, to read it half as often.
  float* total = nullptr;
  const float* factor_re = nullptr;  // [lanes / 2]
  const float* factor_im = nullptr;
  const Bf16* before = nullptr;      // [N][lanes], optional: r, for a total of two steps
  const float* before_re = nullptr;  // [lanes / 2]
  const float* before_im = nullptr;
  const Bf16* other = nullptr;  // [N][lanes], optional; absent: grad is left alone
  double* grad_re = nullptr;    // [lanes / 2]
  double* grad_im = nullptr;
  const double* weight_re = nullptr;
  const double* weight_im = nullptr;
};
void slice_adjoint_step(const Bf16SliceAdjointStep& step) noexcept;

/// target = total as pairs + base, the first `width` numbers of each row; target and base in rows
/// `stride` apart, row i of both being row order[i] of total.
void unpack_total(const float* total, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  const float* base, float* target, std::int64_t stride,
                  const std::int32_t* order = nullptr) noexcept;

}  // namespace mpssm::kernels
