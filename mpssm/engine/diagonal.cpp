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
#include <algorithm>
#include <vector>

#include "mpssm/engine/plans.h"
#include "mpssm/engine/slice_operator.h"
#include "mpssm/engine/slicing.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {
namespace {

using kernels::SliceLayout;

/// Where a slice of [B, N, C] or [B, T, N, C] begins, and how wide it is.
template <typename T>
class SliceView {
 public:
  SliceView(const RecurrenceShape& shape, const std::vector<SliceOperator<T>>& operators,
            const Slicing& slicing, std::int64_t task)
      : shape_(shape),
        slice_(slicing.of_task(task)),
        op_(operators[slice_.group]),
        batch_(task / slicing.count()) {}

  void pack(const T* data, T* slice) const { pack_at(data, batch_ * shape_.block(), slice); }
  void pack(const T* data, std::int64_t t, T* slice) const { pack_at(data, block_at(t), slice); }
  void unpack(const T* slice, T* data) const { unpack_at(slice, data, batch_ * shape_.block()); }
  void unpack(const T* slice, T* data, std::int64_t t) const {
    unpack_at(slice, data, block_at(t));
  }

  const SliceOperator<T>& op() const { return op_; }
  const ChannelSlice& slice() const { return slice_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t size() const { return shape_.num_nodes() * slice_.lanes; }

 private:
  std::int64_t block_at(std::int64_t t) const {
    return (batch_ * shape_.num_steps + t) * shape_.block();
  }
  void pack_at(const T* data, std::int64_t block, T* slice) const {
    kernels::pack_slice(SliceLayout::kComplex, data + block + slice_.begin, shape_.channels,
                        shape_.num_nodes(), slice_.width, slice_.lanes, slice, op_.node);
  }
  void unpack_at(const T* slice, T* data, std::int64_t block) const {
    kernels::unpack_slice(SliceLayout::kComplex, slice, shape_.num_nodes(), slice_.width,
                          slice_.lanes, data + block + slice_.begin, shape_.channels, op_.place);
  }

  const RecurrenceShape& shape_;
  const ChannelSlice& slice_;
  const SliceOperator<T>& op_;
  std::int64_t batch_;
};

constexpr std::int64_t kForwardSlices = 3;
/// Two states, the sum for the input, the partner of the products; the gradient of a step, if every
/// output has one.
std::int64_t backward_slices(const RecurrenceCall& call) {
  return call.shape.all_outputs() ? 5 : 4;
}

/// What both passes need: sigma by slices, and slices for every worker.
template <typename T>
struct Buffers {
  Slicing slicing;
  T* sigma_re;
  T* sigma_im;
  T* slices;        // [workers][slices_each][N][lanes]
  double* grad_re;  // of sigma: [batch][half]
  double* grad_im;
  std::int64_t worker_stride;

  Buffers(const RecurrenceCall& call, std::int64_t workers, std::int64_t slices_each,
          bool grad_sigma, Workspace& workspace)
      : slicing(Slicing::make<T>(call.shape, workers)) {
    const std::int64_t sums = grad_sigma ? call.shape.batch * slicing.half : 0;
    sigma_re = workspace.take<T>(slicing.half);
    sigma_im = workspace.take<T>(slicing.half);
    grad_re = workspace.take<double>(sums);
    grad_im = workspace.take<double>(sums);
    worker_stride = slices_each * call.shape.num_nodes() * slicing.lanes;
    const bool shared = worth_sharing(call.shape.batch * slicing.count(), slice_work(call.shape));
    slices = workspace.take<T>((shared ? workers : 1) * worker_stride);
  }
};

template <typename T>
struct ForwardBuffers : Buffers<T> {
  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : Buffers<T>(call, workers, kForwardSlices, false, workspace) {}
};
template <typename T>
struct BackwardBuffers : Buffers<T> {
  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : Buffers<T>(call, workers, backward_slices(call), call.wanted.w_state, workspace) {}
};

RecurrenceReads reads(const RecurrenceCall& call) {
  return {.input = call.wanted.w_state && !call.shape.all_outputs(),
          .initial = call.wanted.w_state,
          .output = call.wanted.w_state && call.shape.all_outputs()};
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
              step.a = view.op().a;
              step.lanes = view.slice().lanes;
              step.sigma_re = buffers.sigma_re + view.slice().half;
              step.sigma_im = buffers.sigma_im + view.slice().half;
              const T* x = nullptr;  // X(t)
              if (in.initial != nullptr) {
                view.pack(in.initial, states[0]);
                x = states[0];
              }
              if (!shape.temporal) view.pack(in.input, c);
              for (std::int64_t t = 0; t < shape.num_steps; ++t) {
                // Without X(0) the first state is C(1) itself, packed into a buffer that later
                // steps leave alone for as long as it is read.
                const auto other = [&] { return x == states[0] ? states[1] : states[0]; };
                if (x == nullptr) {
                  if (shape.temporal) view.pack(in.input, t, states[0]);
                  x = shape.temporal ? states[0] : c;
                } else {
                  if (shape.temporal) view.pack(in.input, t, c);
                  for (std::int64_t left = shape.hops_per_step; left > 0; --left) {
                    step.x = x;
                    step.add = left == 1 ? c : nullptr;
                    step.y = other();
                    kernels::slice_step(step);
                    x = step.y;
                  }
                }
                if (shape.all_outputs()) view.unpack(x, output, t);
              }
              if (!shape.all_outputs()) view.unpack(x, output);
            });
  return true;
}

