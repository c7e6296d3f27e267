// SPDX-License-Identifier: MIT
// The JSON files of PyTorch Geometric Temporal: edges, weights and a series in one of two shapes.
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/tables.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"

namespace mpssm::data {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t kMaxJsonBytes = std::int64_t{1} << 30;
constexpr std::int64_t kLags = 4;
constexpr std::int64_t kLagsOfPeriods = 8;

Json parse(const std::filesystem::path& path) {
  const std::string text = io::read_file(path, kMaxJsonBytes);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw base::Error(shown(path) + ": expected JSON: " + base::printable(error.what(), 200));
  }
}

// A document with a start for its messages; members are checked as they are taken.
class Document {
 public:
  explicit Document(const std::filesystem::path& path) : where_(shown(path)), root_(parse(path)) {
    if (!root_.is_object()) fail("", "an object", root_);
  }

  bool has(const std::string& key) const { return root_.contains(key); }
  /// Members that the two shapes do not have.
  std::vector<std::string> other_members() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : root_.items()) {
      const bool is_known = name == "edges" || name == "weights" || name == "node_ids" ||
                            name == "time_periods" || io::to_integer(name).has_value() ||
                            name == (has("FX") ? "FX" : "X");
      if (!is_known) names.push_back(name);
    }
    return names;
  }
  const Json& root() const { return root_; }

  [[noreturn]] void fail(const std::string& place, const std::string& expected,
                         const Json& got) const {
    const bool is_short = got.is_number() || got.is_string();
    throw base::Error(
        where_, fmt::format("{}expected {}, got {}", place.empty() ? "" : place + ": ", expected,
                            is_short ? base::printable(got.dump(-1, ' ', true)) : got.type_name()));
  }
  const Json& list(const Json& value, const std::string& place) const {
    if (!value.is_array()) fail(place, "a list", value);
    return value;
  }
  const Json& list(const std::string& key) const {
    if (!has(key)) throw base::Error(where_, fmt::format("expected a member '{}', got none", key));
    return list(root_[key], "'" + key + "'");
  }
  double number(const Json& value, const std::string& place) const {
    if (!value.is_number() || !std::isfinite(value.get<float>())) {
      fail(place, "a finite number", value);
    }
    return value.get<double>();
  }
  std::int64_t index(const Json& value, const std::string& place, std::int64_t end) const {
    // Floats with a whole value are refused too: an index that was ever one is no index.
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max());
    if (!fits) fail(place, fmt::format("a whole number in [0, {})", end), value);
    check_node(where_ + ": " + place, value.get<std::int64_t>(), end);
    return value.get<std::int64_t>();
  }

 private:
  std::string where_;
  Json root_;
};

// Appends one step; the first one says how many nodes there are.
void add_step(const Document& file, const Json& row, const std::string& place, SeriesData& series) {
  file.list(row, place);
  if (series.num_steps == 0) series.num_nodes = std::ssize(row);
  if (row.empty() || std::ssize(row) != series.num_nodes) {
    file.fail(place, fmt::format("{} numbers (at least 1)", series.num_nodes), Json(row.size()));
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].is_number() && std::isfinite(row[i].get<float>())) {
      series.values.push_back(row[i].get<float>());
    } else {
      file.fail(fmt::format("{}, node {}", place, i), "a finite number", row[i]);
    }
  }
  ++series.num_steps;
}

void read_matrix(const Document& file, const std::string& key, SeriesData& series) {
  const Json& rows = file.list(key);
  if (rows.empty()) file.fail("'" + key + "'", "at least one step", Json(0));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    add_step(file, rows[t], fmt::format("'{}' step {}", key, t), series);
  }
}

// Over all time, as the library's loader does with what is published; a node that never changes
// becomes 0.
void standardise_nodes(SeriesData& series) {
  std::vector<double> history(static_cast<std::size_t>(series.num_steps));
  for (std::int64_t n = 0; n < series.num_nodes; ++n) {
    for (std::int64_t t = 0; t < series.num_steps; ++t) {
      history[t] = series.values[t * series.num_nodes + n];
    }
    const Column fitted = fit_number("", history);
    for (std::int64_t t = 0; t < series.num_steps; ++t) {
      series.values[t * series.num_nodes + n] =
          static_cast<float>((history[t] - fitted.mean) / fitted.scale);
    }
  }
}

