// SPDX-License-Identifier: MIT
// Private to graph/: owned compressed sparse rows and their transpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpssm::graph {

/// Square matrix in compressed sparse rows.
struct Csr {
  std::vector<std::int64_t> row_ptr = {0};  ///< [N + 1]
  std::vector<std::int32_t> col;
  std::vector<double> value;

  std::int64_t num_rows() const { return static_cast<std::int64_t>(row_ptr.size()) - 1; }
  void push_back(std::int64_t column, double entry) {
    col.push_back(static_cast<std::int32_t>(column));
    value.push_back(entry);
  }
  void end_row() { row_ptr.push_back(static_cast<std::int64_t>(col.size())); }
};

/// One counting sort, O(N + nonzeros). The rows of the result are sorted whatever the order in
/// those of `matrix`, and repeated entries keep their order.
inline Csr transpose(const Csr& matrix) {
  Csr result;
  result.row_ptr.assign(matrix.row_ptr.size(), 0);
  result.col.resize(matrix.col.size());
  result.value.resize(matrix.value.size());
  for (const std::int32_t column : matrix.col) ++result.row_ptr[column + 1];
  for (std::size_t i = 1; i < result.row_ptr.size(); ++i) {
    result.row_ptr[i] += result.row_ptr[i - 1];
  }
  std::vector<std::int64_t> next(result.row_ptr.begin(), result.row_ptr.end() - 1);
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      const std::int64_t slot = next[matrix.col[e]]++;
      result.col[slot] = static_cast<std::int32_t>(i);
      result.value[slot] = matrix.value[e];
    }
  }
  return result;
}

/// What of a matrix equals its transpose.
struct Symmetry {
  bool pattern = true;
  bool values = true;  ///< and the pattern
};

/// Of a matrix whose rows are sorted and without repeats, in O(N + nonzeros) time and O(N) memory.
/// Seen from row 0 on, the entries of column j come in the order of row j: each has to be the next
/// one there.
inline Symmetry symmetry_of(const Csr& matrix) {
  Symmetry result;
  std::vector<std::int64_t> next(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1);
  for (std::int64_t i = 0; i < matrix.num_rows(); ++i) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      const std::int32_t j = matrix.col[e];
      const std::int64_t mirrored = next[j]++;
      if (mirrored == matrix.row_ptr[j + 1] || matrix.col[mirrored] != i) return {false, false};
      if (matrix.value[mirrored] != matrix.value[e]) result.values = false;
    }
  }
  return result;
}

}  // namespace mpssm::graph
