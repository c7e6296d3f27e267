// SPDX-License-Identifier: MIT
// Kernels side by side: threads with fixed shares of rows or slices give what one call gives.
// `./dev sanitize` runs this under the thread sanitizer. A counter that hands out tasks would order
// the threads for it and hide a race, hence fixed shares. With MPSSM_PLANTED_RACE set, the shares
// overlap by one: every test must then be caught, or the sanitizer sees nothing.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/kernels/dropout.h"
#include "mpssm/kernels/entry_grad.h"
#include "mpssm/kernels/gelu.h"
#include "mpssm/kernels/geometric_series.h"
#include "mpssm/kernels/layer_norm.h"
#include "mpssm/kernels/matmul.h"
#include "mpssm/kernels/mode_scan.h"
#include "mpssm/kernels/recurrence.h"
#include "mpssm/kernels/spmm.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

constexpr std::int64_t kThreads = 3;
constexpr std::int64_t kRows = 61;
constexpr std::int64_t kWidth = 13;  // rows do not begin at cache lines or vectors
constexpr std::int64_t kTasks = 6;   // for sums that are kept per task

/// task(begin, end) on each of three threads, which share [0, count) out between them.
template <typename Task>
void in_shares(std::int64_t count, const Task& task) {
  const std::int64_t overlap = std::getenv("MPSSM_PLANTED_RACE") == nullptr ? 0 : 1;
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(task, count * i / kThreads,
                         std::min(count, count * (i + 1) / kThreads + overlap));
  }
  for (std::thread& thread : threads) thread.join();
}

/// compute(out, begin, end) fills its part of `out`, which starts as zeros.
template <typename T, typename Compute>
void expect_same_bits(std::int64_t size, std::int64_t count, const Compute& compute) {
  for_every_target([&] {
    std::vector<T> serial(static_cast<std::size_t>(size));
    compute(serial.data(), std::int64_t{0}, count);
    std::vector<T> shared(serial.size());
    in_shares(count,
              [&](std::int64_t begin, std::int64_t end) { compute(shared.data(), begin, end); });
    EXPECT_EQ(shared, serial);
  });
}

template <typename T>
class Threads : public ::testing::Test {
 protected:
  std::vector<T> random(std::int64_t count) {
    std::vector<T> out(static_cast<std::size_t>(count));
    for (T& value : out) {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1.0, 1.0)(generator_));
    }
    return out;
  }
  static std::int64_t first_row(std::int64_t task) { return kRows * task / kTasks; }

  /// Row i has 1 + i % 5 entries.
  CsrView<T> matrix() {
    row_ptr_.assign(1, 0);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t e = 0; e <= row % 5; ++e) {
        col_.push_back(static_cast<std::int32_t>((row * 17 + e * 23) % kRows));
      }
      row_ptr_.push_back(std::ssize(col_));
    }
    value_ = random(std::ssize(col_));
    return {kRows, row_ptr_.data(), col_.data(), value_.data()};
  }

  std::mt19937 generator_{1};

 private:
  std::vector<std::int64_t> row_ptr_;
  std::vector<std::int32_t> col_;
  std::vector<T> value_;
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Threads, Reals);

TYPED_TEST(Threads, ShareTheRowsOfSpmm) {
  using T = TypeParam;
  const CsrView<T> a = this->matrix();
  const auto x = this->random(kRows * kWidth);
  const auto add = this->random(kRows * kWidth);
  expect_same_bits<T>(kRows * kWidth, kRows, [&](T* y, std::int64_t begin, std::int64_t end) {
    spmm(SpmmArgs<T>{a, x.data(), kWidth, add.data(), kWidth, y, kWidth, kWidth}, begin, end);
  });
}

