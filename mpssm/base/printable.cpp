// SPDX-License-Identifier: MIT
#include "mpssm/base/printable.h"

#include <algorithm>

#include "mpssm/base/utf8.h"

namespace mpssm::base {
namespace {

// Also the characters that turn the direction of writing: they can make a line read as another.
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (character.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  if (byte(1) == 0x80)
    return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
}

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += {'\\', 'x', kHex[code >> 4], kHex[code & 15]};
    }
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_length) {
  constexpr std::string_view kEllipsis = "...";
  std::string out;
  std::size_t cut = 0;  // where the ellipsis still fits
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    if (size == 0 || is_control(character)) {
      append_escaped(out, character);
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
    if (out.size() > max_length) {
      out.resize(cut);
      out += kEllipsis.substr(0, max_length);
      return out;
    }
    if (out.size() + kEllipsis.size() <= max_length) cut = out.size();
  }
  return out;
}

}  // namespace mpssm::base
