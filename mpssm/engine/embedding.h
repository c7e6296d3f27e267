// SPDX-License-Identifier: MIT
// Tables of rows for categories: what one-hot columns times a matrix give, without the zeros.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"

namespace mpssm::engine {

/// Which rows of one table, tables below each other, each number of codes [rows, columns] stands
/// for; -1: none.
struct EmbeddingRows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::int32_t* index = nullptr;  ///< [rows, columns]
};

/// y [rows, width] = bias (or 0) + the sum of the rows of table [num_table, width], in the order of
/// the columns.
template <typename T>
void embed(const EmbeddingRows& codes, const T* table, const T* bias, std::int64_t width, T* y,
           const Executor& executor);

/// grad_table [num_table, width] from g [rows, width]: each row the sum, in double and in order, of
/// the rows of g that stand for it. The same bits for any number of workers.
template <typename T>
void embed_adjoint(const EmbeddingRows& codes, const T* g, std::int64_t num_table,
                   std::int64_t width, T* grad_table, const Executor& executor);

}  // namespace mpssm::engine
