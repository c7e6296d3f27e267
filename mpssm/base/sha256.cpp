// SPDX-License-Identifier: MIT
// SHA-256 as in FIPS 180-4.
#include "mpssm/base/sha256.h"

#include <algorithm>

#include "mpssm/base/sha256_blocks.h"

namespace mpssm::base {
namespace {

constexpr std::size_t kBlockBytes = kSha256BlockBytes;

void add_blocks(Sha256State& state, std::string_view blocks) {
  static const bool has_instructions = has_sha256_instructions();
  (has_instructions ? add_sha256_blocks_x86 : add_sha256_blocks_plainly)(state, blocks);
}

// What follows the last whole block: the rest, a one bit, zeros, the length in bits.
std::string make_tail(std::string_view rest, std::uint64_t total_bytes) {
  std::string tail(rest);
  tail += '\x80';
  while (tail.size() % kBlockBytes != kBlockBytes - 8) tail += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(total_bytes * 8 >> shift);
  return tail;
}

}  // namespace

void Sha256::add(std::string_view piece) {
  total_ += piece.size();
  if (!rest_.empty()) {
    const std::size_t missing = std::min(kBlockBytes - rest_.size(), piece.size());
    rest_ += piece.substr(0, missing);
    piece.remove_prefix(missing);
    if (rest_.size() < kBlockBytes) return;
    add_blocks(state_, rest_);
    rest_.clear();
  }
  const std::size_t whole = piece.size() - piece.size() % kBlockBytes;
  add_blocks(state_, piece.substr(0, whole));
  rest_ = piece.substr(whole);
}

std::string Sha256::hex() const {
  Sha256State state = state_;
  add_blocks(state, make_tail(rest_, total_));
  std::string text;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  }
  return text;
}

std::string sha256(std::string_view content) {
  Sha256 hash;
  hash.add(content);
  return hash.hex();
}

}  // namespace mpssm::base
