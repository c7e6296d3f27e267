// SPDX-License-Identifier: MIT
// Slices against plain loops, on every instruction set.
#include "mpssm/kernels/recurrence.h"

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

template <typename T>
class SliceTest : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

  std::vector<T> random(std::int64_t count) {
    std::vector<T> out(static_cast<std::size_t>(count));
    for (T& value : out) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1.0, 1.0)(generator_));
    }
    return out;
  }
  /// Number (row, channel) of a complex slice.
  static std::complex<double> at(const std::vector<T>& slice, std::int64_t lanes, std::int64_t row,
                                 std::int64_t channel) {
    return {slice[row * lanes + 2 * channel], slice[row * lanes + 2 * channel + 1]};
  }
  static std::vector<std::int64_t> widths() {
    std::vector<std::int64_t> lanes;
    for (std::int64_t each = kMinSliceLanes; each <= kWidestSliceLanes<T>; each += kMinSliceLanes) {
      lanes.push_back(each);
    }
    return lanes;
  }

  const graph::Gso gso_ = graph::make_gso(graph::Graph::from_edges(
      {.num_nodes = 300, .src = sources(), .dst = targets()}, graph::Direction::kDirected));
  std::mt19937 generator_{1};

 private:
  static std::vector<std::int64_t> sources() {
    std::vector<std::int64_t> out;
    for (std::int64_t e = 0; e < 900; ++e) out.push_back(e * 7919 % 300);
    return out;
  }
  static std::vector<std::int64_t> targets() {
    std::vector<std::int64_t> out;
    for (std::int64_t e = 0; e < 900; ++e) out.push_back((e * 104729 + e / 300) % 299);
    return out;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SliceTest, Reals);

TYPED_TEST(SliceTest, PackingAndUnpackingIsTheIdentityForEveryWidth) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t lanes : this->widths()) {
      for (std::int64_t width = 1; width <= lanes; ++width) {
        const std::int64_t rows = 5;
        const std::int64_t stride = width + 3;
        const std::vector<std::int32_t> order = {3, 0, 4, 1, 2};
        const auto source = this->random(rows * stride);
        for (const bool in_order : {false, true}) {
          std::vector<T> slice(static_cast<std::size_t>(rows * lanes), T{9});
          pack_slice(source.data(), stride, rows, width, lanes, slice.data(),
                     in_order ? order.data() : nullptr);
          std::vector<T> target = source;
          std::vector<std::int32_t> place(order.size());
          for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t from = in_order ? order[row] : row;
            place[from] = static_cast<std::int32_t>(row);
            for (std::int64_t j = 0; j < lanes; ++j) {
              EXPECT_EQ(slice[row * lanes + j], j < width ? source[from * stride + j] : T{0});
            }
            for (std::int64_t j = 0; j < width; ++j) target[row * stride + j] = T{0};
          }
          unpack_slice(slice.data(), rows, width, lanes, target.data(), stride,
                       in_order ? place.data() : nullptr);
          EXPECT_EQ(target, source);  // and what lies between rows is untouched
        }
      }
    }
  });
}

TYPED_TEST(SliceTest, StepIsSigmaTimesTheProductPlusInput) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t lanes : this->widths()) {
      const std::int64_t n = this->gso_.num_nodes();
      const auto x = this->random(n * lanes);
      const auto add = this->random(n * lanes);
      const auto re = this->random(lanes / 2);
      const auto im = this->random(lanes / 2);
      for (const bool with_add : {false, true}) {
        std::vector<T> y(x.size());
        SliceStep<T> step;
        step.a = this->gso_.template view<T>();
        step.lanes = lanes;
        step.x = x.data();
        step.add = with_add ? add.data() : nullptr;
        step.sigma_re = re.data();
        step.sigma_im = im.data();
        step.y = y.data();
        slice_step(step);
        std::vector<T> plain(x.size());
        step.sigma_re = step.sigma_im = nullptr;
        step.y = plain.data();
        slice_step(step);
        for (std::int64_t row = 0; row < n; ++row) {
          for (std::int64_t c = 0; c < lanes / 2; ++c) {
            std::complex<double> sum = 0.0;
            for (std::int64_t e = step.a.row_ptr[row]; e < step.a.row_ptr[row + 1]; ++e) {
              sum += static_cast<double>(step.a.value[e]) * this->at(x, lanes, step.a.col[e], c);
            }
            const auto input = with_add ? this->at(add, lanes, row, c) : 0.0;
            const std::complex<double> sigma(re[c], im[c]);
            ASSERT_LE(std::abs(this->at(y, lanes, row, c) - sigma * sum - input), this->kTolerance);
            ASSERT_LE(std::abs(this->at(plain, lanes, row, c) - sum - input), this->kTolerance);
          }
        }
      }
    }
  });
}

