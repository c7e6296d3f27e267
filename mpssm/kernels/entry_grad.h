// SPDX-License-Identifier: MIT
// The gradient of a step of the recurrence with respect to the entries of A, on a slice of channels
// (kernels/recurrence.h).
#pragma once

#include <cstdint>

#include "mpssm/kernels/csr_view.h"

namespace mpssm::kernels {

/// grad[e] += Re <p(i, :), sigma x(j, :)> for every entry e = (i, j): what y = sigma (A x) does to
/// A if p is the gradient of y. Complex slices.
template <typename T>
struct SliceEntryGrad {
  CsrView<T> a;  // value is not read
  std::int64_t lanes = 0;
  const T* p = nullptr;         // [N][lanes]
  const T* x = nullptr;         // [N][lanes]
  const T* sigma_re = nullptr;  // [lanes / 2]
  const T* sigma_im = nullptr;
  T* grad = nullptr;  // [nonzeros]
};
void slice_entry_grad(const SliceEntryGrad<float>& args) noexcept;
void slice_entry_grad(const SliceEntryGrad<double>& args) noexcept;

}  // namespace mpssm::kernels
