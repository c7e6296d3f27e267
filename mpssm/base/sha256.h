// SPDX-License-Identifier: MIT
// Fingerprints of texts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mpssm::base {

/// SHA-256 of what is added piece by piece.
class Sha256 {
 public:
  void add(std::string_view piece);
  std::string hex() const;  ///< of all so far, in lower case

 private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string rest_;  // less than a block
  std::uint64_t total_ = 0;
};

/// Of a whole text.
std::string sha256(std::string_view content);

}  // namespace mpssm::base
