// SPDX-License-Identifier: MIT
#include "mpssm/train/adam.h"

#include <cmath>

#include <torch/types.h>

namespace mpssm::train {

Adam::Adam(const torch::nn::Module& module, const AdamOptions& options) : options_(options) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& parameter = item.value();
    TORCH_CHECK_VALUE(parameter.scalar_type() == torch::kFloat && parameter.is_contiguous(),
                      "Adam: expected dense float parameters, got ", item.key());
    slots_.push_back(
        {item.key(), parameter, torch::zeros_like(parameter), torch::zeros_like(parameter)});
  }
}

void Adam::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

double Adam::clip_gradients(double max_norm) {
  double sum = 0.0;
  for (const Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    const torch::Tensor grad = slot.parameter.grad().contiguous();
    const float* g = grad.data_ptr<float>();
    const std::int64_t count = grad.numel();
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(g[i]) * g[i];
  }
  const double norm = std::sqrt(sum);
  if (max_norm > 0.0 && norm > max_norm) {
    for (Slot& slot : slots_) {
      if (slot.parameter.grad().defined()) slot.parameter.mutable_grad().mul_(max_norm / norm);
    }
  }
  return norm;
}

void Adam::step(double lr) {
  ++num_steps_;
  const auto steps = static_cast<double>(num_steps_);
  const auto step_size = static_cast<float>(lr / (1.0 - std::pow(options_.beta1, steps)));
  const auto root_scale =
      static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, steps)));
  const auto beta1 = static_cast<float>(options_.beta1);
  const auto beta2 = static_cast<float>(options_.beta2);
  const auto epsilon = static_cast<float>(options_.epsilon);
  for (Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    const torch::Tensor grad = slot.parameter.grad().contiguous();
    const double decay = slot.parameter.dim() > 1 ? options_.weight_decay : 0.0;
    const auto added = static_cast<float>(options_.decoupled ? 0.0 : decay);
    const auto kept = static_cast<float>(options_.decoupled ? 1.0 - lr * decay : 1.0);
    const float* g = grad.data_ptr<float>();
    float* p = slot.parameter.data_ptr<float>();
    float* m = slot.mean.data_ptr<float>();
    float* v = slot.variance.data_ptr<float>();
    const std::int64_t count = grad.numel();
    for (std::int64_t i = 0; i < count; ++i) {
      const float gradient = g[i] + added * p[i];
      m[i] = beta1 * m[i] + (1.0F - beta1) * gradient;
      v[i] = beta2 * v[i] + (1.0F - beta2) * gradient * gradient;
      p[i] = kept * p[i] - step_size * m[i] / (std::sqrt(v[i]) * root_scale + epsilon);
    }
  }
}

}  // namespace mpssm::train
