// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/gat.h"

#include <fmt/core.h>

namespace mpssm::nn {

GatImpl::GatImpl(const LayeredOptions& options, std::int64_t heads) : LayeredImpl("Gat", options) {
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    begin_layer();
    layers_.push_back(register_module(fmt::format("layer_{}", i),
                                      GraphAttention(options.hidden_channels, heads)));
  }
  end_layers(options.norm);
}

}  // namespace mpssm::nn