void read_periods(const Document& file, SeriesData& series) {
  const Json& count = file.root()["time_periods"];
  // Each period is a member, so their number cannot exceed that of the members.
  const std::int64_t end =
      file.index(count, "'time_periods'", static_cast<std::int64_t>(file.root().size()) + 1);
  if (end == 0) file.fail("'time_periods'", "at least one period", count);
  for (std::int64_t t = 0; t < end; ++t) {
    const std::string key = std::to_string(t);
    const std::string place = "period '" + key + "'";
    if (!file.has(key) || !file.root()[key].is_object() || !file.root()[key].contains("y")) {
      file.fail(place, "a member 'y'", file.has(key) ? file.root()[key] : Json());
    }
    add_step(file, file.root()[key]["y"], place, series);
  }
}

graph::Graph read_graph(const Document& file, const std::string& where, std::int64_t num_nodes,
                        const LoadOptions& options) {
  const Json& list = file.list("edges");
  graph::CompactEdgeList edges{.num_nodes = num_nodes};
  for (std::size_t e = 0; e < list.size(); ++e) {
    const std::string place = fmt::format("'edges' {}", e);
    if (!list[e].is_array() || list[e].size() != 2) file.fail(place, "a pair of nodes", list[e]);
    edges.src.push_back(static_cast<std::int32_t>(file.index(list[e][0], place, num_nodes)));
    edges.dst.push_back(static_cast<std::int32_t>(file.index(list[e][1], place, num_nodes)));
  }
  if (file.has("weights")) {
    const Json& weights = file.list("weights");
    if (weights.size() != list.size()) {
      file.fail("'weights'", fmt::format("{} numbers as 'edges' has", list.size()),
                Json(weights.size()));
    }
    for (std::size_t e = 0; e < weights.size(); ++e) {
      edges.weight.push_back(file.number(weights[e], fmt::format("'weights' {}", e)));
    }
  }
  return make_series_graph(where, std::move(edges), Merge::kMean, options.directed);
}

// {"name": number of the node, ...}
std::vector<std::string> read_node_ids(const Document& file, std::int64_t num_nodes) {
  const Json& members = file.root()["node_ids"];
  if (!members.is_object() || std::ssize(members) != num_nodes) {
    file.fail("'node_ids'", fmt::format("an object with {} names", num_nodes), members);
  }
  std::vector<std::string> ids(static_cast<std::size_t>(num_nodes));
  std::vector<bool> is_named(ids.size(), false);
  for (const auto& [name, node] : members.items()) {
    const std::string place = "'node_ids' '" + base::printable(name) + "'";
    const std::int64_t i = file.index(node, place, num_nodes);
    if (is_named[i]) file.fail(place, "each node once", node);
    is_named[i] = true;
    ids[i] = name;
  }
  return ids;
}

}  // namespace

Dataset read_series_json(const std::filesystem::path& path, const SeriesProtocol& protocol,
                         const LoadOptions& options) {
  const Document file(path);
  const bool has_periods = file.has("time_periods");
  SeriesData series;
  SeriesProtocol chosen = protocol;
  if (has_periods) {
    read_periods(file, series);
    if (chosen.over_all_time) standardise_nodes(series);
    chosen.standardise = !chosen.over_all_time;  // counts of any size
  } else {
    read_matrix(file, file.has("FX") ? "FX" : "X", series);
  }
  series.graph = read_graph(file, shown(path), series.num_nodes, options);
  if (file.has("node_ids")) series.node_ids = read_node_ids(file, series.num_nodes);
  if (chosen.lags == 0) chosen.lags = has_periods ? kLagsOfPeriods : kLags;
  Dataset dataset = finish_series(path, std::move(series), chosen, options);
  if (const std::vector<std::string> others = file.other_members(); !others.empty()) {
    dataset.notes.push_back(shown(path) + ": not used: " + listed("member", others));
  }
  return dataset;
}

}  // namespace mpssm::data
