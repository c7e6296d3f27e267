// SPDX-License-Identifier: MIT
#include "mpssm/graph/partition.h"

#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/graph/generators.h"

namespace mpssm::graph {
namespace {

std::vector<PartitionMethod> methods() {
  std::vector<PartitionMethod> result = {PartitionMethod::kRanges};
  if (has_metis()) result.push_back(PartitionMethod::kMetis);
  return result;
}

std::int64_t entries_between(const Gso& gso, const std::vector<std::int32_t>& part) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      count += part[i] != part[gso.col()[e]];
    }
  }
  return count;
}

TEST(Partition, PartsAreEvenAndHaveFewEntriesBetweenThem) {
  const Gso gso = make_gso(make_grid(60, 50));
  for (const PartitionMethod method : methods()) {
    for (const std::int64_t parts : {1, 2, 3, 8}) {
      const std::vector<std::int32_t> part = partition_nodes(gso, parts, method);
      ASSERT_EQ(std::ssize(part), 3000);
      std::vector<std::int64_t> sizes(parts, 0);
      for (const std::int32_t p : part) ++sizes.at(p);
      for (const std::int64_t size : sizes) {
        EXPECT_GE(size, 9 * 3000 / parts / 10);
        EXPECT_LE(size, 11 * 3000 / parts / 10);
      }
      // A cut across costs at most some 4 entries for each of 60 cells, both ways.
      EXPECT_LE(entries_between(gso, part), (parts - 1) * 60 * 8) << to_string(method);
      EXPECT_EQ(partition_nodes(gso, parts, method), part);
    }
  }
}

TEST(Partition, NoPartIsEmptyHoweverFewNodesThereAre) {
  const Gso gso = make_gso(make_ring(5));
  for (const PartitionMethod method : methods()) {
    std::vector<bool> is_there(5, false);
    for (const std::int32_t p : partition_nodes(gso, 5, method)) is_there.at(p) = true;
    EXPECT_EQ(is_there, std::vector<bool>(5, true));
    EXPECT_THROW(partition_nodes(gso, 6, method), base::Error);
    EXPECT_THROW(partition_nodes(gso, 0, method), base::Error);
  }
}

}  // namespace
}  // namespace mpssm::graph
