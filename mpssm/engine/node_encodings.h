// SPDX-License-Identifier: MIT
// What the graph alone says of each node, as numbers to append to its features.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/engine/executor.h"
#include "mpssm/graph/graph.h"

namespace mpssm::engine {

struct EncodingOptions {
  std::int64_t random_walk = 0;  ///< "rwse:K": how likely a walk is back after 1, ..., K steps
  std::int64_t laplacian = 0;    ///< "lap:K": the K lowest eigenvectors beyond the trivial one
  bool degree = false;           ///< "degree": log(1 + degree)
  /// "edges": what is known of the edges that come in, added up; not of the graph, so none of the
  /// functions below gives it (data/incident_edges.h does).
  bool edges = false;

  bool empty() const { return width() == 0 && !edges; }
  /// Numbers of each node, without those of `edges`.
  std::int64_t width() const { return random_walk + laplacian + (degree ? 1 : 0); }
};

/// "rwse:16,lap:8,degree", in any order, each at most once; "rwse" and "lap" alone mean 16 and 8,
/// "" means none. Throws base::Error.
EncodingOptions encodings_from_text(std::string_view text);
/// As encodings_from_text() reads it.
std::string to_text(const EncodingOptions& options);

/// [N, width]: columns of the random walk, of the Laplacian, of the degree.
///
/// Random walk: diag(P), ..., diag(P^K) with P = D^-1 M along the edges, by |weight|; a node that
/// nothing leaves has 0. Exact, in double; O(K / 2) visits of the edges within K / 2 hops of a
/// node. Laplacian: graph::laplacian_modes() of each connected part, times the root of its size, so
/// that an entry is of the order of one. Degree: sum of |weight|, mean of both directions. The same
/// bits for any number of workers.
std::vector<float> encode_nodes(const graph::Graph& graph, const EncodingOptions& options,
                                const Executor& executor);

}  // namespace mpssm::engine
