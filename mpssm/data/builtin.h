// SPDX-License-Identifier: MIT
// Private to data/: datasets that are made, not read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

/// "board", "properties", or one of them with ':' and a size.
bool is_builtin(std::string_view name);

/// Throws base::Error for a size or a property that makes no sense.
Dataset make_builtin(const std::string& name, std::uint64_t seed);

/// Minesweeper as in the heterophilous-graphs benchmark: a fifth of the cells are mines; feature 0
/// marks the half that is hidden, features 1 to 6 the number of mines around (0 to 4, 5 or more).
NodeData make_board_data(std::int64_t rows, std::int64_t columns, std::uint64_t seed);

/// Graphs of 25 to 34 nodes in PNA's mixture of families, `num_train` for train and a quarter of
/// that each for val and test; `property` is diameter, sssp, eccentricity or laplacian.
GraphsData make_property_data(const std::string& property, std::int64_t num_train,
                              std::uint64_t seed);

}  // namespace mpssm::data
