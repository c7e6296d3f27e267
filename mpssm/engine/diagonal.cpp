// SPDX-License-Identifier: MIT
// Plan diagonal. With W = diag(sigma) channels never mix, so each slice of channels goes through
// all steps by itself, in cache, and is written back once.
//
// Backward, with P(0) = G and Q(i) = A' P(i-1), P(i) = conj(sigma) Q(i):
//   the gradient of C(T-i) is P(i), that of sigma is sum_i i <Q(i), C(T-i)>,
// because X(T) = sum_i sigma^i A^i C(T-i) and d sigma^i = i sigma^(i-1). One product with A' per
// step gives both, and no state is ever stored: memory does not depend on T for constant input.
// When every output has a gradient, P takes G(t) in at each step and the stored outputs take the
// place of C. Of several hops between two inputs the last alone meets C and G, and counts for all.
//
// The gradient of A(u, v) is sum_t <P_u, sigma X(t)_v> with P that of X(t+1). Where X(t) is not an
// output it is walked to again (state_replay.h). Entries are sums over slices: those of as many
// slices as there are workers are kept at a time, and added in the order of the slices.
#include <algorithm>
#include <vector>

#include "mpssm/engine/plans.h"
#include "mpssm/engine/slice_operator.h"
#include "mpssm/engine/slicing.h"
#include "mpssm/engine/state_replay.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/entry_grad.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {
namespace {

/// Where a slice of [B, N, C] or [B, T, N, C] begins, and how wide it is.
template <typename T>
class SliceView {
 public:
  SliceView(const RecurrenceShape& shape, const std::vector<SliceOperator<T>>& operators,
            const Slicing& slicing, std::int64_t task)
      : shape_(shape),
        slice_(slicing.of_task(task)),
        operators_(operators),
        op_(operators[slice_.group]),
        batch_(task / slicing.count()) {}

  void pack(const T* data, T* slice) const { pack_at(data, batch_ * shape_.block(), slice); }
  void pack(const T* data, std::int64_t t, T* slice) const { pack_at(data, block_at(t), slice); }
  void unpack(const T* slice, T* data) const { unpack_at(slice, data, batch_ * shape_.block()); }
  void unpack(const T* slice, T* data, std::int64_t t) const {
    unpack_at(slice, data, block_at(t));
  }

  const SliceOperator<T>& op() const { return op_; }
  /// Of groups that share the slice, with their values side by side in `room`.
  kernels::LaneOperators<T> of_lanes(T* room) const { return of_lanes(&SliceOperator<T>::a, room); }
  kernels::LaneOperators<T> of_lanes_transposed(T* room) const {
    return of_lanes(&SliceOperator<T>::a_transposed, room);
  }
  const ChannelSlice& slice() const { return slice_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t size() const { return shape_.num_nodes() * slice_.lanes; }

 private:
  kernels::LaneOperators<T> of_lanes(kernels::CsrView<T> SliceOperator<T>::*view, T* room) const {
    const std::int64_t operators = slice_.num_operators();
    if (operators == 1) return {};
    const std::int64_t entries = shape_.gso.of_group(slice_.group).num_nonzeros();
    for (std::int64_t k = 0; k < operators; ++k) {
      const T* const values = (operators_[slice_.group + k].*view).value;
      for (std::int64_t e = 0; e < entries; ++e) room[e * operators + k] = values[e];
    }
    return {.values = room, .operators = operators, .first_lane = slice_.next};
  }
  std::int64_t block_at(std::int64_t t) const {
    return (batch_ * shape_.num_steps + t) * shape_.block();
  }
  void pack_at(const T* data, std::int64_t block, T* slice) const {
    kernels::pack_slice(data + block + slice_.begin, shape_.channels, shape_.num_nodes(),
                        slice_.width, slice_.lanes, slice, op_.node);
  }
  void unpack_at(const T* slice, T* data, std::int64_t block) const {
    kernels::unpack_slice(slice, shape_.num_nodes(), slice_.width, slice_.lanes,
                          data + block + slice_.begin, shape_.channels, op_.place);
  }

  const RecurrenceShape& shape_;
  const ChannelSlice& slice_;
  const std::vector<SliceOperator<T>>& operators_;
  const SliceOperator<T>& op_;
  std::int64_t batch_;
};

/// Whether a step needs nothing but the one before: no input or operator of its own, nobody to hand
/// its state to.
bool steps_go_on(const RecurrenceShape& shape) {
  return !shape.temporal && !shape.all_outputs() && !shape.gso.is_sequence();
}

constexpr std::int64_t kForwardSlices = 3;
/// Two states, the sum for the input, the partner of the products; the gradient of a step, if every
/// output has one.
std::int64_t backward_slices(const RecurrenceCall& call) {
  return call.shape.all_outputs() ? 5 : 4;
}

/// For the gradient of the entries: the states X(t) that are no outputs, to be walked to again.
ReplayLayout replay_of(const RecurrenceCall& call) {
  const bool walks = call.wanted.gso_values && !call.shape.all_outputs();
  return ReplayLayout(walks ? call.shape.num_steps - 1 : 0);
}
/// These, and the input of their steps.
std::int64_t replay_slices(const RecurrenceCall& call) {
  const std::int64_t kept = replay_of(call).kept();
  return kept == 0 ? 0 : kept + 1;
}

/// Sums over channels must not depend on the workers: then slices are cut as for this many.
constexpr std::int64_t kEntryWorkers = 4;

/// What both passes need: sigma by slices, and slices for every worker.
template <typename T>
struct Buffers {
  Slicing slicing;
  T* sigma_re;
  T* sigma_im;
  T* slices;        // [workers][slices_each][N][lanes]
  T* entry_values;  // for SliceView::of_lanes, [workers][entry_stride]
  double* grad_re;  // of sigma: [batch][half]
  double* grad_im;
  std::int64_t worker_stride;
  std::int64_t entry_stride;
  std::int64_t at_once;  // slices of which one worker each takes care

