// SPDX-License-Identifier: MIT
// Private to io/: shapes as files declare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mpssm::io {

inline constexpr std::size_t kMaxRank = 64;  // NumPy's limit

/// "[3, *, 2]"; -1 is a free axis.
std::string shape_text(std::span<const std::int64_t> shape);

/// Bytes of such an array. nullopt for a negative axis, more than kMaxRank axes, and if the product
/// of the axes that are not zero overflows: products of any of them are then safe to form.
std::optional<std::uint64_t> bytes_of(std::span<const std::int64_t> shape, std::size_t item_bytes);

}  // namespace mpssm::io
