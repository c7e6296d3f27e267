// SPDX-License-Identifier: MIT
// Plan doubling: constant input, dense W, last output. Over the bits of T, from the highest down,
//   double:    S(2m)  = S(m) + (A^m S(m)) W^m,   W^(2m)  = W^m W^m
//   increment: S(m+1) = C + (A S(m)) W,          W^(m+1) = W^m W
// so that S(T) costs T - 1 products with A, which run m at a time in cache, and O(log T) with W.
// Both are S' = base + (A^h S) V with V a power of W. Backward, with H = (A')^h G:
//   grad S = H V' (+ G when the base is S),   grad V = S' H,   grad C += G when the base is C,
// so only the S before each move are kept.
#include <bit>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/recurrence.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/plans.h"

namespace mpssm::ops {
namespace {

/// out[b] = A^hops x[b]; slices of channels make all hops in cache.
template <typename T>
void power_into(const kernels::CsrView<T>& matrix, const at::Tensor& x, std::int64_t hops,
                const at::Tensor& out) {
  if (hops == 1) return spmm_into<T>(matrix, x, {}, out);
  const std::int64_t n = x.size(1);
  const std::int64_t channels = x.size(2);
  const std::int64_t lanes = kernels::kMaxSliceLanes<T>;
  const std::int64_t slices = (channels + lanes - 1) / lanes;
  const std::int64_t work =
      x.numel() * hops * (1 + matrix.row_ptr[n] / std::max<std::int64_t>(n, 1));
  const T* from = x.data_ptr<T>();
  T* to = out.data_ptr<T>();
  run_tasks(x.size(0) * slices, work, [&](std::int64_t task) {
    const std::int64_t begin = task % slices * lanes;
    const std::int64_t width = std::min(lanes, channels - begin);
    const std::int64_t block = task / slices * n * channels + begin;
    T* buffers[2] = {thread_scratch<T>(2 * n * lanes), nullptr};
    buffers[1] = buffers[0] + n * lanes;
    kernels::pack_slice(kernels::SliceLayout::kReal, from + block, channels, n, width, lanes,
                        buffers[0]);
    kernels::SliceStep<T> step;
    step.a = matrix;
    step.lanes = lanes;
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      step.x = buffers[hop % 2];
      step.y = buffers[(hop + 1) % 2];
      kernels::slice_step(step);
    }
    kernels::unpack_slice(kernels::SliceLayout::kReal, buffers[hops % 2], n, width, lanes,
                          to + block, channels);
  });
}

/// One line of the recipe for T: S' = base + (A^hops S) W^hops.
struct Move {
  bool doubles = false;  // base is S, else C
  std::int64_t hops = 1;
};

std::vector<Move> moves_for(std::int64_t num_steps) {
  std::vector<Move> moves;
  std::int64_t m = 1;
  for (int bit = 62 - std::countl_zero(static_cast<std::uint64_t>(num_steps)); bit >= 0; --bit) {
    moves.push_back({.doubles = true, .hops = m});
    m *= 2;
    if ((num_steps >> bit & 1) != 0) {
      moves.push_back({.doubles = false, .hops = 1});
      m += 1;
    }
  }
  return moves;
}

at::Tensor rows(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// W^m for the m of each doubling, in order, with m = 1 first.
std::vector<at::Tensor> powers_for(const at::Tensor& w, const std::vector<Move>& moves) {
  std::vector<at::Tensor> powers;
  at::Tensor power = w;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (!moves[i].doubles) continue;
    powers.push_back(power);
    const bool last = i + 1 == moves.size() || (i + 2 == moves.size() && !moves[i + 1].doubles);
    if (last) break;
    power = at::mm(power, power);
    if (!moves[i + 1].doubles) power = at::mm(power, w);
  }
  return powers;
}

/// With `kept`, S before each move goes there and is left alone; without, S is updated in place.
template <typename T>
at::Tensor forward(const ProblemShape& shape, const at::Tensor& input, const at::Tensor& w,
                   std::vector<at::Tensor>* kept) {
  const std::vector<Move> moves = moves_for(shape.num_steps);
  const std::vector<at::Tensor> powers = powers_for(w, moves);
  const auto a = shape.gso.view<T>();
  at::Tensor s = input;
  at::Tensor moved = moves.empty() ? at::Tensor() : at::empty_like(input);
  std::size_t doublings = 0;
  for (const Move& move : moves) {
    power_into<T>(a, s, move.hops, moved);
    const at::Tensor& v = move.doubles ? powers[doublings++] : w;
    if (kept != nullptr) kept->push_back(s);
    const at::Tensor base = move.doubles ? s : input;
    if (kept != nullptr || s.is_same(input)) s = at::empty_like(input);
    matmul_into(moved, v, kernels::Transpose::kNo, base, s);
  }
  return s;
}

struct Gradients {
  at::Tensor input;
  at::Tensor w;
};

template <typename T>
Gradients backward(const ProblemShape& shape, const at::Tensor& grad, const at::Tensor& w,
                   const std::vector<at::Tensor>& kept, bool wants_w) {
  const std::vector<Move> moves = moves_for(shape.num_steps);
  const std::vector<at::Tensor> powers = powers_for(w, moves);
  const auto a_transposed = shape.gso.transpose_view<T>();
  std::vector<at::Tensor> grad_powers(powers.size());
  at::Tensor grad_w = wants_w ? at::zeros_like(w) : at::Tensor();
  at::Tensor grad_input;  // of C through the increments
  at::Tensor g = grad;
  at::Tensor h = at::empty_like(grad);
  std::size_t doublings = powers.size();
  for (std::size_t i = moves.size(); i-- > 0;) {
    power_into<T>(a_transposed, g, moves[i].hops, h);
    if (moves[i].doubles) --doublings;
    const at::Tensor& v = moves[i].doubles ? powers[doublings] : w;
    if (wants_w) {
      if (moves[i].doubles) {
        grad_powers[doublings] = at::mm(rows(kept[i]).t(), rows(h));
      } else {
        grad_w.addmm_(rows(kept[i]).t(), rows(h));
      }
    }
    if (!moves[i].doubles) grad_input = grad_input.defined() ? grad_input.add_(g) : g.clone();
    const at::Tensor base = moves[i].doubles ? g : at::Tensor();
    if (g.is_same(grad)) g = at::empty_like(grad);  // the first g is the caller's
    matmul_into(h, v, kernels::Transpose::kYes, base, g);
  }
  // S(1) = C.
  Gradients out;
  out.input = grad_input.defined() ? grad_input.add_(g) : g;
  if (!wants_w) return out;

  // Down the chain of powers: next = P P or next = P P W.
  at::Tensor grad_next;  // gradient of the power one doubling later
  for (std::size_t j = powers.size(); j-- > 0;) {
    at::Tensor grad_power = grad_powers[j];
    if (grad_next.defined()) {
      const at::Tensor& p = powers[j];
      // Which form the next power has: an increment follows doubling j or not.
      std::size_t position = 0;
      for (std::size_t seen = 0; position < moves.size(); ++position) {
        if (moves[position].doubles && seen++ == j) break;
      }
      at::Tensor grad_square = grad_next;
      if (!moves[position + 1].doubles) {
        grad_w.addmm_(at::mm(p, p).t(), grad_next);
        grad_square = at::mm(grad_next, w.t());
      }
      grad_power.addmm_(grad_square, p.t()).addmm_(p.t(), grad_square);
    }
    grad_next = grad_power;
  }
  if (grad_next.defined()) grad_w.add_(grad_next);  // the first power is W
  out.w = grad_w;
  return out;
}

struct DoublingFunction : torch::autograd::Function<DoublingFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& w_state, const ProblemShape& shape) {
    std::vector<at::Tensor> kept;
    at::Tensor output = with_real_type(input, [&](auto zero) {
      return ops::forward<decltype(zero)>(shape, input, w_state, &kept);
    });
    context->saved_data["shape"] =
        c10::IValue::make_capsule(c10::make_intrusive<SavedShape>(shape));
    if (!w_state.requires_grad()) kept.clear();
    kept.push_back(w_state);
    context->save_for_backward(std::move(kept));
    return output.is_same(input) ? input.clone() : output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("doubling");
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedShape>(context->saved_data["shape"].toCapsule());
    std::vector<at::Tensor> kept = context->get_saved_variables();
    const at::Tensor w_state = kept.back();
    kept.pop_back();
    const at::Tensor grad = grads[0].contiguous();
    Gradients out = with_real_type(grad, [&](auto zero) {
      return ops::backward<decltype(zero)>(saved->shape, grad, w_state, kept,
                                           context->needs_input_grad(1));
    });
    return {out.input, out.w, {}};
  }
};

