// SPDX-License-Identifier: MIT
// A network for a problem. No torch here: what only hands it on need not read torch's headers.
#pragma once

#include <cstdint>
#include <memory>

#include "mpssm/train/config.h"

namespace at {
struct Generator;
}
namespace mpssm::nn {
class GraphModule;
}
namespace mpssm::task {
class Problem;
struct ProblemOptions;
}  // namespace mpssm::task

namespace mpssm::train {

struct BuiltModel {
  std::shared_ptr<nn::GraphModule> module;
  std::int64_t num_parameters = 0;
  std::int64_t training_bytes = 0;  ///< estimate for one training step
  /// The same if blocks run again in the backward pass (see nn::ModelOptions::recompute); as much
  /// as training_bytes where they cannot.
  std::int64_t least_training_bytes = 0;
  /// Started by config.seed; has drawn the parameters, and goes on with dropout.
  std::shared_ptr<at::Generator> generator;
};

/// The network that `config` describes, shaped by the problem. Torch's own generator is left alone.
BuiltModel build_model(const task::Problem& problem, const Config& config);

/// From now on blocks run again in the backward pass: the same numbers, least_training_bytes.
void save_memory(BuiltModel& built);

/// Weights that the data know a better start for than chance.
void start_from_data(const task::Problem& problem, const BuiltModel& built);

/// The settings that a problem looks at.
task::ProblemOptions problem_options(const Config& config);

}  // namespace mpssm::train