TYPED_TEST(Threads, ShareTheRowsOfTheGradientOfEntries) {
  using T = TypeParam;
  const CsrView<T> a = this->matrix();
  const auto x = this->random(kRows * kWidth);
  const auto g = this->random(kRows * kWidth);
  expect_same_bits<T>(a.row_ptr[kRows], kRows, [&](T* grad, std::int64_t begin, std::int64_t end) {
    spmm_value_grad(SpmmValueGradArgs<T>{a, g.data(), kWidth, x.data(), kWidth, grad, kWidth},
                    begin, end);
  });
}

TYPED_TEST(Threads, ShareTheSlicesOfTheRecurrence) {
  using T = TypeParam;
  const CsrView<T> a = this->matrix();
  constexpr std::int64_t kLanes = kMinSliceLanes;
  constexpr std::int64_t kSlices = 5;
  constexpr std::int64_t kChannels = kSlices * kLanes - 6;  // the last slice is mostly padding
  const auto input = this->random(kRows * kChannels);
  const auto re = this->random(kSlices * kLanes / 2);
  const auto im = this->random(kSlices * kLanes / 2);
  expect_same_bits<T>(
      kRows * kChannels, kSlices, [&](T* out, std::int64_t begin, std::int64_t end) {
        std::vector<T> x(kRows * kLanes);
        std::vector<T> y(x.size());
        for (std::int64_t slice = begin; slice < end; ++slice) {
          const std::int64_t width = std::min(kLanes, kChannels - slice * kLanes);
          pack_slice(input.data() + slice * kLanes, kChannels, kRows, width, kLanes, x.data());
          SliceStep<T> step;
          step.a = a;
          step.lanes = kLanes;
          step.x = step.add = x.data();
          step.sigma_re = re.data() + slice * kLanes / 2;
          step.sigma_im = im.data() + slice * kLanes / 2;
          step.y = y.data();
          slice_step(step);
          unpack_slice(y.data(), kRows, width, kLanes, out + slice * kLanes, kChannels);
        }
      });
}

TYPED_TEST(Threads, ShareTheSlicesOfTheAdjointRecurrence) {
  using T = TypeParam;
  const CsrView<T> a = this->matrix();
  constexpr std::int64_t kLanes = kMinSliceLanes;
  constexpr std::int64_t kSlices = 5;
  constexpr std::int64_t kSize = kRows * kLanes;
  const auto p = this->random(kSlices * kSize);
  const auto other = this->random(kSlices * kSize);
  const auto re = this->random(kSlices * kLanes / 2);
  const auto im = this->random(kSlices * kLanes / 2);
  // Three outputs per slice: p_next, total, and the gradient of sigma as numbers of type T.
  constexpr std::int64_t kOut = 2 * kSize + kLanes;
  expect_same_bits<T>(kSlices * kOut, kSlices, [&](T* out, std::int64_t begin, std::int64_t end) {
    for (std::int64_t slice = begin; slice < end; ++slice) {
      std::vector<double> grad(kLanes);
      SliceAdjointStep<T> step;
      step.a_transposed = a;
      step.lanes = kLanes;
      step.p = p.data() + slice * kSize;
      step.sigma_re = re.data() + slice * kLanes / 2;
      step.sigma_im = im.data() + slice * kLanes / 2;
      step.p_next = out + slice * kOut;
      step.total = step.p_next + kSize;
      step.other = other.data() + slice * kSize;
      step.grad_re = grad.data();
      step.grad_im = grad.data() + kLanes / 2;
      slice_adjoint_step(step);
      std::copy(grad.begin(), grad.end(), step.total + kSize);
    }
  });
}

TYPED_TEST(Threads, ShareTheSlicesOfTheGradientOfEntries) {
  using T = TypeParam;
  const CsrView<T> a = this->matrix();
  constexpr std::int64_t kLanes = kMinSliceLanes;
  constexpr std::int64_t kSlices = 5;
  const std::int64_t entries = a.row_ptr[kRows];
  const auto p = this->random(kSlices * kRows * kLanes);
  const auto x = this->random(kSlices * kRows * kLanes);
  const auto re = this->random(kLanes / 2);
  const auto im = this->random(kLanes / 2);
  expect_same_bits<T>(
      kSlices * entries, kSlices, [&](T* out, std::int64_t begin, std::int64_t end) {
        for (std::int64_t slice = begin; slice < end; ++slice) {
          slice_entry_grad(SliceEntryGrad<T>{a, kLanes, p.data() + slice * kRows * kLanes,
                                             x.data() + slice * kRows * kLanes, re.data(),
                                             im.data(), out + slice * entries});
        }
      });
}

