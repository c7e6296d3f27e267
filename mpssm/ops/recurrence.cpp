// SPDX-License-Identifier: MIT
#include "mpssm/ops/recurrence.h"

#include <ATen/ATen.h>
#include <torch/custom_class.h>

#include "mpssm/ops/canonical.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/plans.h"
#include "mpssm/ops/reference.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

enum class Mode { kStatic, kTemporal };

/// The form in which torch stores what is not a tensor.
struct SavedShape : torch::CustomClassHolder {
  explicit SavedShape(ProblemShape shape_in) : shape(std::move(shape_in)) {}
  ProblemShape shape;
};

/// Checks every argument and returns C, the number of real channels.
std::int64_t check_arguments(const char* name, Mode mode, const graph::Gso& gso,
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
  } else {
    TORCH_CHECK_VALUE(w.dim() == 2 && w.size(0) == w.size(1), name,
                      ": expected a real w_state (dense) of shape [C, C], got ", w.sizes());
    channels = w.size(0);
  }
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
  if (options.gso_values.defined()) {
    TORCH_CHECK_VALUE(
        options.gso_values.dim() == 1 && options.gso_values.numel() == gso.num_nonzeros(), name,
        ": expected gso_values of shape [", gso.num_nonzeros(), "], got ",
        options.gso_values.sizes());
    TORCH_CHECK_TYPE(options.gso_values.scalar_type() == u.scalar_type(), name,
                     ": expected gso_values of type ", u.scalar_type(), ", got ",
                     options.gso_values.scalar_type());
  }
  return channels;
}

at::Tensor run(Plan plan, const Problem& problem) {
  switch (plan) {
    case Plan::kStepwise:
      return run_stepwise(problem);
    case Plan::kDoubling:
      return run_doubling(problem);
    case Plan::kDiagonal:
      return run_diagonal(problem);
    case Plan::kSpectral:
      return run_spectral(problem);
    default:
      TORCH_INTERNAL_ASSERT(false, "recurrence: no plan was chosen");
  }
}

RecurrenceResult recurrence(const char* name, Mode mode, const graph::Gso& gso, const at::Tensor& u,
                            const RecurrenceWeights& weights, std::int64_t num_steps,
                            const RecurrenceOptions& options) {
  ensure_runtime();
  const std::int64_t channels = check_arguments(name, mode, gso, u, weights, num_steps, options);
  const bool temporal = mode == Mode::kTemporal;
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

  const at::Tensor input = weights.w_in.defined() ? ops::matmul(dense, weights.w_in) : dense;
  const std::int64_t n = gso.num_nodes();
  const at::IntArrayRef leading = u.sizes().slice(0, u.dim() - (temporal ? 3 : 2));
  std::vector<std::int64_t> shape_in = {-1, n, channels};
  if (temporal) shape_in.insert(shape_in.begin() + 1, num_steps);

  Problem problem;
  problem.input = input.view(shape_in);
  problem.w_state = canonical(weights.w_state);
  if (options.initial.defined()) {
    problem.initial = canonical(options.initial).view({-1, n, channels});
  }
  problem.gso_values = canonical(options.gso_values);
  problem.shape = {gso, problem.input.size(0), num_steps, channels, temporal, options.outputs};

  const PlanQuery query{.batch = problem.shape.batch,
                        .num_steps = num_steps,
                        .channels = channels,
                        .temporal = temporal,
                        .diagonal = weights.w_state.is_complex(),
                        .outputs = options.outputs,
                        .training = any_requires_grad(problem),
                        .gso_values = options.gso_values.defined(),
                        .element_size = static_cast<std::int64_t>(u.element_size()),
                        .operator_calls = options.operator_calls};
  Plan plan = options.plan;
  if (plan == Plan::kAuto) {
    plan = choose_plan(gso, query);
  } else if (const std::string reason = why_not(plan, gso, query); !reason.empty()) {
    TORCH_CHECK_VALUE(false, name, ": plan ", to_string(plan), " cannot run this: ", reason);
  }
  at::Tensor out = run(plan, problem);

  std::vector<std::int64_t> shape_out(leading.begin(), leading.end());
  if (options.outputs == Outputs::kAll) shape_out.push_back(num_steps);
  shape_out.insert(shape_out.end(), {n, channels});
  if (options.outputs == Outputs::kAll) {
    // Plans keep these for their backward pass: a true view lets torch notice if they are changed.
    out = out.view(shape_out);
    return {out, out.select(-3, num_steps - 1)};
  }
  // Nobody else holds the last state, and as a view of a custom function's output it could not be
  // changed in place by the caller.
  out = at::_unsafe_view(out, shape_out);
  return {out, out};
}

}  // namespace

void save_shape(torch::autograd::AutogradContext* context, const ProblemShape& shape) {
  context->saved_data["shape"] = c10::IValue::make_capsule(c10::make_intrusive<SavedShape>(shape));
}

ProblemShape saved_shape(torch::autograd::AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<SavedShape>(context->saved_data["shape"].toCapsule())
      ->shape;
}

void check_single_backward(const char* plan) {
  TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(), "recurrence: plan ", plan,
                              " gives first derivatives only; use plan reference for gradients of "
                              "gradients (create_graph)");
}

at::Tensor empty_if_absent(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.defined() ? tensor : at::empty({0}, like.options());
}

at::Tensor absent_if_empty(const at::Tensor& tensor) {
  return tensor.numel() > 0 ? tensor : at::Tensor();
}

bool any_requires_grad(const Problem& problem) {
  if (!at::GradMode::is_enabled()) return false;
  const auto wants = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  };
  return wants(problem.input) || wants(problem.w_state) || wants(problem.initial) ||
         wants(problem.gso_values);
}

RecurrenceResult recurrence_static(const graph::Gso& gso, const at::Tensor& u,
                                   const RecurrenceWeights& weights, std::int64_t num_steps,
                                   const RecurrenceOptions& options) {
  return recurrence("recurrence_static", Mode::kStatic, gso, u, weights, num_steps, options);
}

RecurrenceResult recurrence_temporal(const graph::Gso& gso, const at::Tensor& u,
                                     const RecurrenceWeights& weights,
                                     const RecurrenceOptions& options) {
  const std::int64_t num_steps = u.defined() && u.dim() >= 3 ? u.size(-3) : 1;
  return recurrence("recurrence_temporal", Mode::kTemporal, gso, u, weights, num_steps, options);
}

}  // namespace mpssm::ops
