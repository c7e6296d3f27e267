// SPDX-License-Identifier: MIT
// Plan diagonal on slices of bfloat16: constant input, last output, no X(0).
//
// Forward, X(T) = sum_(i<T) sigma^i A^i C by doubling,
//   S(2m) = S(m) + sigma^m A^m S(m),   S(m+1) = C + sigma A S(m):
// as many products with A as the loop X(t+1) = sigma A X(t) + C, but sums of log T terms of like
// size. The loop would add a small C to a large X that has 8 bits, and stand still after a few
// hundred steps; and a vector that is multiplied with a sigma of 0.999 and rounded, hop by hop,
// would not shrink. So A^m S travels without sigma, whose power comes in with the last hop.
//
// Backward as in diagonal.cpp, P(i) = conj(sigma)^i R(i): R(i) = A'^i G travels, and P is summed in
// float. Of C a rounded copy is kept.
//
// A^m and sigma^m are formed apart: where one of them leaves the range, as with plan doubling, the
// call goes to plan stepwise, in float32.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <vector>

#include "mpssm/engine/plans.h"
#include "mpssm/engine/power_chain.h"
#include "mpssm/engine/slice_operator.h"
#include "mpssm/engine/slicing.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/recurrence_bf16.h"

namespace mpssm::engine {
namespace {

using kernels::Bf16;

/// A complex number for every complex channel of a slice, in double and as kernels read it; zero in
/// the padding.
struct SlicePower {
  static constexpr std::int64_t kMost = kernels::kMaxSliceLanes<Bf16> / 2;
  double re[kMost] = {};
  double im[kMost] = {};
  float rounded_re[kMost] = {};
  float rounded_im[kMost] = {};

  void set(std::int64_t c, std::complex<double> power) {
    re[c] = power.real();
    im[c] = power.imag();
    rounded_re[c] = static_cast<float>(power.real());
    rounded_im[c] = static_cast<float>(power.imag());
  }
  std::complex<double> at(std::int64_t c) const { return {re[c], im[c]}; }
};

constexpr float kLargest = 1.8e19f;  // about the square root of the largest float

bool in_range(const Bf16* numbers, std::int64_t count) {
  const std::uint16_t limit = kernels::to_bf16(kLargest).bits;
  int outside = 0;
  for (std::int64_t i = 0; i < count; ++i) outside |= (numbers[i].bits & 0x7fff) <= limit ? 0 : 1;
  return outside == 0;
}

/// Slices for every worker.
struct SliceRoom {
  Slicing slicing;
  std::int64_t size;  // of the widest slice
  Bf16* slices;       // [workers][slices_each][N][lanes]
  float* totals;      // [workers][N][lanes]

  SliceRoom(const RecurrenceCall& call, std::int64_t workers, std::int64_t slices_each,
            bool with_total, Workspace& workspace)
      : slicing(Slicing::make<Bf16>(call.shape, workers)),
        size(call.shape.num_nodes() * slicing.lanes) {
    const bool shared = worth_sharing(call.shape.batch * slicing.count(), slice_work(call.shape));
    const std::int64_t owners = shared ? workers : 1;
    slices = workspace.take<Bf16>(owners * slices_each * size);
    totals = workspace.take<float>(with_total ? owners * size : 0);
  }
};

struct Bf16ForwardBuffers {
  static constexpr std::int64_t kSlices = 4;  // C, S, and two that take turns
  SliceRoom room;

  Bf16ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : room(call, workers, kSlices, false, workspace) {}
};

struct Bf16BackwardBuffers {
  static constexpr std::int64_t kSlices = 3;  // two R that take turns, C
  SliceRoom room;
  double* grad_re;  // of sigma: [batch][half]
  double* grad_im;

  Bf16BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : room(call, workers, kSlices, call.wanted.input, workspace),
        grad_re(workspace.take<double>(sums(call))),
        grad_im(workspace.take<double>(sums(call))) {}
  std::int64_t sums(const RecurrenceCall& call) const {
    return call.wanted.w_state ? call.shape.batch * room.slicing.half : 0;
  }
};

/// C, rounded: [B, N, C].
std::int64_t rounded_input(const RecurrenceCall& call) {
  return call.wanted.w_state ? (call.shape.state() + 1) / 2 : 0;
}

/// Where a slice of [B, N, C] begins, how wide it is, and its part of sigma.
struct SlicePlace {
  std::int64_t begin;  // in the array
  std::int64_t width;  // real channels
  std::int64_t lanes;
  std::int64_t size;      // numbers of the slice
  std::int64_t grad_row;  // where its sums are in those of sigma's gradient
  std::int64_t group;
  SlicePower sigma;

