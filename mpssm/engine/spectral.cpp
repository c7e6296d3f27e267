// SPDX-License-Identifier: MIT
// Plan spectral: A = P L P' and W = diag(sigma), so that in the coordinates V = P' C every mode is
// a scalar recurrence with factor a = lambda sigma: a geometric series for constant input (any
// number of steps at one price), a scan for a sequence. (The flipped cumulative sum of the paper's
// Algorithm 1 is right for the last step of a sequence only.)
#include <algorithm>
#include <complex>

#include "mpssm/engine/plans.h"
#include "mpssm/engine/power_chain.h"
#include "mpssm/engine/spmm.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/kernels/geometric_series.h"
#include "mpssm/kernels/mode_scan.h"

namespace mpssm::engine {
namespace {

/// Rows a task takes. Fixed, so that sums over tasks have one order whatever the workers.
constexpr std::int64_t kModesPerTask = 32;

std::int64_t num_tasks(const RecurrenceShape& shape) {
  return (shape.num_nodes() + kModesPerTask - 1) / kModesPerTask;
}

/// Constant input with every output wanted is a sequence like any other.
bool is_sequence(const RecurrenceShape& shape) { return shape.temporal || shape.all_outputs(); }

/// Numbers that the modes of a whole pass have.
std::int64_t modes_size(const RecurrenceShape& shape) {
  return (is_sequence(shape) ? shape.num_steps : 1) * shape.state();
}

/// Runs `body(task, worker, row_begin, row_end)` over the modes; `cost` multiply-adds per number.
template <typename Body>
void for_modes(const RecurrenceShape& shape, std::int64_t cost, const Executor& executor,
               const Body& body) {
  const std::int64_t n = shape.num_nodes();
  run_tasks(executor, num_tasks(shape), n * shape.channels * cost,
            [&](std::int64_t task, std::int64_t worker) {
              body(task, worker, task * kModesPerTask, std::min(n, (task + 1) * kModesPerTask));
            });
}

/// P' x or P x on the node axis of `blocks` blocks [N, C].
template <typename T>
void change_basis(const RecurrenceShape& shape, const kernels::CsrView<T>& basis, const T* x,
                  std::int64_t blocks, T* y, const Executor& executor) {
  SpmmBatch<T> args;
  args.a = basis;
  args.batch = blocks;
  args.width = shape.channels;
  args.x = x;
  args.y = y;
  args.x_stride = args.y_stride = shape.block();
  spmm(args, executor);
}

/// Copies step t of [B, T, N, C] to or from [B, N, C].
template <typename T>
void copy_step(const RecurrenceShape& shape, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride, const Executor& executor) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    copy_numbers(from + b * from_stride, shape.block(), to + b * to_stride, executor);
  }
}

/// Factors of one step in double, lambda^r and sigma^r, and scratch for the kernels of every
/// worker.
template <typename T>
struct SigmaBuffers {
  std::int64_t channels;  // complex
  std::int64_t hops;      // r
  double* lambda;         // [N], unless r = 1: then those of the basis
  double* re;
  double* im;
  double* scratch;  // [workers][scratch_each]
  std::int64_t scratch_each;

  SigmaBuffers(const RecurrenceShape& shape, std::int64_t workers, Workspace& workspace)
      : channels(shape.channels / 2),
        hops(shape.hops_per_step),
        lambda(workspace.take<double>(hops > 1 ? shape.num_nodes() : 0)),
        re(workspace.take<double>(channels)),
        im(workspace.take<double>(channels)),
        scratch_each(kernels::mode_series_scratch(channels)) {
    scratch = workspace.take<double>(workers * scratch_each);
  }
  void load(const T* sigma, const graph::EigenBasis& basis) const {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::complex<double> power = hops == 1 ? at(sigma, c) : power_of(at(sigma, c), hops);
      re[c] = power.real();
      im[c] = power.imag();
    }
    if (hops == 1) return;
    for (std::size_t i = 0; i < basis.eigenvalues.size(); ++i) {
      lambda[i] = power_of(basis.eigenvalues[i], hops).real();
    }
  }
  const double* eigenvalues(const graph::EigenBasis& basis) const {
    return hops == 1 ? basis.eigenvalues.data() : lambda;
  }
  /// The gradient of sigma from that of sigma^r.
  std::complex<double> gradient(const T* sigma, std::int64_t c,
                                std::complex<double> of_power) const {
    if (hops == 1) return of_power;
    return of_power * std::conj(static_cast<double>(hops) * power_of(at(sigma, c), hops - 1));
  }

 private:
  static std::complex<double> at(const T* sigma, std::int64_t c) {
    return {static_cast<double>(sigma[2 * c]), static_cast<double>(sigma[2 * c + 1])};
  }
};