  Buffers(const RecurrenceCall& call, std::int64_t workers, const Slicing& cut,
          std::int64_t slices_each, bool grad_sigma, Workspace& workspace)
      : slicing(cut) {
    const std::int64_t sums = grad_sigma ? call.shape.batch * slicing.half : 0;
    sigma_re = workspace.take<T>(slicing.half);
    sigma_im = workspace.take<T>(slicing.half);
    grad_re = workspace.take<double>(sums);
    grad_im = workspace.take<double>(sums);
    worker_stride = slices_each * call.shape.num_nodes() * slicing.lanes;
    const bool shared = worth_sharing(call.shape.batch * slicing.count(), slice_work(call.shape));
    at_once = shared ? workers : 1;
    slices = workspace.take<T>(at_once * worker_stride);
    const std::int64_t shared_entries = slicing.most_shared_entries(call.shape.gso);
    entry_stride = shared_entries == 0 ? 0 : shared_entries + kernels::kEntryReads;
    entry_values = workspace.take<T>(at_once * entry_stride);
  }
};

template <typename T>
struct ForwardBuffers : Buffers<T> {
  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : Buffers<T>(call, workers,
                   Slicing::make<T>(call.shape, workers, joined_groups<T>(call.shape)),
                   kForwardSlices, false, workspace) {}
};
template <typename T>
struct BackwardBuffers : Buffers<T> {
  T* entries;  // of A, their gradient: [at_once][nonzeros]

  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : Buffers<T>(call, workers,
                   Slicing::make<T>(call.shape, call.wanted.gso_values ? kEntryWorkers : workers,
                                    joined_groups<T>(call.shape)),
                   backward_slices(call) + replay_slices(call), call.wanted.w_state, workspace),
        entries(workspace.take<T>(
            call.wanted.gso_values ? this->at_once * call.shape.gso.num_nonzeros() : 0)) {}
};

RecurrenceReads reads(const RecurrenceCall& call) {
  const bool states = call.wanted.w_state || call.wanted.gso_values;
  return {.input = states && !call.shape.all_outputs(),
          .initial = states,
          .output = states && call.shape.all_outputs()};
}

template <typename T>
bool run_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output, T* /*saved*/,
                 Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const ForwardBuffers<T> buffers(call, executor.workers(), workspace);
  const Slicing& slicing = buffers.slicing;
  spread_sigma(in.w_state, slicing, buffers.sigma_re, buffers.sigma_im);
  const std::vector<SliceOperator<T>> operators = slice_operators<T>(shape);

