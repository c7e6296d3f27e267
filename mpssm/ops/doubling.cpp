// SPDX-License-Identifier: MIT
// Plan doubling: constant input, dense W, last output. Over the bits of T, from the highest down,
//   double:    S(2m)  = S(m) + (A^m S(m)) W^m,   W^(2m)  = W^m W^m
//   increment: S(m+1) = C + (A S(m)) W,          W^(m+1) = W^m W
// so that S(T) costs T - 1 products with A, which run m at a time in cache, and O(log T) with W.
// Both are S' = base + (A^h S) V with V a power of W. Backward, with H = (A')^h G:
//   grad S = H V' (+ G when the base is S),   grad V = S' H,   grad C += G when the base is C,
// so only the S before each move are kept.
//
// A^m and W^m are formed apart. Where one is huge and the other tiny, as with the plain adjacency
// matrix and a small W, they leave the range of their type though their product does not: such a
// call goes to plan stepwise.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/recurrence.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/plans.h"

namespace mpssm::ops {
namespace {

// Inside a pass everything lives in slices of channels, [B, S, N, L] with S L >= C: the hops want
// it that way, and the dense products do not mind (kernels/matmul.h).

/// Lanes of a slice: at least a panel of the dense product, no more than the channels need.
template <typename T>
std::int64_t lanes_for(std::int64_t channels) {
  return channels <= kernels::kPanelColumns ? kernels::kPanelColumns : kernels::kMaxSliceLanes<T>;
}

template <typename T>
at::Tensor to_slices(const at::Tensor& x) {
  const std::int64_t n = x.size(1);
  const std::int64_t channels = x.size(2);
  const std::int64_t lanes = lanes_for<T>(channels);
  const std::int64_t slices = (channels + lanes - 1) / lanes;
  at::Tensor out = empty_tensor({x.size(0), slices, n, lanes}, x.options());
  const T* from = x.data_ptr<T>();
  T* to = out.data_ptr<T>();
  run_tasks(x.size(0) * slices, x.numel(), [&](std::int64_t task) {
    const std::int64_t begin = task % slices * lanes;
    kernels::pack_slice(kernels::SliceLayout::kReal, from + task / slices * n * channels + begin,
                        channels, n, std::min(lanes, channels - begin), lanes,
                        to + task * n * lanes);
  });
  return out;
}

/// `spare`, like `sliced` and no longer needed, becomes the result if nothing is padded: fresh
/// pages cost as much as a hop.
template <typename T>
at::Tensor from_slices(const at::Tensor& sliced, std::int64_t channels, const at::Tensor& spare) {
  const std::int64_t slices = sliced.size(1);
  const std::int64_t n = sliced.size(2);
  const std::int64_t lanes = sliced.size(3);
  at::Tensor out = slices * lanes == channels
                       ? at::_unsafe_view(spare, {sliced.size(0), n, channels})
                       : empty_tensor({sliced.size(0), n, channels}, sliced.options());
  const T* from = sliced.data_ptr<T>();
  T* to = out.data_ptr<T>();
  run_tasks(sliced.size(0) * slices, sliced.numel(), [&](std::int64_t task) {
    const std::int64_t begin = task % slices * lanes;
    kernels::unpack_slice(kernels::SliceLayout::kReal, from + task * n * lanes, n,
                          std::min(lanes, channels - begin), lanes,
                          to + task / slices * n * channels + begin, channels);
  });
  return out;
}

/// out = A^hops x, each slice by itself; out is not x.
template <typename T>
void power_into(const kernels::CsrView<T>& matrix, const at::Tensor& x, std::int64_t hops,
                const at::Tensor& out) {
  const std::int64_t size = x.size(2) * x.size(3);
  const T* from = x.data_ptr<T>();
  T* to = out.data_ptr<T>();
  const std::int64_t work = hops * x.size(0) * x.size(1) * x.size(3) *
                            (matrix.row_ptr[matrix.num_rows] + matrix.num_rows);
  run_tasks(x.size(0) * x.size(1), work, [&](std::int64_t task) {
    kernels::SliceStep<T> step;
    step.a = matrix;
    step.lanes = x.size(3);
    step.x = from + task * size;
    for (std::int64_t left = hops; left > 0; --left) {
      // Targets take turns so that the last one is `out`.
      step.y = left % 2 == 1 ? to + task * size : thread_scratch<T>(size);
      kernels::slice_step(step);
      step.x = step.y;
    }
  });
}

/// y = x W (+ add); w is padded to whole slices.
template <typename T>
void times_w_into(const at::Tensor& x, const at::Tensor& w, kernels::Transpose transpose,
                  const at::Tensor& add, const at::Tensor& y) {
  kernels::MatmulArgs<T> args;
  args.inner = args.columns = w.size(0);
  args.x_layout = args.y_layout = {x.size(3), x.size(2) * x.size(3)};
  const at::Tensor packed =
      at::empty({kernels::packed_size(args.inner, args.columns)}, w.options());
  kernels::pack_matrix(transpose, w.data_ptr<T>(), args.inner, args.columns, packed.data_ptr<T>());
  args.packed = packed.data_ptr<T>();
  constexpr std::int64_t kRows = 192;
  const std::int64_t n = x.size(2);
  const std::int64_t tasks = (n + kRows - 1) / kRows;
  run_tasks(x.size(0) * tasks, x.numel() * w.size(0) / 8, [&](std::int64_t task) {
    kernels::MatmulArgs<T> mine = args;
    const std::int64_t batch = task / tasks * x.stride(0);
    mine.x = x.data_ptr<T>() + batch;
    mine.y = y.data_ptr<T>() + batch;
    if (add.defined()) mine.add = add.data_ptr<T>() + batch;
    kernels::matmul(mine, task % tasks * kRows, std::min(n, (task % tasks + 1) * kRows));
  });
}

/// x' g, summed over nodes and batch: [S L, S L]. The sum is cut into parts that do not depend on
/// the threads, and the parts are added in order.
template <typename T>
at::Tensor gram(const at::Tensor& x, const at::Tensor& g) {
  const std::int64_t n = x.size(2);
  const std::int64_t width = x.size(1) * x.size(3);
  const RowParts parts(n);
  at::Tensor sums = at::zeros({x.size(0) * parts.count, width, width}, x.options());
  run_tasks(x.size(0) * parts.count, x.numel() * width / 8, [&](std::int64_t task) {
    const std::int64_t batch = task / parts.count;
    const std::int64_t part = task % parts.count;
    kernels::MatmulTransposedArgs<T> args;
    args.left = args.right = width;
    args.x_layout = args.g_layout = {x.size(3), n * x.size(3)};
    args.x = x.data_ptr<T>() + batch * x.stride(0);
    args.g = g.data_ptr<T>() + batch * g.stride(0);
    args.sum = sums.data_ptr<T>() + task * width * width;
    kernels::matmul_transposed(args, parts.begin(part), parts.end(part));
  });
  return sum_of_parts(sums);
}

/// w with zeros up to whole slices.
template <typename T>
at::Tensor padded(const at::Tensor& w) {
  const std::int64_t lanes = lanes_for<T>(w.size(0));
  const std::int64_t missing = (lanes - w.size(0) % lanes) % lanes;
  return missing == 0 ? w : at::constant_pad_nd(w, {0, missing, 0, missing});
}

/// a b of small square matrices, and with `transpose` a b', plus `add` if defined. The BLAS's would
/// depend on the threads.
at::Tensor small_product(const at::Tensor& a, const at::Tensor& b,
                         kernels::Transpose transpose = kernels::Transpose::kNo,
                         const at::Tensor& add = {}) {
  at::Tensor out = empty_tensor_like(a);
  matmul_into(a, b, transpose, add, out);
  return out;
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

/// W^m for the m of each doubling, in order, with m = 1 first.
std::vector<at::Tensor> powers_for(const at::Tensor& w, const std::vector<Move>& moves) {
  std::vector<at::Tensor> powers;
  at::Tensor power = w;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (!moves[i].doubles) continue;
    powers.push_back(power);
    const bool last = i + 1 == moves.size() || (i + 2 == moves.size() && !moves[i + 1].doubles);
    if (last) break;
    power = small_product(power, power);
    if (!moves[i + 1].doubles) power = small_product(power, w);
  }
  return powers;
}

/// True if no |number| passes the square root of the largest one of its type: what is multiplied
/// with it cannot have lost its digits to underflow then.
template <typename T>
bool in_range(const at::Tensor& x) {
  const T limit = std::sqrt(std::numeric_limits<T>::max());
  const T* data = x.data_ptr<T>();
  std::atomic<bool> inside{true};
  for_numbers(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    int outside = 0;
    for (std::int64_t i = begin; i < end; ++i) outside |= std::abs(data[i]) <= limit ? 0 : 1;
    if (outside != 0) inside = false;
  });
  return inside;
}

/// Undefined if powers of A or W leave the range of the type. With `kept`, S before each move goes
/// there, in slices, and is left alone; without, S is updated in place.
template <typename T>
at::Tensor forward(const ProblemShape& shape, const at::Tensor& input, const at::Tensor& w_state,
                   std::vector<at::Tensor>* kept) {
  const std::vector<Move> moves = moves_for(shape.num_steps);
  if (moves.empty()) return input.clone();
  const at::Tensor w = padded<T>(w_state);
  const std::vector<at::Tensor> powers = powers_for(w, moves);
  if (!std::all_of(powers.begin(), powers.end(), in_range<T>)) return {};
  const at::Tensor c = to_slices<T>(input);
  at::Tensor s = c;
  at::Tensor moved = empty_tensor_like(c);
  std::size_t doublings = 0;
  for (const Move& move : moves) {
    power_into<T>(shape.gso.view<T>(), s, move.hops, moved);
    if (!in_range<T>(moved)) return {};
    const at::Tensor& v = move.doubles ? powers[doublings++] : w;
    if (kept != nullptr) kept->push_back(s);
    const at::Tensor base = move.doubles ? s : c;
    if (kept != nullptr || s.is_same(c)) s = empty_tensor_like(c);
    times_w_into<T>(moved, v, kernels::Transpose::kNo, base, s);
  }
  return from_slices<T>(s, shape.channels, moved);
}

struct DoublingGradients {
  at::Tensor input;
  at::Tensor w;
};

template <typename T>
DoublingGradients backward(const ProblemShape& shape, const at::Tensor& grad,
                           const at::Tensor& w_state, const std::vector<at::Tensor>& kept,
                           bool wants_w) {
  const std::vector<Move> moves = moves_for(shape.num_steps);
  const at::Tensor w = padded<T>(w_state);
  const std::vector<at::Tensor> powers = powers_for(w, moves);
  std::vector<at::Tensor> grad_powers(powers.size());
  at::Tensor grad_w = wants_w ? at::zeros_like(w) : at::Tensor();
  at::Tensor grad_c;  // of C through the increments
  at::Tensor g = to_slices<T>(grad);
  at::Tensor h = empty_tensor_like(g);
  std::size_t doublings = powers.size();
  for (std::size_t i = moves.size(); i-- > 0;) {
    power_into<T>(shape.gso.transpose_view<T>(), g, moves[i].hops, h);
    if (moves[i].doubles) --doublings;
    const at::Tensor& v = moves[i].doubles ? powers[doublings] : w;
    if (wants_w) {
      const at::Tensor product = gram<T>(kept[i], h);
      if (moves[i].doubles) {
        grad_powers[doublings] = product;
      } else {
        grad_w.add_(product);
      }
    }
    if (!moves[i].doubles) grad_c = grad_c.defined() ? grad_c.add_(g) : g.clone();
    times_w_into<T>(h, v, kernels::Transpose::kYes, moves[i].doubles ? g : at::Tensor(), g);
  }
  // S(1) = C.
  DoublingGradients out;
  out.input = from_slices<T>(grad_c.defined() ? grad_c.add_(g) : g, shape.channels, h);
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
        grad_w.add_(transposed_matmul(small_product(p, p), grad_next));
        grad_square = small_product(grad_next, w, kernels::Transpose::kYes);
      }
      grad_power = small_product(grad_square, p, kernels::Transpose::kYes, grad_power)
                       .add_(transposed_matmul(p, grad_square));
    }
    grad_next = grad_power;
  }
  if (grad_next.defined()) grad_w.add_(grad_next);  // the first power is W
  out.w = grad_w.slice(0, 0, shape.channels).slice(1, 0, shape.channels).contiguous();
  return out;
}

