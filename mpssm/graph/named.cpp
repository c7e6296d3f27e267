// SPDX-License-Identifier: MIT
// Graphs by name: one table of families, and the sizes after the colon.
#include "mpssm/graph/named.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/graph/generators.h"

namespace mpssm::graph {
namespace {

// What came after the colon: counts in order, and the probability P where the pattern has one.
struct Sizes {
  std::array<std::int64_t, 3> count = {};
  double probability = 0.0;
};

// Nodes and edges together, as a real number: it may be past any integer.
using Estimate = double (*)(const Sizes&);
using Make = Graph (*)(const Sizes&, std::uint64_t seed);

double nodes(const Sizes& s) { return static_cast<double>(s.count[0]); }
double second(const Sizes& s) { return static_cast<double>(s.count[1]); }

double size_of_tree(const Sizes& s) { return 2.0 * nodes(s); }
double size_of_ladder(const Sizes& s) { return 5.0 * nodes(s); }
double size_of_grid(const Sizes& s) { return 3.0 * nodes(s) * second(s); }
double size_of_board(const Sizes& s) { return 5.0 * nodes(s) * second(s); }
double size_of_clique(const Sizes& s) { return 0.5 * nodes(s) * (nodes(s) + 1.0); }
double size_of_cliques(const Sizes& s) { return 0.5 * nodes(s) * second(s) * (second(s) + 1.0); }
double size_of_chain(const Sizes& s) { return size_of_cliques(s) + 3.0 * nodes(s); }
double size_of_erdos_renyi(const Sizes& s) {
  // The generator refuses more than 1, and says so better.
  return nodes(s) + 0.5 * std::min(s.probability, 1.0) * nodes(s) * nodes(s);
}
double size_of_attachments(const Sizes& s) { return nodes(s) * (1.0 + second(s)); }
double size_of_regular(const Sizes& s) { return nodes(s) * (1.0 + 0.5 * second(s)); }
double size_of_connected(const Sizes& s) { return nodes(s) + second(s); }

struct Family {
  NamedFamily text;
  Estimate size;
  Make make;
};

constexpr std::array<Family, 16> kFamilies = {{
    {{"path", "N", "100", "N nodes in a row"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t) { return make_path(s.count[0]); }},
    {{"ring", "N", "100", "N nodes in a circle"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t) { return make_ring(s.count[0]); }},
    {{"grid", "RxC", "10x10", "R rows of C nodes, 4 neighbours"},
     size_of_grid,
     [](const Sizes& s, std::uint64_t) { return make_grid(s.count[0], s.count[1]); }},
    {{"board", "RxC", "100x100", "R rows of C nodes, 8 neighbours (Minesweeper)"},
     size_of_board,
     [](const Sizes& s, std::uint64_t) { return make_board(s.count[0], s.count[1]); }},
    {{"star", "N", "100", "node 0 joined to N-1 others"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t) { return make_star(s.count[0]); }},
    {{"complete", "N", "20", "all pairs of N nodes"},
     size_of_clique,
     [](const Sizes& s, std::uint64_t) { return make_complete(s.count[0]); }},
    {{"tree", "N", "100", "random tree of N nodes, degrees by a power law"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t seed) { return make_power_law_tree(s.count[0], seed); }},
    {{"ladder", "N", "50", "two paths of N nodes joined rung by rung"},
     size_of_ladder,
     [](const Sizes& s, std::uint64_t) { return make_ladder(s.count[0]); }},
    {{"caveman", "CxK", "5x10", "C disjoint cliques of K nodes"},
     size_of_cliques,
     [](const Sizes& s, std::uint64_t) { return make_caveman(s.count[0], s.count[1]); }},
    {{"clique-chain", "CxK", "5x10", "C cliques of K nodes, neighbours joined by one bridge node"},
     size_of_chain,
     [](const Sizes& s, std::uint64_t) { return make_clique_chain(s.count[0], s.count[1]); }},
    {{"caterpillar", "N,B", "100,20", "a path of B nodes, the rest of N hung on it at random"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t seed) {
       return make_caterpillar(s.count[0], s.count[1], seed);
     }},
    {{"lobster", "N,B,F", "100,20,60", "a caterpillar of F nodes whose legs carry the rest of N"},
     size_of_tree,
     [](const Sizes& s, std::uint64_t seed) {
       return make_lobster(s.count[0], s.count[1], s.count[2], seed);
     }},
    {{"erdos-renyi", "N,P", "100,0.05", "each pair of N nodes with probability P"},
     size_of_erdos_renyi,
     [](const Sizes& s, std::uint64_t seed) {
       return make_erdos_renyi(s.count[0], s.probability, seed);
     }},
    {{"barabasi-albert", "N,M", "100,2", "each of N nodes joins M earlier ones of high degree"},
     size_of_attachments,
     [](const Sizes& s, std::uint64_t seed) {
       return make_barabasi_albert(s.count[0], s.count[1], seed);
     }},
    {{"regular", "N,D", "100,3", "random graph of N nodes with D neighbours each"},
     size_of_regular,
     [](const Sizes& s, std::uint64_t seed) {
       return make_random_regular(s.count[0], s.count[1], seed);
     }},
    {{"connected", "N,E", "100,150", "random connected graph of N nodes and E edges"},
     size_of_connected,
     [](const Sizes& s, std::uint64_t seed) {
       return make_random_connected(s.count[0], s.count[1], seed);
     }},
}};

// Made safe for one line: this is what a user typed.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kLongest ? "...'" : "'");
}

std::string place_of(std::string_view spec) { return "graph " + quoted(spec); }

std::string_view name_in(std::string_view spec) { return spec.substr(0, spec.find(':')); }

const Family* find_family(std::string_view name) {
  const auto* found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const Family& family) { return family.text.name == name; });
  return found == kFamilies.end() ? nullptr : found;
}

