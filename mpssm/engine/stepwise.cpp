// SPDX-License-Identifier: MIT
// Plan stepwise: the loop of the definition on our sparse product, for every kind of problem.
// Backward, from the last step to the first, with H(t) = A' L(t) and L the gradient of the states:
//   L(t-1) = G(t-1) + H(t) W',   grad W += X(t-1)' H(t),   grad C(t) = L(t),
//   grad A(i, j) += <L(t)(i, :), (X(t-1) W)(j, :)>.
// Of several hops between two inputs, states in between are computed again, from X(t-1).
// In bfloat16 the factors of the products with a dense W are rounded, the states stay floats.
#include <algorithm>
#include <optional>
#include <type_traits>

#include "mpssm/engine/linear.h"
#include "mpssm/engine/plans.h"
#include "mpssm/engine/spmm.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/matmul_bf16.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::engine {
namespace {

/// X(t) of every copy in the batch: blocks [N, C], `stride` numbers apart.
template <typename T>
struct Blocks {
  T* data = nullptr;
  std::int64_t stride = 0;

  operator Blocks<const T>() const { return {data, stride}; }
};

/// Step t of an array [B, T, N, C], or the array [B, N, C] itself.
template <typename T>
Blocks<T> step_of(const RecurrenceShape& shape, bool has_steps, T* data, std::int64_t t) {
  if (!has_steps) return {data, shape.block()};
  return {data + t * shape.block(), shape.num_steps * shape.block()};
}

template <typename T>
void copy_blocks(const RecurrenceShape& shape, Blocks<const T> from, Blocks<T> to,
                 const Executor& executor) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    copy_numbers(from.data + b * from.stride, shape.block(), to.data + b * to.stride, executor);
  }
}

/// W in either form: what the loop needs of it.
template <typename T>
class StateWeight {
 public:
  /// `scratch` has room for scratch_size() numbers.
  StateWeight(const RecurrenceShape& shape, const T* w, Transpose transpose, T* scratch)
      : shape_(shape), w_(w), scratch_(scratch), transpose_(transpose) {
    if (shape.diagonal) return;
    if constexpr (std::is_same_v<T, float>) {
      if (shape.precision == Precision::kBf16) {
        kernels::pack_matrix(transpose, w, shape.channels, shape.channels, packed_bf16());
        return;
      }
    }
    kernels::pack_matrix(transpose, w, shape.channels, shape.channels, scratch);
  }
  static std::int64_t scratch_size(const RecurrenceShape& shape, std::int64_t workers) {
    return shape.diagonal
               ? 0
               : matmul_scratch(shape.channels, shape.channels, shape.precision, workers);
  }

  /// out = x W, or x W' if it was packed so, plus `add` unless that is null.
  void times(Blocks<const T> x, Blocks<const T> add, Blocks<T> out,
             const Executor& executor) const {
    if (shape_.diagonal) return pairs_times(x, add, out, executor);
    MatmulBatch<T> args;
    args.batch = shape_.batch;
    args.rows = shape_.num_nodes();
    args.inner = args.columns = shape_.channels;
    args.x = x.data;
    args.x_stride = x.stride;
    if (shape_.precision == Precision::kBf16) {
      args.packed_bf16 = packed_bf16();
      args.rounded = packed_bf16() + kernels::packed_size_bf16(shape_.channels, shape_.channels);
    } else {
      args.packed = scratch_;
    }
    args.add = add.data;
    args.add_stride = add.stride;
    args.y = out.data;
    args.y_stride = out.stride;
    matmul(args, executor);
  }

 private:
  kernels::Bf16* packed_bf16() const { return reinterpret_cast<kernels::Bf16*>(scratch_); }

  void pairs_times(Blocks<const T> x, Blocks<const T> add, Blocks<T> out,
                   const Executor& executor) const {
    const T sign = transpose_ == Transpose::kYes ? T{-1} : T{1};
    const std::int64_t channels = shape_.channels;
    const std::int64_t rows = shape_.num_nodes();
    constexpr std::int64_t kRows = 256;
    const std::int64_t tasks = (rows + kRows - 1) / kRows;
    run_tasks(executor, shape_.batch * tasks, 4 * shape_.state(), [&](std::int64_t task) {
      const std::int64_t b = task / tasks;
      const std::int64_t end = std::min(rows, (task % tasks + 1) * kRows);
      for (std::int64_t row = task % tasks * kRows; row < end; ++row) {
        const T* from = x.data + b * x.stride + row * channels;
        const T* base = add.data == nullptr ? nullptr : add.data + b * add.stride + row * channels;
        T* to = out.data + b * out.stride + row * channels;
        for (std::int64_t c = 0; c < channels; c += 2) {
          const T re = w_[c];
          const T im = sign * w_[c + 1];
          const T x_re = from[c];
          const T x_im = from[c + 1];
          to[c] = x_re * re - x_im * im;
          to[c + 1] = x_re * im + x_im * re;
          if (base == nullptr) continue;
          to[c] += base[c];
          to[c + 1] += base[c + 1];
        }
      }
    });
  }

