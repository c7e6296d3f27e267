// SPDX-License-Identifier: MIT
#include "mpssm/engine/attention.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"

#include "tests/engine/numbers.h"
#include "tests/kernels/every_target.h"

namespace mpssm::engine {
namespace {

/// A node without entries among them, and a pattern that is not symmetric.
graph::Gso pattern() {
  const graph::Graph graph = graph::Graph::from_edges(
      {.num_nodes = 6, .src = {0, 1, 2, 3, 0, 4}, .dst = {1, 2, 0, 1, 3, 0}},
      graph::Direction::kDirected);
  return graph::make_gso(graph, {.kind = graph::GsoKind::kAdjacency});
}

struct Inputs {
  Numbers x;
  Numbers to;
  Numbers from;
};

template <typename T>
Attention<T> args_of(const graph::Gso& gso, const std::vector<T>& x, const std::vector<T>& to,
                     const std::vector<T>& from, std::int64_t heads) {
  return {.pattern = gso.view<T>(),
          .heads = heads,
          .width = std::ssize(x) / (gso.num_nodes() * heads),
          .slope = T(0.2),
          .x = x.data(),
          .to = to.data(),
          .from = from.data()};
}

Numbers by_definition(const graph::Gso& gso, const Inputs& in, std::int64_t heads,
                      std::int64_t width) {
  Numbers y(in.x.size());
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto weight = [&](std::int64_t e) {
        const double score = in.to[i * heads + h] + in.from[gso.col()[e] * heads + h];
        return std::exp(score > 0 ? score : 0.2 * score);
      };
      double total = 0.0;
      for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) total += weight(e);
      for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
        for (std::int64_t c = 0; c < width; ++c) {
          y[(i * heads + h) * width + c] +=
              weight(e) / total * in.x[(gso.col()[e] * heads + h) * width + c];
        }
      }
    }
  }
  return y;
}

Numbers attended(const graph::Gso& gso, const Inputs& in, std::int64_t heads) {
  Numbers y(in.x.size(), -1.0);
  Numbers weight(static_cast<std::size_t>(heads * gso.num_nonzeros()));
  attend(args_of(gso, in.x, in.to, in.from, heads), weight.data(), y.data(), SerialExecutor());
  return y;
}

TEST(Attention, IsItsDefinitionAndItsAdjointItsDerivative) {
  kernels::for_every_target([] {
    const graph::Gso gso = pattern();
    const std::int64_t n = gso.num_nodes();
    for (const std::int64_t heads : {1, 3}) {
      for (const std::int64_t width : {1, 5, 9}) {
        const Inputs in{random_numbers(n * heads * width, 1), random_numbers(n * heads, 2),
                        random_numbers(n * heads, 3)};
        expect_near(by_definition(gso, in, heads, width), attended(gso, in, heads), 1e-13);

        const Numbers grad = random_numbers(n * heads * width, 4);
        Inputs got{Numbers(in.x.size()), Numbers(in.to.size()), Numbers(in.from.size())};
        Numbers y(in.x.size()), weight(static_cast<std::size_t>(heads * gso.num_nonzeros()));
        const auto args = args_of(gso, in.x, in.to, in.from, heads);
        attend(args, weight.data(), y.data(), SerialExecutor());
        std::vector<std::max_align_t> memory(
            static_cast<std::size_t>(attend_adjoint_bytes(args)) / sizeof(std::max_align_t) + 8);
        attend_adjoint(args, weight.data(), grad.data(), got.x.data(), got.to.data(),
                       got.from.data(), Workspace(memory.data(), attend_adjoint_bytes(args)),
                       SerialExecutor());
        const auto moved = [&](Numbers Inputs::*which) {
          return [&, which](const Numbers& value) {
            Inputs other = in;
            other.*which = value;
            return attended(gso, other, heads);
          };
        };
        expect_near(differences(moved(&Inputs::x), in.x, grad), got.x, 1e-7);
        expect_near(differences(moved(&Inputs::to), in.to, grad), got.to, 1e-7);
        expect_near(differences(moved(&Inputs::from), in.from, grad), got.from, 1e-7);
      }
    }
  });
}

TEST(Attention, DoesNotOverflow) {
  const graph::Gso gso = pattern();
  const Inputs in{random_numbers(6, 1), Numbers(6, 1e6), Numbers(6, 1e6)};
  for (const double number : attended(gso, in, 1)) EXPECT_TRUE(std::isfinite(number));
}

TEST(Attention, HasTheSameBitsOnAnyNumberOfWorkers) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(3000, 9000, 1));
  const std::int64_t heads = 2, width = 12;
  const auto x = random_numbers<float>(3000 * heads * width, 1);
  const auto to = random_numbers<float>(3000 * heads, 2);
  const auto from = random_numbers<float>(3000 * heads, 3);
  const auto args = args_of(gso, x, to, from, heads);
  expect_same_bits([&](const Executor& executor) {
    std::vector<float> weight(static_cast<std::size_t>(heads * gso.num_nonzeros()));
    std::vector<float> out(x.size() * 2 + to.size() * 2);
    float* const y = out.data();
    float* const grad_x = y + x.size();
    attend(args, weight.data(), y, executor);
    std::vector<std::max_align_t> memory(
        static_cast<std::size_t>(attend_adjoint_bytes(args)) / sizeof(std::max_align_t) + 8);
    attend_adjoint(args, weight.data(), y, grad_x, grad_x + x.size(), grad_x + x.size() + to.size(),
                   Workspace(memory.data(), attend_adjoint_bytes(args)), executor);
    return out;
  });
}

}  // namespace
}  // namespace mpssm::engine
