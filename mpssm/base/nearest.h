// SPDX-License-Identifier: MIT
// "Did you mean ...?"
#pragma once

#include <span>
#include <string_view>

namespace mpssm::base {

/// The candidate that `word` is a slip of (few letters changed, missing or too many), or "".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace mpssm::base
