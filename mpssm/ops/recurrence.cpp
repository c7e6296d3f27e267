// SPDX-License-Identifier: MIT
// The engine's recurrence on tensors: checks, memory, autograd.
#include "mpssm/ops/recurrence.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "mpssm/engine/recurrence.h"
#include "mpssm/ops/call.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/reference.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

enum class Mode { kStatic, kTemporal };

/// Checks every argument and returns C, the number of real channels.
std::int64_t check_arguments(const char* name, Mode mode, const graph::Operators& gso,
                             const at::Tensor& u, const RecurrenceWeights& weights,
                             std::int64_t num_steps, const RecurrenceOptions& options) {
  const std::int64_t n = gso.num_nodes();
  const bool temporal = mode == Mode::kTemporal;
  TORCH_CHECK_VALUE(u.defined() && u.dim() >= (temporal ? 3 : 2) && u.size(-2) == n, name,
                    ": expected u of shape ", temporal ? "[..., T, N=" : "[..., N=", n,
                    ", C_in], got ", describe(u));
  TORCH_CHECK_VALUE(num_steps >= 1, name, ": expected at least one step, got ", num_steps);
  TORCH_CHECK_TYPE(u.is_floating_point(), name, ": expected u of a real floating type, got ",
                   u.scalar_type());

  const at::Tensor& w = weights.w_state;
  TORCH_CHECK_VALUE(w.defined(), name, ": expected w_state, got an undefined tensor");
  check_same_device(name, {{"u", u},
                           {"w_state", w},
                           {"w_in", weights.w_in},
                           {"initial", options.initial},
                           {"gso_values", options.gso_values}});
  std::int64_t channels = 0;
  if (w.is_complex()) {
    TORCH_CHECK_VALUE(w.dim() == 1, name,
                      ": expected a complex w_state (diagonal) of shape [C/2], got ", w.sizes());
    channels = 2 * w.numel();
  } else if (gso.num_groups() == 1) {
    TORCH_CHECK_VALUE(w.dim() == 2 && w.size(0) == w.size(1), name,
                      ": expected a real w_state (dense) of shape [C, C], got ", w.sizes());
    channels = w.size(0);
  } else {
    channels =
        weights.w_in.defined() && weights.w_in.dim() == 2 ? weights.w_in.size(1) : u.size(-1);
    const std::vector<std::int64_t> begins = gso.channel_begins(channels);
    std::int64_t numbers = 0;
    for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
      numbers += (begins[g + 1] - begins[g]) * (begins[g + 1] - begins[g]);
    }
    TORCH_CHECK_VALUE(w.dim() == 1 && w.numel() == numbers, name,
                      ": expected a real w_state (dense, one for each of ", gso.num_groups(),
                      " groups of channels) of shape [", numbers, "], got ", w.sizes());
  }
  TORCH_CHECK_VALUE(options.hops_per_step >= 1 && (temporal || options.hops_per_step == 1), name,
                    temporal ? ": expected hops_per_step >= 1, got "
                             : ": expected hops_per_step 1 of a static call, got ",
                    options.hops_per_step);
  const bool has_factors = gso.factor_group() >= 0;
  TORCH_CHECK_VALUE(gso.num_groups() == 1 || has_factors || !options.gso_values.defined(), name,
                    ": expected one operator with gso_values, got ", gso.num_groups(),
                    " groups of channels");
  TORCH_CHECK_VALUE(gso.num_groups() == 1 || options.all_channels == 0, name,
                    ": expected one operator where channels are some of a whole, got ",
                    gso.num_groups(), " groups of channels");
  TORCH_CHECK_TYPE(c10::toRealValueType(w.scalar_type()) == u.scalar_type(), name,
                   ": expected w_state of the precision of u (", u.scalar_type(), "), got ",
                   w.scalar_type());
  if (weights.w_in.defined()) {
    TORCH_CHECK_VALUE(weights.w_in.dim() == 2 && weights.w_in.size(0) == u.size(-1) &&
                          weights.w_in.size(1) == channels,
                      name, ": expected w_in of shape [C_in=", u.size(-1), ", C=", channels,
                      "], got ", weights.w_in.sizes());
    TORCH_CHECK_TYPE(weights.w_in.scalar_type() == u.scalar_type(), name,
                     ": expected w_in of type ", u.scalar_type(), ", got ",
                     weights.w_in.scalar_type());
  } else {
    TORCH_CHECK_VALUE(u.size(-1) == channels, name, ": expected u with C=", channels,
                      " channels to match w_state (or give w_in), got ", u.size(-1));
  }

  if (options.initial.defined()) {
    std::vector<std::int64_t> expected(u.sizes().begin(), u.sizes().end());
    if (temporal) expected.erase(expected.end() - 3);
    expected.back() = channels;
    TORCH_CHECK_VALUE(options.initial.sizes() == at::IntArrayRef(expected), name,
                      ": expected initial of shape ", at::IntArrayRef(expected), ", got ",
                      options.initial.sizes());
    TORCH_CHECK_TYPE(options.initial.scalar_type() == u.scalar_type(), name,
                     ": expected initial of type ", u.scalar_type(), ", got ",
                     options.initial.scalar_type());
  }
  if (gso.is_sequence()) {
    const std::int64_t copies = u.numel() / std::max<std::int64_t>(u.size(-1) * n * num_steps, 1);
    TORCH_CHECK_VALUE(temporal, name, ": expected one operator for all steps, got a sequence");
    TORCH_CHECK_VALUE(
        gso.num_steps() == num_steps && (gso.num_copies() == 1 || gso.num_copies() == copies), name,
        ": expected operators of ", num_steps, " steps of ", copies, " copies, got ",
        gso.num_steps(), " of ", gso.num_copies());
    TORCH_CHECK_VALUE(!options.gso_values.defined(), name,
                      ": expected no gso_values for a sequence of operators");
  }
  if (options.gso_values.defined()) {
    const auto expected =
        has_factors ? std::vector<std::int64_t>{2, n, gso.low_rank(gso.factor_group()).rank()}
                    : std::vector<std::int64_t>{gso.num_nonzeros()};
    TORCH_CHECK_VALUE(options.gso_values.sizes() == at::IntArrayRef(expected), name,
                      ": expected gso_values of shape ", at::IntArrayRef(expected), ", got ",
                      options.gso_values.sizes());
    TORCH_CHECK_TYPE(options.gso_values.scalar_type() == u.scalar_type(), name,
                     ": expected gso_values of type ", u.scalar_type(), ", got ",
                     options.gso_values.scalar_type());
  }
  return channels;
}

