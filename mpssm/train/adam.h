// SPDX-License-Identifier: MIT
// Adam and AdamW with a state that can be saved to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace mpssm::train {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Not applied to parameters with one axis: biases, norms, the numbers of a diagonal W.
  double weight_decay = 0.0;
  bool decoupled = true;  ///< AdamW; false: weight decay is added to the gradient
};

/// The updates of torch::optim::Adam and AdamW.
class Adam {
 public:
  Adam(const torch::nn::Module& module, const AdamOptions& options);

  void zero_grad();
  /// Norm of all gradients together; if it is above `max_norm` > 0, scales them down to it.
  double clip_gradients(double max_norm);
  void step(double lr);

  /// One per parameter, in the order of module.named_parameters().
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    torch::Tensor mean;      ///< of the gradient
    torch::Tensor variance;  ///< of the gradient, not centred
  };
  std::vector<Slot>& slots() { return slots_; }
  std::int64_t num_steps() const { return num_steps_; }
  void set_num_steps(std::int64_t steps) { num_steps_ = steps; }

 private:
  AdamOptions options_;
  std::vector<Slot> slots_;
  std::int64_t num_steps_ = 0;
};

}  // namespace mpssm::train
