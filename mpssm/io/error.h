// SPDX-License-Identifier: MIT
// The error that a user can do something about: one line that says file, place, what was expected,
// what came.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mpssm::io {

/// Input that cannot be used: a file, a setting, an argument. what() is one line for the user.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text` made safe for one line of a terminal: control characters and invalid UTF-8 escaped, cut
/// to `max_length` bytes with an ellipsis. For names and values that came out of a file.
std::string printable(std::string_view text, std::size_t max_length = 80);

bool is_utf8(std::string_view text);

/// Throws InputError "WHERE: WHAT", made printable as a whole. A path is a fine `where`.
[[noreturn]] void fail(const std::string& where, const std::string& what);

}  // namespace mpssm::io
