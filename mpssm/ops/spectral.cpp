// SPDX-License-Identifier: MIT
// Plan spectral: A = P L P' and W = diag(sigma), so that in the coordinates V = P' C every mode is
// a scalar recurrence with factor a = lambda sigma: a geometric series for constant input (any
// number of steps at one price), a scan for a sequence. (The flipped cumulative sum of the paper's
// Algorithm 1 is right for the last step of a sequence only.)
#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/graph/spectrum.h"
#include "mpssm/kernels/geometric_series.h"
#include "mpssm/kernels/mode_scan.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/plans.h"

namespace mpssm::ops {
namespace {

/// Rows a task takes. Fixed, so that sums over tasks have one order whatever the threads.
constexpr std::int64_t kModesPerTask = 32;

std::int64_t num_tasks(const ProblemShape& shape) {
  return (shape.num_nodes() + kModesPerTask - 1) / kModesPerTask;
}

struct SigmaParts {
  std::vector<double> re;
  std::vector<double> im;

  explicit SigmaParts(const at::Tensor& sigma) {
    const at::Tensor wide = sigma.to(at::kComplexDouble).contiguous();
    const auto* values = wide.data_ptr<c10::complex<double>>();
    for (std::int64_t c = 0; c < wide.numel(); ++c) {
      re.push_back(values[c].real());
      im.push_back(values[c].imag());
    }
  }
  std::int64_t channels() const { return static_cast<std::int64_t>(re.size()); }
};

/// Gradient of sigma as one partial sum per task.
class SigmaSums {
 public:
  SigmaSums(const ProblemShape& shape, bool wanted)
      : channels_(shape.channels / 2),
        tasks_(num_tasks(shape)),
        sums_(wanted ? static_cast<std::size_t>(2 * channels_ * tasks_) : 0) {}

  double* re(std::int64_t task) {
    return sums_.empty() ? nullptr : sums_.data() + 2 * channels_ * task;
  }
  double* im(std::int64_t task) { return sums_.empty() ? nullptr : re(task) + channels_; }

  at::Tensor total(const at::Tensor& sigma) {
    if (sums_.empty()) return {};
    at::Tensor out = at::zeros({channels_}, sigma.options().dtype(at::kComplexDouble));
    auto* values = out.data_ptr<c10::complex<double>>();
    for (std::int64_t task = 0; task < tasks_; ++task) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        values[c] += c10::complex<double>(re(task)[c], im(task)[c]);
      }
    }
    return out.to(sigma.scalar_type());
  }

 private:
  std::int64_t channels_;
  std::int64_t tasks_;
  std::vector<double> sums_;
};

/// P' x or P x on the node axis, all leading axes flattened.
template <typename T>
at::Tensor change_basis(const kernels::CsrView<T>& basis, const at::Tensor& x) {
  const at::Tensor flat = x.view({-1, x.size(-2), x.size(-1)});
  at::Tensor out = empty_tensor_like(flat);
  spmm_into<T>(basis, flat, {}, out);
  return at::_unsafe_view(out, x.sizes());
}

template <typename T>
kernels::ModeSeriesArgs<T> series_args(const ProblemShape& shape, const graph::EigenBasis& basis,
                                       const SigmaParts& sigma, const at::Tensor& input,
                                       const at::Tensor& initial) {
  kernels::ModeSeriesArgs<T> args;
  args.num_steps = shape.num_steps;
  args.channels = sigma.channels();
  args.batch = shape.batch;
  args.batch_stride = shape.num_nodes() * shape.channels;
  args.lambda = basis.eigenvalues.data();
  args.sigma_re = sigma.re.data();
  args.sigma_im = sigma.im.data();
  args.input = input.data_ptr<T>();
  args.initial = initial.defined() ? initial.data_ptr<T>() : nullptr;
  return args;
}