  SlicePlace(const RecurrenceShape& shape, const float* sigma_in, const Slicing& slicing,
             std::int64_t task, bool conjugate) {
    const ChannelSlice& slice = slicing.of_task(task);
    const std::int64_t batch = task / slicing.count();
    const std::int64_t first = slice.begin;
    begin = batch * shape.block() + first;
    width = slice.width;
    lanes = slice.lanes;
    size = shape.num_nodes() * lanes;
    grad_row = batch * slicing.half + slice.half;
    group = slice.group;
    for (std::int64_t c = 0; c < width / 2; ++c) {
      const std::complex<double> value(sigma_in[first + 2 * c], sigma_in[first + 2 * c + 1]);
      sigma.set(c, conjugate ? std::conj(value) : value);
    }
  }
};

/// Powers of conj(sigma), and what sigma^hop has as derivative, hop conj(sigma)^(hop - 1): found
/// one after the other, and there for as many hops as are under way at once.
class AdjointFactors {
 public:
  /// Of a place with conj(sigma).
  explicit AdjointFactors(const SlicePlace& place) : place_(place) {
    for (std::int64_t c = 0; c < place.width / 2; ++c) powers_[0].set(c, 1.0);
  }
  const SlicePower& power(std::int64_t hop) {
    for (; last_ < hop; ++last_) {
      const SlicePower& before = powers_[last_ % kKept];
      for (std::int64_t c = 0; c < place_.width / 2; ++c) {
        powers_[(last_ + 1) % kKept].set(c, before.at(c) * place_.sigma.at(c));
        weights_[(last_ + 1) % kKept].set(c, static_cast<double>(last_ + 1) * before.at(c));
      }
    }
    return powers_[hop % kKept];
  }
  const SlicePower& weight(std::int64_t hop) const { return weights_[hop % kKept]; }

 private:
  static constexpr std::int64_t kKept = HopWaves::kMost + 1;
  const SlicePlace& place_;
  std::int64_t last_ = 0;
  SlicePower powers_[kKept];
  SlicePower weights_[kKept];
};

/// S of one slice, move by move.
class SliceDoubling {
 public:
  /// `slices`: room for kSlices of them, the first of which is C.
  SliceDoubling(const SlicePlace& place, const SliceOperator<float>& op, Bf16* slices)
      : place_(place), op_(op), c_(slices), s_(slices) {}
  const Bf16* state() const { return s_; }

  bool run(const std::vector<Doubling>& recipe) {
    for (const Doubling& doubling : recipe) {
      if (!advance(doubling.hops, s_)) return false;
      if (doubling.then_increment && !advance(1, c_)) return false;
    }
    return true;
  }

 private:
  /// S = base + sigma^hops A^hops S. False if a factor leaves the range.
  bool advance(std::int64_t hops, const Bf16* base) {
    SlicePower power;
    for (std::int64_t c = 0; c < place_.width / 2; ++c) {
      power.set(c, power_of(place_.sigma.at(c), hops));
      if (!(std::abs(power.at(c)) <= kLargest)) return false;
    }
    Bf16* const one = unused(nullptr);
    Bf16* const targets[2] = {one, unused(one)};
    kernels::Bf16SliceStep step;
    step.a = op_.a;
    step.lanes = place_.lanes;
    const auto target_of = [&](std::int64_t hop) { return targets[hop % 2]; };
    op_.waves(hops - 1, [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
      step.x = hop == 0 ? s_ : target_of(hop - 1);
      step.y = target_of(hop);
      kernels::slice_step(rows_of(step, first, count));
    });
    step.x = hops == 1 ? s_ : target_of(hops - 2);
    if (hops > 1 && !in_range(step.x, place_.size)) return false;
    step.y = target_of(hops - 1);
    step.add = base;
    step.sigma_re = power.rounded_re;
    step.sigma_im = power.rounded_im;
    kernels::slice_step(step);
    s_ = step.y;
    return true;
  }
  /// A slice that holds neither C, nor S, nor is `taken`.
  Bf16* unused(const Bf16* taken) const {
    Bf16* slice = c_ + place_.size;
    while (slice == s_ || slice == taken) slice += place_.size;
    return slice;
  }