/// Every tensor contiguous, of one real dtype, on the CPU; absent ones undefined.
struct Tensors {
  at::Tensor input;       // C: [B, N, C] static, [B, T, N, C] temporal
  at::Tensor w_state;     // [C, C] real or [C/2] complex
  at::Tensor initial;     // [B, N, C]
  at::Tensor gso_values;  // [nonzeros] or [2, N, rank]
};

engine::RecurrenceWanted wanted_by(const Tensors& tensors) {
  if (!at::GradMode::is_enabled()) return {};
  const auto wants = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  };
  return {wants(tensors.input), wants(tensors.w_state), wants(tensors.initial),
          wants(tensors.gso_values)};
}

/// The operator of the call: the graph's, or its pattern with the given entries.
graph::Operators with_entries(const graph::Operators& gso, const at::Tensor& values) {
  if (!values.defined()) return gso;
  const at::Tensor copy = values.to(at::kDouble).contiguous();
  const std::span entries(copy.data_ptr<double>(), static_cast<std::size_t>(copy.numel()));
  if (gso.factor_group() >= 0) return gso.with_factors(entries);
  return gso.only().with_values(entries, graph::ValueCheck::kNone);
}

template <typename T>
engine::RecurrenceInputs<T> inputs_of(const Tensors& tensors) {
  return {numbers<T>(tensors.input), numbers<T>(tensors.w_state), numbers<T>(tensors.initial)};
}

struct Computed {
  at::Tensor output;
  at::Tensor saved;
};

/// Nothing if the numbers left the range of their type on the way.
std::optional<Computed> run_forward(const engine::RecurrenceCall& call, const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  const engine::RecurrenceShape& shape = call.shape;
  std::vector<std::int64_t> sizes = {shape.batch, shape.num_nodes(), shape.channels};
  if (shape.all_outputs()) sizes.insert(sizes.begin() + 1, shape.num_steps);
  return with_real_type(tensors.input, [&](auto zero) -> std::optional<Computed> {
    using T = decltype(zero);
    const Threads threads;
    Computed computed{empty_tensor(sizes, tensors.input.options()),
                      empty_tensor({engine::saved_size<T>(call)}, tensors.input.options())};
    const CallMemory memory(engine::forward_bytes<T>(call, threads.workers()));
    const bool is_done =
        engine::forward<T>(call, inputs_of<T>(tensors), numbers<T>(computed.output),
                           numbers<T>(computed.saved), memory.workspace(), threads);
    return is_done ? std::optional(std::move(computed)) : std::nullopt;
  });
}

