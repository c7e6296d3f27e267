// SPDX-License-Identifier: MIT
// Numbers of nodes by their ids, against a map.
#include "mpssm/data/node_index.h"

#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace mpssm::data {
namespace {

// Ids that are easily taken for each other: numbers small and large, written in several ways,
// words.
std::string random_id(std::mt19937_64& random) {
  const std::vector<std::string> starts = {"", "", "", "0", "+", "-", "n", "00", " "};
  const std::vector<std::uint64_t> limits = {10, 1000, 100'000, std::uint64_t{1} << 62,
                                             ~std::uint64_t{0}};
  const std::string number = std::to_string(random() % limits[random() % limits.size()]);
  const std::string end = random() % 8 == 0 ? "_and_a_long_name" : "";
  return starts[random() % starts.size()] + number + end;
}

TEST(NodeIndex, EqualsAMap) {
  for (const std::size_t expected : {std::size_t{0}, std::size_t{100}, std::size_t{20'000}}) {
    std::mt19937_64 random(expected);
    std::map<std::string, std::int64_t> plain;
    NodeIndex index(expected);
    for (int i = 0; i < 20'000; ++i) {
      const std::string id = random_id(random);
      const auto known = plain.find(id);
      EXPECT_EQ(index.find(id), known == plain.end() ? -1 : known->second) << id;
      const std::string_view ahead = id;
      index.prefetch(std::span(&ahead, 1));
      const bool is_known = known != plain.end();
      const auto& [kept, number] = *plain.emplace(id, std::ssize(plain)).first;
      const auto [node, is_new] = index.add(kept);
      EXPECT_EQ(is_new, !is_known) << id;
      EXPECT_EQ(node, number) << id;
    }
    ASSERT_EQ(index.size(), std::ssize(plain));
    for (const auto& [id, node] : plain) EXPECT_EQ(index.find(id), node) << id;
    EXPECT_EQ(index.find(""), -1);
    EXPECT_EQ(index.find("n"), -1);
  }
}

}  // namespace
}  // namespace mpssm::data
