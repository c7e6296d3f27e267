// SPDX-License-Identifier: MIT
// A model on one graph whose nodes are dealt to ranks: each has its own nodes' features, rows of A
// and activations, and reads the rows of some nodes of others, at every hop or for all hops of a
// block at once. Weights are on every rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpssm/engine/halo_recurrence.h"
#include "mpssm/nn/halo_rings.h"
#include "mpssm/nn/model.h"
#include "mpssm/nn/part_models.h"
#include "mpssm/nn/shared_module.h"
#include "mpssm/ranks/communicator.h"
#include "mpssm/ranks/halo.h"

namespace mpssm::nn {

/// When rows of others come.
enum class HaloWay {
  kFewerNumbers,  ///< whichever sends less
  kEachHop,       ///< those next to own nodes, at every hop
  kAllHops,  ///< those within all hops of a block, once; what they become is computed here again
};

/// The nodes that this rank has, parts that follow each other, and their rows of A.
class NodeRows {
 public:
  struct Given {
    ranks::Communicator& ranks;
    std::vector<std::int64_t> all_bounds;  ///< [all parts + 1]: first node of each part
    std::vector<std::int64_t> number;      ///< of own nodes in the data; what is dropped goes by it
    OwnRows rows;                          ///< of A, own nodes
    OwnRows transposed = {};               ///< of A'; without rows: A is symmetric
    std::int64_t hops = 1;                 ///< of a block
    HaloWay way = HaloWay::kFewerNumbers;
  };
  /// Rank p has parts ranks::Shares{all parts, ranks}. Called by all ranks at once; the
  /// communicator must outlive it.
  explicit NodeRows(Given given);
  NodeRows(const NodeRows&) = delete;
  NodeRows& operator=(const NodeRows&) = delete;

  ranks::Communicator& ranks() const { return ranks_; }
  std::int64_t num_nodes() const { return num_nodes_; }  ///< of all ranks
  std::int64_t num_parts() const { return num_parts_; }  ///< of all ranks
  std::int64_t own() const { return bounds_.back(); }
  const std::vector<std::int64_t>& bounds() const { return bounds_; }  ///< of own parts, from 0
  const std::vector<std::int64_t>& number() const { return number_; }
  const engine::HaloRows<float>& a() const { return a_; }
  const engine::HaloRows<float>& transposed() const { return is_symmetric_ ? a_ : transposed_; }
  /// Rows of others come once for all hops of a block.
  bool by_rings() const { return a_.hops_per_fill() > 1; }
  /// Rows that go to others at an exchange forward and at one backward.
  std::int64_t rows_sent() const { return halos_.front().rows_sent(); }
  std::int64_t rows_sent_back() const { return halos_.back().rows_sent(); }

 private:
  bool take_rings(const std::vector<std::int64_t>& rank_bounds, std::int64_t hops, HaloWay way);
  engine::HaloRows<float> with_rings(OwnRows& rows, HaloRings rings,
                                     const std::vector<std::int64_t>& rank_bounds);
  engine::HaloRows<float> local(OwnRows& rows, const std::vector<std::int64_t>& rank_bounds);

  ranks::Communicator& ranks_;
  std::int64_t num_nodes_ = 0;
  std::int64_t num_parts_ = 0;
  std::vector<std::int64_t> bounds_;
  std::vector<std::int64_t> number_;
  bool is_symmetric_ = true;
  OwnRows rows_;
  OwnRows transposed_rows_;
  std::vector<ranks::Halo> halos_;  // of A and, unless symmetric, of A'
  engine::HaloRows<float> a_;
  engine::HaloRows<float> transposed_;
};

/// A x of own nodes from x [own, C], float: one exchange, and one for the gradient. All ranks call
/// it at the same time, with rows that outlive the gradient and have no rings.
torch::Tensor halo_spmm(const torch::Tensor& x, const NodeRows& rows);

/// Empty if the nodes of such a model can be dealt to ranks, else the reason, as a phrase.
std::string why_not_by_nodes(const ModelOptions& options);

/// Gives for own nodes what the model gives, forward and backward, up to rounding (sums over nodes
/// have another order), and the same bits for any number of ranks that have the same parts: rows of
/// A are summed by who has them, in their own order, and sums over nodes go part by part. What is
/// dropped is the same as in one process. An exchange sends 4 C bytes for each of
/// NodeRows::rows_sent(): one a hop, or one a block by rings, with the same bits.
class NodeRanks : public SharedModule {
 public:
  /// `model` keeps the parameters. Throws (c10::Error) if why_not_by_nodes().
  NodeRanks(std::shared_ptr<ModelImpl> model, std::shared_ptr<const NodeRows> rows);

  /// x [own, in] -> [own, out]; the operator is that of the rows, `gso` is not looked at. In
  /// training as `model` is.
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;

  void collect_gradients() override;

 private:
  torch::Tensor recur(std::int64_t block, const torch::Tensor& c);
  engine::RowPlace place_of(std::size_t part) const;

  std::shared_ptr<ModelImpl> model_;
  std::shared_ptr<const NodeRows> rows_;
  std::vector<PartModel> parts_;
};

}  // namespace mpssm::nn
