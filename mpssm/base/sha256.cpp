// SPDX-License-Identifier: MIT
// SHA-256 as in FIPS 180-4.
#include "mpssm/base/sha256.h"

#include <algorithm>
#include <array>
#include <bit>

namespace mpssm::base {
namespace {

constexpr std::size_t kBlockBytes = 64;

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::array<std::uint32_t, 64> expand(std::string_view block) {
  std::array<std::uint32_t, 64> w = {};
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(block[i]);
  }
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  return w;
}

void add_block(State& state, std::string_view block) {
  const std::array<std::uint32_t, 64> w = expand(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State round = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += round[i];
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
    add_block(state_, rest_);
    rest_.clear();
  }
  for (; piece.size() >= kBlockBytes; piece.remove_prefix(kBlockBytes)) {
    add_block(state_, piece.substr(0, kBlockBytes));
  }
  rest_ = piece;
}

std::string Sha256::hex() const {
  State state = state_;
  const std::string tail = make_tail(rest_, total_);
  for (std::size_t at = 0; at < tail.size(); at += kBlockBytes) {
    add_block(state, std::string_view(tail).substr(at, kBlockBytes));
  }
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