TYPED_TEST(Threads, ShareTheRowsOfMatmul) {
  using T = TypeParam;
  constexpr std::int64_t kInner = 11;
  const auto x = this->random(kRows * kInner);
  const auto w = this->random(kInner * kWidth);
  const auto bias = this->random(kWidth);
  std::vector<T> packed(packed_size(kInner, kWidth));
  pack_matrix(Transpose::kNo, w.data(), kInner, kWidth, packed.data());
  expect_same_bits<T>(kRows * kWidth, kRows, [&](T* y, std::int64_t begin, std::int64_t end) {
    matmul(MatmulArgs<T>{.inner = kInner,
                         .columns = kWidth,
                         .x = x.data(),
                         .x_layout = {kInner, 0},
                         .packed = packed.data(),
                         .add = bias.data(),
                         .add_is_bias = true,
                         .y = y,
                         .y_layout = {kWidth, 0}},
           begin, end);
  });
}

TYPED_TEST(Threads, ShareTheTasksOfATransposedMatmul) {
  using T = TypeParam;
  constexpr std::int64_t kColumns = 2 * kPanelColumns;  // whole panels, as the kernel wants them
  const auto x = this->random(kRows * kColumns);
  const auto g = this->random(kRows * kColumns);
  constexpr std::int64_t kSize = kColumns * kColumns;
  expect_same_bits<T>(kTasks * kSize, kTasks, [&](T* sums, std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      matmul_transposed(MatmulTransposedArgs<T>{.left = kColumns,
                                                .right = kColumns,
                                                .x = x.data(),
                                                .x_layout = {kColumns, 0},
                                                .g = g.data(),
                                                .g_layout = {kColumns, 0},
                                                .sum = sums + task * kSize},
                        this->first_row(task), this->first_row(task + 1));
    }
  });
}

TYPED_TEST(Threads, ShareTheTasksOfLayerNormAndItsAdjoint) {
  using T = TypeParam;
  const auto x = this->random(kRows * kWidth);
  const auto grad = this->random(kRows * kWidth);
  const auto scale = this->random(kWidth);
  const auto shift = this->random(kWidth);
  // y, grad_x, mean, inverse by rows; the gradients of scale and shift by tasks.
  constexpr std::int64_t kSize = kRows * kWidth;
  expect_same_bits<T>(2 * kSize + 2 * kRows + 2 * kTasks * kWidth, kTasks,
                      [&](T* out, std::int64_t begin, std::int64_t end) {
                        LayerNormArgs<T> args;
                        args.width = kWidth;
                        args.x = x.data();
                        args.scale = scale.data();
                        args.mean = out + 2 * kSize;
                        args.inverse = args.mean + kRows;
                        T* const sums = args.inverse + kRows;
                        for (std::int64_t task = begin; task < end; ++task) {
                          const std::int64_t first = this->first_row(task);
                          const std::int64_t last = this->first_row(task + 1);
                          layer_norm(args, shift.data(), out, first, last);
                          layer_norm_adjoint(args, grad.data(), out + kSize,
                                             sums + 2 * task * kWidth,
                                             sums + (2 * task + 1) * kWidth, first, last);
                        }
                      });
}

TYPED_TEST(Threads, ShareTheNumbersOfDropout) {
  using T = TypeParam;
  const auto x = this->random(kRows * kWidth);
  expect_same_bits<T>(kRows * kWidth, kRows * kWidth,
                      [&](T* y, std::int64_t begin, std::int64_t end) {
                        dropout(x.data() + begin, y + begin, end - begin,
                                static_cast<std::uint64_t>(begin), 7, 0.25);
                      });
}