  run_tasks(executor, shape.batch * slicing.count(), slice_work(shape),
            [&](std::int64_t task, std::int64_t worker) {
              const SliceView<T> view(shape, operators, slicing, task);
              T* const mine = buffers.slices + worker * buffers.worker_stride;
              T* const c = mine;
              T* const states[2] = {mine + view.size(), mine + 2 * view.size()};

              kernels::SliceStep<T> step;
              step.lanes = view.slice().lanes;
              step.of_lanes = view.of_lanes(buffers.entry_values + worker * buffers.entry_stride);
              step.sigma_re = buffers.sigma_re + view.slice().half;
              step.sigma_im = buffers.sigma_im + view.slice().half;
              const T* x = nullptr;  // X(t)
              if (in.initial != nullptr) {
                view.pack(in.initial, states[0]);
                x = states[0];
              }
              if (!shape.temporal) view.pack(in.input, c);
              for (std::int64_t t = 0; t < shape.num_steps;) {
                // Without X(0) the first state is C(1) itself, packed into a buffer that later
                // steps leave alone for as long as it is read.
                std::int64_t steps = 1;
                if (x == nullptr) {
                  if (shape.temporal) view.pack(in.input, t, states[0]);
                  x = shape.temporal ? states[0] : c;
                } else {
                  if (shape.temporal) view.pack(in.input, t, c);
                  if (steps_go_on(shape)) steps = shape.num_steps - t;
                  step.a = view.op().at(view.batch(), t);
                  T* const targets[2] = {x == states[0] ? states[1] : states[0],
                                         x == states[0] ? states[0] : states[1]};
                  const std::int64_t hops = steps * shape.hops_per_step;
                  view.op().waves(hops,
                                  [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
                                    step.x = hop == 0 ? x : targets[(hop - 1) % 2];
                                    step.add = (hop + 1) % shape.hops_per_step == 0 ? c : nullptr;
                                    step.y = targets[hop % 2];
                                    kernels::slice_step(rows_of(step, first, count));
                                  });
                  x = targets[(hops - 1) % 2];
                }
                t += steps;
                if (shape.all_outputs()) view.unpack(x, output, t - 1);
              }
              if (!shape.all_outputs()) view.unpack(x, output);
            });
  return true;
}

/// Takes one slice through all steps, backwards. `entries` takes its share of the gradient of A, if
/// that is wanted.
template <typename T>
void slice_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                    const RecurrenceGradients<T>& out, const Buffers<T>& buffers,
                    const std::vector<SliceOperator<T>>& operators, std::int64_t task,
                    std::int64_t worker, T* entries) {
  const RecurrenceShape& shape = call.shape;
  const bool wants_sigma = out.w_state != nullptr;
  const bool wants_entries = entries != nullptr;
  // What sigma's gradient is multiplied with: the stored outputs, or the input.
  const T* const history = shape.all_outputs() ? kept.output : kept.inputs.input;
  const SliceView<T> view(shape, operators, buffers.slicing, task);
  T* const mine = buffers.slices + worker * buffers.worker_stride;
  T* const states[2] = {mine, mine + view.size()};
  T* const total = mine + 2 * view.size();
  T* const other = mine + 3 * view.size();
  T* const add = mine + 4 * view.size();  // there if every output has a gradient

  kernels::SliceAdjointStep<T> step;
  step.lanes = view.slice().lanes;
  step.of_lanes = view.of_lanes_transposed(buffers.entry_values + worker * buffers.entry_stride);
  step.sigma_re = buffers.sigma_re + view.slice().half;
  step.sigma_im = buffers.sigma_im + view.slice().half;
  if (wants_sigma) {
    const std::int64_t row = view.batch() * buffers.slicing.half + view.slice().half;
    step.grad_re = buffers.grad_re + row;
    step.grad_im = buffers.grad_im + row;
  }

  kernels::SliceEntryGrad<T> pairing;
  pairing.a = view.op().a;
  pairing.lanes = step.lanes;
  pairing.sigma_re = step.sigma_re;
  pairing.sigma_im = step.sigma_im;
  pairing.grad = entries;

  // X(t) once more: its input c, and the states that are kept.
  T* const c = mine + backward_slices(call) * view.size();
  const auto forward_step = [&](std::int64_t t, const T* x, T* y) {
    kernels::SliceStep<T> again;
    again.a = view.op().a;
    again.lanes = step.lanes;
    again.sigma_re = step.sigma_re;
    again.sigma_im = step.sigma_im;
    if (shape.temporal) view.pack(kept.inputs.input, t, c);
    again.x = x;
    again.add = c;
    again.y = y;
    kernels::slice_step(again);
  };
  StateReplay<T, decltype(forward_step)> replay(replay_of(call), view.size(), c + view.size(),
                                                forward_step);
  if (replay_slices(call) > 0 && wants_entries) {
    if (!shape.temporal) view.pack(kept.inputs.input, c);
    if (call.has_initial) {
      view.pack(kept.inputs.initial, states[1]);
      forward_step(0, states[1], replay.first());
    } else if (shape.temporal) {
      view.pack(kept.inputs.input, 0, replay.first());
    } else {
      std::copy(c, c + view.size(), replay.first());
    }
  }

  T* p = states[0];
  if (shape.all_outputs()) {
    view.pack(grad, shape.num_steps - 1, p);
  } else {
    view.pack(grad, p);
  }
  if (shape.temporal) {
    if (out.input != nullptr) view.unpack(p, out.input, shape.num_steps - 1);
  } else {
    std::copy(p, p + view.size(), total);
    // For kLast the partner of every step is the same C.
    if (wants_sigma && !shape.all_outputs()) view.pack(history, other);
  }
  // The step from X(0) matters only if there is one.
  const bool through_initial =
      out.initial != nullptr || ((wants_sigma || wants_entries) && call.has_initial);
  // t counts the states X(t) that the gradient arrives at; t = 0 is the initial one.
  std::int64_t steps = 1;
  for (std::int64_t t = shape.num_steps - 1; t >= (through_initial ? 0 : 1); t -= steps) {
    // All of them but the one from X(0), which has another partner.
    steps = steps_go_on(shape) && !wants_entries && t > 0 ? t : 1;
    step.a_transposed = view.op().transposed_at(view.batch(), t);
    const bool takes_more = shape.all_outputs() && t > 0;
    if (takes_more) view.pack(grad, t - 1, add);
    if (t == 0 && (wants_sigma || wants_entries)) {
      view.pack(kept.inputs.initial, other);
    } else if (shape.all_outputs() ? wants_sigma || wants_entries : wants_sigma && shape.temporal) {
      view.pack(history, t - 1, other);
    }
    if (wants_entries) {
      pairing.p = p;
      pairing.x = t == 0 || shape.all_outputs() ? other : replay.at(t);
      kernels::slice_entry_grad(pairing);
    }
    T* const targets[2] = {p == states[0] ? states[1] : states[0], p};
    const std::int64_t hops = steps * shape.hops_per_step;
    view.op().waves(hops, [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
      const std::int64_t from_end = shape.num_steps - t + hop / shape.hops_per_step;
      step.weight = static_cast<double>((shape.all_outputs() ? 1 : from_end) * shape.hops_per_step);
      const bool is_last = (hop + 1) % shape.hops_per_step == 0;
      step.p = targets[(hop + 1) % 2];
      step.p_next = targets[hop % 2];
      step.add = is_last && takes_more ? add : nullptr;
      step.total = is_last && !shape.temporal && out.input != nullptr && t > 0 ? total : nullptr;
      step.other = is_last && wants_sigma ? other : nullptr;
      kernels::slice_adjoint_step(rows_of(step, first, count));
    });
    p = targets[(hops - 1) % 2];
    if (t == 0) {
      if (out.initial != nullptr) view.unpack(p, out.initial);
    } else if (shape.temporal && out.input != nullptr) {
      view.unpack(p, out.input, t - 1);
    }
  }
  if (!shape.temporal && out.input != nullptr) view.unpack(total, out.input);
}

