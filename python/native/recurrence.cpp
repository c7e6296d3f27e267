// SPDX-License-Identifier: MIT
// The recurrence and the sparse product for Python: plan, sizes, memory.
#include "mpssm/engine/recurrence.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/engine/call_memory.h"
#include "mpssm/engine/spmm.h"

#include "python/native/error.h"
#include "python/native/gso.h"
#include "python/native/threads.h"

namespace mpssm::native {
namespace {

using engine::Plan;

/// Every field takes eight bytes. What a call does not have is null.
struct RecurrenceArguments {
  std::int64_t plan;
  std::int64_t batch;
  std::int64_t num_steps;
  std::int64_t channels;
  std::int64_t temporal;
  std::int64_t diagonal;
  std::int64_t all_outputs;
  std::int64_t has_initial;
  std::int64_t wanted;       // bits: gradient of the input, of W, of X(0), of the entries of A
  std::int64_t saved_count;  // numbers in `saved`
  std::int64_t precision;
  std::int64_t all_channels;
  std::int64_t other_entries;  // those of A are not the graph's own, but given
  std::int64_t num_operators;  // that come with a call, one for each group of channels ...
  std::int64_t num_copies;     // ... or if not zero those of a sequence (graph::Operators)
  std::int64_t hops_per_step;
  const std::int32_t* index;  // of a sequence: [num_copies, num_steps]
  const void* input;
  const void* w_state;
  const void* initial;
  void* output;
  void* saved;
  const void* grad;
  void* grad_input;
  void* grad_w_state;
  void* grad_initial;
  void* grad_entries;

