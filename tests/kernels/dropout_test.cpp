// SPDX-License-Identifier: MIT
#include "mpssm/kernels/dropout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

constexpr std::int64_t kMany = 1 << 20;
constexpr std::uint64_t kSeeds[] = {0, 1, 2, 12345, 0xffffffffu, 0x100000000u, ~std::uint64_t{0}};
// Some 500 statistics are drawn with fixed seeds: five sigma of a fair mask pass, a bias of half a
// percent does not.
constexpr double kSigmas = 5.0;

template <typename T = float>
std::vector<T> dropped_ones(std::int64_t count, std::uint64_t seed, double probability) {
  std::vector<T> out(static_cast<std::size_t>(count), T{1});
  dropout<T>(out.data(), out.data(), count, 0, seed, probability);
  return out;
}

/// The mask with mean 0 and variance 1, were it fair.
std::vector<float> standardised(std::uint64_t seed, double probability) {
  std::vector<float> out = dropped_ones(kMany, seed, probability);
  const double deviation = std::sqrt(probability / (1.0 - probability));
  for (float& value : out) value = static_cast<float>((value - 1.0) / deviation);
  return out;
}

/// Sum of a[i] b[i + lag] in standard deviations.
double correlation(const std::vector<float>& a, const std::vector<float>& b, std::size_t lag) {
  double sum = 0.0;
  for (std::size_t i = 0; i + lag < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i + lag];
  return sum / std::sqrt(static_cast<double>(a.size() - lag));
}

template <typename T>
class DropoutKernel : public ::testing::Test {
 protected:
  static std::vector<T> ramp(std::int64_t count) {
    std::vector<T> out(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(0.1 * i + 1.0);
    return out;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DropoutKernel, Reals);

TYPED_TEST(DropoutKernel, ScalesWhatItKeeps) {
  using T = TypeParam;
  for_every_target([] {
    const std::vector<T> x = TestFixture::ramp(1003);
    std::vector<T> y(x.size());
    dropout<T>(x.data(), y.data(), 1003, 0, 1, 0.3);
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (y[i] == T{0}) continue;
      // One rounding of the scale and one of the product.
      ASSERT_NEAR(y[i], x[i] / 0.7, 2.0 * x[i] / 0.7 * std::numeric_limits<T>::epsilon());
      ++kept;
    }
    EXPECT_GT(kept, 600);
    EXPECT_LT(kept, 800);
  });
}

TYPED_TEST(DropoutKernel, IsTheSameHoweverCut) {
  using T = TypeParam;
  for_every_target([] {
    const std::vector<T> x = TestFixture::ramp(300);
    std::vector<T> whole(x.size());
    dropout<T>(x.data(), whole.data(), 300, 0, 7, 0.5);
    for (const std::int64_t step : {1, 2, 3, 5, 8, 13, 33, 299}) {
      std::vector<T> parts(x.size());
      for (std::int64_t begin = 0; begin < 300; begin += step) {
        dropout<T>(x.data() + begin, parts.data() + begin,
                   std::min<std::int64_t>(step, 300 - begin), static_cast<std::uint64_t>(begin), 7,
                   0.5);
      }
      ASSERT_EQ(parts, whole) << "step " << step;
    }
  });
}

TYPED_TEST(DropoutKernel, TouchesNothingOutsideTheRange) {
  using T = TypeParam;
  for_every_target([] {
    for (std::int64_t end = 5; end < 45; ++end) {
      const std::vector<T> x(50, T{1});
      std::vector<T> y(50, T{7});
      dropout<T>(x.data() + 5, y.data() + 5, end - 5, 5, 1, 0.5);
      for (std::int64_t i = 0; i < 50; ++i) ASSERT_EQ(y[i] == T{7}, i < 5 || i >= end);
    }
  });
}

TYPED_TEST(DropoutKernel, WorksInPlace) {
  using T = TypeParam;
  const std::vector<T> x = TestFixture::ramp(101);
  std::vector<T> apart(x.size());
  std::vector<T> in_place = x;
  dropout<T>(x.data(), apart.data(), 101, 0, 3, 0.4);
  dropout<T>(in_place.data(), in_place.data(), 101, 0, 3, 0.4);
  EXPECT_EQ(in_place, apart);
}

TYPED_TEST(DropoutKernel, OfProbabilityZeroIsTheIdentity) {
  using T = TypeParam;
  for_every_target([] {
    std::vector<T> x = TestFixture::ramp(77);
    x[3] = std::numeric_limits<T>::infinity();
    std::vector<T> y(x.size());
    dropout<T>(x.data(), y.data(), 77, 0, 5, 0.0);
    EXPECT_EQ(y, x);
  });
}

TYPED_TEST(DropoutKernel, OfProbabilityOneIsZero) {
  using T = TypeParam;
  const double below_one = std::nextafter(1.0, 0.0);
  for_every_target([&] {
    for (const double probability : {1.0, below_one}) {
      EXPECT_EQ(dropped_ones<T>(77, 5, probability), std::vector<T>(77, T{0}));
    }
  });
}

TYPED_TEST(DropoutKernel, DropsNanAndInfinityToZero) {
  using T = TypeParam;
  for_every_target([] {
    const std::vector<T> ones = dropped_ones<T>(200, 9, 0.5);
    for (const T odd :
         {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T{-1}}) {
      std::vector<T> y(200, odd);
      dropout<T>(y.data(), y.data(), 200, 0, 9, 0.5);
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i] == T{0} && !std::signbit(y[i]), ones[i] == T{0});
      }
    }
  });
}

