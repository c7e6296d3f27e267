// SPDX-License-Identifier: MIT
// Graphs by name: "grid:20x30" for what generators.h makes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mpssm/graph/graph.h"

namespace mpssm::graph {

/// A family of graphs that has a name.
struct NamedFamily {
  std::string_view name;      ///< "grid"
  std::string_view sizes;     ///< "RxC": what comes after the colon
  std::string_view defaults;  ///< "10x10": the sizes of the bare name
  std::string_view summary;   ///< one line for people

  std::string pattern() const { return std::string(name) + ":" + std::string(sizes); }
  std::string example() const { return std::string(name) + ":" + std::string(defaults); }
};
std::span<const NamedFamily> named_families();

/// Nodes and edges together that a graph made by name may have: 4 to 9 GB while it is made.
inline constexpr std::int64_t kMaxNamedSize = 100'000'000;

/// Whether `spec` starts with the name of a family, whatever its sizes.
bool is_named(std::string_view spec);

/// `spec` is a family with or without sizes; `seed` matters to random families only. Throws
/// base::Error in one line: unknown family (lists them, the likeliest first), sizes that
/// do not have the pattern, that the generator refuses, or that pass kMaxNamedSize.
Graph make_named(std::string_view spec, std::uint64_t seed = 0);

}  // namespace mpssm::graph