/// A^T x, for the part that starts from X(0).
struct PowerFunction : torch::autograd::Function<PowerFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const ProblemShape& shape) {
    context->saved_data["shape"] =
        c10::IValue::make_capsule(c10::make_intrusive<SavedShape>(shape));
    at::Tensor out = at::empty_like(x);
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      power_into<T>(shape.gso.view<T>(), x, shape.num_steps, out);
    });
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("doubling");
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedShape>(context->saved_data["shape"].toCapsule());
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor out = at::empty_like(grad);
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      power_into<T>(saved->shape.gso.template transpose_view<T>(), grad, saved->shape.num_steps,
                    out);
    });
    return {out, {}};
  }
};

}  // namespace

at::Tensor run_doubling(const Problem& problem) {
  at::Tensor output;
  if (any_requires_grad(problem)) {
    output = DoublingFunction::apply(problem.input, problem.w_state, problem.shape);
  } else {
    output = with_real_type(problem.input, [&](auto zero) {
      return forward<decltype(zero)>(problem.shape, problem.input, problem.w_state, nullptr);
    });
    if (output.is_same(problem.input)) output = output.clone();
  }
  if (!problem.initial.defined()) return output;
  // A^T X(0) W^T is a power, not a series; W^T comes with torch's own gradient.
  at::Tensor power = problem.w_state;
  const std::int64_t steps = problem.shape.num_steps;
  for (int bit = 62 - std::countl_zero(static_cast<std::uint64_t>(steps)); bit >= 0; --bit) {
    power = at::mm(power, power);
    if ((steps >> bit & 1) != 0) power = at::mm(power, problem.w_state);
  }
  return output + at::matmul(PowerFunction::apply(problem.initial, problem.shape), power);
}

}  // namespace mpssm::ops
