// SPDX-License-Identifier: MIT
// Exponential moving average of the weights of a training: smoother than the last step's.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>

#include "mpssm/train/checkpoint.h"

namespace mpssm::train {

/// mean <- d mean + (1 - d) weights after each step, d = min(decay, (1 + step) / (10 + step)): the
/// start is soon forgotten. Buffers (statistics of a batch norm) are taken as they are.
class WeightAverage {
 public:
  /// decay 0: there is none, and nothing below does anything.
  WeightAverage(torch::nn::Module& module, double decay);

  bool is_on() const { return decay_ > 0.0; }
  /// After optimiser step number `step`, counted from 1.
  void follow(std::int64_t step);

  const Weights& mean() const { return mean_; }
  /// Of a run that goes on. Throws base::Error (`origin` first) unless they are the module's.
  void set_mean(Weights mean, const std::string& origin);

  /// While it lives, the module has the mean as its weights.
  class Scope {
   public:
    explicit Scope(WeightAverage& average);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    WeightAverage& average_;
    Weights own_;
  };

 private:
  torch::nn::Module& module_;
  double decay_;
  Weights mean_;
};

}  // namespace mpssm::train
