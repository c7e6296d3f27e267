// SPDX-License-Identifier: MIT
// What a training step costs on so many ranks, counted: time, bytes, memory, for each of the ways
// to share it, and which of them wins. No torch here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/base/enum_table.h"

namespace mpssm::ranks {

/// What work costs a core, in nanoseconds, and where that was found.
struct ScaleCosts {
  /// A number read by an entry of A, channels a few at a time; of a line of the cache that is not
  /// full, the numbers that are missing count as well. Of neighbours in no order, and of a grid.
  double gather_slices = 0.0;
  double gather_slices_grid = 0.0;
  double gather_rows = 0.0;  ///< the same for whole rows, hop by hop
  double gather_rows_grid = 0.0;
  double multiply_add = 0.0;  ///< of a product with a weight or its gradient
  double number = 0.0;        ///< see numbers_of_node(): norms, activation, dropout, ...
  double output = 0.0;        ///< a number of the output: the loss and its gradient
  /// Not a price: how many times longer hops and passes take where all cores work at once, and
  /// share what is between them and the memory.
  double sharing = 1.0;
  double exchange = 0.0;    ///< a call, whatever it sends
  double byte = 0.0;        ///< sent, packed and received, the wire aside
  std::string origin = {};  ///< for people
};
/// Measured on the machine of docs/scale.md, by `mpssm plan --measure`.
const ScaleCosts& builtin_scale_costs();
/// "gather_slices=0.31 ...", read back to the same. Throws base::Error.
std::string to_text(const ScaleCosts& costs);
ScaleCosts scale_costs_from_text(const std::string& text, const std::string& origin);

/// Graph, network and machines.
struct ScaleQuery {
  double nodes = 0;
  double edges = 0;  ///< undirected
  /// Neighbours next to each other in the order of nodes, see grid_likeness(): 1 as in a grid, 0
  /// where they are anywhere.
  double grid_like = 0;
  double graphs = 1;  ///< in a batch: more than one are shared as such
  double features = 16;
  double outputs = 1;
  double channels = 64;
  double hops = 4;
  double blocks = 4;
  bool dense = false;
  double ranks = 1;
  double bits_per_second = 0;  ///< of a rank's link; 0: ranks are on one machine
  double latency_us = 30;      ///< of an exchange on that link
  double memory_gib = 0;       ///< of a rank; 0: whatever it takes
  /// Share of the edges between parts; below 0: as of nodes dealt by chance, 1 - 1 / ranks.
  double cut = -1;
  double halo = -1;  ///< nodes of others that a rank reads, the most; below 0: counted from `cut`
  /// The same within all hops of a block, where that was counted and all ranks together send less
  /// like this; below 0: rows of others come at every hop.
  double ring_halo = -1;
  std::string halo_from = {};  ///< how that was found, for people
};

enum class Way { kAlone, kBatches, kChannels, kNodes };
inline constexpr base::EnumRow<Way> kWays[] = {
    {Way::kAlone, "one process"},
    {Way::kBatches, "data-parallel"},
    {Way::kChannels, "channel-parallel"},
    {Way::kNodes, "node-partitioned"},
};
constexpr base::EnumTable<Way> table_of(Way) { return kWays; }
constexpr std::string_view to_string(Way way) { return table_of(way).name(way); }

struct WayCost {
  Way way = Way::kAlone;
  double compute_seconds = 0;  ///< of a step, on one core of a rank
  double network_seconds = 0;
  double bytes_sent = 0;  ///< by a rank in a step
  double exchanges = 0;
  double memory_bytes = 0;   ///< of a rank
  std::string why_not = {};  ///< it cannot be taken
  std::string because = {};  ///< what it sends, in words
  double seconds() const { return compute_seconds + network_seconds; }
};

/// ScaleQuery::grid_like of an operator of which so many of all entries stand next to the one
/// before them in their row; a grid of cells with eight neighbours has two of three there.
double grid_likeness(double next_entries, double entries);
/// Numbers of a node that a step goes over: features, channels of each block, outputs.
double numbers_of_node(const ScaleQuery& query);
/// Weights of the network.
double num_weights(const ScaleQuery& query);
/// Nodes of others that a part reads: distinct ends of its cut edges, dealt by chance.
double counted_halo(const ScaleQuery& query);
/// ScaleQuery::ring_halo; of nodes dealt by chance all others, if that is less. Below 0: not taken.
double counted_ring_halo(const ScaleQuery& query);

/// All ways, in order.
std::vector<WayCost> scale_plan(const ScaleQuery& query, const ScaleCosts& costs);
/// The fastest that can be taken and fits; null if none does.
const WayCost* winner(const std::vector<WayCost>& ways);

std::string plan_text(const ScaleQuery& query, const ScaleCosts& costs);
std::string plan_json(const ScaleQuery& query, const ScaleCosts& costs);

/// "25Gbit", "100Mbit", "1e9" (bits per second). Throws base::Error.
double bits_from_text(const std::string& text);

}  // namespace mpssm::ranks
