// SPDX-License-Identifier: MIT
// Rows of a call that are some of the rows of a larger whole, which others compute piece by piece.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mpssm::engine {

/// The rows of a call are rows `first` and on of `all` rows; 0: they are all there are. What is
/// dropped goes by the place of a row in the whole, and sums over rows are cut where those of the
/// whole are cut: a call on one part of it (RowParts) gives that part's sum, to the bit.
struct RowPlace {
  std::int64_t first = 0;
  std::int64_t all = 0;
  /// The place of each row of the call in the whole, where they do not follow each other; must
  /// outlive the backward pass. Null: `first` and on.
  const std::int64_t* places = nullptr;
};

/// Rows [begin, end) of a part of a sum over `rows` rows: enough to be worth a task, few enough
/// parts to be added up quickly, and the same for any number of threads. The sum is that of the
/// parts, in order.
struct RowParts {
  explicit RowParts(std::int64_t rows_in, std::int64_t all = 0)
      : rows(rows_in),
        size(std::max<std::int64_t>(1024, (std::max(rows, all) + 15) / 16)),
        count((rows + size - 1) / size) {}
  std::int64_t begin(std::int64_t part) const { return part * size; }
  std::int64_t end(std::int64_t part) const { return std::min(rows, (part + 1) * size); }
  std::int64_t rows;
  std::int64_t size;
  std::int64_t count;
};

}  // namespace mpssm::engine
