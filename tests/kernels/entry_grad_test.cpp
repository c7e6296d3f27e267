// SPDX-License-Identifier: MIT
// The gradient of the entries against plain loops, on every instruction set.
#include "mpssm/kernels/entry_grad.h"

#include <complex>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/kernels/recurrence.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

template <typename T>
class EntryGradTest : public ::testing::Test {
 protected:
  std::vector<T> random(std::int64_t count) {
    std::vector<T> out(static_cast<std::size_t>(count));
    for (T& value : out) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1.0, 1.0)(generator_));
    }
    return out;
  }
  std::mt19937 generator_{1};
};
using RealTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EntryGradTest, RealTypes);

TYPED_TEST(EntryGradTest, AddsTheInnerProductOfBothEndsOfEveryEntry) {
  using T = TypeParam;
  constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-14;  // sums of up to 48 numbers below 2
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(70, 150, 3));
  for_every_target([&] {
    for (std::int64_t lanes = kMinSliceLanes; lanes <= kWidestSliceLanes<T>;
         lanes += kMinSliceLanes) {
      const std::int64_t half = lanes / 2;
      const auto p = this->random(gso.num_nodes() * lanes);
      const auto x = this->random(gso.num_nodes() * lanes);
      const auto re = this->random(half);
      const auto im = this->random(half);
      const auto before = this->random(gso.num_nonzeros());
      std::vector<T> grad = before;
      slice_entry_grad(SliceEntryGrad<T>{.a = gso.view<T>(),
                                         .lanes = lanes,
                                         .p = p.data(),
                                         .x = x.data(),
                                         .sigma_re = re.data(),
                                         .sigma_im = im.data(),
                                         .grad = grad.data()});
      for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
        for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
          std::complex<double> sum = before[e];
          for (std::int64_t c = 0; c < half; ++c) {
            const T* of_p = &p[i * lanes + 2 * c];
            const T* of_x = &x[gso.col()[e] * lanes + 2 * c];
            sum += std::complex<double>(of_p[0], -of_p[1]) * std::complex<double>(re[c], im[c]) *
                   std::complex<double>(of_x[0], of_x[1]);
          }
          EXPECT_NEAR(grad[e], sum.real(), kTolerance * (1.0 + std::abs(sum.real())));
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