  const RecurrenceShape& shape_;
  const T* w_;
  T* scratch_;
  Transpose transpose_;
};

/// out [C/2 pairs] = the sum over rows of h conj(x), in the order of the rows of a part, then of
/// the parts.
template <typename T>
void pair_products(const T* x, const T* h, std::int64_t rows, std::int64_t channels, T* out,
                   T* scratch, const Executor& executor) {
  const RowParts parts(rows);
  std::fill(scratch, scratch + parts.count * channels, T{0});
  run_tasks(executor, parts.count, 4 * rows * channels, [&](std::int64_t part) {
    T* sum = scratch + part * channels;
    for (std::int64_t row = parts.begin(part); row < parts.end(part); ++row) {
      const T* a = x + row * channels;
      const T* b = h + row * channels;
      for (std::int64_t c = 0; c < channels; c += 2) {
        sum[c] += b[c] * a[c] + b[c + 1] * a[c + 1];
        sum[c + 1] += b[c + 1] * a[c] - b[c] * a[c + 1];
      }
    }
  });
  sum_of_parts(scratch, parts.count, channels, out, executor);
}

enum class Side { kForward, kTransposed };

/// The hop of step t: one call for the batch, or one for each copy if A(t) may differ.
template <typename T>
void hop_of_step(const RecurrenceShape& shape, Side side, std::int64_t t, SpmmBatch<T> hop,
                 const Executor& executor) {
  const auto view_of = [&](std::int64_t copy) {
    const graph::Gso& gso = shape.gso.at(copy, t);
    return side == Side::kForward ? gso.view<T>() : gso.transpose_view<T>();
  };
  hop.width = shape.channels;
  if (shape.gso.num_copies() == 1) {
    hop.a = view_of(0);
    hop.batch = shape.batch;
    spmm(hop, executor);
    return;
  }
  hop.batch = 1;
  for (std::int64_t copy = 0; copy < shape.batch; ++copy) {
    hop.a = view_of(copy);
    spmm(hop, executor);
    hop.x += hop.x_stride;
    if (hop.add != nullptr) hop.add += hop.add_stride;
    hop.y += hop.y_stride;
  }
}

/// out = A x, plus `add` unless that is null.
template <typename T>
void times_a(const RecurrenceShape& shape, std::int64_t t, Blocks<const T> x, Blocks<const T> add,
             Blocks<T> out, const Executor& executor) {
  SpmmBatch<T> hop;
  hop.x = x.data;
  hop.x_stride = x.stride;
  hop.add = add.data;
  hop.add_stride = add.stride;
  hop.y = out.data;
  hop.y_stride = out.stride;
  hop_of_step(shape, Side::kForward, t, hop, executor);
}

bool needs_states(const RecurrenceCall& call) {
  return call.wanted.w_state || call.wanted.gso_values;
}

RecurrenceReads reads(const RecurrenceCall& call) {
  return {.input = false,
          .initial = needs_states(call),
          .output = needs_states(call) && call.shape.all_outputs()};
}

std::int64_t saved_numbers(const RecurrenceCall& call) {
  const bool keeps = needs_states(call) && !call.shape.all_outputs();
  return keeps ? call.shape.num_steps * call.shape.state() : 0;
}

template <typename T>
struct ForwardBuffers {
  T* packed;
  T* product;  // X W
  T* between;  // the state after a hop that is not a step's last
  T* spare;    // states take turns between this and the output, unless they are kept

  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : packed(workspace.take<T>(StateWeight<T>::scratch_size(call.shape, workers))),
        product(workspace.take<T>(call.shape.state())),
        between(workspace.take<T>(call.shape.hops_per_step > 1 ? call.shape.state() : 0)),
        spare(workspace.take<T>(
            call.shape.all_outputs() || saved_numbers(call) > 0 ? 0 : call.shape.state())) {}
};

