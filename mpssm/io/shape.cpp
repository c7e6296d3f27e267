// SPDX-License-Identifier: MIT
#include "mpssm/io/shape.h"

#include <algorithm>

namespace mpssm::io {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == -1 ? "*" : std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<std::uint64_t> bytes_of(std::span<const std::int64_t> shape, std::size_t item_bytes) {
  if (shape.size() > kMaxRank) return std::nullopt;
  auto bytes = static_cast<std::int64_t>(item_bytes);
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    is_empty = is_empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) return std::nullopt;
  }
  return is_empty ? 0 : static_cast<std::uint64_t>(bytes);
}

}  // namespace mpssm::io
