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

std::string to_string(const GsoShare& group) {
  std::string text(to_string(group.kind));
  if (!group.column.empty()) {
    text += fmt::format("({}{}{})", group.column, group.value.empty() ? "" : "=", group.value);
  }
  if (group.share != 1) text += fmt::format(":{}", group.share);
  return text;
}

/// Where the first comma outside of parentheses is, or the end.
std::size_t end_of_word(std::string_view text) {
  bool is_inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == ')') is_inside = text[i] == '(';
    if (text[i] == ',' && !is_inside) return i;
  }
  return text.size();
}

/// "column" or "column=value".
void take_edges(std::string_view text, GsoShare& group) {
  const std::size_t equals = text.find('=');
  group.column = text.substr(0, equals);
  if (equals != std::string_view::npos) group.value = text.substr(equals + 1);
  const bool is_whole =
      !group.column.empty() && (equals == std::string_view::npos || !group.value.empty());
  if (!is_whole || text.find_first_of("(\"\\") != std::string_view::npos) {
    throw std::invalid_argument(fmt::format(
        "expected (column) or (column=value) without quotes and parentheses, got '({})'", text));
  }
  if (group.kind == GsoKind::kIdentity || is_low_rank(group.kind)) {
    throw std::invalid_argument(fmt::format("{} is the same whatever the edges, got '{}({})'",
                                            to_string(group.kind), to_string(group.kind), text));
  }
}

GsoShare share_from_text(std::string_view text) {
  GsoShare result;
  const std::size_t open = text.find('(');
  const std::size_t close = open == std::string_view::npos ? open : text.find(')', open);
  if (open != std::string_view::npos && close == std::string_view::npos) {
    throw std::invalid_argument(fmt::format("expected a ')' behind '{}'", text));
  }
  const bool has_edges = open != std::string_view::npos;
  const std::size_t colon = text.find(':', has_edges ? close : 0);
  const std::string_view name = text.substr(0, std::min(open, colon));
  auto kind = table_of(GsoKind{}).find(name);
  if (!kind) kind = low_rank_kinds().find(name);
  if (!kind) {
    throw std::invalid_argument(
        fmt::format("expected one of {}, got '{}'", gso_group_names(), name));
  }
  result.kind = *kind;
  if (has_edges) take_edges(text.substr(open + 1, close - open - 1), result);
  if (has_edges && close + 1 != std::min(colon, text.size())) {
    throw std::invalid_argument(
        fmt::format("expected nothing or a share behind the ')', got '{}'", text));
  }
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

bool GsoGroups::is_of_edges() const {
  return std::ranges::any_of(groups, [](const auto& group) { return !group.column.empty(); });
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
    text += to_string(group);
  }
  return text;
}

GsoGroups gso_groups_from_text(std::string_view text) {
  GsoGroups result;
  result.groups.clear();
  while (true) {
    const std::size_t comma = end_of_word(text);
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

Operators make_operators(const Graph& graph, const GsoGroups& groups,
                         const EdgesOfGroup& edges_of) {
  std::vector<OperatorGroup> made;
  for (const GsoShare& group : groups.groups) {
    made.push_back({.gso = {}, .share = group.share});
    if (!group.column.empty()) {
      if (edges_of == nullptr || group.value.empty()) {
        throw std::invalid_argument(
            fmt::format("make_operators: expected to be told the edges of '{}'", to_string(group)));
      }
      made.back().gso = make_gso(edges_of(group), {.kind = group.kind});
      made.back().edges = fmt::format("{}={}", group.column, group.value);
      continue;
    }
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
