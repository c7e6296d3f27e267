// SPDX-License-Identifier: MIT
#include "mpssm/engine/slicing.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/kernels/bf16.h"

namespace mpssm::engine {
namespace {

graph::Operators of_shares(const std::vector<std::int64_t>& shares) {
  std::vector<graph::OperatorGroup> groups;
  for (const std::int64_t share : shares) {
    groups.push_back({graph::make_gso(graph::make_ring(5)), share});
  }
  return graph::Operators(groups);
}

/// Every channel is in one slice, in order, no slice has channels of groups that are not joined or
/// lanes that the kernels do not have, and less than a step of lanes (of bfloat16: than half) is
/// padding in each.
template <typename S>
void expect_cut(const RecurrenceShape& shape, std::int64_t workers,
                const std::vector<bool>& joined = {}) {
  const Slicing slicing = Slicing::make<S>(shape, workers, joined);
  const std::vector<std::int64_t> begins = shape.gso.channel_begins(shape.channels);
  std::int64_t channel = 0;
  std::int64_t half = 0;
  for (const ChannelSlice& slice : slicing.slices) {
    EXPECT_EQ(slice.begin, channel);
    EXPECT_EQ(slice.half, half);
    EXPECT_GE(slice.begin, begins[slice.group]);
    EXPECT_LT(slice.begin, begins[slice.group + 1]);
    std::int64_t last = slice.group;
    for (const std::int64_t next : slice.next) {
      if (next == 0) break;
      ++last;
      EXPECT_EQ(slice.begin + next, begins[last]);
      EXPECT_LT(next, slice.width);
      EXPECT_TRUE(!joined.empty() && joined[last]);
    }
    EXPECT_LE(slice.end(), begins[last + 1]);
    EXPECT_EQ(slice.width % 2, 0);
    EXPECT_LE(slice.lanes, kernels::kWidestSliceLanes<S>);
    EXPECT_LE(slice.lanes, slicing.lanes);
    EXPECT_GE(slice.lanes, slice.width);
    if (sizeof(S) == 2) {
      EXPECT_TRUE(slice.lanes == 8 || slice.lanes == 16 || slice.lanes == 32 || slice.lanes == 64);
      EXPECT_LT(slice.lanes, std::max<std::int64_t>(2 * slice.width, 9));
    } else {
      EXPECT_EQ(slice.lanes % kernels::kMinSliceLanes, 0);
      EXPECT_LT(slice.lanes - slice.width, kernels::kMinSliceLanes);
    }
    channel += slice.width;
    half += slice.lanes / 2;
  }
  EXPECT_EQ(channel, shape.channels);
  EXPECT_EQ(half, slicing.half);
}

TEST(Slicing, CoversTheChannelsOfEveryGroupWithLittlePadding) {
  for (const std::vector<std::int64_t>& shares :
       std::vector<std::vector<std::int64_t>>{{1}, {1, 1, 1}, {4, 2, 1}, {97, 2, 1}}) {
    for (const std::int64_t channels : {6, 22, 64, 86, 128, 200, 256}) {
      for (const std::int64_t workers : {1, 2, 3, 16}) {
        SCOPED_TRACE(testing::PrintToString(shares) + " of " + std::to_string(channels) + " on " +
                     std::to_string(workers));
        const RecurrenceShape shape{.gso = of_shares(shares), .channels = channels};
        expect_cut<float>(shape, workers);
        expect_cut<double>(shape, workers);
        expect_cut<kernels::Bf16>(shape, workers);
      }
    }
  }
}

TEST(Slicing, OfGroupsThatAreJoinedIsThatOfOneGroup) {
  using Shares = std::vector<std::int64_t>;
  for (const Shares& shares : {Shares{1, 1, 1}, {4, 2, 1}, {5, 4, 1}, {1, 1, 1, 1, 1, 1, 1}}) {
    for (const std::int64_t channels : {14, 64, 86, 128, 256}) {
      for (const std::int64_t workers : {1, 2, 16}) {
        const RecurrenceShape shape{.gso = of_shares(shares), .channels = channels};
        const std::vector<bool> joined(shares.size(), true);
        expect_cut<float>(shape, workers, joined);
        expect_cut<double>(shape, workers, joined);
        std::vector<bool> two = joined;
        two[2] = false;
        expect_cut<float>(shape, workers, two);
        if (shares.size() > kernels::kMostSliceOperators) continue;
        const RecurrenceShape alone{.gso = of_shares({1}), .channels = channels};
        EXPECT_EQ(Slicing::make<float>(shape, workers, joined).half,
                  Slicing::make<float>(alone, workers).half);
      }
    }
  }
}

TEST(Slicing, ThatIsNarrowerThanAFullOneHasNoNeighbour) {
  const auto lanes = [](std::int64_t channels, std::int64_t workers) {
    const RecurrenceShape shape{.gso = of_shares({1}), .channels = channels};
    std::vector<std::int64_t> result;
    for (const ChannelSlice& slice : Slicing::make<float>(shape, workers).slices) {
      result.push_back(slice.lanes);
    }
    return result;
  };
  using Lanes = std::vector<std::int64_t>;
  EXPECT_EQ(lanes(22, 1), (Lanes{24}));
  EXPECT_EQ(lanes(44, 1), (Lanes{48}));
  EXPECT_EQ(lanes(64, 1), (Lanes{32, 32}));
  EXPECT_EQ(lanes(86, 1), (Lanes{32, 32, 24}));
  EXPECT_EQ(lanes(128, 1), (Lanes{32, 32, 32, 32}));
  // Two workers have one each.
  EXPECT_EQ(lanes(44, 2), (Lanes{24, 24}));
}

}  // namespace
}  // namespace mpssm::engine
