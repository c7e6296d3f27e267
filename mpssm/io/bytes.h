// SPDX-License-Identifier: MIT
// Private to io/: little-endian numbers in raw bytes. The files and the machine agree on the order.
#pragma once

#include <bit>
#include <cstring>
#include <string>

namespace mpssm::io {

static_assert(std::endian::native == std::endian::little);

/// The caller has checked that sizeof(T) bytes are there.
template <typename T>
T load(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T>
void append(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

}  // namespace mpssm::io