template <typename T>
bool run_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output, T* saved,
                 Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const ForwardBuffers<T> buffers(call, executor.workers(), workspace);
  const StateWeight<T> w(shape, in.w_state, Transpose::kNo, buffers.packed);
  const bool keeps = shape.all_outputs() || saved_numbers(call) > 0;
  T* const states = shape.all_outputs() ? output : saved;
  const auto state_at = [&](std::int64_t t) -> Blocks<T> {
    if (keeps) return step_of(shape, true, states, t);
    const bool is_output = (shape.num_steps - 1 - t) % 2 == 0;
    return {is_output ? output : buffers.spare, shape.block()};
  };
  const Blocks<T> product{buffers.product, shape.block()};

  Blocks<const T> x{in.initial, shape.block()};
  for (std::int64_t t = 0; t < shape.num_steps; ++t) {
    const Blocks<const T> input = step_of(shape, shape.temporal, in.input, t);
    const Blocks<T> next = state_at(t);
    if (x.data == nullptr) {
      if (keeps || shape.num_steps == 1) {
        copy_blocks(shape, input, next, executor);
        x = next;
      } else {
        x = input;  // X(1) = C(1), read where it is
      }
      continue;
    }
    for (std::int64_t left = shape.hops_per_step; left > 0; --left) {
      const bool is_last = left == 1;
      const Blocks<T> to = is_last ? next : Blocks<T>{buffers.between, shape.block()};
      w.times(x, {}, product, executor);
      times_a<T>(shape, t, product, is_last ? input : Blocks<const T>{}, to, executor);
      x = to;
    }
  }
  if (keeps && !shape.all_outputs()) {
    copy_blocks<T>(shape, x, {output, shape.block()}, executor);
  }
  return true;
}

template <typename T>
struct BackwardBuffers {
  T* packed_adjoint;
  T* packed;
  T* lambda[2];
  T* h;
  T* product;   // X W, for the gradient of A and for the states between
  T* between;   // states after each hop of a step but the last
  T* gathered;  // a state whose copies lie apart, in one piece
  T* w_term;    // what one step adds to the gradient of W
  T* scratch;

  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace) {
    const RecurrenceShape& shape = call.shape;
    const std::int64_t state = shape.state();
    const std::int64_t rows = shape.batch * shape.num_nodes();
    const std::int64_t channels = shape.channels;
    const std::int64_t of_w = StateWeight<T>::scratch_size(shape, workers);
    packed_adjoint = workspace.take<T>(of_w);
    const bool moves_again = needs_states(call) && shape.hops_per_step > 1;
    const bool times_w = call.wanted.gso_values || moves_again;
    packed = workspace.take<T>(times_w ? of_w : 0);
    for (T*& buffer : lambda) buffer = workspace.take<T>(state);
    h = workspace.take<T>(state);
    product = workspace.take<T>(times_w ? state : 0);
    between = workspace.take<T>(moves_again ? (shape.hops_per_step - 1) * state : 0);
    gathered = workspace.take<T>(call.wanted.w_state && shape.batch > 1 ? state : 0);
    w_term = workspace.take<T>(!call.wanted.w_state ? 0
                               : shape.diagonal     ? channels
                                                    : channels * channels);
    scratch = workspace.take<T>(!call.wanted.w_state ? 0
                                : shape.diagonal
                                    ? column_sums_scratch(rows, channels)
                                    : transposed_matmul_scratch(rows, channels, channels, workers));
  }
};

template <typename T>
void add_value_gradient(const RecurrenceShape& shape, const T* grad, const T* product, T* out,
                        const Executor& executor) {
  kernels::SpmmValueGradArgs<T> args;
  args.a = shape.gso.only().view<T>();
  args.width = args.g_stride = args.x_stride = shape.channels;
  args.grad = out;
  constexpr std::int64_t kRows = 256;  // a task owns its rows' entries
  const std::int64_t n = shape.num_nodes();
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    args.g = grad + b * shape.block();
    args.x = product + b * shape.block();
    run_tasks(executor, (n + kRows - 1) / kRows, shape.gso.num_nonzeros() * args.width,
              [&](std::int64_t task) {
                kernels::spmm_value_grad(args, task * kRows, std::min(n, (task + 1) * kRows));
              });
  }
}

