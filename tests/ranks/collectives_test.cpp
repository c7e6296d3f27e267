// SPDX-License-Identifier: MIT
#include "mpssm/ranks/collectives.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ranks/threads_as_ranks.h"
#include "tests/support/scratch.h"

namespace mpssm::ranks {
namespace {

using mpssm::testing::as_ranks;
using mpssm::testing::errors_of_ranks;
using ::testing::HasSubstr;

class Ranks : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { MPSSM_NEEDS_GLOO(); }
};
INSTANTIATE_TEST_SUITE_P(OneToFour, Ranks, ::testing::Values(1, 2, 3, 4));

TEST_P(Ranks, BringEachBlockToItsRank) {
  as_ranks(GetParam(), [](Communicator& all) {
    // Rank r sends (r + 2 p) % 3 bytes to rank p, among them none at all.
    const auto size_of = [](std::int64_t from, std::int64_t to) { return (from + 2 * to) % 3; };
    const auto byte_of = [](std::int64_t from, std::int64_t to) {
      return static_cast<char>(16 * from + to);
    };
    std::string sent;
    std::string expected;
    std::vector<std::int64_t> to;
    std::vector<std::int64_t> from;
    std::int64_t to_others = 0;
    for (std::int64_t p = 0; p < all.size(); ++p) {
      to.push_back(size_of(all.rank(), p));
      from.push_back(size_of(p, all.rank()));
      sent.append(to.back(), byte_of(all.rank(), p));
      expected.append(from.back(), byte_of(p, all.rank()));
      if (p != all.rank()) to_others += to.back();
    }
    std::string received(expected.size(), '\0');
    all.exchange(sent.data(), to, received.data(), from);
    EXPECT_EQ(received, expected);
    EXPECT_EQ(all.bytes_sent(), to_others);
    EXPECT_EQ(all.num_exchanges(), 1);
  });
}

/// Numbers of many sizes, so that the order of a sum shows.
std::vector<float> term(std::int64_t index, std::int64_t size) {
  std::mt19937 generator(static_cast<unsigned>(index));
  std::normal_distribution<float> normal;
  std::vector<float> numbers(size);
  for (float& number : numbers) number = std::exp(4.0F * normal(generator)) * normal(generator);
  return numbers;
}

TEST_P(Ranks, SumInTheOrderOfTheTermsWhateverTheirNumber) {
  constexpr std::int64_t kSize = 37;
  for (const std::int64_t terms : {1, 3, 4, 7}) {
    std::vector<float> expected = term(0, kSize);
    for (std::int64_t t = 1; t < terms; ++t) {
      const std::vector<float> next = term(t, kSize);
      for (std::int64_t i = 0; i < kSize; ++i) expected[i] += next[i];
    }
    as_ranks(GetParam(), [&](Communicator& all) {
      const Shares dealt{terms, all.size()};
      std::vector<float> mine;
      for (std::int64_t t = dealt.begin(all.rank()); t < dealt.end(all.rank()); ++t) {
        const std::vector<float> numbers = term(t, kSize);
        mine.insert(mine.end(), numbers.begin(), numbers.end());
      }
      std::vector<float> total(kSize);
      sum_in_order(all, mine, terms, total);
      EXPECT_EQ(total, expected);
      // Of each own term what others sum up, and what is summed up here to each of them.
      const std::int64_t here = Shares{kSize, all.size()}.size(all.rank());
      EXPECT_EQ(all.bytes_sent(),
                4 * (dealt.size(all.rank()) * (kSize - here) + (all.size() - 1) * here));
    });
  }
}

TEST_P(Ranks, HearTheFirst) {
  as_ranks(GetParam(), [](Communicator& all) {
    EXPECT_EQ(from_first(all, "word of " + std::to_string(all.rank())), "word of 0");
    EXPECT_EQ(from_first(all, ""), "");
    const std::string large(100'000, static_cast<char>('a' + all.rank()));
    EXPECT_EQ(from_first(all, large), std::string(100'000, 'a'));
  });
}

TEST_P(Ranks, KnowWhetherAnyOfThemSaysSo) {
  as_ranks(GetParam(), [](Communicator& all) {
    EXPECT_FALSE(any(all, false));
    EXPECT_TRUE(any(all, all.rank() == all.size() - 1));
    EXPECT_TRUE(any(all, true));
  });
}

TEST_P(Ranks, ReadWhatOthersPosted) {
  as_ranks(GetParam(), [](Communicator& all) {
    all.post("line/" + std::to_string(all.rank()), "from " + std::to_string(all.rank()));
    for (std::int64_t p = 0; p < all.size(); ++p) {
      EXPECT_EQ(all.read("line/" + std::to_string(p), 10.0), "from " + std::to_string(p));
    }
    EXPECT_EQ(all.read("nobody", 0.05), std::nullopt);
  });
}

TEST(RankLost, IsNamedByTheOthersWhenItIsGone) {
  MPSSM_NEEDS_GLOO();
  const auto start = std::chrono::steady_clock::now();
  const auto errors = errors_of_ranks(3, 60.0, [](std::unique_ptr<Communicator> all) {
    any(*all, false);
    if (all->rank() == 1) return;
    any(*all, false);
  });
  EXPECT_EQ(errors[0], "rank 0 of 3: rank 1 has ended or lost its link");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], "rank 2 of 3: rank 1 has ended or lost its link");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(RankLost, IsNamedByTheOthersWhenItHangs) {
  MPSSM_NEEDS_GLOO();
  std::atomic<int> failed = 0;
  const auto errors = errors_of_ranks(3, 2.0, [&](std::unique_ptr<Communicator> all) {
    any(*all, false);
    if (all->rank() == 2) {
      while (failed < 2) std::this_thread::yield();
      return;
    }
    try {
      any(*all, false);
    } catch (...) {
      ++failed;
      throw;
    }
  });
  EXPECT_EQ(errors[0], "rank 0 of 3: rank 2 has not answered for 2 s");
  EXPECT_EQ(errors[1], "rank 1 of 3: rank 2 has not answered for 2 s");
}

TEST(RankLost, SaysWhatTheOtherSaid) {
  MPSSM_NEEDS_GLOO();
  const auto errors = errors_of_ranks(2, 60.0, [](std::unique_ptr<Communicator> all) {
    if (all->rank() == 1) {
      all->post("error/1", "the disk is full");
      return;
    }
    any(*all, false);
  });
  EXPECT_EQ(errors[0], "rank 0 of 2: rank 1 has stopped: the disk is full");
}

TEST(RankLost, IsNamedWhenItNeverCame) {
  MPSSM_NEEDS_GLOO();
  const auto point = open_meeting_point();
  const Place place{.rank = 0,
                    .size = 2,
                    .address = "127.0.0.1",
                    .port = point->port(),
                    .agent_has_store = true,
                    .is_one_machine = true};
  EXPECT_THAT([&] { join(place, 1.0); },
              ::testing::ThrowsMessage<RankLost>("rank 0 of 2: rank 1 did not come within 1 s"));
}

TEST(Join, CutsNobodyOffWhoStillLinks) {
  MPSSM_NEEDS_GLOO();
  for (int round = 0; round < 8; ++round) {
    const auto leave_at_once = [](Communicator&) {};
    as_ranks(4, leave_at_once);
  }
}

/// Sets variables for the time of a test.
class Variables {
 public:
  explicit Variables(const std::vector<std::pair<std::string, std::string>>& values) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                             "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
    names_ = values;
  }
  ~Variables() {
    for (const auto& [name, value] : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::pair<std::string, std::string>> names_;
};

TEST(Place, IsWhatTorchrunSays) {
  {
    const Variables none({});
    EXPECT_FALSE(place_from_environment().has_value());
  }
  const Variables all({{"RANK", "2"},
                       {"WORLD_SIZE", "4"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "node7"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                       {"TORCHELASTIC_RESTART_COUNT", "1"}});
  const auto place = place_from_environment();
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->address, "node7");
  EXPECT_EQ(place->port, 29500);
  EXPECT_TRUE(place->agent_has_store);
  EXPECT_TRUE(place->is_one_machine);
  EXPECT_EQ(place->attempt, 1);
}

TEST(Place, NamesTheVariableThatMakesNoSense) {
  const Variables beyond({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1"}});
  EXPECT_THAT(place_from_environment,
              ::testing::ThrowsMessage<base::Error>(HasSubstr(
                  "environment variable RANK: expected a whole number from 0 to 3, got '4'")));
}

}  // namespace
}  // namespace mpssm::ranks
