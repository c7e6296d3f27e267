// SPDX-License-Identifier: MIT
// Private to base/: the inner loop of SHA-256, in plain C++ and with the instructions that
// processors have for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mpssm::base {

using Sha256State = std::array<std::uint32_t, 8>;
inline constexpr std::size_t kSha256BlockBytes = 64;

/// Adds blocks, whole ones, to the state.
void add_sha256_blocks_plainly(Sha256State& state, std::string_view blocks);

/// The same with x86's instructions; only where there are some.
void add_sha256_blocks_x86(Sha256State& state, std::string_view blocks);
bool has_sha256_instructions();

}  // namespace mpssm::base