template <typename T>
kernels::ModeSeriesArgs<T> series_args(const RecurrenceShape& shape, const graph::EigenBasis& basis,
                                       const SigmaBuffers<T>& sigma, const T* input,
                                       const T* initial, std::int64_t worker) {
  kernels::ModeSeriesArgs<T> args;
  args.num_steps = shape.num_steps;
  args.channels = sigma.channels;
  args.batch = shape.batch;
  args.batch_stride = shape.block();
  args.lambda = sigma.eigenvalues(basis);
  args.sigma_re = sigma.re;
  args.sigma_im = sigma.im;
  args.input = input;
  args.initial = initial;
  args.scratch = sigma.scratch + worker * sigma.scratch_each;
  return args;
}

template <typename T>
kernels::ModeScanArgs<T> scan_args(const RecurrenceShape& shape, const graph::EigenBasis& basis,
                                   const SigmaBuffers<T>& sigma, const T* initial,
                                   std::int64_t worker) {
  kernels::ModeScanArgs<T> args;
  args.batch = shape.batch;
  args.num_steps = shape.num_steps;
  args.rows = shape.num_nodes();
  args.channels = sigma.channels;
  args.lambda = sigma.eigenvalues(basis);
  args.sigma_re = sigma.re;
  args.sigma_im = sigma.im;
  args.initial = initial;
  // Room for eight doubles per channel is room for two numbers of any kind.
  args.scratch = reinterpret_cast<T*>(sigma.scratch + worker * sigma.scratch_each);
  return args;
}

/// The modes of the pass, then those of X(0): kept for the gradient of sigma alone.
template <typename T>
std::int64_t saved_numbers(const RecurrenceCall& call) {
  if (!call.wanted.w_state) return 0;
  return modes_size(call.shape) + (call.has_initial ? call.shape.state() : 0);
}

template <typename T>
struct ForwardBuffers {
  SigmaBuffers<T> sigma;
  T* modes;    // V (static) or Z (a sequence), unless saved
  T* initial;  // P' X(0), unless saved
  T* last;     // what goes back into the basis of nodes, if it is not the modes themselves

  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : sigma(call.shape, workers, workspace) {
    const RecurrenceShape& shape = call.shape;
    const bool saves = call.wanted.w_state;
    modes = workspace.take<T>(saves ? 0 : modes_size(shape));
    initial = workspace.take<T>(saves || !call.has_initial ? 0 : shape.state());
    last = workspace.take<T>(shape.all_outputs() ? 0 : shape.state());
  }
};

template <typename T>
bool run_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output, T* saved,
                 Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const graph::EigenBasis& basis = graph::eigen_basis(shape.gso.only());
  const auto to_modes = basis.transpose_view<T>();
  const auto to_nodes = basis.view<T>();
  const ForwardBuffers<T> buffers(call, executor.workers(), workspace);
  buffers.sigma.load(in.w_state, basis);
  const bool saves = call.wanted.w_state;
  T* const modes = saves ? saved : buffers.modes;
  T* initial = nullptr;
  if (call.has_initial) {
    initial = saves ? saved + modes_size(shape) : buffers.initial;
    change_basis(shape, to_modes, in.initial, shape.batch, initial, executor);
  }

  if (!is_sequence(shape)) {
    change_basis(shape, to_modes, in.input, shape.batch, modes, executor);
    for_modes(shape, 64 + 8 * shape.batch, executor,
              [&](std::int64_t, std::int64_t worker, std::int64_t begin, std::int64_t end) {
                kernels::mode_series(
                    series_args<T>(shape, basis, buffers.sigma, modes, initial, worker),
                    buffers.last, begin, end);
              });
    change_basis<T>(shape, to_nodes, buffers.last, shape.batch, output, executor);
    return true;
  }

  const std::int64_t sequence = shape.num_steps * shape.block();
  if (shape.temporal) {
    change_basis(shape, to_modes, in.input, shape.batch * shape.num_steps, modes, executor);
  } else {
    // One change of basis for all steps, in the memory of the first results.
    change_basis(shape, to_modes, in.input, shape.batch, output, executor);
    for (std::int64_t t = 0; t < shape.num_steps; ++t) {
      copy_step<T>(shape, output, shape.block(), modes + t * shape.block(), sequence, executor);
    }
  }
  for_modes(shape, 4 * shape.batch * shape.num_steps, executor,
            [&](std::int64_t, std::int64_t worker, std::int64_t begin, std::int64_t end) {
              kernels::mode_scan(scan_args<T>(shape, basis, buffers.sigma, initial, worker), modes,
                                 begin, end);
            });
  if (shape.all_outputs()) {
    change_basis<T>(shape, to_nodes, modes, shape.batch * shape.num_steps, output, executor);
  } else {
    copy_step<T>(shape, modes + (shape.num_steps - 1) * shape.block(), sequence, buffers.last,
                 shape.block(), executor);
    change_basis<T>(shape, to_nodes, buffers.last, shape.batch, output, executor);
  }
  return true;
}

