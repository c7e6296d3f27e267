// SPDX-License-Identifier: MIT
// Private to task/: what the graph says of its nodes, appended to their features.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/data/dataset.h"
#include "mpssm/engine/node_encodings.h"
#include "mpssm/graph/graph.h"
#include "mpssm/task/preprocessing.h"

namespace mpssm::task {

/// The encodings of the nodes of a graph or batch. A function of graph, options and columns of
/// edges: made once for a problem, and again when its run is opened or applied to other data.
class EncodedFeatures {
 public:
  EncodedFeatures() = default;
  /// Columns of edges are those that `learned` has, else fitted to the rows that `counts` names.
  /// Throws base::Error if there are none and options ask for them.
  EncodedFeatures(
      const graph::Graph& graph, const engine::EncodingOptions& options,
      const data::EdgeTable& edges, const Preprocessing* learned,
      const std::function<bool(std::size_t)>& counts = [](std::size_t) { return true; });

  std::int64_t width() const { return options_.width() + edge_width_; }
  const std::vector<data::Column>& edge_columns() const { return edge_columns_; }
  std::int64_t bytes() const;

  /// x [N, F] with the encodings of all nodes: [N, F + width]; x itself if there are none.
  at::Tensor append(const at::Tensor& x) const;
  /// The same of nodes [first[k], last[k]), one range after the other; x has their rows.
  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  at::Tensor append(const at::Tensor& x, std::span<const Range> ranges) const;

  /// For a step of training: x as append() made it, with the eigenvectors of each connected part
  /// times -1 or 1. The signs of an eigenvector mean nothing, and so a network learns not to go by
  /// them. They follow from one number of the current generator (ops/generator.h), drawn only if
  /// there are eigenvectors.
  at::Tensor flipped(const at::Tensor& x, std::span<const Range> ranges) const;
  at::Tensor flipped(const at::Tensor& x) const;  ///< all nodes

 private:
  engine::EncodingOptions options_;
  std::vector<data::Column> edge_columns_;
  std::int64_t edge_width_ = 0;
  std::vector<float> values_;        // [N, width]
  std::vector<std::int32_t> parts_;  // connected part of each node; only if there are eigenvectors
};

}  // namespace mpssm::task
