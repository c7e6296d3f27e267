// SPDX-License-Identifier: MIT
// Plan stepwise: the loop of the definition on our sparse product, for every kind of problem.
// Backward, from the last step to the first, with H(t) = A' L(t) and L the gradient of the states:
//   L(t-1) = G(t-1) + H(t) W',   grad W += X(t-1)' H(t),   grad C(t) = L(t),
//   grad A(i, j) += <L(t)(i, :), (X(t-1) W)(j, :)>.
#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/kernels/spmm.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/plans.h"

namespace mpssm::ops {
namespace {

/// W in either form: what the loop needs of it.
class StateWeight {
 public:
  explicit StateWeight(const at::Tensor& w) : w_(w) {}

  /// out = x W; x, out: [B, N, C], out contiguous.
  void times(const at::Tensor& x, const at::Tensor& out) const {
    if (w_.is_complex()) {
      pairs_times(x.contiguous(), 1, {}, out);
    } else {
      matmul_into(x.contiguous(), w_, kernels::Transpose::kNo, {}, out);
    }
  }
  /// add + h W', or h W' if add is undefined; h contiguous.
  at::Tensor times_adjoint(const at::Tensor& h, const at::Tensor& add) const {
    at::Tensor out = empty_tensor_like(h);
    const at::Tensor base = add.defined() ? add.contiguous() : add;
    if (w_.is_complex()) {
      pairs_times(h, -1, base, out);
    } else {
      matmul_into(h, w_, kernels::Transpose::kYes, base, out);
    }
    return out;
  }
  /// grad += the gradient of x W, given that of the product.
  void add_gradient(const at::Tensor& x, const at::Tensor& h, at::Tensor& grad) const {
    if (w_.is_complex()) {
      grad.add_(pair_products(rows(x), rows(h)));
    } else {
      grad.add_(transposed_matmul(rows(x), rows(h)));
    }
  }

 private:
  static at::Tensor rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }
  /// sum over rows of h conj(x), complex [C/2], added up in the order of the rows of a part, then
  /// of the parts.
  static at::Tensor pair_products(const at::Tensor& x, const at::Tensor& h) {
    const RowParts parts(x.size(0));
    const std::int64_t channels = x.size(1);
    at::Tensor sums = at::zeros({parts.count, channels}, x.options());
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      const T* x_data = x.data_ptr<T>();
      const T* h_data = h.data_ptr<T>();
      T* sums_data = sums.data_ptr<T>();
      run_tasks(parts.count, 4 * x.numel(), [&](std::int64_t part) {
        T* sum = sums_data + part * channels;
        for (std::int64_t row = parts.begin(part); row < parts.end(part); ++row) {
          const T* a = x_data + row * channels;
          const T* b = h_data + row * channels;
          for (std::int64_t c = 0; c < channels; c += 2) {
            sum[c] += b[c] * a[c] + b[c + 1] * a[c + 1];
            sum[c + 1] += b[c + 1] * a[c] - b[c] * a[c + 1];
          }
        }
      });
    });
    return at::view_as_complex(sum_of_parts(sums).view({-1, 2}));
  }
  /// out = x sigma (sign 1) or x conj(sigma) (-1) on pairs of channels, plus `add` if defined. Not
  /// by torch, whose complex product rounds differently at the ends of what a thread gets.
  void pairs_times(const at::Tensor& x, int sign, const at::Tensor& add,
                   const at::Tensor& out) const {
    with_real_type(x, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t channels = x.size(-1);
      const auto* sigma = w_.data_ptr<c10::complex<T>>();
      const T* from = x.data_ptr<T>();
      const T* base = add.defined() ? add.data_ptr<T>() : nullptr;
      T* to = out.data_ptr<T>();
      constexpr std::int64_t kRows = 256;
      const std::int64_t rows = x.numel() / channels;
      run_tasks((rows + kRows - 1) / kRows, 4 * x.numel(), [&](std::int64_t task) {
        for (std::int64_t row = task * kRows; row < std::min(rows, (task + 1) * kRows); ++row) {
          const std::int64_t begin = row * channels;
          for (std::int64_t c = 0; c < channels; c += 2) {
            const T re = sigma[c / 2].real();
            const T im = static_cast<T>(sign) * sigma[c / 2].imag();
            const T x_re = from[begin + c];
            const T x_im = from[begin + c + 1];
            to[begin + c] = x_re * re - x_im * im;
            to[begin + c + 1] = x_re * im + x_im * re;
            if (base == nullptr) continue;
            to[begin + c] += base[begin + c];
            to[begin + c + 1] += base[begin + c + 1];
          }
        }
      });
    });
  }

  const at::Tensor& w_;
};

