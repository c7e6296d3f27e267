// SPDX-License-Identifier: MIT
// Names and values that came out of a file, fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mpssm::base {

/// `text` made safe for one line of a terminal: control characters and invalid UTF-8 escaped, cut
/// to `max_length` bytes with an ellipsis.
std::string printable(std::string_view text, std::size_t max_length = 80);

}  // namespace mpssm::base
