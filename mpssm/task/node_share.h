// SPDX-License-Identifier: MIT
// One graph whose nodes are dealt to ranks: what this one has, and what they make of it together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpssm/graph/gso.h"
#include "mpssm/io/file.h"
#include "mpssm/ranks/communicator.h"
#include "mpssm/task/metrics.h"

namespace mpssm::task {

struct NodeShare {
  ranks::Communicator* ranks = nullptr;   ///< must outlive it
  std::vector<std::int64_t> number = {};  ///< of own nodes in the data
  std::vector<std::int64_t> bounds = {};  ///< of own parts, see nn::NodeRows
  std::int64_t num_parts = 1;             ///< of all ranks
  std::int64_t num_nodes = 0;             ///< of all ranks
  graph::Gso gso = {};                    ///< own rows, for the memory estimate

  /// Sums over own nodes, [own parts, n], added over all parts in order. Called by all ranks.
  std::vector<double> total(const std::vector<double>& of_parts, std::int64_t n) const;
  /// The same of one number for each own node, as `of` gives it.
  double total(const std::function<double(std::int64_t)>& of) const;

  /// Metrics of rows that the ranks have some of, each with the number of its node: `find` sees all
  /// of them on rank 0, in the order of the data, and all ranks are told.
  struct Rows {
    std::vector<std::int64_t> number = {};
    std::vector<float> truth = {};
    std::vector<float> output = {};  ///< [rows, columns]
    std::int64_t columns = 1;
  };
  Metrics evaluate(const Rows& mine, const std::function<Metrics(const Rows&)>& find) const;

  /// Lines of own nodes, in the order of the data: rank 0 hands all of them to the sink.
  void write_lines(const std::function<std::string(std::int64_t)>& line_of,
                   const io::Sink& sink) const;
};

}  // namespace mpssm::task
