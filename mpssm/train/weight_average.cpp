// SPDX-License-Identifier: MIT
#include "mpssm/train/weight_average.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

namespace mpssm::train {

WeightAverage::WeightAverage(torch::nn::Module& module, double decay)
    : module_(module), decay_(decay) {
  if (is_on()) mean_ = copy_weights(module);
}

void WeightAverage::follow(std::int64_t step) {
  if (!is_on()) return;
  const auto steps = static_cast<double>(step);
  const auto kept = static_cast<float>(std::min(decay_, (1.0 + steps) / (10.0 + steps)));
  for (const auto& item : module_.named_parameters()) {
    float* mean = mean_.at(item.key()).data_ptr<float>();
    const float* weight = item.value().data_ptr<float>();  // dense floats: Adam saw to that
    for (std::int64_t i = 0; i < item.value().numel(); ++i) {
      mean[i] = kept * mean[i] + (1.0F - kept) * weight[i];
    }
  }
  for (const auto& item : module_.named_buffers()) mean_.at(item.key()).copy_(item.value());
}

void WeightAverage::set_mean(Weights mean, const std::string& origin) {
  if (!is_on()) return;
  const Weights own = copy_weights(module_);
  set_weights(module_, mean, origin);  // says what does not fit
  set_weights(module_, own, origin);
  mean_ = std::move(mean);
}

WeightAverage::Scope::Scope(WeightAverage& average) : average_(average) {
  if (!average.is_on()) return;
  own_ = copy_weights(average.module_);
  set_weights(average.module_, average.mean_, "train.ema");
}

WeightAverage::Scope::~Scope() {
  if (average_.is_on()) set_weights(average_.module_, own_, "train.ema");
}

}  // namespace mpssm::train
