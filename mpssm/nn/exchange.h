// SPDX-License-Identifier: MIT
// Numbers on their way between ranks, with the way back for gradients.
// Private to nn/.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/ranks/communicator.h"

namespace mpssm::nn {

/// Who has which rows and which columns of a matrix: bounds[p] to bounds[p + 1] of rank p.
struct Dealt {
  ranks::Communicator* ranks;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
};

/// Own rows of all columns [own, columns] -> all rows of own columns [rows, own]. float. The
/// gradient takes the way back. A rank sends 4 bytes for each number of its rows that is in a
/// column of others.
at::Tensor to_columns(const at::Tensor& x, const std::shared_ptr<const Dealt>& dealt);
/// The way back, with to_columns() as its gradient.
at::Tensor to_rows(const at::Tensor& x, const std::shared_ptr<const Dealt>& dealt);
/// Own rows [own, any] -> all rows [rows, any] on every rank. All ranks have to go on with it
/// alike: the gradient is that of the own rows, as found here.
at::Tensor gather_rows(const at::Tensor& x, const std::shared_ptr<const Dealt>& dealt);

}  // namespace mpssm::nn
