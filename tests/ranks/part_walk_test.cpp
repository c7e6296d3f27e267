// SPDX-License-Identifier: MIT
// Walks on a graph whose nodes are dealt to ranks, against those on the whole graph.
#include "mpssm/analysis/part_walk.h"

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/partition.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ranks/collectives.h"
#include "mpssm/ranks/halo.h"

#include "tests/ranks/threads_as_ranks.h"

namespace mpssm::analysis {
namespace {

using mpssm::testing::as_ranks;

constexpr std::int64_t kParts = 4;

/// An operator whose nodes are numbered part by part already, and the rows that a rank has of it.
struct Dealt {
  Dealt(const graph::Gso& gso, ranks::Communicator& everyone) : all(everyone) {
    const std::int64_t nodes = gso.num_nodes();
    const ranks::Shares parts{nodes, kParts};
    const ranks::Shares shares{kParts, all.size()};
    for (std::int64_t p = 0; p <= all.size(); ++p) {
      rank_bounds.push_back(parts.begin(shares.begin(p)));
    }
    first = rank_bounds[all.rank()];
    for (std::int64_t p = shares.begin(all.rank()); p <= shares.end(all.rank()); ++p) {
      own.bounds.push_back(parts.begin(p) - first);
    }
    halos.reserve(2);
    own.rows = rows_of(gso.view<double>(), col[0], row_ptr[0]);
    own.transposed = rows_of(gso.transpose_view<double>(), col[1], row_ptr[1]);
  }
  Dealt(const Dealt&) = delete;
  Dealt& operator=(const Dealt&) = delete;

  std::int64_t place(std::int64_t node) const {
    return node >= first && node < first + own.bounds.back() ? node - first : -1;
  }

  engine::HaloRows<double> rows_of(const kernels::CsrView<double>& a,
                                   std::vector<std::int32_t>& columns,
                                   std::vector<std::int64_t>& starts) {
    const std::int64_t count = own.bounds.back();
    const std::int64_t begin = a.row_ptr[first];
    columns.assign(a.col + begin, a.col + a.row_ptr[first + count]);
    for (std::int64_t i = 0; i <= count; ++i) starts.push_back(a.row_ptr[first + i] - begin);
    halos.emplace_back(all, rank_bounds, ranks::localise(first, first + count, columns));
    const ranks::Halo& halo = halos.back();
    return {.a = {.num_rows = count,
                  .row_ptr = starts.data(),
                  .col = columns.data(),
                  .value = a.value + begin},
            .halo = halo.size(),
            .fill = [&halo, count](double* x, std::int64_t width) {
              halo.fill(x, width * 8, x + count * width);
            }};
  }

  ranks::Communicator& all;
  std::vector<std::int64_t> rank_bounds;
  std::int64_t first = 0;
  std::vector<std::int32_t> col[2];
  std::vector<std::int64_t> row_ptr[2];
  std::vector<ranks::Halo> halos;
  OwnParts own;
};

std::vector<graph::Gso> dealt_operators() {
  graph::EdgeList one_way{.num_nodes = 90};
  for (std::int64_t i = 0; i < 80; ++i) {  // the last ten nodes are alone
    for (const std::int64_t j : {(i + 1) % 80, (i * 7 + 3) % 80}) {
      one_way.src.push_back(i);
      one_way.dst.push_back(j);
    }
  }
  const graph::Graph directed = graph::Graph::from_edges(one_way, graph::Direction::kDirected);
  return {graph::make_gso(graph::make_grid(9, 11)), graph::make_gso(graph::make_path(60)),
          graph::make_gso(graph::make_grid(9, 11), {.kind = graph::GsoKind::kLaplacian}),
          graph::make_gso(directed, {.kind = graph::GsoKind::kRandomWalk})};
}

// All questions to the same ranks: to start them costs more than to ask.
TEST(PartWalk, PairsHaveTheBitsOfTheWholeGraphAndItsHops) {
  MPSSM_NEEDS_GLOO();
  const std::int64_t taus[] = {0, 1, 7, 40};
  struct Question {
    graph::Gso gso;
    std::int64_t source, target;
    std::vector<double> whole;
    std::int32_t hops;
  };
  std::vector<Question> questions;
  for (const graph::Gso& gso : dealt_operators()) {
    const std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {
        {3, 55}, {58, 2}, {41, 41}, {5, gso.num_nodes() - 1}};
    for (const auto& [source, target] : pairs) {
      questions.push_back({gso, source, target,
                           pair_profile(gso, source, target, taus, ops::Threads()),
                           hops_to(gso, target)[source]});
    }
  }
  for (const std::int64_t count : {1, 2, 3, 4}) {
    as_ranks(count, [&](ranks::Communicator& all) {
      for (const Question& asked : questions) {
        const Dealt dealt(asked.gso, all);
        const std::int64_t from = dealt.place(asked.source);
        const std::int64_t to = dealt.place(asked.target);
        const auto found =
            own_hops_from(dealt.own, from, [&](bool here) { return ranks::any(all, here); });
        const auto mine = own_pair_profile(dealt.own, from, to, taus, ops::Threads());
        EXPECT_EQ(mine, to < 0 ? std::vector<double>(4, 0.0) : asked.whole);
        if (to >= 0) {
          EXPECT_EQ(found[to], asked.hops);
        }
      }
    });
  }
}

TEST(PartWalk, ReachOfAllPartsIsThatOfTheGraph) {
  MPSSM_NEEDS_GLOO();
  const std::vector<std::int64_t> taus = {0, 1, 7, 40};
  struct Question {
    graph::Gso gso;
    View view;
    std::vector<Reach> whole;
    std::vector<Reach> parts;  // [parts, taus], as the last number of ranks found them
  };
  std::vector<Question> questions;
  for (const graph::Gso& gso : dealt_operators()) {
    for (const View view : {View::kFromSource, View::kToTarget}) {
      questions.push_back({gso, view, reach_profile(gso, 42, view, taus, ops::Threads()),
                           std::vector<Reach>(kParts * taus.size())});
    }
  }
  for (const std::int64_t count : {4, 3, 2, 1}) {
    as_ranks(count, [&](ranks::Communicator& all) {
      for (Question& asked : questions) {
        const Dealt dealt(asked.gso, all);
        const auto mine =
            own_reach_profiles(dealt.own, dealt.place(42), asked.view, taus, ops::Threads());
        const std::int64_t begin = ranks::Shares{kParts, all.size()}.begin(all.rank());
        for (std::size_t i = 0; i < mine.size(); ++i) {
          Reach& known = asked.parts[begin * taus.size() + i];
          if (count < kParts) {
            EXPECT_EQ(mine[i].total, known.total);  // for any number of ranks
          }
          known = mine[i];
        }
      }
    });
    for (const Question& asked : questions) {
      for (std::size_t t = 0; t < taus.size(); ++t) {
        Reach sum;
        for (std::int64_t p = 0; p < kParts; ++p) add_part(sum, asked.parts[p * taus.size() + t]);
        EXPECT_EQ(sum.tau, taus[t]);
        EXPECT_EQ(sum.nodes, asked.whole[t].nodes);
        EXPECT_EQ(sum.largest, asked.whole[t].largest);
        EXPECT_EQ(sum.smallest, asked.whole[t].smallest);
        EXPECT_NEAR(sum.total, asked.whole[t].total, 1e-12 * asked.whole[t].total);
      }
    }
  }
}

}  // namespace
}  // namespace mpssm::analysis
