// SPDX-License-Identifier: MIT
// Work that ranks tell each other of without exchanges.
#include "mpssm/ranks/shared_work.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ranks/threads_as_ranks.h"

namespace mpssm::ranks {
namespace {

using mpssm::testing::as_ranks;
using mpssm::testing::errors_of_ranks;
using ::testing::HasSubstr;

TEST(SharedWork, EachPieceIsOneRanksAndAllHearOfIt) {
  MPSSM_NEEDS_GLOO();
  constexpr std::size_t kPieces = 7;
  for (const std::int64_t count : {1, 2, 3, 4}) {
    std::vector<std::atomic<int>> done(kPieces);
    as_ranks(count, [&](Communicator& ranks) {
      SharedWork work(ranks, "pieces");
      for (std::size_t i = 0; i < kPieces; ++i) {
        if (!work.is_own(i)) continue;
        EXPECT_EQ(work.hear(i, /*waits=*/false), std::nullopt);
        ++done[i];
        work.tell(i, "piece " + std::to_string(i));
      }
      for (std::size_t i = 0; i < kPieces; ++i) {
        EXPECT_EQ(work.hear(i, /*waits=*/true), "piece " + std::to_string(i));
      }
    });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(SharedWork, ARankThatStopsOrIsSilentIsNamed) {
  MPSSM_NEEDS_GLOO();
  for (const std::string why : {"error", "ended", ""}) {
    const auto errors = errors_of_ranks(2, 3.0, [&](std::unique_ptr<Communicator> ranks) {
      if (ranks->is_first()) {
        SharedWork work(*ranks, "pieces");
        work.hear(1, /*waits=*/true);
      } else if (!why.empty()) {
        ranks->post(why + "/1", "is no more");
      }
    });
    EXPECT_EQ(errors[0], why == "error"   ? "rank 1 of 2: is no more"
                         : why == "ended" ? "rank 0 of 2: rank 1 is no more"
                                          : "rank 0 of 2: rank 1 has not answered for 3 s");
    EXPECT_EQ(errors[1], "");
  }
}

}  // namespace
}  // namespace mpssm::ranks
