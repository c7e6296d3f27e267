// SPDX-License-Identifier: MIT
// Private to analysis/: what questions about a trained network begin with.
#pragma once

#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/model.h"

namespace mpssm::analysis {

/// Throws std::invalid_argument, beginning with `what`, if the network is no MP-SSM.
inline nn::ModelImpl& model_of(nn::GraphModule& network, const char* what) {
  auto* model = dynamic_cast<nn::ModelImpl*>(&network);
  if (model == nullptr) {
    throw std::invalid_argument(std::string(what) + ": the network has no linear recurrence");
  }
  return *model;
}

/// The same for questions about the operator's own entries.
inline nn::ModelImpl& model_with_fixed_entries(nn::GraphModule& network, const char* what) {
  nn::ModelImpl& model = model_of(network, what);
  if (model.options().entries != nn::EntriesKind::kFixed) {
    throw std::invalid_argument(std::string(what) + ": the network learns the operator's entries");
  }
  return model;
}

/// A network in evaluation mode for as long as this lives; with a type, in these numbers (from
/// float to double and back loses nothing).
class Evaluating {
 public:
  explicit Evaluating(nn::GraphModule& network)
      : network_(network), was_training_(network.is_training()) {
    network_.eval();
  }
  Evaluating(nn::ModelImpl& model, torch::Dtype type) : Evaluating(model) {
    was_ = model.encoder()->weight.scalar_type();
    if (was_ != type) model.to(type);
    is_changed_ = was_ != type;
  }
  ~Evaluating() {
    if (is_changed_) network_.to(was_);
    network_.train(was_training_);
  }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  nn::GraphModule& network_;
  bool was_training_;
  torch::Dtype was_ = torch::kFloat;
  bool is_changed_ = false;
};

}  // namespace mpssm::analysis
