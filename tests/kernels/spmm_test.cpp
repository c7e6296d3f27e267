// SPDX-License-Identifier: MIT
#include "mpssm/kernels/spmm.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

template <typename T>
class SpmmKernel : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-14;
  std::vector<T> random(std::size_t count) {
    std::vector<T> out(count);
    for (T& value : out) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1.0, 1.0)(generator_));
    }
    return out;
  }
  std::mt19937 generator_{1};
  const graph::Gso gso_ = graph::make_gso(graph::make_barabasi_albert(60, 3, 1));
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SpmmKernel, Reals);

// Widths that end in every kind of remainder; rows are padded to see what is touched.
TYPED_TEST(SpmmKernel, EqualsThePlainLoopForEveryWidth) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t width : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 71, 128, 300}) {
      const std::int64_t n = this->gso_.num_nodes();
      const std::int64_t stride = width + 2;
      const auto x = this->random(n * stride);
      const auto add = this->random(n * stride);
      for (const bool with_add : {false, true}) {
        std::vector<T> y(x.size(), T{7});
        SpmmArgs<T> args;
        args.a = this->gso_.template view<T>();
        args.x = x.data();
        args.y = y.data();
        args.add = with_add ? add.data() : nullptr;
        args.x_stride = args.y_stride = args.add_stride = stride;
        args.width = width;
        spmm(args, 0, 20);
        spmm(args, 20, n);
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t c = 0; c < stride; ++c) {
            if (c >= width) {
              ASSERT_EQ(y[i * stride + c], T{7});
              continue;
            }
            double sum = with_add ? add[i * stride + c] : 0.0;
            for (std::int64_t e = args.a.row_ptr[i]; e < args.a.row_ptr[i + 1]; ++e) {
              sum += static_cast<double>(args.a.value[e]) * x[args.a.col[e] * stride + c];
            }
            ASSERT_NEAR(y[i * stride + c], sum, this->kTolerance);
          }
        }
      }
    }
  });
}

// Accumulators cover a tile of the row and several tiles a wide one: the same numbers, to the bit,
// for every cut into ranges of rows, and whether the result goes through the cache or past it.
TYPED_TEST(SpmmKernel, SameBitsForEveryRangeAndPastTheCache) {
  using T = TypeParam;
  const graph::Gso gso = graph::make_gso(graph::make_barabasi_albert(700, 3, 1));
  const std::int64_t n = gso.num_nodes();
  for_every_target([&] {
    // Whole lines, whole lines in three tiles, and rows that end inside a line.
    for (const std::int64_t width : {16, 304, 37}) {
      const auto x = this->random(n * width);
      // Lines are counted from the start of memory, so y has to begin with one.
      constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
      std::vector<T> memory(static_cast<std::size_t>(n * width + 2 * kLine), T{7});
      const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
      T* const aligned = memory.data() + (64 - address % 64) % 64 / sizeof(T);
      SpmmArgs<T> args;
      args.a = gso.template view<T>();
      args.x = x.data();
      args.x_stride = args.y_stride = args.width = width;
      std::vector<T> whole(x.size());
      args.y = whole.data();
      spmm(args, 0, n);
      for (const bool stream : {false, true}) {
        for (const std::int64_t shift : {0, 1}) {  // 1: no row is whole lines
          std::fill(memory.begin(), memory.end(), T{7});
          args.stream = stream;
          args.y = aligned + shift;
          for (std::int64_t row = 0; row < n; row += 77) {
            spmm(args, row, std::min(n, row + 77));
          }
          ASSERT_TRUE(std::equal(whole.begin(), whole.end(), args.y)) << width << stream << shift;
          ASSERT_EQ(args.y[n * width], T{7});
        }
      }
    }
  });
}

// A prefetch may look past the entries of a range, never past those of the matrix.
TYPED_TEST(SpmmKernel, RowsWithoutEntriesAreTheirAddend) {
  using T = TypeParam;
  const std::vector<std::int64_t> row_ptr = {0, 0, 1, 1};
  const std::vector<std::int32_t> col = {2};
  const std::vector<T> value = {T{2}};
  const std::vector<T> x = {T{1}, T{2}, T{3}};
  const std::vector<T> add = {T{5}, T{6}, T{7}};
  for_every_target([&] {
    std::vector<T> y(3, T{-1});
    SpmmArgs<T> args;
    args.a = {3, row_ptr.data(), col.data(), value.data()};
    args.x = x.data();
    args.add = add.data();
    args.y = y.data();
    args.x_stride = args.add_stride = args.y_stride = args.width = 1;
    spmm(args, 0, 3);
    EXPECT_EQ(y, (std::vector<T>{T{5}, T{12}, T{7}}));
    args.add = nullptr;
    spmm(args, 0, 3);
    EXPECT_EQ(y, (std::vector<T>{T{0}, T{6}, T{0}}));
  });
}

TYPED_TEST(SpmmKernel, ValueGradientIsTheInnerProductOfRows) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t width : {1, 3, 8, 17, 40}) {
      const std::int64_t n = this->gso_.num_nodes();
      const auto g = this->random(n * width);
      const auto x = this->random(n * width);
      std::vector<T> grad(static_cast<std::size_t>(this->gso_.num_nonzeros()), T{1});
      SpmmValueGradArgs<T> args;
      args.a = this->gso_.template view<T>();
      args.g = g.data();
      args.x = x.data();
      args.g_stride = args.x_stride = args.width = width;
      args.grad = grad.data();
      spmm_value_grad(args, 0, n);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t e = args.a.row_ptr[i]; e < args.a.row_ptr[i + 1]; ++e) {
          double dot = 1.0;
          for (std::int64_t c = 0; c < width; ++c) {
            dot += static_cast<double>(g[i * width + c]) * x[args.a.col[e] * width + c];
          }
          ASSERT_NEAR(grad[e], dot, 10 * this->kTolerance);
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
