// SPDX-License-Identifier: MIT
// Private to report/: values that answers in JSON have in common.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "mpssm/data/bare_graph.h"

namespace mpssm::report {

/// A node: its number, or its id if it has one; null for -1.
inline nlohmann::ordered_json node_json(const data::BareGraph& graph, std::int64_t node) {
  if (node < 0) return nullptr;
  if (graph.node_ids.empty()) return node;
  return graph.node_ids[node];
}

/// Null for nullopt and for negative numbers.
inline nlohmann::ordered_json count_json(std::optional<std::int64_t> count) {
  if (!count || *count < 0) return nullptr;
  return *count;
}

/// Null for nullopt.
inline nlohmann::ordered_json number_json(std::optional<double> number) {
  if (!number) return nullptr;
  return *number;
}

/// [{"tau": ..., "value": ...}, ...]
inline nlohmann::ordered_json profile_json(std::span<const std::int64_t> taus,
                                           std::span<const double> values) {
  nlohmann::ordered_json profile = nlohmann::ordered_json::array();
  for (std::size_t t = 0; t < values.size(); ++t) {
    profile.push_back({{"tau", taus[t]}, {"value", values[t]}});
  }
  return profile;
}

}  // namespace mpssm::report
