// SPDX-License-Identifier: MIT
// Kernels ask the cache for what entries to come will need. Near the end of a matrix there are
// none.
#pragma once

#include <cstdint>

#include "mpssm/kernels/csr_view.h"

namespace mpssm::kernels {

/// The end of those of rows [begin, end) whose every entry has `ahead` more entries behind it.
template <typename T>
inline std::int64_t rows_before_end(const CsrView<T>& a, std::int64_t ahead, std::int64_t begin,
                                    std::int64_t end) {
  const std::int64_t entries = a.row_ptr[a.num_rows];
  while (end > begin && a.row_ptr[end] + ahead > entries) --end;
  return end;
}

}  // namespace mpssm::kernels