/// Bit by bit: a lane knows nothing of its neighbours.
TYPED_TEST(SliceTest, LanesOfSeveralOperatorsAreThoseOfEachAlone) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t lanes : this->widths()) {
      const std::int64_t n = this->gso_.num_nodes();
      const auto x = this->random(n * lanes);
      const auto other = this->random(n * lanes);
      const auto re = this->random(lanes / 2);
      const auto im = this->random(lanes / 2);
      const CsrView<T> a = this->gso_.template view<T>();
      std::vector<std::vector<T>> values = {{a.value, a.value + a.row_ptr[n]}};
      while (std::ssize(values) < kMostSliceOperators) values.push_back(this->random(a.row_ptr[n]));
      const auto side_by_side = [&](std::int64_t operators) {
        std::vector<T> all(a.row_ptr[n] * operators + kEntryReads);
        for (std::int64_t e = 0; e < a.row_ptr[n]; ++e) {
          for (std::int64_t k = 0; k < operators; ++k) all[e * operators + k] = values[k][e];
        }
        return all;
      };
      struct Result {
        std::vector<T> y, next;
        std::vector<double> grad_re, grad_im;
      };
      const auto run = [&](const std::vector<T>& first, const LaneOperators<T>& of_lanes) {
        Result result{std::vector<T>(x.size()), std::vector<T>(x.size()),
                      std::vector<double>(re.size()), std::vector<double>(re.size())};
        SliceStep<T> step;
        step.a = {a.num_rows, a.row_ptr, a.col, first.data()};
        step.of_lanes = of_lanes;
        step.lanes = lanes;
        step.x = x.data();
        step.sigma_re = re.data();
        step.sigma_im = im.data();
        step.y = result.y.data();
        slice_step(step);
        SliceAdjointStep<T> back;
        back.a_transposed = step.a;
        back.of_lanes = of_lanes;
        back.lanes = lanes;
        back.p = x.data();
        back.other = other.data();
        back.sigma_re = re.data();
        back.sigma_im = im.data();
        back.p_next = result.next.data();
        back.grad_re = result.grad_re.data();
        back.grad_im = result.grad_im.data();
        slice_adjoint_step(back);
        return result;
      };
      std::vector<Result> alone;
      for (const auto& each : values) alone.push_back(run(each, {}));
      for (std::int64_t second = 2; second < lanes; second += 2) {
        for (const std::int64_t third : {std::int64_t{0}, second + 2, lanes - 2}) {
          if (third != 0 && (third <= second || third >= lanes)) continue;
          const std::int64_t operators = third == 0 ? 2 : 3;
          const std::vector<T> all = side_by_side(operators);
          const Result got = run(
              {}, {.values = all.data(), .operators = operators, .first_lane = {second, third}});
          for (std::int64_t j = 0; j < lanes; ++j) {
            const Result& expected = alone[third != 0 && j >= third ? 2 : j >= second ? 1 : 0];
            for (std::int64_t row = 0; row < n; ++row) {
              ASSERT_EQ(got.y[row * lanes + j], expected.y[row * lanes + j]);
              ASSERT_EQ(got.next[row * lanes + j], expected.next[row * lanes + j]);
            }
            ASSERT_EQ(got.grad_re[j / 2], expected.grad_re[j / 2]);
            ASSERT_EQ(got.grad_im[j / 2], expected.grad_im[j / 2]);
          }
        }
      }
    }
  });
}

TYPED_TEST(SliceTest, AdjointStepIsWhatItsDeclarationSays) {
  using T = TypeParam;
  for_every_target([&] {
    for (const std::int64_t lanes : this->widths()) {
      const std::int64_t n = this->gso_.num_nodes();
      const auto p = this->random(n * lanes);
      const auto add = this->random(n * lanes);
      const auto other = this->random(n * lanes);
      const auto total_before = this->random(n * lanes);
      const auto re = this->random(lanes / 2);
      const auto im = this->random(lanes / 2);
      for (const int flags : {0, 1, 2, 4, 7}) {
        std::vector<T> next(p.size());
        auto total = total_before;
        std::vector<double> grad_re(lanes / 2, 0.5);
        std::vector<double> grad_im(lanes / 2, -0.5);
        SliceAdjointStep<T> step;
        step.a_transposed = this->gso_.template transpose_view<T>();
        step.lanes = lanes;
        step.p = p.data();
        step.add = (flags & 1) != 0 ? add.data() : nullptr;
        step.sigma_re = re.data();
        step.sigma_im = im.data();
        step.p_next = next.data();
        step.total = (flags & 2) != 0 ? total.data() : nullptr;
        step.other = (flags & 4) != 0 ? other.data() : nullptr;
        step.grad_re = grad_re.data();
        step.grad_im = grad_im.data();
        step.weight = 3.0;
        slice_adjoint_step(step);
        std::vector<std::complex<double>> grad(lanes / 2);
        for (std::int64_t row = 0; row < n; ++row) {
          for (std::int64_t c = 0; c < lanes / 2; ++c) {
            std::complex<double> q = 0.0;
            const auto& a = step.a_transposed;
            for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
              q += static_cast<double>(a.value[e]) * this->at(p, lanes, a.col[e], c);
            }
            const std::complex<double> sigma(re[c], im[c]);
            const auto expected =
                std::conj(sigma) * q + ((flags & 1) != 0 ? this->at(add, lanes, row, c) : 0.0);
            ASSERT_LE(std::abs(this->at(next, lanes, row, c) - expected), this->kTolerance);
            const auto gained =
                this->at(total, lanes, row, c) - this->at(total_before, lanes, row, c);
            ASSERT_LE(std::abs(gained - ((flags & 2) != 0 ? expected : 0.0)), this->kTolerance);
            grad[c] += 3.0 * q * std::conj(this->at(other, lanes, row, c));
          }
        }
        for (std::int64_t c = 0; c < lanes / 2; ++c) {
          const std::complex<double> actual(grad_re[c] - 0.5, grad_im[c] + 0.5);
          const auto expected = (flags & 4) != 0 ? grad[c] : 0.0;
          EXPECT_LE(std::abs(actual - expected), 300 * this->kTolerance);
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
