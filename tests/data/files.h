// SPDX-License-Identifier: MIT
// Small files for the readers, and the check of their complaints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/data/load.h"
#include "mpssm/io/npz.h"

#include "tests/support/scratch.h"

namespace mpssm::testing {

using Arrays = std::map<std::string, io::Array>;

template <typename T>
io::Array array(const std::vector<T>& values, std::vector<std::int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
  return io::make_array<T>(std::span<const T>(values), std::move(shape));
}
inline io::Array integers(const std::vector<std::int64_t>& values,
                          std::vector<std::int64_t> shape = {}) {
  return array<std::int64_t>(values, std::move(shape));
}
inline io::Array floats(const std::vector<float>& values, std::vector<std::int64_t> shape = {}) {
  return array<float>(values, std::move(shape));
}

/// `count` numbers, all `value`: compressed they are next to nothing.
inline io::Array bytes(std::int64_t count, std::uint8_t value,
                       std::vector<std::int64_t> shape = {}) {
  return array(std::vector<std::uint8_t>(static_cast<std::size_t>(count), value), std::move(shape));
}

inline std::string load_complaint(const std::string& name, const data::LoadOptions& options = {}) {
  return message_of([&] { data::load(name, options); });
}

}  // namespace mpssm::testing
