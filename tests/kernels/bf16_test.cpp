// SPDX-License-Identifier: MIT
#include "mpssm/kernels/bf16.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/kernels/matmul_bf16.h"
#include "mpssm/kernels/recurrence_bf16.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool operator==(Bf16 a, Bf16 b) { return a.bits == b.bits; }

/// The nearest bfloat16 by search: of the one below in size and its successor.
float nearest(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const Bf16 low{static_cast<std::uint16_t>(bits >> 16)};
  const Bf16 high{static_cast<std::uint16_t>(low.bits + 1)};
  const double above = std::isinf(to_float(high)) ? std::copysign(std::ldexp(1.0, 128), x)
                                                  : static_cast<double>(to_float(high));
  const double down = std::abs(static_cast<double>(x) - to_float(low));
  const double up = std::abs(above - x);
  if (down == up) return to_float(low.bits % 2 == 0 ? low : high);
  return down < up ? to_float(low) : to_float(high);
}

class Bfloat16 : public ::testing::Test {
 protected:
  std::vector<float> random(std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& value : out) value = std::normal_distribution<float>()(generator_);
    return out;
  }
  static float rounded(float x) { return to_float(to_bf16(x)); }
  static float fused(float x, float w, float sum) { return std::fma(x, w, sum); }
  std::mt19937 generator_{1};
};

TEST_F(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(rounded(1.0f), 1.0f);
  EXPECT_EQ(rounded(1.00390625f), 1.0f);         // a tie: 1 + 2^-8
  EXPECT_EQ(rounded(1.01171875f), 1.015625f);    // a tie: 1 + 3 2^-8
  EXPECT_EQ(rounded(1.003906369f), 1.0078125f);  // just above the tie
  EXPECT_EQ(rounded(-1.00390625f), -1.0f);
  std::uniform_int_distribution<std::uint32_t> any;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t bits = any(generator_);
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    if (std::isnan(x) || std::abs(x) < std::numeric_limits<float>::min()) continue;
    ASSERT_EQ(rounded(x), nearest(x)) << x;
  }
}

TEST_F(Bfloat16, KeepsWhatIsNoNumber) {
  EXPECT_TRUE(std::isnan(rounded(kNan)));
  const std::uint32_t small_payload = 0x7f800001u;  // cut off, it would be infinite
  float signalling;
  std::memcpy(&signalling, &small_payload, sizeof(signalling));
  EXPECT_TRUE(std::isnan(rounded(signalling)));
  EXPECT_EQ(rounded(kInfinity), kInfinity);
  EXPECT_EQ(rounded(-kInfinity), -kInfinity);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(to_bf16(-1e-40f).bits, 0x8000);
  EXPECT_EQ(to_bf16(1e-40f).bits, 0);
  EXPECT_EQ(rounded(std::numeric_limits<float>::min()), std::numeric_limits<float>::min());
}

TEST_F(Bfloat16, ManyAreRoundedLikeOne) {
  auto x = random(133);
  for (float& value : x) value *= std::exp(20 * std::normal_distribution<float>()(generator_));
  const float special[] = {kNan, kInfinity, -kInfinity, 3.4e38f, -1e-40f, 1e-40f, 0.0f, -0.0f};
  std::copy(std::begin(special), std::end(special), x.begin() + 20);
  for_every_target([&] {
    for (std::size_t count = 0; count <= x.size(); ++count) {
      std::vector<Bf16> out(count + 1, Bf16{7});
      round_numbers(x.data(), static_cast<std::int64_t>(count), out.data());
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(out[i] == to_bf16(x[i])) << x[i];
      ASSERT_EQ(out[count].bits, 7);
    }
  });
}

/// Rows of x in bfloat16, padded; packed W; both from floats.
struct Factors {
  std::vector<Bf16> x;
  std::vector<Bf16> packed;
  Factors(const std::vector<float>& x_in, const std::vector<float>& w, Transpose transpose,
          std::int64_t rows, std::int64_t inner, std::int64_t columns)
      : x(static_cast<std::size_t>(rows * padded_inner(inner)), Bf16{7}),
        packed(static_cast<std::size_t>(packed_size_bf16(inner, columns)), Bf16{7}) {
    round_rows(x_in.data(), rows, inner, x.data());
    pack_matrix(transpose, w.data(), inner, columns, packed.data());
  }
};

