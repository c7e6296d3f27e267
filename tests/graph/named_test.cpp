// SPDX-License-Identifier: MIT
// Graphs by name against their generators, and what is said about bad names.
#include "mpssm/graph/named.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/graph/generators.h"

namespace mpssm::graph {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::StrEq;

bool same(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.row_ptr(), b.row_ptr()) && std::ranges::equal(a.col(), b.col());
}

// What is said of `spec`: always one line of printable characters and of a sane length.
std::string complaint(std::string_view spec) {
  try {
    make_named(spec);
  } catch (const base::Error& error) {
    std::string what = error.what();
    EXPECT_TRUE(std::ranges::all_of(what, [](char c) { return c >= ' ' && c <= '~'; })) << what;
    EXPECT_LT(what.size(), 400u);
    return what;
  }
  ADD_FAILURE() << "expected a complaint about " << spec;
  return {};
}

TEST(Named, IsWhatTheGeneratorMakes) {
  constexpr std::uint64_t kSeed = 7;
  const std::vector<std::pair<std::string, Graph>> cases = {
      {"path:5", make_path(5)},
      {"ring:6", make_ring(6)},
      {"grid:2x5", make_grid(2, 5)},
      {"board:3x4", make_board(3, 4)},
      {"star:7", make_star(7)},
      {"complete:5", make_complete(5)},
      {"tree:30", make_power_law_tree(30, kSeed)},
      {"ladder:4", make_ladder(4)},
      {"caveman:3x4", make_caveman(3, 4)},
      {"clique-chain:3x4", make_clique_chain(3, 4)},
      {"caterpillar:30,7", make_caterpillar(30, 7, kSeed)},
      {"lobster:30,5,15", make_lobster(30, 5, 15, kSeed)},
      {"erdos-renyi:30,0.25", make_erdos_renyi(30, 0.25, kSeed)},
      {"barabasi-albert:30,3", make_barabasi_albert(30, 3, kSeed)},
      {"regular:30,4", make_random_regular(30, 4, kSeed)},
      {"connected:30,40", make_random_connected(30, 40, kSeed)},
  };
  std::set<std::string_view> tried;
  for (const auto& [spec, expected] : cases) {
    EXPECT_TRUE(same(make_named(spec, kSeed), expected)) << spec;
    tried.insert(std::string_view(spec).substr(0, spec.find(':')));
  }
  for (const NamedFamily& family : named_families()) {
    EXPECT_TRUE(tried.contains(family.name)) << family.name;
  }
  EXPECT_EQ(named_families().size(), cases.size());
}

TEST(Named, SeedMattersToRandomFamiliesOnly) {
  for (const char* spec : {"tree:50", "caterpillar:50,9", "erdos-renyi:50,0.2", "regular:50,4"}) {
    EXPECT_FALSE(same(make_named(spec, 1), make_named(spec, 2))) << spec;
    EXPECT_TRUE(same(make_named(spec), make_named(spec, 0))) << spec;
  }
  EXPECT_TRUE(same(make_named("path:50", 1), make_named("path:50", 2)));
}

TEST(Named, BareNameTakesTheSizesOfItsExample) {
  for (const NamedFamily& family : named_families()) {
    EXPECT_TRUE(same(make_named(family.name, 3), make_named(family.example(), 3))) << family.name;
    EXPECT_THAT(family.pattern(), StartsWith(std::string(family.name) + ":"));
    EXPECT_FALSE(family.summary.empty());
  }
}

TEST(Named, FamiliesAreRecognisedWhateverTheirSizes) {
  for (const char* spec : {"path", "path:", "path:x", "clique-chain:3x4"}) {
    EXPECT_TRUE(is_named(spec)) << spec;
  }
  for (const char* spec : {"", ":", "paths", "Path:3", "./path", "minesweeper", "path/edges.csv"}) {
    EXPECT_FALSE(is_named(spec)) << spec;
  }
}

TEST(Named, SmallestSizesWork) {
  EXPECT_EQ(make_named("path:1").num_nodes(), 1);
  EXPECT_EQ(make_named("grid:1x1").num_nodes(), 1);
  EXPECT_EQ(make_named("erdos-renyi:1,0").num_edges(), 0);
  EXPECT_EQ(make_named("erdos-renyi:4,1").num_edges(), 6);
  EXPECT_EQ(make_named("erdos-renyi:40,1e-300").num_edges(), 0);
  EXPECT_EQ(make_named("regular:3,0").num_edges(), 0);
}

TEST(Named, UnknownFamilyListsThemTheLikeliestFirst) {
  EXPECT_THAT(complaint("gird:3x3"),
              AllOf(StartsWith("graph 'gird:3x3': expected one of grid, path, ring, board"),
                    EndsWith("; got 'gird'")));
  EXPECT_THAT(complaint("bara:5"), HasSubstr("one of barabasi-albert, board, path"));
  EXPECT_THAT(complaint("cliques:5"), HasSubstr("one of clique-chain, complete, "));
  const std::string nothing = complaint("");
  for (const NamedFamily& family : named_families()) {
    EXPECT_THAT(nothing, HasSubstr(std::string(family.name)));
  }
}

