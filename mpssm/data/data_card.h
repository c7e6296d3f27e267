// SPDX-License-Identifier: MIT
// What was understood of a dataset, as data: what a user should see before anything is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

struct DataCard {
  std::string name = {};
  std::string source = {};
  std::string shape = {};  ///< "one graph", "many graphs", "a series on a graph"
  std::string task = {};
  std::string why = {};  ///< it is this task; may be empty
  std::string metric = {};
  std::string target = {};  ///< name of what is learned

  std::int64_t graphs = 1;
  std::int64_t nodes = 0;
  std::int64_t edges = 0;  ///< undirected: pairs and loops; directed, and of many graphs: entries
  std::int64_t components = 0;
  std::int64_t isolated = 0;  ///< nodes without a neighbour
  bool directed = false;
  bool weighted = false;

  /// Share of the edges between two training nodes whose ends have one class, and the share if
  /// classes were dealt at random to the ends. Validation and test labels are not looked at.
  struct Homophily {
    double share = 0.0;
    double by_chance = 0.0;
    std::int64_t edges = 0;
  };
  std::optional<Homophily> homophily = {};

  std::int64_t features = 0;
  std::string encodings = {};  ///< of the graph, that a run appends to them; empty: none
  std::int64_t encoded = 0;    ///< numbers of each node that these are
  std::vector<ColumnReport> columns = {};      ///< of tables
  std::vector<std::string> edge_columns = {};  ///< read and kept; a model may use them

  struct Class {
    std::string name;
    std::int64_t count = 0;  ///< samples with it
  };
  std::vector<Class> classes = {};
  std::int64_t labelled = 0;
  std::int64_t unlabelled = 0;

  struct Series {
    std::int64_t steps = 0;
    std::int64_t lags = 0;
    std::int64_t horizon = 0;
    std::int64_t graphs = 1;  ///< over time
  };
  std::optional<Series> series = {};

  std::string samples = {};  ///< what train, val and test count: "nodes", "graphs", "windows"
  std::int64_t splits = 1;   ///< to choose from; the counts are those of `split`
  std::int64_t split = 0;
  std::int64_t train = 0;
  std::int64_t val = 0;
  std::int64_t test = 0;
  std::string protocol = {};
};

/// `split`: which of the node splits. O(nodes + edges + features).
DataCard make_card(const Dataset& dataset, std::int64_t split = 0);

}  // namespace mpssm::data