// The sum in the order that the header promises, to the bit, and so at every target; and against a
// sum in double, within what n additions of floats may lose: n 2^-24 of the sum of sizes each way.
TEST_F(Bfloat16, ProductIsTheSumOfPairsInOrder) {
  for_every_target([&] {
    for (const std::int64_t rows : {1, 3, 12, 17, 103}) {
      for (const std::int64_t inner : {1, 2, 31, 64}) {
        for (const std::int64_t columns : {1, 16, 23, 48}) {
          for (const Transpose transpose : {Transpose::kNo, Transpose::kYes}) {
            const auto x = random(rows * inner);
            const auto w = random(inner * columns);
            const auto bias = random(columns);
            const Factors factors(x, w, transpose, rows, inner, columns);
            std::vector<float> y(static_cast<std::size_t>(rows * columns));
            Bf16MatmulArgs<float> args;
            args.inner = padded_inner(inner);
            args.columns = columns;
            args.x = factors.x.data();
            args.x_layout = {args.inner, 0};
            args.packed = factors.packed.data();
            args.add = bias.data();
            args.add_is_bias = true;
            args.y = y.data();
            args.y_layout = {columns, 0};
            matmul(args, 0, rows / 2);
            matmul(args, rows / 2, rows);
            for (std::int64_t row = 0; row < rows; ++row) {
              for (std::int64_t j = 0; j < columns; ++j) {
                const auto factor = [&](std::int64_t k) {
                  return k < inner ? rounded(x[row * inner + k]) : 0.0f;
                };
                const auto entry = [&](std::int64_t k) {
                  if (k >= inner) return 0.0f;
                  return rounded(transpose == Transpose::kNo ? w[k * columns + j]
                                                             : w[j * inner + k]);
                };
                float sum = 0.0f;
                double exact = bias[j];
                double size = std::abs(bias[j]);
                for (std::int64_t k = 0; k < inner; k += 2) {
                  sum = fused(factor(k + 1), entry(k + 1), sum);
                  sum = fused(factor(k), entry(k), sum);
                  for (const std::int64_t i : {k, k + 1}) {
                    exact += static_cast<double>(factor(i)) * entry(i);
                    size += std::abs(static_cast<double>(factor(i)) * entry(i));
                  }
                }
                ASSERT_EQ(y[row * columns + j], sum + bias[j]);
                ASSERT_NEAR(y[row * columns + j], exact,
                            static_cast<double>(inner + 2) * std::ldexp(size, -24));
              }
            }
          }
        }
      }
    }
  });
}

TEST_F(Bfloat16, ProductInSlicesIsRoundedOnce) {
  const std::int64_t rows = 29;
  const std::int64_t lanes = 32;
  const std::int64_t width = 3 * lanes;
  const Layout layout{lanes, rows * lanes};
  const auto x = random(rows * width);
  const auto w = random(width * width);
  const auto base = random(rows * width);
  for_every_target([&] {
    const Factors factors(x, w, Transpose::kNo, rows, width, width);
    std::vector<Bf16> sliced(x.size());
    std::vector<Bf16> y(x.size());
    const auto place = [&](std::int64_t row, std::int64_t j) {
      return j / lanes * layout.slice_stride + row * lanes + j % lanes;
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < width; ++j) {
        sliced[place(row, j)] = to_bf16(x[row * width + j]);
        y[place(row, j)] = to_bf16(base[row * width + j]);
      }
    }
    const auto before = y;
    std::vector<float> plain(x.size());
    Bf16MatmulArgs<float> row_major;
    row_major.inner = row_major.columns = width;
    row_major.x = factors.x.data();
    row_major.x_layout = row_major.y_layout = {width, 0};
    row_major.packed = factors.packed.data();
    row_major.y = plain.data();
    matmul(row_major, 0, rows);

    Bf16MatmulArgs<Bf16> args;
    args.inner = args.columns = width;
    args.x = sliced.data();
    args.x_layout = args.y_layout = layout;
    args.packed = factors.packed.data();
    args.add = y.data();  // y = x W + y
    args.y = y.data();
    matmul(args, 0, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < width; ++j) {
        const float sum = plain[row * width + j] + to_float(before[place(row, j)]);
        ASSERT_TRUE(y[place(row, j)] == to_bf16(sum));
      }
    }
  });
}

