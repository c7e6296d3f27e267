// SPDX-License-Identifier: MIT
// The recurrence on a slice of channels: channels never mix when W is diagonal, so a few of them
// are taken through all steps while they sit in cache.
//
// A slice holds `lanes` numbers of every node, packed row after row: [N][lanes]. Complex numbers
// stand as they do in tensors, in pairs (re, im, re, im, ...).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "mpssm/kernels/csr_view.h"

namespace mpssm::kernels {

/// Lanes a slice may have: a multiple of kMinSliceLanes up to kWidestSliceLanes. Beyond a row of
/// 128 bytes, two cache lines, three slices of a middling graph no longer fit into the shared
/// cache: a wider one pays only where it saves a narrow one beside it. Of bfloat16
/// (recurrence_bf16.h) a power of two.
inline constexpr std::int64_t kMinSliceLanes = 8;
template <typename T>
inline constexpr std::int64_t kMaxSliceLanes = 128 / static_cast<std::int64_t>(sizeof(T));
template <typename T>
inline constexpr std::int64_t kWidestSliceLanes = kMaxSliceLanes<T> * 3 / 2;

/// Copies `width` <= lanes numbers of each of `rows` rows, `stride` apart, into a slice; the rest
/// of the lanes become zero. With `order`, row i of the slice is row order[i] of the source.
template <typename T>
void pack_slice(const T* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, T* slice, const std::int32_t* order = nullptr) noexcept;

/// The way back: the first `width` numbers of each row. With `order`, row i of the target is row
/// order[i] of the slice.
template <typename T>
void unpack_slice(const T* slice, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  T* target, std::int64_t stride, const std::int32_t* order = nullptr) noexcept;

/// Operators that a slice may have: with entries at the same places, and values of their own.
inline constexpr std::int64_t kMostSliceOperators = 3;
/// Numbers that a step may read from where those of an entry begin: sixteen bytes in float.
inline constexpr std::int64_t kEntryReads = 4;

/// The operators of the lanes of a slice; without values that of all lanes is the step's.
template <typename T>
struct LaneOperators {
  const T* values = nullptr;  // [entries][operators], and room for kEntryReads from the last on
  std::int64_t operators = 0;
  /// Of the second and the third operator; 0: there is none.
  std::array<std::int64_t, kMostSliceOperators - 1> first_lane = {};

  std::int64_t of_lane(std::int64_t lane) const {
    std::int64_t which = 0;
    for (const std::int64_t first : first_lane) which += first > 0 && lane >= first ? 1 : 0;
    return which;
  }
};

/// One step, y = sigma * (A x) + add, all rows.
template <typename T>
struct SliceStep {
  CsrView<T> a;
  LaneOperators<T> of_lanes = {};  // only with sigma; values instead of a's
  std::int64_t lanes = 0;
  const T* x = nullptr;         // [N][lanes]
  const T* add = nullptr;       // [N][lanes], optional
  const T* sigma_re = nullptr;  // [lanes / 2]; both absent: a real slice, sigma = 1
  const T* sigma_im = nullptr;
  T* y = nullptr;  // [N][lanes], not x
};
void slice_step(const SliceStep<float>& step) noexcept;
void slice_step(const SliceStep<double>& step) noexcept;

/// One step backwards. With q = A' p:
///   p_next = conj(sigma) * q + add
///   total += p_next
///   grad  += weight * sum over nodes of q * conj(other)
template <typename T>
struct SliceAdjointStep {
  CsrView<T> a_transposed;
  LaneOperators<T> of_lanes = {};  // transposed, too
  std::int64_t lanes = 0;
  const T* p = nullptr;         // [N][lanes]
  const T* add = nullptr;       // [N][lanes], optional
  const T* sigma_re = nullptr;  // [lanes / 2]
  const T* sigma_im = nullptr;
  T* p_next = nullptr;        // [N][lanes], not p
  T* total = nullptr;         // [N][lanes], optional
  const T* other = nullptr;   // [N][lanes], optional; absent: grad is left alone
  double* grad_re = nullptr;  // [lanes / 2]
  double* grad_im = nullptr;
  double weight = 1.0;
};
void slice_adjoint_step(const SliceAdjointStep<float>& step) noexcept;
void slice_adjoint_step(const SliceAdjointStep<double>& step) noexcept;

}  // namespace mpssm::kernels
