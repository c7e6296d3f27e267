// SPDX-License-Identifier: MIT
// One large graph cut into parts once, and trained on by ranks that read their own parts alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "mpssm/data/load.h"
#include "mpssm/data/partition.h"
#include "mpssm/ranks/communicator.h"
#include "mpssm/run/experiment.h"

namespace mpssm::run {

struct PartitionRequest {
  std::int64_t parts = 1;
  std::string gso = "auto";     ///< the operator, model.gso of trainings; auto: as rules choose it
  std::string method = "auto";  ///< of graph::PartitionMethod; auto: the best at hand
  std::filesystem::path out = {};
};

/// Writes the folder and returns what it holds, in a line for people. Reads the data (a name or
/// path) whole, once. Throws base::Error.
std::string write_partition(const std::string& name, const data::LoadOptions& load,
                            const PartitionRequest& request);

/// What a folder says of the graph that nobody has whole.
struct PartitionedGraph {
  std::int64_t edges = 0;
  std::int64_t components = 0;
  bool is_symmetric = true;
};
/// Throws base::Error, as the next.
PartitionedGraph partitioned_graph(const data::PartitionIndex& index);
/// What the rules look at (train/defaults.h), of the whole graph.
train::DataFacts facts_of(const data::PartitionIndex& index);

/// Throws base::Error, with the command for another cut, unless there is a part for each rank.
void check_num_ranks(const data::PartitionIndex& index, std::int64_t num_ranks);

/// Data, problem and network of a config whose data are such a folder; `ranks` share its parts and
/// call this together. `pins`: of a run that goes on. The communicator must outlive it.
Experiment set_up_partition(const train::Config& config, ranks::Communicator& ranks,
                            const DataPins* pins);

}  // namespace mpssm::run
