// SPDX-License-Identifier: MIT
// A question about a bare graph, S_ij(tau) = |(A^tau)_ij| |w|^tau, and the parts of its answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/graph/gso.h"

#include "cli/sensitivity.h"
#include "cli/terminal.h"

namespace mpssm::cli {

/// What sums of thousands of terms may be off by.
inline constexpr double kRounding = 1e-12;

struct GraphQuestion {
  const SensitivityOptions& options;
  std::vector<std::int64_t> taus;
  data::BareGraph bare = {};
  graph::Gso gso = {};
  std::unique_ptr<analysis::DeepLimit> limit = nullptr;  ///< null: not known, see why_no_limit
  std::string why_no_limit = {};
  std::int64_t source = -1;  ///< -1: none
  std::int64_t target = -1;

  bool is_pair() const { return source >= 0 && target >= 0; }
  bool is_single() const { return (source >= 0) != (target >= 0); }
  std::int64_t num_nodes() const { return bare.graph.num_nodes(); }
  std::string name(std::int64_t node) const { return node_name(bare, node); }
  double scaled(double entry, std::int64_t tau) const;  ///< times |w|^tau, which may overflow
  std::string title() const;
};

/// Reads the graph, finds the nodes, makes the operator. Throws io::InputError.
GraphQuestion read_question(const SensitivityOptions& options);

/// Sizes, components, lambda*: what every answer starts with.
void describe_graph(const GraphQuestion& question, Answer& answer);

void answer_pair(const GraphQuestion& question, Answer& answer);
void answer_node(const GraphQuestion& question, Answer& answer);       ///< source or target alone
void answer_all_pairs(const GraphQuestion& question, Answer& answer);  ///< neither
void answer_worst_pairs(const GraphQuestion& question, Answer& answer);

/// The first tau at which a pair has the share options.depth of its limit.
std::optional<std::int64_t> pair_depth(const GraphQuestion& question, std::int64_t source,
                                       std::int64_t target);

/// Tells `meter` how far a walk to the last tau is.
analysis::Progress walk_progress(const GraphQuestion& question, Meter& meter);

/// The verdict on bounds, in words.
std::string bounds_verdict(const Answer& answer);

}  // namespace mpssm::cli