template <typename T>
kernels::ModeScanArgs<T> scan_args(const ProblemShape& shape, const graph::EigenBasis& basis,
                                   const SigmaParts& sigma, const at::Tensor& initial) {
  kernels::ModeScanArgs<T> args;
  args.batch = shape.batch;
  args.num_steps = shape.num_steps;
  args.rows = shape.num_nodes();
  args.channels = sigma.channels();
  args.lambda = basis.eigenvalues.data();
  args.sigma_re = sigma.re.data();
  args.sigma_im = sigma.im.data();
  args.initial = initial.defined() ? initial.data_ptr<T>() : nullptr;
  return args;
}

/// Runs `body(task, row_begin, row_end)` over the modes; `cost` multiply-adds per number.
template <typename Body>
void for_modes(const ProblemShape& shape, std::int64_t cost, const Body& body) {
  const std::int64_t n = shape.num_nodes();
  run_tasks(num_tasks(shape), n * shape.channels * cost, [&](std::int64_t task) {
    body(task, task * kModesPerTask, std::min(n, (task + 1) * kModesPerTask));
  });
}

/// What a call computes in mode coordinates.
struct Modes {
  at::Tensor input;    // static: V [B, N, C]
  at::Tensor initial;  // P' X(0)
  at::Tensor states;   // temporal: Z [B, T, N, C]
};

/// Constant input with every output wanted is a sequence like any other.
bool is_sequence(const ProblemShape& shape) { return shape.temporal || shape.all_outputs(); }

template <typename T>
at::Tensor forward(const ProblemShape& shape, const at::Tensor& input, const at::Tensor& sigma,
                   const at::Tensor& initial, Modes& modes) {
  const graph::EigenBasis& basis = graph::eigen_basis(shape.gso);
  const auto to_modes = basis.transpose_view<T>();
  const SigmaParts parts(sigma);
  modes.input = change_basis<T>(to_modes, input);
  if (initial.defined()) modes.initial = change_basis<T>(to_modes, initial);

  if (!is_sequence(shape)) {
    at::Tensor z = empty_tensor_like(modes.input);
    const auto args = series_args<T>(shape, basis, parts, modes.input, modes.initial);
    T* z_data = z.data_ptr<T>();
    for_modes(shape, 64 + 8 * shape.batch, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      auto mine = args;
      mine.scratch = thread_scratch<double>(kernels::mode_series_scratch(args.channels));
      kernels::mode_series(mine, z_data, begin, end);
    });
    return change_basis<T>(basis.view<T>(), z);
  }

  modes.states =
      shape.temporal
          ? modes.input
          : modes.input.unsqueeze(1)
                .expand({shape.batch, shape.num_steps, shape.num_nodes(), shape.channels})
                .contiguous();
  const auto args = scan_args<T>(shape, basis, parts, modes.initial);
  T* z_data = modes.states.data_ptr<T>();
  for_modes(shape, 4 * shape.batch * shape.num_steps,
            [&](std::int64_t, std::int64_t begin, std::int64_t end) {
              auto mine = args;
              mine.scratch = thread_scratch<T>(2 * args.channels);
              kernels::mode_scan(mine, z_data, begin, end);
            });
  return change_basis<T>(basis.view<T>(),
                         shape.all_outputs()
                             ? modes.states
                             : modes.states.select(1, shape.num_steps - 1).contiguous());
}

struct SpectralGradients {
  at::Tensor input;
  at::Tensor sigma;
  at::Tensor initial;
};