TEST(ThreadsOfGelu, ShareItsNumbers) {
  std::vector<float> x(kRows * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i) - 4.0F;
  const auto size = static_cast<std::int64_t>(x.size());
  expect_same_bits<float>(2 * size, size, [&](float* out, std::int64_t begin, std::int64_t end) {
    gelu(x.data(), out, begin, end);
    gelu_adjoint(x.data(), x.data(), out + size, begin, end);
  });
}

TYPED_TEST(Threads, ShareTheRowsOfModeScanAndItsAdjoint) {
  using T = TypeParam;
  constexpr std::int64_t kSteps = 4;
  constexpr std::int64_t kChannels = 5;
  constexpr std::int64_t kSize = kSteps * kRows * 2 * kChannels;
  const std::vector<double> lambda(kRows, 0.7);
  const std::vector<double> re(kChannels, 0.6);
  const std::vector<double> im(kChannels, -0.3);
  const auto v = this->random(kSize);
  const auto grad = this->random(kSize);
  const auto initial = this->random(kRows * 2 * kChannels);
  const auto copy_rows = [](const std::vector<T>& from, T* to, std::int64_t begin,
                            std::int64_t end) {
    constexpr std::int64_t kRow = 2 * kChannels;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      std::copy(from.begin() + (t * kRows + begin) * kRow, from.begin() + (t * kRows + end) * kRow,
                to + (t * kRows + begin) * kRow);
    }
  };
  expect_same_bits<T>(2 * kSize + kRows * 2 * kChannels, kRows,
                      [&](T* out, std::int64_t begin, std::int64_t end) {
                        std::vector<T> scratch(2 * kChannels);
                        std::vector<double> grad_re(kChannels);
                        std::vector<double> grad_im(kChannels);
                        ModeScanArgs<T> args;
                        args.num_steps = kSteps;
                        args.rows = kRows;
                        args.channels = kChannels;
                        args.lambda = lambda.data();
                        args.sigma_re = re.data();
                        args.sigma_im = im.data();
                        args.initial = initial.data();
                        args.scratch = scratch.data();
                        copy_rows(v, out, begin, end);
                        mode_scan(args, out, begin, end);
                        copy_rows(grad, out + kSize, begin, end);
                        mode_scan_adjoint(args, out, out + kSize, out + 2 * kSize, grad_re.data(),
                                          grad_im.data(), begin, end);
                      });
}

TYPED_TEST(Threads, ShareTheRowsOfModeSeriesAndItsAdjoint) {
  using T = TypeParam;
  constexpr std::int64_t kChannels = 5;
  constexpr std::int64_t kSize = kRows * 2 * kChannels;
  const std::vector<double> lambda(kRows, 0.7);
  const std::vector<double> re(kChannels, 0.6);
  const std::vector<double> im(kChannels, -0.3);
  const auto input = this->random(kSize);
  const auto initial = this->random(kSize);
  const auto grad = this->random(kSize);
  expect_same_bits<T>(3 * kSize, kRows, [&](T* out, std::int64_t begin, std::int64_t end) {
    std::vector<double> scratch(static_cast<std::size_t>(mode_series_scratch(kChannels)));
    std::vector<double> grad_re(kChannels);
    std::vector<double> grad_im(kChannels);
    ModeSeriesArgs<T> args;
    args.num_steps = 9;
    args.channels = kChannels;
    args.batch_stride = kSize;
    args.lambda = lambda.data();
    args.sigma_re = re.data();
    args.sigma_im = im.data();
    args.input = input.data();
    args.initial = initial.data();
    args.scratch = scratch.data();
    mode_series(args, out, begin, end);
    mode_series_adjoint(args, grad.data(), out + kSize, out + 2 * kSize, grad_re.data(),
                        grad_im.data(), begin, end);
  });
}

}  // namespace
}  // namespace mpssm::kernels