/// Takes one slice through all steps, backwards.
template <typename T>
void slice_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                    const RecurrenceGradients<T>& out, const Buffers<T>& buffers,
                    const std::vector<SliceOperator<T>>& operators, std::int64_t task,
                    std::int64_t worker) {
  const RecurrenceShape& shape = call.shape;
  const bool wants_sigma = out.w_state != nullptr;
  // What sigma's gradient is multiplied with: the stored outputs, or the input.
  const T* const history = shape.all_outputs() ? kept.output : kept.inputs.input;
  const SliceView<T> view(shape, operators, buffers.slicing, task);
  T* const mine = buffers.slices + worker * buffers.worker_stride;
  T* const states[2] = {mine, mine + view.size()};
  T* const total = mine + 2 * view.size();
  T* const other = mine + 3 * view.size();
  T* const add = mine + 4 * view.size();  // there if every output has a gradient

  kernels::SliceAdjointStep<T> step;
  step.a_transposed = view.op().a_transposed;
  step.lanes = view.slice().lanes;
  step.sigma_re = buffers.sigma_re + view.slice().half;
  step.sigma_im = buffers.sigma_im + view.slice().half;
  if (wants_sigma) {
    const std::int64_t row = view.batch() * buffers.slicing.half + view.slice().half;
    step.grad_re = buffers.grad_re + row;
    step.grad_im = buffers.grad_im + row;
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
  const bool through_initial = out.initial != nullptr || (wants_sigma && call.has_initial);
  // t counts the states X(t) that the gradient arrives at; t = 0 is the initial one.
  for (std::int64_t t = shape.num_steps - 1; t >= (through_initial ? 0 : 1); --t) {
    const bool takes_more = shape.all_outputs() && t > 0;
    if (takes_more) view.pack(grad, t - 1, add);
    const std::int64_t steps = shape.all_outputs() ? 1 : shape.num_steps - t;
    step.weight = static_cast<double>(steps * shape.hops_per_step);
    if (wants_sigma) {
      if (t == 0) {
        view.pack(kept.inputs.initial, other);
      } else if (shape.temporal || shape.all_outputs()) {
        view.pack(history, t - 1, other);
      }
    }
    for (std::int64_t left = shape.hops_per_step; left > 0; --left) {
      const bool is_last = left == 1;
      step.p = p;
      step.p_next = p == states[0] ? states[1] : states[0];
      step.add = is_last && takes_more ? add : nullptr;
      step.total = is_last && !shape.temporal && out.input != nullptr && t > 0 ? total : nullptr;
      step.other = is_last && wants_sigma ? other : nullptr;
      kernels::slice_adjoint_step(step);
      p = step.p_next;
    }
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
  const std::vector<SliceOperator<T>> operators = slice_operators<T>(shape);
  run_tasks(executor, shape.batch * slicing.count(), slice_work(shape),
            [&](std::int64_t task, std::int64_t worker) {
              slice_backward(call, kept, grad, out, buffers, operators, task, worker);
            });
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