[[noreturn]] void fail_unknown(std::string_view spec) {
  const std::string_view name = name_in(spec);
  std::array<std::string_view, kFamilies.size()> names;
  std::transform(kFamilies.begin(), kFamilies.end(), names.begin(),
                 [](const Family& family) { return family.text.name; });
  // A slip or an abbreviation mostly starts like the word that was meant.
  const auto common_start = [&](std::string_view other) {
    return std::distance(other.begin(),
                         std::mismatch(other.begin(), other.end(), name.begin(), name.end()).first);
  };
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return common_start(a) > common_start(b);
  });
  std::string list;
  for (const std::string_view known : names)
    list += (list.empty() ? "" : ", ") + std::string(known);
  throw base::Error(place_of(spec), fmt::format("expected one of {}; got {}", list, quoted(name)));
}

// All of `text` or nothing; overflow is nothing too.
template <typename T>
std::optional<T> parse(std::string_view text) {
  T value = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

std::optional<Sizes> parse_sizes(std::string_view pattern, std::string_view text) {
  const char separator = pattern.find('x') != std::string_view::npos ? 'x' : ',';
  const std::vector<std::string_view> letters = split(pattern, separator);
  const std::vector<std::string_view> parts = split(text, separator);
  if (parts.size() != letters.size()) return std::nullopt;
  Sizes sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (letters[i] == "P") {
      const auto number = parse<double>(parts[i]);
      if (!number || !std::isfinite(*number)) return std::nullopt;
      sizes.probability = *number;
    } else {
      const auto number = parse<std::int64_t>(parts[i]);
      if (!number || *number < 0 || *number > kMaxNamedSize) return std::nullopt;
      sizes.count[i] = *number;
    }
  }
  return sizes;
}

}  // namespace

std::span<const NamedFamily> named_families() {
  static constexpr auto kTexts = [] {
    std::array<NamedFamily, kFamilies.size()> texts;
    std::transform(kFamilies.begin(), kFamilies.end(), texts.begin(),
                   [](const Family& family) { return family.text; });
    return texts;
  }();
  return kTexts;
}

bool is_named(std::string_view spec) { return find_family(name_in(spec)) != nullptr; }

Graph make_named(std::string_view spec, std::uint64_t seed) {
  const std::string_view name = name_in(spec);
  const Family* family = find_family(name);
  if (family == nullptr) fail_unknown(spec);
  const bool is_bare = name.size() == spec.size();
  const std::string_view text = is_bare ? family->text.defaults : spec.substr(name.size() + 1);
  const auto sizes = parse_sizes(family->text.sizes, text);
  if (!sizes) {
    throw base::Error(
        {.where = place_of(spec),
         .expected = fmt::format("{} as in {} with counts up to {}", family->text.pattern(),
                                 family->text.example(), kMaxNamedSize),
         .got = quoted(text)});
  }
  if (family->size(*sizes) > static_cast<double>(kMaxNamedSize)) {
    throw base::Error(
        {.where = place_of(spec),
         .expected = fmt::format("at most {} nodes and edges together", kMaxNamedSize),
         .got = "more"});
  }
  try {
    return family->make(*sizes, seed);
  } catch (const base::Error& error) {
    throw error.at(place_of(spec));  // instead of the generator, which nobody asked for by name
  }
}

}  // namespace mpssm::graph
