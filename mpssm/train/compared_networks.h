// SPDX-License-Identifier: MIT
// The networks that MP-SSM is compared with, as settings describe them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpssm/train/config.h"

namespace mpssm::graph {
class Gso;
}
namespace mpssm::nn {
class GraphModule;
}
namespace mpssm::task {
struct ProblemShape;
}

namespace mpssm::train {

/// The network of any config.kind but kMpssm. Throws base::Error if it cannot do with such data, or
/// with the settings.
std::shared_ptr<nn::GraphModule> make_compared_network(const ModelConfig& config,
                                                       const task::ProblemShape& shape);

/// Bytes that one training step on `gso` takes at its peak, parameters and optimiser not included;
/// `batch` windows at once for a series.
std::int64_t compared_network_memory(const ModelConfig& config, const task::ProblemShape& shape,
                                     const graph::Gso& gso, std::int64_t batch);

/// Keys of [model] that were given and that a network of config.model.kind does not look at, in
/// their order.
std::vector<std::string> settings_without_meaning(const Config& config);

}  // namespace mpssm::train
