// SPDX-License-Identifier: MIT
#include "mpssm/nn/part_models.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "mpssm/ops/generator.h"
#include "mpssm/ranks/collectives.h"

namespace mpssm::nn {

std::shared_ptr<ModelImpl> with_own_gradients(const ModelImpl& model) {
  static std::mutex one_at_a_time;  // torch's default generator is the whole process's
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  const ops::DefaultGeneratorScope thrown_away(ops::make_generator(0));
  ModelOptions options = model.options();
  options.recompute = false;
  auto result = std::make_shared<ModelImpl>(options);
  const auto named = model.named_parameters();
  for (auto& item : result->named_parameters()) item.value().set_data(named[item.key()]);
  return result;
}

void sum_part_gradients(ModelImpl& model, std::span<const PartModel> mine, std::int64_t num_parts,
                        ranks::Communicator& ranks,
                        const std::function<bool(const std::string&)>& is_left_out) {
  std::vector<float> terms;
  for (const PartModel& part : mine) {
    for (const auto& item : part.model->named_parameters()) {
      if (is_left_out(item.key()) || part.begin == part.end) continue;
      if (!item.value().grad().defined()) {  // nothing depends on it
        terms.insert(terms.end(), static_cast<std::size_t>(item.value().numel()), 0.0F);
        continue;
      }
      const torch::Tensor grad = item.value().grad().contiguous();
      terms.insert(terms.end(), grad.data_ptr<float>(), grad.data_ptr<float>() + grad.numel());
    }
    part.model->zero_grad();
  }
  std::vector<torch::Tensor> parameters;
  std::int64_t count = 0;
  for (const auto& item : model.named_parameters()) {
    if (is_left_out(item.key())) continue;
    parameters.push_back(item.value());
    count += item.value().numel();
  }
  std::vector<float> total(count);
  ranks::sum_in_order(ranks, terms, num_parts, total);
  const float* next = total.data();
  for (torch::Tensor& parameter : parameters) {
    torch::Tensor grad = torch::empty_like(parameter);
    std::copy_n(next, grad.numel(), grad.data_ptr<float>());
    next += grad.numel();
    parameter.mutable_grad() = grad;
  }
}

}  // namespace mpssm::nn