TEST_F(Bfloat16, TransposedProductIsTheSumOfPairsOfRows) {
  for_every_target([&] {
    for (const std::int64_t rows : {1, 2, 97}) {
      for (const std::int64_t left : {1, 16, 30}) {
        for (const std::int64_t right : {1, 33, 48}) {
          const auto whole = [](std::int64_t width) {
            return (width + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
          };
          const auto x = random(rows * left);
          const auto g = random(rows * right);
          Bf16TransposedArgs args;
          args.left = whole(left);
          args.right = whole(right);
          args.rows = rows;
          std::vector<Bf16> x_pairs(row_pairs_size(rows, left), Bf16{7});
          std::vector<Bf16> g_pairs(row_pairs_size(rows, right), Bf16{7});
          std::vector<float> sum(static_cast<std::size_t>(args.left * args.right), 1.0f);
          pack_row_pairs(x.data(), rows, left, x_pairs.data());
          pack_row_pairs(g.data(), rows, right, g_pairs.data());
          args.x = x_pairs.data();
          args.g = g_pairs.data();
          args.sum = sum.data();
          matmul_transposed(args);
          for (std::int64_t i = 0; i < args.left; ++i) {
            for (std::int64_t j = 0; j < args.right; ++j) {
              float expected = 1.0f;
              for (std::int64_t row = 0; i < left && j < right && row < rows; row += 2) {
                if (row + 1 < rows) {
                  expected = fused(rounded(x[(row + 1) * left + i]),
                                   rounded(g[(row + 1) * right + j]), expected);
                }
                expected = fused(rounded(x[row * left + i]), rounded(g[row * right + j]), expected);
              }
              ASSERT_EQ(sum[i * args.right + j], expected);
            }
          }
        }
      }
    }
  });
}

// Packed from slices of rounded numbers, a range of their rows.
TEST_F(Bfloat16, PairsOfRowsOfSlicesAreThoseOfRows) {
  for_every_target([&] {
    for (const std::int64_t lanes : {16, 32, 64}) {
      for (const std::int64_t count : {1, 6, 7}) {
        const std::int64_t rows = 11;
        const std::int64_t begin = 3;
        const std::int64_t width = 2 * lanes;
        const auto x = random(rows * width);
        const Layout layout{lanes, rows * lanes};
        std::vector<Bf16> sliced(x.size());
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t j = 0; j < width; ++j) {
            sliced[j / lanes * layout.slice_stride + row * lanes + j % lanes] =
                to_bf16(x[row * width + j]);
          }
        }
        std::vector<Bf16> expected(row_pairs_size(count, width));
        std::vector<Bf16> pairs(expected.size(), Bf16{7});
        pack_row_pairs(x.data() + begin * width, count, width, expected.data());
        pack_row_pairs(sliced.data(), layout, begin, count, width, pairs.data());
        for (std::size_t i = 0; i < pairs.size(); ++i) ASSERT_TRUE(pairs[i] == expected[i]) << i;
      }
    }
  });
}

TEST_F(Bfloat16, WhatIsNoNumberPassesThroughProducts) {
  for_every_target([&] {
    std::vector<float> x = {kNan, 1.0f, kInfinity, 1.0f, 1.0f, 2.0f};
    const std::vector<float> w = {1.0f, 1.0f};
    const Factors factors(x, w, Transpose::kNo, 3, 2, 1);
    std::vector<float> y(3);
    Bf16MatmulArgs<float> args;
    args.inner = 2;
    args.columns = 1;
    args.x = factors.x.data();
    args.x_layout = {2, 0};
    args.packed = factors.packed.data();
    args.y = y.data();
    args.y_layout = {1, 0};
    matmul(args, 0, 3);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], kInfinity);
    EXPECT_EQ(y[2], 3.0f);
  });
}

// ---- slices -------------------------------------------------------------------------------------

