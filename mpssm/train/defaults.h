// SPDX-License-Identifier: MIT
// Settings that nobody has given, chosen from the data by rules that can be read: all of them are
// in defaults.cpp, and `mpssm train --explain` prints what each saw and chose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/data/data_card.h"
#include "mpssm/train/config.h"

namespace mpssm::train {

enum class DataShape { kOneGraph, kManyGraphs, kSeries };

/// What the rules look at; of labels only those of the training part.
struct DataFacts {
  DataShape shape = DataShape::kOneGraph;
  data::Task task = data::Task::kNodeBinary;
  std::int64_t train = 0;  ///< training samples: labelled nodes, graphs, or windows
  std::int64_t nodes = 0;  ///< of the one graph, or of all graphs together
  std::int64_t edges = 0;  ///< entries of the operator, without loops
  std::int64_t graphs = 1;
  std::int64_t features = 0;
  /// Hops from one end of the graph to the other (of many graphs, of the widest that was looked
  /// at), as found by two searches from afar: at most the diameter, and mostly equal to it.
  std::int64_t reach = 0;
  bool directed = false;
  bool in_parts = false;  ///< the one graph, of which ranks have parts
  std::optional<data::DataCard::Homophily> homophily = {};
  std::int64_t lags = 0;  ///< of a series
  /// Of a series: readings of the training part that are missing.
  std::int64_t missing = 0;
  /// MiB that a step may take at most; 0: not known.
  double free_mib = 0.0;
};

/// `split`: which of the node splits. O(nodes + edges).
DataFacts facts_of(const data::Dataset& dataset, std::int64_t split);

/// A setting, and why it is what it is.
struct Choice {
  std::string key;
  std::string value;
  std::string because;
  bool given = false;  ///< by the user: the rule was not asked
};

/// Sets what was not given in `config`, and says so.
std::vector<Choice> choose_defaults(const DataFacts& facts, Config& config);

/// "model.channels=64 model.blocks=8 ...", without those that were given.
std::string to_line(const std::vector<Choice>& choices);

/// What a search tries when it is not told: "model.hops=1,2,4", ...
std::vector<std::string> usual_axes(DataShape shape);

}  // namespace mpssm::train
