// SPDX-License-Identifier: MIT
// The one sparse-matrix shape all kernels read: borrowed compressed sparse rows.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// Borrowed CSR matrix. Row i holds entries e in [row_ptr[i], row_ptr[i+1]) at columns col[e].
template <typename T>
struct CsrView {
  std::int64_t num_rows = 0;
  const std::int64_t* row_ptr = nullptr;  // [num_rows + 1]
  const std::int32_t* col = nullptr;      // [row_ptr[num_rows]]
  const T* value = nullptr;               // [row_ptr[num_rows]]
};

}  // namespace mpssm::kernels
