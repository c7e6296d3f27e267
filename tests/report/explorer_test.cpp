// SPDX-License-Identifier: MIT
// The data of an explorer read back: the operator entry by entry, sizes of large graphs.
#include "mpssm/report/explorer.h"

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/report/page_text.h"

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return out;
}

nlohmann::json data_in(const std::string& html) {
  const std::string start = "id=\"explorer-data\">";
  const std::size_t begin = html.find(start) + start.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

/// As explorer.js reads it.
std::map<std::pair<int, int>, double> operator_in(const nlohmann::json& data) {
  const std::string bytes = from_base64(data["entries"]);
  std::size_t at = 0;
  const auto next = [&] {
    std::uint64_t value = 0;
    for (std::uint64_t shift = 1;; shift *= 128) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value += (byte & 127) * shift;
      if (byte < 128) return static_cast<int>(value);
    }
  };
  std::vector<std::pair<int, int>> entries;
  std::vector<int> degree(data["nodes"].get<std::size_t>(), 0);
  for (int i = 0; i < data["nodes"].get<int>(); ++i) {
    degree[i] += next();
    int column = data["symmetric"].get<bool>() ? i : 0;
    for (int count = next(); count > 0; --count) {
      column += next();
      entries.emplace_back(i, column);
      ++degree[i];
      if (data["symmetric"].get<bool>() && column != i) ++degree[column];
    }
  }
  std::vector<double> values(entries.size());
  if (data.contains("values")) {
    const std::string raw = from_base64(data["values"]);
    EXPECT_EQ(raw.size(), 8 * values.size());
    std::memcpy(values.data(), raw.data(), raw.size());
  }
  std::map<std::pair<int, int>, double> matrix;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const auto [i, j] = entries[e];
    const double value = data.contains("values")
                             ? values[e]
                             : 1.0 / std::sqrt(static_cast<double>(degree[i]) * degree[j]);
    matrix[{i, j}] = value;
    if (data["symmetric"].get<bool>()) matrix[{j, i}] = value;
  }
  return matrix;
}

Explorer of_graph(const graph::Graph& graph, graph::GsoKind kind = graph::GsoKind::kSymNormalized) {
  return {.gso = graph::make_gso(graph, {.kind = kind}), .blocks = {{"", {1.0, 1.0, 1.0}}}};
}

TEST(Explorer, HoldsTheOperator) {
  const graph::Graph directed = graph::Graph::from_edges({.num_nodes = 200,
                                                          .src = {0, 1, 199, 3},
                                                          .dst = {1, 199, 0, 3},
                                                          .weight = {2.0, 0.5, 1.0, 4.0}},
                                                         graph::Direction::kDirected);
  for (const graph::Graph& graph : {graph::make_grid(4, 5), directed, graph::make_star(300)}) {
    for (const auto kind : {graph::GsoKind::kSymNormalized, graph::GsoKind::kRandomWalk,
                            graph::GsoKind::kLaplacian}) {
      const Explorer explorer = of_graph(graph, kind);
      const auto matrix = operator_in(data_in(explorer_html(explorer)));
      ASSERT_EQ(std::ssize(matrix), explorer.gso.num_nonzeros());
      for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
        for (std::int64_t e = explorer.gso.row_ptr()[i]; e < explorer.gso.row_ptr()[i + 1]; ++e) {
          EXPECT_NEAR(matrix.at({i, explorer.gso.col()[e]}), explorer.gso.values<double>()[e],
                      1e-14);
        }
      }
    }
  }
}

TEST(Explorer, LargeGraphsAreCutAndSaySo) {
  Explorer explorer = of_graph(graph::make_random_connected(100'000, 400'000, 1));
  explorer.target = 777;
  explorer.colours = {{.name = "truth", .value = std::vector<double>(100'000, 1.0)}};
  for (std::int64_t i = 0; i < 100'000; ++i) {
    explorer.node_ids.push_back("node number " + std::to_string(i));
  }
  const std::string html = explorer_html(explorer);
  EXPECT_LT(html.size(), 1'300'000u);
  EXPECT_THAT(html, HasSubstr("of the 100,000 nodes"));
  const nlohmann::json data = data_in(html);
  EXPECT_FALSE(data.contains("places"));
  EXPECT_GT(data["nodes"].get<int>(), 5000);
  EXPECT_EQ(data["ids"][data["target"].get<std::size_t>()], "node number 777");
  // Inside of the part, entries are those of the whole operator.
  const std::string raw = from_base64(data["numbers"]);
  std::vector<std::int32_t> numbers(raw.size() / 4);
  std::memcpy(numbers.data(), raw.data(), raw.size());
  const auto matrix = operator_in(data);
  const std::int32_t i = data["target"];
  int found = 0;
  for (std::int64_t e = explorer.gso.row_ptr()[777]; e < explorer.gso.row_ptr()[778]; ++e) {
    const auto j = std::lower_bound(numbers.begin(), numbers.end(), explorer.gso.col()[e]);
    ASSERT_TRUE(j != numbers.end() && *j == explorer.gso.col()[e]);  // neighbours come first
    EXPECT_NEAR(matrix.at({i, static_cast<int>(j - numbers.begin())}),
                explorer.gso.values<double>()[e], 1e-14);
    ++found;
  }
  EXPECT_GT(found, 0);
}

TEST(Explorer, NamesCannotLeaveTheScript) {
  Explorer explorer = of_graph(graph::make_path(2));
  explorer.node_ids = {"</script><script>alert(1)</script>", "<!--\" onload=x"};
  explorer.colours = {{.name = "<i>", .value = {0, 1}, .classes = {"</script>", "b"}}};
  const std::string html = explorer_html(explorer);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<i>")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  EXPECT_EQ(data_in(html)["ids"][0], explorer.node_ids[0]);
}

TEST(Explorer, RefusesWhatDoesNotFit) {
  Explorer explorer = of_graph(graph::make_path(3));
  explorer.colours = {{.name = "two", .value = {1, 2}}};
  EXPECT_THROW(explorer_html(explorer), std::invalid_argument);
  explorer.colours.clear();
  explorer.target = 3;
  EXPECT_THROW(explorer_html(explorer), std::invalid_argument);
}

TEST(PageText, Base64AndNumbers) {
  for (const char* text : {"", "a", "ab", "abc", "abcd\xff\x80"}) {
    EXPECT_EQ(from_base64(page::base64(text)), text);
  }
  EXPECT_EQ(page::base64("ab"), "YWI=");
  EXPECT_EQ(page::grouped(1234567), "1,234,567");
  EXPECT_EQ(page::grouped(-123), "-123");
  EXPECT_EQ(page::grouped(1000), "1,000");
}

}  // namespace
}  // namespace mpssm::report