template <typename T>
void run_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                  const RecurrenceGradients<T>& out, Workspace& workspace,
                  const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const BackwardBuffers<T> buffers(call, executor.workers(), workspace);
  const Slicing& slicing = buffers.slicing;
  spread_sigma(kept.inputs.w_state, slicing, buffers.sigma_re, buffers.sigma_im);
  if (out.w_state != nullptr) {
    std::fill(buffers.grad_re, buffers.grad_re + shape.batch * slicing.half, 0.0);
    std::fill(buffers.grad_im, buffers.grad_im + shape.batch * slicing.half, 0.0);
  }
  RecurrenceShape ordering = shape;
  // The gradient of the entries comes out in their own order.
  if (out.gso_values != nullptr) ordering.ordering = Ordering::kNever;
  const std::vector<SliceOperator<T>> operators = slice_operators<T>(ordering);
  const std::int64_t tasks = shape.batch * slicing.count();
  const std::int64_t nonzeros = shape.gso.num_nonzeros();
  if (out.gso_values != nullptr) std::fill(out.gso_values, out.gso_values + nonzeros, T{0});
  const std::int64_t at_once = out.gso_values == nullptr ? tasks : buffers.at_once;
  for (std::int64_t begin = 0; begin < tasks; begin += at_once) {
    const std::int64_t count = std::min(at_once, tasks - begin);
    run_tasks(executor, count, slice_work(shape), [&](std::int64_t i, std::int64_t worker) {
      T* entries = nullptr;
      if (out.gso_values != nullptr) {
        entries = buffers.entries + i * nonzeros;
        std::fill(entries, entries + nonzeros, T{0});
      }
      slice_backward(call, kept, grad, out, buffers, operators, begin + i, worker, entries);
    });
    if (out.gso_values == nullptr) continue;
    for_numbers(executor, nonzeros, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T* entries = buffers.entries + i * nonzeros;
        for (std::int64_t e = first; e < last; ++e) out.gso_values[e] += entries[e];
      }
    });
  }
  if (out.w_state != nullptr) {
    gather_sigma(buffers.grad_re, buffers.grad_im, shape, slicing, out.w_state);
  }
}

}  // namespace

template <typename T>
PlanFunctions<T> diagonal_plan() {
  return {reads,          nothing_saved,  bytes_of<ForwardBuffers<T>>, bytes_of<BackwardBuffers<T>>,
          run_forward<T>, run_backward<T>};
}
template PlanFunctions<float> diagonal_plan();
template PlanFunctions<double> diagonal_plan();

}  // namespace mpssm::engine