/// Rows with 0 to 6 entries.
struct Matrix {
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> col;
  std::vector<float> value;

  Matrix(std::int64_t rows, std::mt19937& generator) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t e = 0; e < row % 7; ++e) {
        col.push_back(std::uniform_int_distribution<std::int32_t>(
            0, static_cast<std::int32_t>(rows) - 1)(generator));
        value.push_back(std::normal_distribution<float>()(generator));
      }
      row_ptr.push_back(static_cast<std::int64_t>(col.size()));
    }
  }
  CsrView<float> view() const {
    return {static_cast<std::int64_t>(row_ptr.size()) - 1, row_ptr.data(), col.data(),
            value.data()};
  }
};

std::vector<Bf16> in_bf16(const std::vector<float>& x) {
  std::vector<Bf16> out(x.size());
  round_numbers(x.data(), static_cast<std::int64_t>(x.size()), out.data());
  return out;
}

/// Number j of row `row` of A x and the sum of the sizes of its terms, in double.
std::pair<double, double> gathered(const Matrix& a, const std::vector<Bf16>& x, std::int64_t lanes,
                                   std::int64_t row, std::int64_t j) {
  double sum = 0.0, size = 0.0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    const double term = static_cast<double>(a.value[e]) * to_float(x[a.col[e] * lanes + j]);
    sum += term;
    size += std::abs(term);
  }
  return {sum, size};
}

// One rounding to bfloat16, 2^-8, and some of floats on the way.
TEST_F(Bfloat16, SliceStepIsASumThatIsRoundedOnce) {
  constexpr std::int64_t kRows = 45;
  const Matrix a(kRows, generator_);
  for_every_target([&] {
    for (const std::int64_t lanes : {8, 16, 32, 64}) {
      const auto x = in_bf16(random(kRows * lanes));
      const auto base = in_bf16(random(kRows * lanes));
      const auto re = random(lanes / 2);
      const auto im = random(lanes / 2);
      for (const bool scaled : {false, true}) {
        for (const bool adds : {false, true}) {
          std::vector<Bf16> y(x.size(), Bf16{7});
          Bf16SliceStep step;
          step.a = a.view();
          step.lanes = lanes;
          step.x = x.data();
          step.add = adds ? base.data() : nullptr;
          step.sigma_re = scaled ? re.data() : nullptr;
          step.sigma_im = scaled ? im.data() : nullptr;
          step.y = y.data();
          slice_step(step);
          for (std::int64_t row = 0; row < kRows; ++row) {
            for (std::int64_t j = 0; j < lanes; ++j) {
              auto [expected, size] = gathered(a, x, lanes, row, j);
              if (scaled) {
                const auto [other, other_size] = gathered(a, x, lanes, row, j ^ 1);
                const double sign = j % 2 == 0 ? -1.0 : 1.0;
                expected = expected * re[j / 2] + sign * other * im[j / 2];
                size = size * std::abs(re[j / 2]) + other_size * std::abs(im[j / 2]);
              }
              if (adds) expected += to_float(base[row * lanes + j]);
              ASSERT_NEAR(to_float(y[row * lanes + j]), expected,
                          std::ldexp(std::abs(expected), -8) + 1e-6 * size);
            }
          }
        }
      }
    }
  });
}