// The array would have 16 GB: only its end exists.
TYPED_TEST(DropoutKernel, GoesOnBeyond32Bits) {
  using T = TypeParam;
  constexpr std::uint64_t kBoundary = std::uint64_t{1} << 32;
  const auto around = [](std::uint64_t middle, std::int64_t cut) {
    std::vector<T> out(400, T{1});
    T* const rest = out.data() + 200 + cut;
    dropout<T>(out.data(), out.data(), 200 + cut, middle - 200, 1, 0.5);
    dropout<T>(rest, rest, 200 - cut, middle + static_cast<std::uint64_t>(cut), 1, 0.5);
    return out;
  };
  const std::vector<T> expected = around(kBoundary, 0);
  const std::vector<T> next = around(2 * kBoundary, 0);
  EXPECT_NE(expected, next);
  const std::vector<T> start = dropped_ones<T>(200, 1, 0.5);
  EXPECT_NE(std::vector<T>(expected.begin() + 200, expected.end()), start);
  for_every_target([&] {
    for (const std::int64_t cut : {-3, -1, 0, 1, 5, 200}) {
      ASSERT_EQ(around(kBoundary, cut), expected) << "cut " << cut;
    }
  });
}

TEST(DropoutMask, IsTheSameForEveryTargetAndType) {
  const std::vector<float> expected = dropped_ones(5003, 11, 0.5);
  for_every_target([&] {
    ASSERT_EQ(dropped_ones(5003, 11, 0.5), expected);
    const std::vector<double> in_double = dropped_ones<double>(5003, 11, 0.5);
    ASSERT_EQ(std::vector<float>(in_double.begin(), in_double.end()), expected);
  });
}

TEST(DropoutMask, KeepsMeanAndSpread) {
  constexpr std::size_t kBlock = 64;
  for (const std::uint64_t seed : kSeeds) {
    for (const double probability : {0.001, 0.1, 0.3, 0.5, 0.9}) {
      const std::vector<float> mask = standardised(seed, probability);
      double sum = 0.0;
      double squared_blocks = 0.0;
      for (std::size_t begin = 0; begin < mask.size(); begin += kBlock) {
        double block = 0.0;
        for (std::size_t i = begin; i < begin + kBlock; ++i) block += mask[i];
        sum += block;
        squared_blocks += block * block / kBlock;
      }
      EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(kMany)) << seed << ' ' << probability;
      // The square of a block varies by 2, and by the fourth moment of rare events.
      const double blocks = static_cast<double>(kMany) / kBlock;
      const double rare = 1.0 / (probability * (1.0 - probability) * kBlock);
      EXPECT_NEAR(squared_blocks / blocks, 1.0, kSigmas * std::sqrt((2.0 + rare) / blocks))
          << seed << ' ' << probability;
    }
  }
}

TEST(DropoutMask, IsUncorrelatedWithItselfShifted) {
  for (const std::uint64_t seed : kSeeds) {
    for (const double probability : {0.1, 0.5}) {
      const std::vector<float> mask = standardised(seed, probability);
      for (const std::size_t lag : {1,   2,   3,   4,   5,    7,    8,    16,   32,    64,
                                    100, 128, 256, 512, 1000, 1024, 2048, 4096, 65535, 65536}) {
        EXPECT_LT(std::abs(correlation(mask, mask, lag)), kSigmas)
            << "seed " << seed << " probability " << probability << " lag " << lag;
      }
    }
  }
}

TEST(DropoutMask, OfOneSeedTellsNothingOfAnother) {
  for (const std::uint64_t seed : kSeeds) {
    const std::vector<float> mask = standardised(seed, 0.5);
    for (const std::uint64_t other : {seed + 1, seed + 2, seed ^ (std::uint64_t{1} << 32), ~seed}) {
      const std::vector<float> second = standardised(other, 0.5);
      for (const std::size_t lag : {0, 1, 2, 64}) {
        EXPECT_LT(std::abs(correlation(mask, second, lag)), kSigmas)
            << "seeds " << seed << ' ' << other << " lag " << lag;
      }
    }
  }
}

// The mask of a small tensor over the steps of a training, where the seed counts up.
TEST(DropoutMask, IsFairOverSuccessiveSeeds) {
  constexpr int kSeedsUp = 20000;
  for (const std::int64_t index : {0, 1, 31}) {
    std::vector<float> series;
    series.reserve(kSeedsUp);
    for (int seed = 0; seed < kSeedsUp; ++seed) {
      series.push_back(dropped_ones(index + 1, seed, 0.5).back() - 1.0f);
    }
    double sum = 0.0;
    for (const float value : series) sum += value;
    EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(kSeedsUp)) << index;
    for (const std::size_t lag : {1, 2, 4, 256}) {
      EXPECT_LT(std::abs(correlation(series, series, lag)), kSigmas) << index << ' ' << lag;
    }
  }
}

}  // namespace
}  // namespace mpssm::kernels
