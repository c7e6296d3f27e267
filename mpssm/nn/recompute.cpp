// SPDX-License-Identifier: MIT
#include "mpssm/nn/recompute.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "mpssm/ops/generator.h"

namespace mpssm::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// All numbers of the parameters in one row: an autograd function takes a fixed number of tensors.
at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) {
    rows.push_back((tensor.is_complex() ? at::view_as_real(tensor) : tensor).flatten());
  }
  return rows.empty() ? at::empty({0}) : at::cat(rows);
}

struct SavedLayer : torch::CustomClassHolder {
  SavedLayer(Layer layer_in, at::Generator generator_in, std::vector<at::Tensor> parameters_in)
      : layer(std::move(layer_in)),
        generator(std::move(generator_in)),
        parameters(std::move(parameters_in)) {}
  Layer layer;
  at::Generator generator;  // as it was before the first run
  std::vector<at::Tensor> parameters;
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  /// `numbers` of the parameters are there for their gradients; the layer reads its own.
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<SavedLayer>& saved,
                            const at::Tensor& x, const at::Tensor& /*numbers*/) {
    context->saved_data["layer"] = c10::IValue::make_capsule(saved);
    context->save_for_backward({x});
    return saved->layer(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved =
        c10::static_intrusive_pointer_cast<SavedLayer>(context->saved_data["layer"].toCapsule());
    const at::Tensor kept = context->get_saved_variables()[0];
    const at::Tensor x = kept.detach().requires_grad_(kept.requires_grad());
    at::Tensor y;
    {
      const at::AutoGradMode with_grad(true);
      const ops::GeneratorScope same_numbers(saved->generator.clone());
      y = saved->layer(x);
    }
    variable_list wanted = saved->parameters;
    if (x.requires_grad()) wanted.push_back(x);
    variable_list found = torch::autograd::grad({y}, wanted, {grads[0]});
    at::Tensor grad_x;
    if (x.requires_grad()) {
      grad_x = found.back();
      found.pop_back();
    }
    return {at::Tensor(), grad_x, joined(found)};
  }
};

}  // namespace

at::Tensor recompute(const Layer& layer, const at::Tensor& x,
                     const std::vector<at::Tensor>& parameters) {
  if (!at::GradMode::is_enabled()) return layer(x);
  std::vector<at::Tensor> learned;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(learned),
               [](const at::Tensor& parameter) { return parameter.requires_grad(); });
  const auto saved =
      c10::make_intrusive<SavedLayer>(layer, ops::current_generator().clone(), learned);
  return RecomputeFunction::apply(saved, x, joined(learned));
}

}  // namespace mpssm::nn
