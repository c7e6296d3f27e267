// SPDX-License-Identifier: MIT
// A model on one large graph, shared by ranks. Norms, products and MLPs look at each node by
// itself, so each rank has some of the nodes there; with a diagonal W the hops look at each channel
// by itself, so there each rank has some of the channels, of all nodes. Between the two numbers
// change hands twice in a block, however many hops it has. The graph is on every rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpssm/nn/model.h"
#include "mpssm/nn/part_models.h"
#include "mpssm/nn/shared_module.h"
#include "mpssm/ranks/communicator.h"

namespace mpssm::nn {

struct Dealt;

/// Empty if so many ranks can share such a model, else the reason why not, as a phrase.
std::string why_not_by_channels(const ModelOptions& options, std::int64_t ranks);

/// Gives what the model gives, forward and backward, to the bit, for any number of ranks: sums over
/// nodes are cut into parts by the number of nodes alone (engine::RowParts), a part is one rank's
/// work, and parts are added in order. All ranks call it with the same arguments, at the same time.
class ChannelRanks : public SharedModule {
 public:
  /// `model` keeps the parameters. Throws (c10::Error) if why_not_by_channels().
  ChannelRanks(std::shared_ptr<ModelImpl> model, ranks::Communicator& ranks);

  /// x [N, in] -> [N, out], whole on every rank. In training as `model` is.
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;

  void collect_gradients() override;

 private:
  void deal(std::int64_t num_nodes);
  void gather_channels();

  std::shared_ptr<ModelImpl> model_;
  ranks::Communicator& ranks_;
  std::int64_t num_parts_ = 0;
  std::vector<PartModel> parts_;  // of this rank; at least one, which may be empty
  std::shared_ptr<const Dealt> dealt_;
};

}  // namespace mpssm::nn