  const SlicePlace& place_;
  const SliceOperator<float>& op_;
  Bf16* c_;
  const Bf16* s_;
};

bool run_forward_bf16(const RecurrenceCall& call, const RecurrenceInputs<float>& in, float* output,
                      float* saved, Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const Bf16ForwardBuffers buffers(call, executor.workers(), workspace);
  const Slicing& slicing = buffers.room.slicing;
  const std::vector<SliceOperator<float>> operators = slice_operators<float>(shape);
  const std::vector<Doubling> recipe = recipe_for(shape.num_steps);
  Bf16* const kept = call.wanted.w_state ? reinterpret_cast<Bf16*>(saved) : nullptr;
  if (kept != nullptr) {
    for_numbers(executor, shape.state(), [&](std::int64_t begin, std::int64_t end) {
      kernels::round_numbers(in.input + begin, end - begin, kept + begin);
    });
  }
  if (recipe.empty()) {
    copy_numbers(in.input, shape.state(), output, executor);
    return true;
  }
  std::atomic<bool> inside{true};
  run_tasks(executor, shape.batch * slicing.count(), slice_work(shape),
            [&](std::int64_t task, std::int64_t worker) {
              const SlicePlace place(shape, in.w_state, slicing, task, /*conjugate=*/false);
              const SliceOperator<float>& op = operators[place.group];
              Bf16* const c =
                  buffers.room.slices + worker * Bf16ForwardBuffers::kSlices * buffers.room.size;
              if (kept != nullptr) {
                kernels::copy_slice(kept + place.begin, shape.channels, shape.num_nodes(),
                                    place.width, place.lanes, c, op.node);
              } else {
                kernels::pack_slice(in.input + place.begin, shape.channels, shape.num_nodes(),
                                    place.width, place.lanes, c, op.node);
              }
              SliceDoubling doubling(place, op, c);
              if (!doubling.run(recipe)) {
                inside = false;
                return;
              }
              kernels::unpack_slice(doubling.state(), shape.num_nodes(), place.width, place.lanes,
                                    output + place.begin, shape.channels, op.place);
            });
  return inside;
}

void run_backward_bf16(const RecurrenceCall& call, const RecurrenceKept<float>& kept,
                       const float* grad, const RecurrenceGradients<float>& out,
                       Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const Bf16BackwardBuffers buffers(call, executor.workers(), workspace);
  const Slicing& slicing = buffers.room.slicing;
  const bool wants_sigma = out.w_state != nullptr;
  std::fill_n(buffers.grad_re, wants_sigma ? buffers.sums(call) : 0, 0.0);
  std::fill_n(buffers.grad_im, wants_sigma ? buffers.sums(call) : 0, 0.0);
  const std::vector<SliceOperator<float>> operators = slice_operators<float>(shape);
  const auto* const input = reinterpret_cast<const Bf16*>(kept.saved);
  run_tasks(executor, shape.batch * slicing.count(), slice_work(shape),
            [&](std::int64_t task, std::int64_t worker) {
              const SlicePlace place(shape, kept.inputs.w_state, slicing, task, /*conjugate=*/true);
              const SliceOperator<float>& op = operators[place.group];
              const std::int64_t size = place.size;
              Bf16* const states =
                  buffers.room.slices + worker * Bf16BackwardBuffers::kSlices * buffers.room.size;
              Bf16* const other = states + 2 * size;
              float* const total =
                  out.input == nullptr ? nullptr : buffers.room.totals + worker * buffers.room.size;
              kernels::Bf16SliceAdjointStep step;
              step.a_transposed = op.a_transposed;
              step.lanes = place.lanes;
              if (wants_sigma) {
                kernels::copy_slice(input + place.begin, shape.channels, shape.num_nodes(),
                                    place.width, place.lanes, other, op.node);
                step.other = other;
                step.grad_re = buffers.grad_re + place.grad_row;
                step.grad_im = buffers.grad_im + place.grad_row;
              }
              if (total != nullptr) std::fill(total, total + size, 0.0f);
              kernels::pack_slice(grad + place.begin, shape.channels, shape.num_nodes(),
                                  place.width, place.lanes, states, op.node);
              AdjointFactors factors(place);
              Bf16* const targets[2] = {states + size, states};
              const std::int64_t hops = shape.num_steps - 1;
              op.waves(hops, [&](std::int64_t index, std::int64_t first, std::int64_t count) {
                const std::int64_t hop = index + 1;
                const SlicePower& before = factors.power(hop - 1);
                const SlicePower& now = factors.power(hop);
                const SlicePower& weight = factors.weight(hop);
                step.r = targets[(index + 1) % 2];
                step.r_next = targets[index % 2];
                // P(1) + P(2) at the second hop, and so on; the last one alone if it is left over.
                const bool is_second = hop % 2 == 0;
                step.total = is_second || hop == hops ? total : nullptr;
                step.factor_re = now.rounded_re;
                step.factor_im = now.rounded_im;
                step.before = is_second ? step.r : nullptr;
                step.before_re = before.rounded_re;
                step.before_im = before.rounded_im;
                step.weight_re = weight.re;
                step.weight_im = weight.im;
                kernels::slice_adjoint_step(rows_of(step, first, count));
              });
              if (total == nullptr) return;
              kernels::unpack_total(total, shape.num_nodes(), place.width, place.lanes,
                                    grad + place.begin, out.input + place.begin, shape.channels,
                                    op.place);
            });
  if (wants_sigma) {
    gather_sigma(buffers.grad_re, buffers.grad_im, shape, slicing, out.w_state);
  }
}

}  // namespace

PlanFunctions<float> diagonal_bf16_plan() {
  return {nothing_read,
          rounded_input,
          bytes_of<Bf16ForwardBuffers>,
          bytes_of<Bf16BackwardBuffers>,
          run_forward_bf16,
          run_backward_bf16};
}

}  // namespace mpssm::engine
