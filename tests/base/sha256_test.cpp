// SPDX-License-Identifier: MIT
#include "mpssm/base/sha256.h"

#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "mpssm/base/sha256_blocks.h"

namespace mpssm::base {
namespace {

TEST(Sha256, AgreesWithFips180) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotSeeThePieces) {
  const std::string content(200, 'x');
  for (const std::size_t cut : {0, 1, 63, 64, 65, 128, 200}) {
    Sha256 hash;
    hash.add(std::string_view(content).substr(0, cut));
    hash.add(std::string_view(content).substr(cut));
    EXPECT_EQ(hash.hex(), sha256(content)) << cut;
  }
}

TEST(Sha256, InstructionsAgreeWithPlainCode) {
  if (!has_sha256_instructions()) GTEST_SKIP() << "this processor has none";
  std::mt19937_64 random(1);
  for (const std::size_t count : {0, 1, 2, 17}) {
    std::string blocks(count * kSha256BlockBytes, '\0');
    for (char& byte : blocks) byte = static_cast<char>(random());
    Sha256State plain;
    for (std::uint32_t& word : plain) word = static_cast<std::uint32_t>(random());
    Sha256State fast = plain;
    add_sha256_blocks_plainly(plain, blocks);
    add_sha256_blocks_x86(fast, blocks);
    EXPECT_EQ(fast, plain) << count;
  }
}

}  // namespace
}  // namespace mpssm::base