/// The operator of the call: the graph's, or its pattern with the given entries.
graph::Gso with_entries(const graph::Gso& gso, const at::Tensor& values) {
  if (!values.defined()) return gso;
  const at::Tensor copy = values.to(at::kDouble).contiguous();
  return gso.with_values({copy.data_ptr<double>(), static_cast<std::size_t>(copy.numel())});
}

enum class Keep { kLastState, kEveryState };

/// States [B, T, N, C], or the last one [B, N, C].
template <typename T>
at::Tensor forward(const ProblemShape& shape, const graph::Gso& gso, const at::Tensor& input,
                   const at::Tensor& w_state, const at::Tensor& initial, Keep keep) {
  const StateWeight w(w_state);
  const std::int64_t n = shape.num_nodes();
  const auto input_at = [&](std::int64_t t) { return shape.temporal ? input.select(1, t) : input; };
  at::Tensor states;
  if (keep == Keep::kEveryState) {
    states = empty_tensor({shape.batch, shape.num_steps, n, shape.channels}, input.options());
  }
  at::Tensor product;  // X W, one buffer for all steps
  at::Tensor spare;    // the state before last: reused
  at::Tensor x = initial;
  for (std::int64_t t = 0; t < shape.num_steps; ++t) {
    at::Tensor next;
    if (keep == Keep::kEveryState) next = states.select(1, t);
    if (!x.defined()) {
      if (keep == Keep::kEveryState) {
        next.copy_(input_at(0));
      } else {
        next = input_at(0);
      }
      x = next;
      continue;
    }
    if (!product.defined())
      product = empty_tensor({shape.batch, n, shape.channels}, input.options());
    w.times(x, product);
    if (!next.defined()) {
      next = spare.defined() ? spare : empty_tensor_like(product);
      // Neither the input nor the caller's X(0) may be written to.
      spare = t >= (initial.defined() ? 1 : 2) ? x : at::Tensor();
    }
    spmm_into<T>(gso.view<T>(), product, input_at(t), next);
    x = next;
  }
  if (keep == Keep::kEveryState) return states;
  return x.is_same(input) || shape.num_steps == 1 ? x.clone() : x;
}

struct StepwiseGradients {
  at::Tensor input;
  at::Tensor w_state;
  at::Tensor initial;
  at::Tensor values;
};

struct StepwiseWanted {
  bool input = false;
  bool w_state = false;
  bool initial = false;
  bool values = false;
};

template <typename T>
void add_value_gradient(const graph::Gso& gso, const at::Tensor& grad, const at::Tensor& product,
                        at::Tensor& out) {
  kernels::SpmmValueGradArgs<T> args;
  args.a = gso.view<T>();
  args.width = grad.size(2);
  args.g_stride = args.x_stride = grad.size(2);
  args.grad = out.data_ptr<T>();
  constexpr std::int64_t kRows = 256;  // a task owns its rows' entries
  const std::int64_t n = gso.num_nodes();
  for (std::int64_t b = 0; b < grad.size(0); ++b) {
    args.g = grad.data_ptr<T>() + b * grad.stride(0);
    args.x = product.data_ptr<T>() + b * product.stride(0);
    run_tasks((n + kRows - 1) / kRows, gso.num_nonzeros() * args.width, [&](std::int64_t task) {
      kernels::spmm_value_grad(args, task * kRows, std::min(n, (task + 1) * kRows));
    });
  }
}