/// What forward() gave.
struct Computed {
  at::Tensor output;
  std::vector<at::Tensor> kept;
};

/// Takes the output as it is: whether there is one must be known before autograd records anything.
struct DoublingFunction : torch::autograd::Function<DoublingFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& /*input*/,
                            const at::Tensor& w_state, const ProblemShape& shape,
                            Computed computed) {
    save_shape(context, shape);
    if (!w_state.requires_grad()) computed.kept.clear();
    computed.kept.push_back(w_state);
    context->save_for_backward(std::move(computed.kept));
    return computed.output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("doubling");
    const ProblemShape shape = saved_shape(context);
    std::vector<at::Tensor> kept = context->get_saved_variables();
    const at::Tensor w_state = kept.back();
    kept.pop_back();
    const at::Tensor grad = canonical(grads[0]);
    DoublingGradients out = with_real_type(grad, [&](auto zero) {
      return ops::backward<decltype(zero)>(shape, grad, w_state, kept,
                                           context->needs_input_grad(1));
    });
    return {out.input, out.w, {}, {}};
  }
};

template <typename T>
at::Tensor power(const kernels::CsrView<T>& matrix, const at::Tensor& x, std::int64_t hops) {
  const at::Tensor sliced = to_slices<T>(x);
  at::Tensor out = empty_tensor_like(sliced);
  power_into<T>(matrix, sliced, hops, out);
  return from_slices<T>(out, x.size(2), sliced);
}