template <typename T>
void run_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                  const RecurrenceGradients<T>& out, Workspace& workspace,
                  const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const std::int64_t steps = shape.num_steps;
  const std::int64_t state = shape.state();
  const std::int64_t rows = shape.batch * shape.num_nodes();
  const std::int64_t channels = shape.channels;
  const BackwardBuffers<T> buffers(call, executor.workers(), workspace);
  const StateWeight<T> adjoint(shape, kept.inputs.w_state, Transpose::kYes, buffers.packed_adjoint);
  const std::int64_t w_size = shape.diagonal ? channels : channels * channels;
  if (out.w_state != nullptr) std::fill(out.w_state, out.w_state + w_size, T{0});
  if (out.gso_values != nullptr) {
    std::fill(out.gso_values, out.gso_values + shape.gso.num_nonzeros(), T{0});
  }
  if (out.input != nullptr && !shape.temporal) std::fill(out.input, out.input + state, T{0});
  const T* states = shape.all_outputs() ? kept.output : kept.saved;
  const bool has_states = out.w_state != nullptr || out.gso_values != nullptr;
  std::optional<StateWeight<T>> w;
  if (out.gso_values != nullptr || (has_states && shape.hops_per_step > 1)) {
    w.emplace(shape, kept.inputs.w_state, Transpose::kNo, buffers.packed);
  }
  const Blocks<T> product{buffers.product, shape.block()};
  const auto between = [&](std::int64_t hop) -> Blocks<T> {
    return {buffers.between + (hop - 1) * state, shape.block()};
  };

  const T* lambda = grad;
  if (shape.all_outputs()) {
    copy_blocks<T>(shape, step_of(shape, true, grad, steps - 1), {buffers.lambda[0], shape.block()},
                   executor);
    lambda = buffers.lambda[0];
  }
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    if (out.input != nullptr) {
      if (shape.temporal) {
        copy_blocks<T>(shape, {lambda, shape.block()}, step_of(shape, true, out.input, t),
                       executor);
      } else {
        add_numbers(lambda, state, out.input, executor);
      }
    }
    if (t == 0 && !call.has_initial) break;
    Blocks<const T> before{kept.inputs.initial, shape.block()};  // X(t) of the step t -> t+1
    if (t > 0 && has_states) before = step_of(shape, true, states, t - 1);
    for (std::int64_t hop = 1; has_states && hop < shape.hops_per_step; ++hop) {
      w->times(hop == 1 ? before : between(hop - 1), {}, product, executor);
      times_a<T>(shape, t, product, {}, between(hop), executor);
    }
    for (std::int64_t hop = shape.hops_per_step - 1; hop >= 0; --hop) {
      const Blocks<const T> from = hop == 0 || !has_states ? before : between(hop);
      if (out.gso_values != nullptr) {
        w->times(from, {}, product, executor);
        add_value_gradient(shape, lambda, buffers.product, out.gso_values, executor);
      }
      SpmmBatch<T> back;
      back.x = lambda;
      back.y = buffers.h;
      back.x_stride = back.y_stride = shape.block();
      hop_of_step(shape, Side::kTransposed, t, back, executor);
      if (out.w_state != nullptr) {
        const T* x = from.data;
        if (shape.batch > 1 && from.stride != shape.block()) {
          copy_blocks<T>(shape, from, {buffers.gathered, shape.block()}, executor);
          x = buffers.gathered;
        }
        if (shape.diagonal) {
          pair_products(x, buffers.h, rows, channels, buffers.w_term, buffers.scratch, executor);
        } else {
          transposed_matmul(x, buffers.h, rows, channels, channels, buffers.w_term, buffers.scratch,
                            executor, shape.precision);
        }
        add_numbers(buffers.w_term, w_size, out.w_state, executor);
      }
      T* const next = lambda == buffers.lambda[0] ? buffers.lambda[1] : buffers.lambda[0];
      const bool more = hop == 0 && t > 0 && shape.all_outputs();
      adjoint.times({buffers.h, shape.block()},
                    more ? step_of(shape, true, grad, t - 1) : Blocks<const T>{},
                    {next, shape.block()}, executor);
      lambda = next;
    }
    if (t == 0 && out.initial != nullptr) copy_numbers(lambda, state, out.initial, executor);
  }
}

}  // namespace

template <typename T>
PlanFunctions<T> stepwise_plan() {
  return {reads,          saved_numbers,  bytes_of<ForwardBuffers<T>>, bytes_of<BackwardBuffers<T>>,
          run_forward<T>, run_backward<T>};
}
template PlanFunctions<float> stepwise_plan();
template PlanFunctions<double> stepwise_plan();

}  // namespace mpssm::engine
