// SPDX-License-Identifier: MIT
// Where one character of UTF-8 ends.
#pragma once

#include <cstddef>
#include <string_view>

namespace mpssm::base {

/// Bytes of the character that `text` starts with; 0 if it is none (overlong, surrogate, beyond
/// U+10FFFF, cut off, text empty).
inline std::size_t utf8_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xC2   ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second >= 0xA0) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second >= 0x90) return 0;
  return size;
}

inline bool is_utf8(std::string_view text) {
  while (const std::size_t size = utf8_size(text)) text.remove_prefix(size);
  return text.empty();
}

/// Whether a character starts with this byte: all bytes but those that continue one.
inline bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
}

}  // namespace mpssm::base