  graph::Operators operators(const GsoArguments* gso) const {
    if (num_copies == 0) return borrow_groups(gso, num_operators);
    std::vector<std::int32_t> steps(static_cast<std::size_t>(num_copies * num_steps));
    if (index != nullptr) std::copy_n(index, steps.size(), steps.begin());
    return borrow_sequence(gso, num_operators, std::move(steps), num_steps);
  }
  engine::RecurrenceCall call(const GsoArguments* gso) const {
    return {.plan = static_cast<Plan>(plan),
            .shape = {.gso = operators(gso),
                      .batch = batch,
                      .num_steps = num_steps,
                      .channels = channels,
                      .temporal = temporal != 0,
                      .diagonal = diagonal != 0,
                      .outputs = all_outputs != 0 ? engine::Outputs::kAll : engine::Outputs::kLast,
                      .precision = static_cast<engine::Precision>(precision),
                      .hops_per_step = hops_per_step,
                      .all_channels = all_channels},
            .has_initial = has_initial != 0,
            .wanted = {.input = (wanted & 1) != 0,
                       .w_state = (wanted & 2) != 0,
                       .initial = (wanted & 4) != 0,
                       .gso_values = (wanted & 8) != 0}};
  }
  template <typename T>
  engine::RecurrenceInputs<T> inputs() const {
    return {static_cast<const T*>(input), static_cast<const T*>(w_state),
            static_cast<const T*>(initial)};
  }
};

/// Numbers kept for the backward pass. Plan doubling has one more: whether its numbers left their
/// range, in which case what is kept is the input and X(0), and the backward pass goes stepwise.
template <typename T>
std::int64_t saved_numbers(const engine::RecurrenceCall& call) {
  const bool marks = call.plan == Plan::kDoubling && call.wanted.any();
  return engine::saved_size<T>(call) + (marks ? 1 : 0);
}

template <typename T>
void run_forward(const engine::RecurrenceCall& call, const engine::RecurrenceInputs<T>& inputs,
                 T* output, T* saved) {
  const HostThreads threads;
  const std::int64_t state = call.shape.state();
  const std::int64_t kept = engine::saved_size<T>(call);
  bool is_done = false;
  {
    const engine::CallMemory memory(engine::forward_bytes<T>(call, threads.workers()));
    is_done = engine::forward<T>(call, inputs, output, saved, memory.workspace(), threads);
  }
  if (call.plan == Plan::kDoubling && call.wanted.any()) saved[kept] = is_done ? T{0} : T{1};
  if (is_done) return;
  engine::RecurrenceCall instead = call;
  instead.plan = Plan::kStepwise;
  instead.wanted = {};
  const engine::CallMemory memory(engine::forward_bytes<T>(instead, threads.workers()));
  (void)engine::forward<T>(instead, inputs, output, nullptr, memory.workspace(), threads);
  if (kept == 0) return;  // then the gradients need W alone
  std::copy(inputs.input, inputs.input + state, saved);
  if (call.has_initial) std::copy(inputs.initial, inputs.initial + state, saved + state);
}

template <typename T>
void run_backward(const engine::RecurrenceCall& call, const engine::RecurrenceKept<T>& kept,
                  const T* grad, const engine::RecurrenceGradients<T>& out) {
  const HostThreads threads;
  const engine::CallMemory memory(engine::backward_bytes<T>(call, threads.workers()));
  engine::backward<T>(call, kept, grad, out, memory.workspace(), threads);
}

/// After a forward pass by doubling that left the range of its numbers: both passes stepwise.
template <typename T>
void run_backward_again(engine::RecurrenceCall call, engine::RecurrenceKept<T> kept,
                        std::int64_t numbers, const T* grad,
                        const engine::RecurrenceGradients<T>& out) {
  call.plan = Plan::kStepwise;
  if (numbers == 0) return run_backward(call, kept, grad, out);
  const std::int64_t state = call.shape.state();
  kept.inputs.input = kept.saved;
  kept.inputs.initial = call.has_initial ? kept.saved + state : nullptr;
  const engine::CallMemory memory(static_cast<std::int64_t>(sizeof(T)) *
                                  (state + engine::saved_size<T>(call)));
  T* const output = memory.data<T>();
  run_forward<T>(call, kept.inputs, output, output + state);
  kept.output = output;
  kept.saved = output + state;
  run_backward(call, kept, grad, out);
}

template <typename T>
void backward(const engine::RecurrenceCall& call, const RecurrenceArguments& arguments) {
  const engine::RecurrenceKept<T> kept{arguments.inputs<T>(),
                                       static_cast<const T*>(arguments.output),
                                       static_cast<const T*>(arguments.saved)};
  const engine::RecurrenceGradients<T> out{
      static_cast<T*>(arguments.grad_input), static_cast<T*>(arguments.grad_w_state),
      static_cast<T*>(arguments.grad_initial), static_cast<T*>(arguments.grad_entries)};
  const auto* grad = static_cast<const T*>(arguments.grad);
  // The forward pass may have been asked for more gradients: its call says where the mark is.
  const std::int64_t numbers = arguments.saved_count - 1;
  if (call.plan == Plan::kDoubling && kept.saved[numbers] != T{0}) {
    return run_backward_again(call, kept, numbers, grad, out);
  }
  run_backward(call, kept, grad, out);
}

/// The planner's choice, or the one asked for if it can run this.
Plan resolve(const char* plan_name, const engine::RecurrenceCall& call, std::int64_t element_size,
             bool has_basis, bool other_entries) {
  const engine::PlanQuery query{
      .batch = call.shape.batch,
      .num_steps = call.shape.num_steps,
      .channels = call.shape.all_channels > 0 ? call.shape.all_channels : call.shape.channels,
      .temporal = call.shape.temporal,
      .diagonal = call.shape.diagonal,
      .outputs = call.shape.outputs,
      .training = call.wanted.any(),
      .gso_values = other_entries,
      .sequence = call.shape.gso.is_sequence(),
      .element_size = element_size,
      .has_basis = has_basis,
      .workers = HostThreads().workers(),
      .precision = call.shape.precision,
      .hops_per_step = call.shape.hops_per_step};
  Plan plan = engine::plan_from_name(plan_name);
  if (plan == Plan::kAuto) {
    // A basis lives in tensors of the operator's owner: without one there is nothing to choose.
    const bool has_choice = !call.shape.diagonal || has_basis || other_entries;
    plan = has_choice ? engine::choose_plan(call.shape.gso.largest(), query) : Plan::kDiagonal;
  } else if (const std::string reason = engine::why_not(plan, call.shape.gso.largest(), query);
             !reason.empty()) {
    throw std::invalid_argument("recurrence: plan " + std::string(plan_name) +
                                " cannot run this: " + reason);
  }
  return plan;
}

template <typename T>
engine::SpmmBatch<T> spmm_batch(const graph::Gso& gso, bool transposed, std::int64_t batch,
                                std::int64_t width, const void* x, void* y) {
  engine::SpmmBatch<T> args;
  args.a = transposed ? gso.transpose_view<T>() : gso.view<T>();
  args.batch = batch;
  args.width = width;
  args.x_stride = args.y_stride = gso.num_nodes() * width;
  args.x = static_cast<const T*>(x);
  args.y = static_cast<T*>(y);
  return args;
}

}  // namespace
}  // namespace mpssm::native

