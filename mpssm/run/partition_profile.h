// SPDX-License-Identifier: MIT
// `mpssm sensitivity` of a graph in parts: what one node sends or hears, and what passes between
// two, by ranks that read their own parts alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/analysis/graph_question.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/engine/executor.h"
#include "mpssm/ranks/communicator.h"

namespace mpssm::run {

struct PartitionQuestion {
  std::filesystem::path folder = {};
  std::string source = {};  ///< by id, or by number if nodes have none; empty: none
  std::string target = {};
  std::vector<std::int64_t> taus = {};  ///< ascending, at least one
  double w = 1.0;
  std::string gso = {};  ///< the operator that is meant; empty: the one of the parts
};

struct PartitionAnswer {
  data::BareGraph graph = {};  ///< names alone, of the nodes asked for
  analysis::GraphAnswer answer = {};
};

/// The answer, on rank 0; the others learn part of it. All ranks call it at the same time. Values
/// of a pair have the bits of the whole graph in one process, and so has what one node sends or
/// hears, except for the sum, which goes part by part: the same for any number of ranks. Throws
/// base::Error.
PartitionAnswer answer(const PartitionQuestion& question, ranks::Communicator& ranks,
                       const engine::Executor& executor, const analysis::Stages& stages = {});

}  // namespace mpssm::run