TEST_F(Bfloat16, SliceAdjointStepSumsWhatItSays) {
  constexpr std::int64_t kRows = 300;  // more than a block of rows
  const Matrix a(kRows, generator_);
  for_every_target([&] {
    for (const std::int64_t lanes : {8, 64}) {
      const std::int64_t half = lanes / 2;
      const auto r = in_bf16(random(kRows * lanes));
      const auto other = in_bf16(random(kRows * lanes));
      const auto factor_re = random(half), factor_im = random(half);
      const auto before_re = random(half), before_im = random(half);
      std::vector<double> weight_re(half, 2.0), weight_im(half, -0.5);
      for (const bool with_r : {false, true}) {
        std::vector<Bf16> next(r.size(), Bf16{7});
        std::vector<float> total(r.size(), 1.0f);
        std::vector<double> grad_re(half, 3.0), grad_im(half, 4.0);
        Bf16SliceAdjointStep step;
        step.a_transposed = a.view();
        step.lanes = lanes;
        step.r = r.data();
        step.r_next = next.data();
        step.total = total.data();
        step.factor_re = factor_re.data();
        step.factor_im = factor_im.data();
        step.before = with_r ? step.r : nullptr;
        step.before_re = with_r ? before_re.data() : nullptr;
        step.before_im = with_r ? before_im.data() : nullptr;
        step.other = other.data();
        step.grad_re = grad_re.data();
        step.grad_im = grad_im.data();
        step.weight_re = weight_re.data();
        step.weight_im = weight_im.data();
        slice_adjoint_step(step);
        std::vector<std::complex<double>> inner(half);
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t c = 0; c < half; ++c) {
            const auto pair = [&](const std::vector<Bf16>& from) {
              const std::int64_t at = row * lanes + 2 * c;
              return std::complex<double>(to_float(from[at]), to_float(from[at + 1]));
            };
            const std::complex<double> q(gathered(a, r, lanes, row, 2 * c).first,
                                         gathered(a, r, lanes, row, 2 * c + 1).first);
            inner[c] += q * std::conj(pair(other));
            const std::complex<double> got = pair(next);
            ASSERT_NEAR(got.real(), q.real(), std::ldexp(std::abs(q.real()), -8) + 1e-5);
            ASSERT_NEAR(got.imag(), q.imag(), std::ldexp(std::abs(q.imag()), -8) + 1e-5);
            std::complex<double> expected(1.0, 1.0);
            expected += std::complex<double>(factor_re[c], factor_im[c]) * q;
            if (with_r) expected += std::complex<double>(before_re[c], before_im[c]) * pair(r);
            ASSERT_NEAR(total[row * lanes + c], expected.real(), 1e-4);
            ASSERT_NEAR(total[row * lanes + half + c], expected.imag(), 1e-4);
          }
        }
        for (std::int64_t c = 0; c < half; ++c) {
          const std::complex<double> expected =
              std::complex<double>(3.0, 4.0) + std::complex<double>(2.0, -0.5) * inner[c];
          ASSERT_NEAR(grad_re[c], expected.real(), 1e-2);
          ASSERT_NEAR(grad_im[c], expected.imag(), 1e-2);
        }
      }
    }
  });
}

TEST_F(Bfloat16, SlicesAreThereAndBackAgain) {
  constexpr std::int64_t kRows = 9;
  constexpr std::int64_t kStride = 21;
  const std::vector<std::int32_t> node = {3, 1, 4, 0, 5, 8, 2, 6, 7};
  std::vector<std::int32_t> place(node.size());
  for (std::size_t i = 0; i < node.size(); ++i) place[node[i]] = static_cast<std::int32_t>(i);
  const auto x = random(kRows * kStride);
  for_every_target([&] {
    for (const std::int64_t width : {2, 10, 16}) {
      for (const bool ordered : {false, true}) {
        std::vector<Bf16> slice(kRows * 16, Bf16{7});
        pack_slice(x.data(), kStride, kRows, width, 16, slice.data(),
                   ordered ? node.data() : nullptr);
        std::vector<float> back(x.size(), 7.0f);
        unpack_slice(slice.data(), kRows, width, 16, back.data(), kStride,
                     ordered ? place.data() : nullptr);
        std::vector<float> total(kRows * 16);
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t j = 0; j < kStride; ++j) {
            const std::int64_t at = row * kStride + j;
            ASSERT_EQ(back[at], j < width ? rounded(x[at]) : 7.0f);
          }
          for (std::int64_t j = 0; j < 16; ++j) {
            if (j >= width) {
              ASSERT_EQ(slice[row * 16 + j].bits, 0);
            }
            total[row * 16 + j / 2 + j % 2 * 8] = to_float(slice[row * 16 + j]);
          }
        }
        std::vector<float> sums(x.size());
        unpack_total(total.data(), kRows, width, 16, x.data(), sums.data(), kStride,
                     ordered ? place.data() : nullptr);
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t j = 0; j < width; ++j) {
            const std::int64_t at = row * kStride + j;
            ASSERT_EQ(sums[at], back[at] + x[at]);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