/// The form in which torch stores what is not a tensor.
struct SavedCall : torch::CustomClassHolder {
  explicit SavedCall(engine::RecurrenceCall call_in) : call(std::move(call_in)) {}
  engine::RecurrenceCall call;
};

/// Takes the output as it is: whether the plan has one must be known before autograd records
/// anything.
struct RecurrenceFunction : torch::autograd::Function<RecurrenceFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& w_state, const at::Tensor& initial_or_empty,
                            const at::Tensor& /*values_or_empty*/,
                            const engine::RecurrenceCall& call, const Computed& computed) {
    context->saved_data["call"] = c10::IValue::make_capsule(c10::make_intrusive<SavedCall>(call));
    const engine::RecurrenceReads reads = engine::backward_reads(call);
    const at::Tensor initial = absent_if_empty(initial_or_empty);
    context->save_for_backward({w_state, reads.input ? input : at::Tensor(),
                                reads.initial ? initial : at::Tensor(),
                                reads.output ? computed.output : at::Tensor(), computed.saved});
    return computed.output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    engine::RecurrenceCall call =
        c10::static_intrusive_pointer_cast<SavedCall>(context->saved_data["call"].toCapsule())
            ->call;
    const std::string name = fmt::format("recurrence: plan {}", to_string(call.plan));
    check_single_backward(name.c_str(), "; use plan reference for gradients of gradients");
    call.wanted = {context->needs_input_grad(0), context->needs_input_grad(1),
                   context->needs_input_grad(2), context->needs_input_grad(3)};
    const auto saved = context->get_saved_variables();
    const Tensors tensors{saved[1], saved[0], saved[2], {}};
    const at::Tensor grad = canonical(grads[0]);

    const engine::RecurrenceShape& shape = call.shape;
    const std::vector<std::int64_t> state = {shape.batch, shape.num_nodes(), shape.channels};
    Tensors out;
    if (call.wanted.input) {
      std::vector<std::int64_t> sizes = state;
      if (shape.temporal) sizes.insert(sizes.begin() + 1, shape.num_steps);
      out.input = empty_tensor(sizes, grad.options());
    }
    if (call.wanted.w_state) out.w_state = at::empty_like(tensors.w_state);
    if (call.wanted.initial) out.initial = empty_tensor(state, grad.options());
    if (call.wanted.gso_values) {
      const std::int64_t group = shape.gso.factor_group();
      out.gso_values =
          group < 0
              ? at::empty({shape.gso.num_nonzeros()}, grad.options())
              : at::empty({2, shape.num_nodes(), shape.gso.low_rank(group).rank()}, grad.options());
    }
    with_real_type(grad, [&](auto zero) {
      using T = decltype(zero);
      const Threads threads;
      const CallMemory memory(engine::backward_bytes<T>(call, threads.workers()));
      engine::backward<T>(call, {inputs_of<T>(tensors), numbers<T>(saved[3]), numbers<T>(saved[4])},
                          numbers<T>(grad),
                          {numbers<T>(out.input), numbers<T>(out.w_state), numbers<T>(out.initial),
                           numbers<T>(out.gso_values)},
                          memory.workspace(), threads);
    });
    return {out.input, out.w_state, out.initial, out.gso_values, {}, {}};
  }
};

at::Tensor run(engine::RecurrenceCall call, const Tensors& tensors) {
  std::optional<Computed> computed = run_forward(call, tensors);
  if (!computed) {
    call.plan = Plan::kStepwise;
    computed = run_forward(call, tensors);
  }
  if (!call.wanted.any()) return computed->output;
  return RecurrenceFunction::apply(
      tensors.input, tensors.w_state, empty_if_absent(tensors.initial, tensors.input),
      empty_if_absent(tensors.gso_values, tensors.input), call, *computed);
}