TEST(Named, MalformedSizesNameThePattern) {
  for (const char* sizes : {"", "x", "3x", "x3", "3x4x5", "3,4", "3X4", "3x-4", "3x+4", " 3x4",
                            "3x4 ", "3.0x4", "1e2x4", "0x10x3", "3xx4"}) {
    EXPECT_THAT(complaint("grid:" + std::string(sizes)),
                AllOf(HasSubstr("expected grid:RxC as in grid:10x10"),
                      EndsWith("got '" + std::string(sizes) + "'")));
  }
  for (const char* sizes : {"10", "10,", "10,x", "10,nan", "10,inf", "10,1e999", "10,0.5,1"}) {
    EXPECT_THAT(complaint("erdos-renyi:" + std::string(sizes)),
                HasSubstr("expected erdos-renyi:N,P as in"));
  }
  EXPECT_THAT(complaint("path:5:6"), EndsWith("got '5:6'"));
}

TEST(Named, NumbersPastTheLimitAreRefusedNotWrapped) {
  for (const char* number : {"100000001", "4294967297", "9223372036854775807",
                             "9223372036854775809", "18446744073709551617", "99999999999999999999",
                             "340282366920938463463374607431768211457"}) {
    for (const NamedFamily& family : named_families()) {
      // In the place of the first size.
      const std::string rest(family.defaults.substr(
          std::min(family.defaults.find_first_of("x,"), family.defaults.size())));
      EXPECT_THAT(complaint(std::string(family.name) + ":" + number + rest),
                  HasSubstr("counts up to 100000000"));
    }
  }
}

TEST(Named, GraphsThatWouldNotFitAreRefusedBeforeTheyAreMade) {
  for (const char* spec : {"path:100000000",
                           "ring:100000000",
                           "star:60000000",
                           "tree:60000000",
                           "ladder:30000000",
                           "grid:10000x10000",
                           "grid:100000000x100000000",
                           "board:5000x5000",
                           "complete:20000",
                           "complete:100000000",
                           "caveman:1x20000",
                           "caveman:100000000x100000000",
                           "clique-chain:10000x200",
                           "caterpillar:60000000,5",
                           "lobster:60000000,5,10",
                           "erdos-renyi:100000000,0.5",
                           "erdos-renyi:20000,1",
                           "barabasi-albert:10000000,10",
                           "regular:10000000,20",
                           "connected:50000001,50000000"}) {
    EXPECT_THAT(complaint(spec),
                EndsWith("expected at most 100000000 nodes and edges together, got more"));
  }
}

TEST(Named, LimitIsOnNodesAndEdges) {
  // 0.1 % of the limit and below: the estimate must not refuse what is small.
  for (const char* spec : {"path:49000", "grid:180x180", "board:140x140", "complete:440",
                           "caveman:1000x13", "clique-chain:900x13", "erdos-renyi:20000,0.0003",
                           "barabasi-albert:9000,9", "regular:9000,20", "connected:9000,90000"}) {
    const Graph graph = make_named(spec);
    const std::int64_t size = graph.num_nodes() + graph.num_edges();
    EXPECT_GT(size, 70'000) << spec;
    EXPECT_LE(size, 100'000) << spec;
  }
}

TEST(Named, SizesThatTheGeneratorRefusesAreSaidInItsWords) {
  EXPECT_THAT(complaint("path:0"),
              StrEq("graph 'path:0': expected num_nodes in [1, 2147483647], got 0"));
  EXPECT_THAT(complaint("ring:2"), HasSubstr("expected num_nodes in [3, 2147483647], got 2"));
  EXPECT_THAT(complaint("grid:0x5"), HasSubstr("expected rows in"));
  EXPECT_THAT(complaint("lobster:10,12,5"), HasSubstr("expected backbone in [1, 9], got 12"));
  EXPECT_THAT(complaint("erdos-renyi:10,1.5"), HasSubstr("expected probability in [0, 1]"));
  EXPECT_THAT(complaint("erdos-renyi:10,-0.5"), HasSubstr("expected probability in [0, 1]"));
  EXPECT_THAT(complaint("erdos-renyi:10000,50"), HasSubstr("expected probability in [0, 1]"));
  EXPECT_THAT(complaint("regular:5,3"), HasSubstr("even"));
  EXPECT_THAT(complaint("connected:5,11"), HasSubstr("expected num_edges in [4, 10], got 11"));
}

TEST(Named, HostileTextStaysOnOneLine) {
  EXPECT_THAT(complaint("path\n:5"), HasSubstr("'path?'"));
  EXPECT_THAT(complaint(std::string_view("path:5\0", 7)), HasSubstr("got '5?'"));
  EXPECT_THAT(complaint("path:\x1b[31m\xff"), HasSubstr("got '?[31m?'"));
  EXPECT_THAT(complaint(std::string(100'000, 'p')), HasSubstr("...'"));
  EXPECT_THAT(complaint("path:" + std::string(100'000, '9')), HasSubstr("...'"));
}

}  // namespace
}  // namespace mpssm::graph