template <typename T>
struct BackwardBuffers {
  SigmaBuffers<T> sigma;
  double* sums;     // of the gradient of sigma: [tasks][re, im]
  T* grad_modes;    // of what goes back into the basis of nodes
  T* grad_input;    // static: of V; a sequence of which the last step counts: of Z
  T* grad_initial;  // of P' X(0)

  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : sigma(call.shape, workers, workspace) {
    const RecurrenceShape& shape = call.shape;
    sums = workspace.take<double>(call.wanted.w_state ? shape.channels * num_tasks(shape) : 0);
    grad_modes = workspace.take<T>((shape.all_outputs() ? shape.num_steps : 1) * shape.state());
    grad_input = workspace.take<T>(shape.all_outputs() ? 0 : modes_size(shape));
    grad_initial = workspace.take<T>(call.wanted.initial ? shape.state() : 0);
  }
};

template <typename T>
void run_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                  const RecurrenceGradients<T>& out, Workspace& workspace,
                  const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const graph::EigenBasis& basis = graph::eigen_basis(shape.gso.only());
  const auto to_nodes = basis.view<T>();
  const BackwardBuffers<T> buffers(call, executor.workers(), workspace);
  buffers.sigma.load(kept.inputs.w_state, basis);
  const bool wants_sigma = out.w_state != nullptr;
  const std::int64_t half = shape.channels / 2;
  if (wants_sigma) {
    std::fill(buffers.sums, buffers.sums + shape.channels * num_tasks(shape), 0.0);
  }
  const auto sum_re = [&](std::int64_t task) {
    return wants_sigma ? buffers.sums + 2 * half * task : nullptr;
  };
  const auto sum_im = [&](std::int64_t task) {
    return wants_sigma ? buffers.sums + 2 * half * task + half : nullptr;
  };
  const T* const modes = wants_sigma ? kept.saved : nullptr;
  const T* const initial =
      wants_sigma && call.has_initial ? kept.saved + modes_size(shape) : nullptr;
  T* const grad_initial = out.initial == nullptr ? nullptr : buffers.grad_initial;
  const std::int64_t sequence = shape.num_steps * shape.block();
  change_basis(shape, basis.transpose_view<T>(), grad,
               (shape.all_outputs() ? shape.num_steps : 1) * shape.batch, buffers.grad_modes,
               executor);

  T* grad_input = buffers.grad_input;
  std::int64_t blocks = shape.batch;
  if (!is_sequence(shape)) {
    for_modes(shape, 128 + 16 * shape.batch, executor,
              [&](std::int64_t task, std::int64_t worker, std::int64_t begin, std::int64_t end) {
                kernels::mode_series_adjoint(
                    series_args<T>(shape, basis, buffers.sigma, modes, initial, worker),
                    buffers.grad_modes, grad_input, grad_initial, sum_re(task), sum_im(task), begin,
                    end);
              });
  } else {
    if (shape.all_outputs()) {
      grad_input = buffers.grad_modes;
    } else {
      std::fill(grad_input, grad_input + modes_size(shape), T{0});
      copy_step<T>(shape, buffers.grad_modes, shape.block(),
                   grad_input + (shape.num_steps - 1) * shape.block(), sequence, executor);
    }
    for_modes(shape, 8 * shape.batch * shape.num_steps, executor,
              [&](std::int64_t task, std::int64_t worker, std::int64_t begin, std::int64_t end) {
                kernels::mode_scan_adjoint(
                    scan_args<T>(shape, basis, buffers.sigma, initial, worker), modes, grad_input,
                    grad_initial, sum_re(task), sum_im(task), begin, end);
              });
    if (shape.temporal) {
      blocks = shape.batch * shape.num_steps;
    } else {
      // The same C at every step: one step after the other is added to the first, and the copies of
      // the batch move together.
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        T* const first = grad_input + b * sequence;
        for (std::int64_t t = 1; t < shape.num_steps; ++t) {
          add_numbers(first + t * shape.block(), shape.block(), first, executor);
        }
        if (b > 0) copy_numbers(first, shape.block(), grad_input + b * shape.block(), executor);
      }
    }
  }
  if (out.input != nullptr) {
    change_basis<T>(shape, to_nodes, grad_input, blocks, out.input, executor);
  }
  if (out.initial != nullptr) {
    change_basis<T>(shape, to_nodes, grad_initial, shape.batch, out.initial, executor);
  }
  if (!wants_sigma) return;
  for (std::int64_t c = 0; c < half; ++c) {
    double re = 0.0;
    double im = 0.0;
    for (std::int64_t task = 0; task < num_tasks(shape); ++task) {
      re += sum_re(task)[c];
      im += sum_im(task)[c];
    }
    const std::complex<double> grad_sigma =
        buffers.sigma.gradient(kept.inputs.w_state, c, {re, im});
    out.w_state[2 * c] = static_cast<T>(grad_sigma.real());
    out.w_state[2 * c + 1] = static_cast<T>(grad_sigma.imag());
  }
}

}  // namespace

template <typename T>
PlanFunctions<T> spectral_plan() {
  return {
      nothing_read,   saved_numbers<T>, bytes_of<ForwardBuffers<T>>, bytes_of<BackwardBuffers<T>>,
      run_forward<T>, run_backward<T>};
}
template PlanFunctions<float> spectral_plan();
template PlanFunctions<double> spectral_plan();

}  // namespace mpssm::engine
