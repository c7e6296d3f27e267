// SPDX-License-Identifier: MIT
// A model for each part of the nodes, with gradients of its own: these are added in the order of
// the parts, whoever has found them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mpssm/nn/model.h"
#include "mpssm/ranks/communicator.h"

namespace mpssm::nn {

/// The same parameters with gradients of their own, for one part of the nodes.
struct PartModel {
  std::shared_ptr<ModelImpl> model;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A model whose parameters share the numbers of another's, but not the gradients.
std::shared_ptr<ModelImpl> with_own_gradients(const ModelImpl& model);

/// The gradients of `num_parts` parts, of which this rank has `mine` (ranks::Shares; one without
/// nodes is none), added in order into `model`; those of `mine` are cleared. Parameters whose name
/// `is_left_out` keep what they have.
void sum_part_gradients(ModelImpl& model, std::span<const PartModel> mine, std::int64_t num_parts,
                        ranks::Communicator& ranks,
                        const std::function<bool(const std::string&)>& is_left_out);

}  // namespace mpssm::nn
