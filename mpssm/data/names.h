// SPDX-License-Identifier: MIT
// Private to data/: lists of names in .npz files, which know numbers only: UTF-8 bytes, each name
// ended by a NUL.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {

io::Array names_array(std::span<const std::string> names);

/// Throws base::Error unless the array holds `count` names (-1: any number).
std::vector<std::string> read_names(const io::Npz& npz, std::string_view array, std::int64_t count);

/// The stored metric, or the default one of the task.
std::string read_metric(const io::Npz& npz, Task task);

}  // namespace mpssm::data
