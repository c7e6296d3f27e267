// SPDX-License-Identifier: MIT
#include "mpssm/base/sha256_blocks.h"

#include <bit>
#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace mpssm::base {
namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<std::uint32_t, 64> expand(std::string_view block) {
  std::array<std::uint32_t, 64> w = {};
  for (std::size_t i = 0; i < kSha256BlockBytes; ++i) {
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

void add_block(Sha256State& state, std::string_view block) {
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
  const Sha256State round = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += round[i];
}

}  // namespace

void add_sha256_blocks_plainly(Sha256State& state, std::string_view blocks) {
  for (; !blocks.empty(); blocks.remove_prefix(kSha256BlockBytes)) {
    add_block(state, blocks.substr(0, kSha256BlockBytes));
  }
}

#if defined(__x86_64__)

bool has_sha256_instructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kSha = 1u << 29;
  return __builtin_cpu_supports("sse4.1") != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & kSha) != 0;
}

// An instruction makes two rounds of the words a, b, e, f and c, d, g, h, which change places.
__attribute__((target("sha,sse4.1"))) void add_sha256_blocks_x86(Sha256State& state,
                                                                 std::string_view blocks) {
  const auto word = [&](std::size_t i) { return static_cast<int>(state[i]); };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
  __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  for (; !blocks.empty(); blocks.remove_prefix(kSha256BlockBytes)) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];  // the last sixteen words of the schedule
    for (int i = 0; i < 4; ++i) {
      const auto* from = reinterpret_cast<const __m128i*>(blocks.data()) + i;
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(from), big_endian);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const auto* constants = reinterpret_cast<const __m128i*>(kRound.data()) + i;
      const __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128(constants));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i >= 12) continue;
      const __m128i seven_back = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
      const __m128i sixteen_back = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
      w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(sixteen_back, seven_back), w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const auto lane = [](int value) { return static_cast<std::uint32_t>(value); };
  state = {lane(_mm_extract_epi32(abef, 3)), lane(_mm_extract_epi32(abef, 2)),
           lane(_mm_extract_epi32(cdgh, 3)), lane(_mm_extract_epi32(cdgh, 2)),
           lane(_mm_extract_epi32(abef, 1)), lane(_mm_extract_epi32(abef, 0)),
           lane(_mm_extract_epi32(cdgh, 1)), lane(_mm_extract_epi32(cdgh, 0))};
}

#else

bool has_sha256_instructions() { return false; }

void add_sha256_blocks_x86(Sha256State&, std::string_view) {
  throw std::logic_error("add_sha256_blocks_x86: not on this machine");
}

#endif

}  // namespace mpssm::base