template <typename T>
SpectralGradients backward(const ProblemShape& shape, const at::Tensor& grad,
                           const at::Tensor& sigma, const Modes& modes, bool wants_sigma,
                           bool wants_initial) {
  const graph::EigenBasis& basis = graph::eigen_basis(shape.gso);
  const auto to_nodes = basis.view<T>();
  const SigmaParts parts(sigma);
  SigmaSums sums(shape, wants_sigma);
  const at::Tensor grad_modes = change_basis<T>(basis.transpose_view<T>(), grad);
  at::Tensor grad_initial;
  if (wants_initial) grad_initial = empty_tensor_like(modes.initial);
  T* initial_data = wants_initial ? grad_initial.data_ptr<T>() : nullptr;

  SpectralGradients out;
  if (!is_sequence(shape)) {
    at::Tensor grad_input = empty_tensor_like(grad_modes);
    const auto args = series_args<T>(shape, basis, parts, modes.input, modes.initial);
    const T* grad_data = grad_modes.data_ptr<T>();
    T* input_data = grad_input.data_ptr<T>();
    for_modes(shape, 128 + 16 * shape.batch,
              [&](std::int64_t task, std::int64_t begin, std::int64_t end) {
                auto mine = args;
                mine.scratch = thread_scratch<double>(kernels::mode_series_scratch(args.channels));
                kernels::mode_series_adjoint(mine, grad_data, input_data, initial_data,
                                             sums.re(task), sums.im(task), begin, end);
              });
    out.input = change_basis<T>(to_nodes, grad_input);
  } else {
    at::Tensor grad_states = grad_modes;
    if (!shape.all_outputs()) {
      grad_states = at::zeros_like(modes.states);
      grad_states.select(1, shape.num_steps - 1).copy_(grad_modes);
    }
    const auto args = scan_args<T>(shape, basis, parts, modes.initial);
    const T* z_data = modes.states.data_ptr<T>();
    T* grad_data = grad_states.data_ptr<T>();
    for_modes(shape, 8 * shape.batch * shape.num_steps,
              [&](std::int64_t task, std::int64_t begin, std::int64_t end) {
                auto mine = args;
                mine.scratch = thread_scratch<T>(2 * args.channels);
                kernels::mode_scan_adjoint(mine, z_data, grad_data, initial_data, sums.re(task),
                                           sums.im(task), begin, end);
              });
    if (!shape.temporal) {
      // One step after the other: torch's sum may have another order on other threads.
      at::Tensor total = grad_states.select(1, 0).clone();
      for (std::int64_t t = 1; t < shape.num_steps; ++t) total.add_(grad_states.select(1, t));
      grad_states = total;
    }
    out.input = change_basis<T>(to_nodes, grad_states);
  }
  if (wants_initial) out.initial = change_basis<T>(to_nodes, grad_initial);
  out.sigma = sums.total(sigma);
  return out;
}

struct SpectralFunction : torch::autograd::Function<SpectralFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& sigma, const at::Tensor& initial_or_empty,
                            const ProblemShape& shape) {
    const at::Tensor initial = absent_if_empty(initial_or_empty);
    Modes modes;
    at::Tensor output = with_real_type(input, [&](auto zero) {
      return ops::forward<decltype(zero)>(shape, input, sigma, initial, modes);
    });
    save_shape(context, shape);
    if (is_sequence(shape)) modes.input = at::Tensor();
    context->save_for_backward({sigma, modes.input, modes.initial, modes.states});
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    check_single_backward("spectral");
    const ProblemShape shape = saved_shape(context);
    const auto tensors = context->get_saved_variables();
    const Modes modes{tensors[1], tensors[2], tensors[3]};
    const at::Tensor grad = canonical(grads[0]);
    SpectralGradients out = with_real_type(grad, [&](auto zero) {
      return ops::backward<decltype(zero)>(shape, grad, tensors[0], modes,
                                           context->needs_input_grad(1),
                                           context->needs_input_grad(2));
    });
    return {out.input, out.sigma, out.initial, {}};
  }
};

}  // namespace

at::Tensor run_spectral(const Problem& problem) {
  if (any_requires_grad(problem)) {
    return SpectralFunction::apply(problem.input, problem.w_state,
                                   empty_if_absent(problem.initial, problem.input), problem.shape);
  }
  Modes modes;
  return with_real_type(problem.input, [&](auto zero) {
    return forward<decltype(zero)>(problem.shape, problem.input, problem.w_state, problem.initial,
                                   modes);
  });
}

}  // namespace mpssm::ops