template <typename T>
StepwiseGradients backward(const ProblemShape& shape, const graph::Gso& gso, const at::Tensor& grad,
                           const at::Tensor& w_state, const at::Tensor& states,
                           const at::Tensor& initial, StepwiseWanted wanted) {
  const StateWeight w(w_state);
  const std::int64_t steps = shape.num_steps;
  StepwiseGradients out;
  if (wanted.w_state) out.w_state = at::zeros_like(w_state);
  if (wanted.values) out.values = at::zeros({gso.num_nonzeros()}, grad.options());
  if (wanted.input) {
    out.input =
        shape.temporal
            ? empty_tensor({shape.batch, steps, shape.num_nodes(), shape.channels}, grad.options())
            : at::zeros({shape.batch, shape.num_nodes(), shape.channels}, grad.options());
  }
  at::Tensor lambda = shape.all_outputs() ? grad.select(1, steps - 1).contiguous() : grad;
  at::Tensor h = empty_tensor_like(lambda);
  at::Tensor product;
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    if (wanted.input) {
      if (shape.temporal) {
        out.input.select(1, t).copy_(lambda);
      } else {
        out.input.add_(lambda);
      }
    }
    const at::Tensor before = t > 0 ? states.select(1, t - 1) : initial;  // X(t) of step t -> t+1
    if (!before.defined()) break;
    if (wanted.values) {
      if (!product.defined()) product = empty_tensor_like(lambda);
      w.times(before, product);
      add_value_gradient<T>(gso, lambda, product, out.values);
    }
    spmm_into<T>(gso.transpose_view<T>(), lambda, {}, h);
    if (wanted.w_state) w.add_gradient(before, h, out.w_state);
    const bool more = t > 0 && shape.all_outputs();
    lambda = w.times_adjoint(h, more ? grad.select(1, t - 1) : at::Tensor());
    if (t == 0 && wanted.initial) out.initial = lambda;
  }
  return out;
}

struct StepwiseFunction : torch::autograd::Function<StepwiseFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& w_state, const at::Tensor& initial_or_empty,
                            const at::Tensor& values_or_empty, const ProblemShape& shape) {
    const at::Tensor initial = absent_if_empty(initial_or_empty);
    const at::Tensor values = absent_if_empty(values_or_empty);
    const graph::Gso gso = with_entries(shape.gso, values);
    at::Tensor states = with_real_type(input, [&](auto zero) {
      return ops::forward<decltype(zero)>(shape, gso, input, w_state, initial, Keep::kEveryState);
    });
    ProblemShape kept = shape;
    kept.gso = gso;
    save_shape(context, kept);
    context->save_for_backward({w_state, states, initial});
    if (shape.all_outputs()) return states;
    return states.select(1, shape.num_steps - 1).clone();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("stepwise");
    const ProblemShape shape = saved_shape(context);
    const auto tensors = context->get_saved_variables();
    const StepwiseWanted wanted{context->needs_input_grad(0), context->needs_input_grad(1),
                                context->needs_input_grad(2), context->needs_input_grad(3)};
    const at::Tensor grad = canonical(grads[0]);
    StepwiseGradients out = with_real_type(grad, [&](auto zero) {
      return ops::backward<decltype(zero)>(shape, shape.gso, grad, tensors[0], tensors[1],
                                           tensors[2], wanted);
    });
    return {out.input, out.w_state, out.initial, out.values, {}};
  }
};

}  // namespace

at::Tensor run_stepwise(const Problem& problem) {
  if (any_requires_grad(problem)) {
    return StepwiseFunction::apply(
        problem.input, problem.w_state, empty_if_absent(problem.initial, problem.input),
        empty_if_absent(problem.gso_values, problem.input), problem.shape);
  }
  const graph::Gso gso = with_entries(problem.shape.gso, problem.gso_values);
  return with_real_type(problem.input, [&](auto zero) {
    return forward<decltype(zero)>(
        problem.shape, gso, problem.input, problem.w_state, problem.initial,
        problem.shape.all_outputs() ? Keep::kEveryState : Keep::kLastState);
  });
}

}  // namespace mpssm::ops