using namespace mpssm;

MPSSM_C_API std::int64_t mpssm_spmm(const native::GsoArguments* gso, std::int64_t transposed,
                                    std::int64_t batch, std::int64_t width, const void* x,
                                    void* y) {
  return native::guarded([&] {
    const graph::Gso a = gso->borrow();
    const native::HostThreads threads;
    if (gso->is_double != 0) {
      engine::spmm(native::spmm_batch<double>(a, transposed != 0, batch, width, x, y), threads);
    } else {
      engine::spmm(native::spmm_batch<float>(a, transposed != 0, batch, width, x, y), threads);
    }
  });
}

/// The plan that will run: result[0] its number, [1] the numbers it saves, [2] bits of what its
/// backward pass reads (input, X(0), output). No pointer is followed.
MPSSM_C_API std::int64_t mpssm_recurrence_plan(const native::GsoArguments* gso,
                                               const native::RecurrenceArguments* arguments,
                                               const char* plan, std::int64_t* result) {
  return native::guarded([&] {
    engine::RecurrenceCall call = arguments->call(gso);
    const bool is_double = gso->is_double != 0;
    call.plan = native::resolve(plan, call, is_double ? 8 : 4, gso->has_basis(),
                                arguments->other_entries != 0);
    const engine::RecurrenceReads reads = engine::backward_reads(call);
    result[0] = static_cast<std::int64_t>(call.plan);
    result[1] =
        is_double ? native::saved_numbers<double>(call) : native::saved_numbers<float>(call);
    result[2] = (reads.input ? 1 : 0) | (reads.initial ? 2 : 0) | (reads.output ? 4 : 0);
  });
}

MPSSM_C_API std::int64_t mpssm_recurrence_forward(const native::GsoArguments* gso,
                                                  const native::RecurrenceArguments* arguments) {
  return native::guarded([&] {
    const engine::RecurrenceCall call = arguments->call(gso);
    if (gso->is_double != 0) {
      native::run_forward<double>(call, arguments->inputs<double>(),
                                  static_cast<double*>(arguments->output),
                                  static_cast<double*>(arguments->saved));
    } else {
      native::run_forward<float>(call, arguments->inputs<float>(),
                                 static_cast<float*>(arguments->output),
                                 static_cast<float*>(arguments->saved));
    }
  });
}

MPSSM_C_API std::int64_t mpssm_recurrence_backward(const native::GsoArguments* gso,
                                                   const native::RecurrenceArguments* arguments) {
  return native::guarded([&] {
    const engine::RecurrenceCall call = arguments->call(gso);
    if (gso->is_double != 0) {
      native::backward<double>(call, *arguments);
    } else {
      native::backward<float>(call, *arguments);
    }
  });
}
