// SPDX-License-Identifier: MIT
#include "mpssm/graph/operator_groups.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <set>
#include <stdexcept>
#include <utility>

namespace mpssm::graph {
namespace {

/// Far more than there are kinds; shares beyond it are slips.
constexpr std::int64_t kMaxShare = 1'000;

GsoShare share_from_text(std::string_view text) {
  GsoShare result;
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  auto kind = table_of(GsoKind{}).find(name);
  if (!kind) kind = low_rank_kinds().find(name);
  if (!kind) {
    throw std::invalid_argument(
        fmt::format("expected one of {}, got '{}'", gso_group_names(), name));
  }
  result.kind = *kind;
  if (colon == std::string_view::npos) return result;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), result.share);
  if (error != std::errc() || end != number.data() + number.size() || result.share < 1 ||
      result.share > kMaxShare) {
    throw std::invalid_argument(
        fmt::format("expected a share from 1 to {} behind the colon, got '{}'", kMaxShare, text));
  }
  return result;
}

LowRankOperator unknown_factors(const Graph& graph, std::int64_t most) {
  const std::int64_t rank = std::clamp<std::int64_t>(graph.num_nodes(), 1, most);
  const std::vector<double> zeros(static_cast<std::size_t>(graph.num_nodes() * rank), 0.0);
  return {
      GsoKind::kAdaptive, rank, zeros, zeros, {graph.graph_ptr().begin(), graph.graph_ptr().end()}};
}

}  // namespace

bool GsoGroups::is_adaptive() const {
  return std::ranges::any_of(groups, [](const auto& g) { return g.kind == GsoKind::kAdaptive; });
}

std::vector<std::int64_t> GsoGroups::shares() const {
  std::vector<std::int64_t> result;
  if (is_single()) return result;
  for (const GsoShare& group : groups) result.push_back(group.share);
  return result;
}

std::string gso_group_names() {
  return table_of(GsoKind{}).names() + ", " + low_rank_kinds().names();
}

std::string to_string(const GsoGroups& groups) {
  std::string text;
  for (const GsoShare& group : groups.groups) {
    if (!text.empty()) text += ",";
    text += to_string(group.kind);
    if (group.share != 1) text += fmt::format(":{}", group.share);
  }
  return text;
}

GsoGroups gso_groups_from_text(std::string_view text) {
  GsoGroups result;
  result.groups.clear();
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    result.groups.push_back(share_from_text(word));
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  if (std::ranges::all_of(result.groups, [](const auto& g) { return is_low_rank(g.kind); })) {
    throw std::invalid_argument(
        fmt::format("expected an operator of the graph beside '{}', as a,{}", to_string(result),
                    to_string(result)));
  }
  if (std::ranges::count(result.groups, GsoKind::kAdaptive, &GsoShare::kind) > 1) {
    throw std::invalid_argument(
        fmt::format("expected adaptive once, with a share, got '{}'", to_string(result)));
  }
  return result;
}

Operators make_operators(const Graph& graph, const GsoGroups& groups) {
  std::vector<OperatorGroup> made;
  for (const GsoShare& group : groups.groups) {
    made.push_back({.gso = {}, .share = group.share});
    if (is_low_rank(group.kind)) {
      made.back().low_rank = group.kind == GsoKind::kVirtualNode
                                 ? virtual_node(graph.graph_ptr())
                                 : unknown_factors(graph, groups.adaptive_rank);
    } else {
      made.back().gso = make_gso(graph, {.kind = group.kind});
    }
  }
  return Operators(std::move(made));
}

Gso united(const Operators& operators) {
  if (operators.is_single()) return operators.only();
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col;
  for (std::int64_t i = 0; i < operators.num_nodes(); ++i) {
    std::set<std::int32_t> row;
    for (std::int64_t g = 0; g < operators.num_groups(); ++g) {
      if (operators.is_low_rank(g)) continue;
      const auto a = operators.of_group(g).view<double>();
      for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
        if (a.value[e] != 0.0) row.insert(a.col[e]);
      }
    }
    col.insert(col.end(), row.begin(), row.end());
    row_ptr.push_back(std::ssize(col));
  }
  std::vector<double> ones(col.size(), 1.0);
  return Gso::from_csr(std::move(row_ptr), std::move(col), std::move(ones),
                       {operators.graph_ptr().begin(), operators.graph_ptr().end()});
}

}  // namespace mpssm::graph
