// SPDX-License-Identifier: MIT
#include "mpssm/kernels/matmul.h"

#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

template <typename T>
class Matmul : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;
  std::vector<T> random(std::int64_t count) {
    std::vector<T> out(static_cast<std::size_t>(count));
    for (T& value : out) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1.0, 1.0)(generator_));
    }
    return out;
  }
  /// Number (row, j) of a matrix in slices.
  static T at(const std::vector<T>& matrix, const Layout& layout, std::int64_t row,
              std::int64_t j) {
    return matrix[j / layout.lanes * layout.slice_stride + row * layout.lanes + j % layout.lanes];
  }
  std::mt19937 generator_{1};
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Matmul, Reals);

TYPED_TEST(Matmul, InSlicesEqualsThePlainLoop) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t rows : {1, 5, 6, 103}) {
      const std::int64_t lanes = 16;
      const Layout layout{lanes, rows * lanes};
      const std::int64_t width = 3 * lanes;
      const auto x = this->random(rows * width);
      const auto w = this->random(width * width);
      const auto base = this->random(rows * width);
      for (const Transpose transpose : {Transpose::kNo, Transpose::kYes}) {
        std::vector<T> packed(static_cast<std::size_t>(packed_size(width, width)));
        pack_matrix(transpose, w.data(), width, width, packed.data());
        auto y = base;  // y = x W + y
        MatmulArgs<T> args;
        args.inner = args.columns = width;
        args.x = x.data();
        args.x_layout = args.y_layout = layout;
        args.packed = packed.data();
        args.add = y.data();
        args.y = y.data();
        matmul(args, 0, rows / 2);
        matmul(args, rows / 2, rows);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t j = 0; j < width; ++j) {
            double sum = this->at(base, layout, row, j);
            for (std::int64_t k = 0; k < width; ++k) {
              const T entry = transpose == Transpose::kNo ? w[k * width + j] : w[j * width + k];
              sum += static_cast<double>(this->at(x, layout, row, k)) * entry;
            }
            ASSERT_NEAR(this->at(y, layout, row, j), sum, this->kTolerance);
          }
        }
      }
    }
  });
}

// Slices of x that end in every kind of remainder; an odd number of panels of g, too.
TYPED_TEST(Matmul, TransposedEqualsThePlainLoop) {
  using T = TypeParam;
  for_every_target([&] {
    for (const auto& [lanes, g_lanes] : {std::pair{16, 16}, {32, 32}, {22, 16}, {2, 32}}) {
      const std::int64_t rows = 211;
      const Layout layout{lanes, rows * lanes};
      const Layout g_layout{g_lanes, rows * g_lanes};
      const std::int64_t left = 2 * lanes;
      const std::int64_t right = 3 * g_lanes;
      const auto x = this->random(rows * left);
      const auto g = this->random(rows * right);
      std::vector<T> sum(static_cast<std::size_t>(left * right), T{1});
      MatmulTransposedArgs<T> args;
      args.left = left;
      args.right = right;
      args.x_layout = layout;
      args.g_layout = g_layout;
      args.x = x.data();
      args.g = g.data();
      args.sum = sum.data();
      matmul_transposed(args, 0, 100);
      matmul_transposed(args, 100, rows);
      for (std::int64_t i = 0; i < left; ++i) {
        for (std::int64_t j = 0; j < right; ++j) {
          double expected = 1.0;
          for (std::int64_t row = 0; row < rows; ++row) {
            expected +=
                static_cast<double>(this->at(x, layout, row, i)) * this->at(g, g_layout, row, j);
          }
          ASSERT_NEAR(sum[i * right + j], expected, 10 * this->kTolerance);
        }
      }
    }
  });
}

TYPED_TEST(Matmul, AddsRowsOfAnyWidth) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t width : {1, 7, 16, 33}) {
      for (const std::int64_t rows : {0, 1, 5}) {
        const auto g = this->random(rows * width);
        std::vector<T> sum(static_cast<std::size_t>(width), T{2});
        add_rows(g.data(), rows, width, sum.data());
        for (std::int64_t j = 0; j < width; ++j) {
          T expected = 2;
          for (std::int64_t row = 0; row < rows; ++row) expected += g[row * width + j];
          ASSERT_EQ(sum[j], expected);
        }
      }
    }
  });
}

TYPED_TEST(Matmul, AddsTheTransposedProductOfRowsOfAnyWidth) {
  using T = TypeParam;
  const auto whole = [](std::int64_t width) { return packed_size(1, width); };
  for_every_target([&] {
    for (const std::int64_t rows : {1, 97}) {
      for (const std::int64_t left : {1, 11, 30, 48}) {
        // With rows that are read as they lie, among others, and some too wide for that.
        for (const std::int64_t right : {1, 16, 33, 64, 256}) {
          const auto x = this->random(rows * left);
          const auto g = this->random(rows * right);
          std::vector<T> scratch(static_cast<std::size_t>(rows * (whole(left) + whole(right))),
                                 T{7});
          std::vector<T> sum(static_cast<std::size_t>(whole(left) * whole(right)), T{2});
          add_transposed(x.data(), left, g.data(), right, rows, sum.data(), scratch.data());
          for (std::int64_t i = 0; i < whole(left); ++i) {
            for (std::int64_t j = 0; j < whole(right); ++j) {
              double expected = 2.0;
              for (std::int64_t row = 0; i < left && j < right && row < rows; ++row) {
                expected += static_cast<double>(x[row * left + i]) * g[row * right + j];
              }
              ASSERT_NEAR(sum[i * whole(right) + j], expected, 10 * this->kTolerance);
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