RecurrenceResult recurrence(const char* name, Mode mode, const graph::Operators& gso,
                            const at::Tensor& u, const RecurrenceWeights& weights,
                            std::int64_t num_steps, const RecurrenceOptions& options) {
  ensure_runtime();
  const std::int64_t channels = check_arguments(name, mode, gso, u, weights, num_steps, options);
  const bool temporal = mode == Mode::kTemporal;
  check_precision(name, options.precision, u);
  TORCH_CHECK_VALUE(
      options.plan != Plan::kReference || options.precision == engine::Precision::kFloat32, name,
      ": plan reference computes in the type of its tensors, got precision ",
      std::string(to_string(options.precision)));
  const at::Tensor dense = canonical(u);
  if (options.plan == Plan::kReference || !has_kernel({u}) || u.numel() == 0 || channels == 0) {
    const RecurrenceWeights dense_weights{canonical(weights.w_state), canonical(weights.w_in)};
    RecurrenceOptions dense_options = options;
    dense_options.initial = canonical(options.initial);
    dense_options.gso_values = canonical(options.gso_values);
    return temporal
               ? reference_recurrence_temporal(gso, dense, dense_weights, dense_options)
               : reference_recurrence_static(gso, dense, dense_weights, num_steps, dense_options);
  }

  const at::Tensor input =
      weights.w_in.defined() ? ops::matmul(dense, weights.w_in, options.precision) : dense;
  const std::int64_t n = gso.num_nodes();
  const at::IntArrayRef leading = u.sizes().slice(0, u.dim() - (temporal ? 3 : 2));
  std::vector<std::int64_t> shape_in = {-1, n, channels};
  if (temporal) shape_in.insert(shape_in.begin() + 1, num_steps);

  Tensors tensors;
  tensors.input = input.view(shape_in);
  tensors.w_state = canonical(weights.w_state);
  if (options.initial.defined()) {
    tensors.initial = canonical(options.initial).view({-1, n, channels});
  }
  tensors.gso_values = canonical(options.gso_values);

  engine::RecurrenceCall call;
  call.shape = {.gso = gso,
                .batch = tensors.input.size(0),
                .num_steps = num_steps,
                .channels = channels,
                .temporal = temporal,
                .diagonal = weights.w_state.is_complex(),
                .outputs = options.outputs,
                .precision = options.precision,
                .hops_per_step = options.hops_per_step,
                .all_channels = options.all_channels};
  const bool has_entries = options.gso_values.defined() && gso.factor_group() < 0;
  if (has_entries) {
    // The operator lives for this call: an order of its nodes would not pay. Slices in bf16 have no
    // gradient of the entries.
    call.shape.ordering = engine::Ordering::kNever;
    if (call.shape.diagonal) call.shape.precision = engine::Precision::kFloat32;
  }
  call.has_initial = options.initial.defined();
  call.wanted = wanted_by(tensors);
  const PlanQuery query{.batch = call.shape.batch,
                        .num_steps = num_steps,
                        .channels = options.all_channels > 0 ? options.all_channels : channels,
                        .temporal = temporal,
                        .diagonal = call.shape.diagonal,
                        .outputs = options.outputs,
                        .training = call.wanted.any(),
                        .gso_values = has_entries,
                        .sequence = gso.is_sequence(),
                        .element_size = static_cast<std::int64_t>(u.element_size()),
                        .operator_calls = options.operator_calls,
                        .workers = num_threads(),
                        .precision = options.precision,
                        .hops_per_step = options.hops_per_step,
                        .costs = options.plan_costs};
  call.plan = options.plan;
  if (call.plan == Plan::kAuto) {
    call.plan = choose_plan(gso.largest(), query);
  } else if (const std::string reason = why_not(call.plan, gso.largest(), query); !reason.empty()) {
    TORCH_CHECK_VALUE(false, name, ": plan ", to_string(call.plan), " cannot run this: ", reason);
  }
  call.shape.gso = with_entries(gso, tensors.gso_values);
  at::Tensor out = run(std::move(call), tensors);

  std::vector<std::int64_t> shape_out(leading.begin(), leading.end());
  if (options.outputs == Outputs::kAll) shape_out.push_back(num_steps);
  shape_out.insert(shape_out.end(), {n, channels});
  if (options.outputs == Outputs::kAll) {
    // Kept for the backward pass, perhaps: a true view lets torch notice if they are changed.
    out = out.view(shape_out);
    return {out, out.select(-3, num_steps - 1)};
  }
  // Nobody else holds the last state, and as a view of a custom function's output it could not be
  // changed in place by the caller.
  out = at::_unsafe_view(out, shape_out);
  return {out, out};
}

}  // namespace

RecurrenceResult recurrence_static(const graph::Operators& gso, const at::Tensor& u,
                                   const RecurrenceWeights& weights, std::int64_t num_steps,
                                   const RecurrenceOptions& options) {
  return recurrence("recurrence_static", Mode::kStatic, gso, u, weights, num_steps, options);
}

RecurrenceResult recurrence_temporal(const graph::Operators& gso, const at::Tensor& u,
                                     const RecurrenceWeights& weights,
                                     const RecurrenceOptions& options) {
  const std::int64_t num_steps = u.defined() && u.dim() >= 3 ? u.size(-3) : 1;
  return recurrence("recurrence_temporal", Mode::kTemporal, gso, u, weights, num_steps, options);
}

}  // namespace mpssm::ops