/// A^T x, for the part that starts from X(0).
struct PowerFunction : torch::autograd::Function<PowerFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const ProblemShape& shape) {
    save_shape(context, shape);
    return with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      return power<T>(shape.gso.view<T>(), x, shape.num_steps);
    });
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("doubling");
    const ProblemShape shape = saved_shape(context);
    const at::Tensor grad = canonical(grads[0]);
    at::Tensor out = with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      return power<T>(shape.gso.template transpose_view<T>(), grad, shape.num_steps);
    });
    return {out, {}};
  }
};

}  // namespace

at::Tensor run_doubling(const Problem& problem) {
  const bool records = any_requires_grad(problem);
  Computed computed;
  {
    const at::NoGradGuard no_grad;
    computed.output = with_real_type(problem.input, [&](auto zero) {
      return forward<decltype(zero)>(problem.shape, problem.input, problem.w_state,
                                     records ? &computed.kept : nullptr);
    });
  }
  if (!computed.output.defined()) return run_stepwise(problem);
  const at::Tensor output =
      records ? DoublingFunction::apply(problem.input, problem.w_state, problem.shape, computed)
              : computed.output;
  if (!problem.initial.defined()) return output;
  // A^T X(0) W^T is a power, not a series; W^T gets its gradient product by product.
  at::Tensor power = problem.w_state;
  const std::int64_t steps = problem.shape.num_steps;
  for (int bit = 62 - std::countl_zero(static_cast<std::uint64_t>(steps)); bit >= 0; --bit) {
    power = ops::matmul(power, power);
    if ((steps >> bit & 1) != 0) power = ops::matmul(power, problem.w_state);
  }
  const at::Tensor moved = PowerFunction::apply(problem.initial, problem.shape);
  const bool fits = with_real_type(power, [&](auto zero) {
    return in_range<decltype(zero)>(power) && in_range<decltype(zero)>(moved);
  });
  return fits ? output + ops::matmul(moved, power) : run_stepwise(problem);
}

}  // namespace mpssm::ops
