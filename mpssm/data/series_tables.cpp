// SPDX-License-Identifier: MIT
// A series as a table, long (time, node, value) or wide (time, one column per node), and its graph
// as a table of edges or of distances.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/changing_graph.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/node_index.h"
#include "mpssm/data/readers.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

constexpr float kGap = std::numeric_limits<float>::quiet_NaN();

std::optional<std::size_t> first_of(const io::CsvHeader& table,
                                    std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto column = table.column(name)) return column;
  }
  return std::nullopt;
}

[[noreturn]] void fail_cell(const io::CsvTable& table, std::size_t row, std::size_t column,
                            const std::string& expected) {
  const std::string_view cell = table.rows[row][column];
  throw base::Error(
      table.place(row, column),
      fmt::format("expected {}, got {}", expected,
                  cell.empty() ? "an empty cell" : "'" + base::printable(cell) + "'"));
}

// Numbers or dates, one for each row.
struct Clock {
  std::vector<double> time = {};
  bool are_dates = false;
  bool has_time_of_day = false;
};

Clock read_clock(const io::CsvTable& table, std::size_t column) {
  Clock clock;
  const Spelling numbers = spelling_of_numbers(table, column);
  const Spelling dates = spelling_of_dates(table, column);
  clock.are_dates = dates.readable > numbers.readable;
  const DateOrder order = dates.second ? DateOrder::kMonthFirst : DateOrder::kDayFirst;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    const auto number = clock.are_dates ? std::nullopt : parse_number(cell, numbers.second);
    const auto moment = clock.are_dates ? parse_date(cell, order) : std::nullopt;
    if (!number && !moment)
      fail_cell(table, row, column, "a number or a date like 2024-01-31 13:00");
    clock.time.push_back(number ? *number : static_cast<double>(moment->day) + moment->day_share);
    clock.has_time_of_day = clock.has_time_of_day || (moment && moment->has_time);
  }
  return clock;
}

// Numbers as people write them, each column in its own way; NaN where there is none.
class Values {
 public:
  explicit Values(const io::CsvTable& table) : table_(table), decimal_comma_(table.header.size()) {}

  float at(std::size_t row, std::size_t column) {
    const std::string_view cell = table_.rows[row][column];
    if (is_missing(cell)) return kGap;
    std::optional<bool>& comma = decimal_comma_[column];
    if (!comma) comma = spelling_of_numbers(table_, column).second;
    const auto number = parse_number(cell, *comma);
    if (!number || !std::isfinite(static_cast<float>(*number))) {
      fail_cell(table_, row, column, "a number or an empty cell");
    }
    return static_cast<float>(*number);
  }

 private:
  const io::CsvTable& table_;
  std::vector<std::optional<bool>> decimal_comma_;
};

class SeriesTable {
 public:
  SeriesTable(const std::filesystem::path& path, const LoadOptions& options)
      : options_(options), table_(io::read_csv(path)) {
    if (table_.rows.empty()) {
      throw base::Error(shown(path) + ": expected at least one step, got the header only");
    }
  }

  SeriesData read(std::vector<std::string>& notes) {
    const auto time =
        first_of(table_, {"time", "timestamp", "datetime", "date", "step", "t", "Time", "Date"});
    if (!time) need_column(table_, "time", "; it says when the values of a row were measured");
    clock_ = read_clock(table_, *time);
    const auto node = first_of(table_, {"node", "node_id", "id", "sensor", "sensor_id", "station"});
    if (node) {
      read_long(*time, *node, notes);
    } else {
      read_wide(*time);
    }
    series_.num_steps = std::ssize(steps_);
    series_.num_nodes = std::ssize(series_.node_ids);
    note_spacing(notes);
    count_first_step();
    if (clock_.has_time_of_day) {
      for (const double step : steps_) {
        series_.time_of_day.push_back(static_cast<float>(step - std::floor(step)));
      }
    }
    return std::move(series_);
  }

  /// The times of the steps, as numbers that ascend.
  const std::vector<double>& steps() const { return steps_; }

 private:
  void read_long(std::size_t time, std::size_t node, std::vector<std::string>& notes) {
    const std::size_t value = value_column(time, node, notes);
    NodeIndex ids(table_.rows.size());
    std::vector<std::int64_t> node_of;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const std::string_view id = table_.rows[row][node];
      if (id.empty()) fail_cell(table_, row, node, "the node that was measured");
      const auto [number, is_new] = ids.add(id);
      if (is_new) series_.node_ids.emplace_back(id);
      node_of.push_back(number);
    }
    steps_ = clock_.time;
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    constexpr double kMaxCells = 1e9;
    if (static_cast<double>(steps_.size()) * static_cast<double>(ids.size()) > kMaxCells) {
      throw base::Error(shown(table_.path),
                        fmt::format("expected about one value for each step and node, got {} rows "
                                    "for {} steps and {} nodes",
                                    table_.rows.size(), steps_.size(), ids.size()));
    }
    series_.values.assign(steps_.size() * series_.node_ids.size(), kGap);
    std::vector<bool> is_known(series_.values.size());
    Values values(table_);
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const auto step = std::lower_bound(steps_.begin(), steps_.end(), clock_.time[row]);
      const std::size_t cell =
          static_cast<std::size_t>(step - steps_.begin()) * series_.node_ids.size() +
          static_cast<std::size_t>(node_of[row]);
      if (is_known[cell]) fail_cell(table_, row, node, "each node once at a time");
      is_known[cell] = true;
      series_.values[cell] = values.at(row, value);
    }
  }

  std::size_t value_column(std::size_t time, std::size_t node, std::vector<std::string>& notes) {
    if (!options_.target.empty()) {
      return need_column(table_, options_.target, "; data.target names what is forecast");
    }
    std::vector<std::size_t> others;
    for (std::size_t column = 0; column < table_.header.size(); ++column) {
      if (column != time && column != node) others.push_back(column);
    }
    if (const auto named = table_.column("value")) {
      std::erase(others, *named);
      others.insert(others.begin(), *named);
    }
    if (others.empty()) need_column(table_, "value", "; it is what is forecast");
    if (others.size() > 1) {
      std::vector<std::string> names;
      for (std::size_t i = 1; i < others.size(); ++i) names.push_back(table_.header[others[i]]);
      notes.push_back(fmt::format("{}: not used: {}; '{}' is forecast, data.target names another",
                                  shown(table_.path), listed("column", names),
                                  base::printable(table_.header[others[0]])));
    }
    return others[0];
  }

  void read_wide(std::size_t time) {
    if (!options_.target.empty()) {
      throw base::Error("data.target", shown(table_.path) +
                                           " has a column for each node, and all of them are "
                                           "forecast; leave the setting out");
    }
    std::vector<std::size_t> order(table_.rows.size());
    for (std::size_t row = 0; row < order.size(); ++row) order[row] = row;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return clock_.time[a] < clock_.time[b]; });
    for (std::size_t column = 0; column < table_.header.size(); ++column) {
      if (column != time) series_.node_ids.push_back(table_.header[column]);
    }
    if (series_.node_ids.empty()) {
      throw base::Error(shown(table_.path) + ": expected a column for each node, got only times");
    }
    Values values(table_);
    for (const std::size_t row : order) {
      if (!steps_.empty() && steps_.back() == clock_.time[row]) {
        fail_cell(table_, row, time, "each time once");
      }
      steps_.push_back(clock_.time[row]);
      for (std::size_t column = 0; column < table_.header.size(); ++column) {
        if (column != time) series_.values.push_back(values.at(row, column));
      }
    }
  }

  /// The shortest and the longest way from a step to the next.
  std::pair<double, double> spacing() const {
    std::pair<double, double> found(std::numeric_limits<double>::infinity(), 0.0);
    for (std::size_t t = 1; t < steps_.size(); ++t) {
      found.first = std::min(found.first, steps_[t] - steps_[t - 1]);
      found.second = std::max(found.second, steps_[t] - steps_[t - 1]);
    }
    return found;
  }

  void note_spacing(std::vector<std::string>& notes) const {
    if (steps_.size() < 3) return;
    const auto [least, most] = spacing();
    // Dates are days in binary fractions.
    if (most <= least * (1.0 + 1e-6)) return;
    notes.push_back(fmt::format(
        "{}: steps are not evenly spaced ({:.4g} to {:.4g}{}): each row counts as one step",
        shown(table_.path), least, most, clock_.are_dates ? " days" : ""));
  }

  /// So that the place in a period (data.period) goes by the dates.
  void count_first_step() {
    if (!clock_.are_dates || steps_.size() < 2) return;
    constexpr double kDays = 1e6;  // positive before 1970, too
    series_.first_step = std::llround((steps_.front() + kDays) / spacing().first);
  }

  const LoadOptions& options_;
  io::CsvTable table_;
  Clock clock_;
  std::vector<double> steps_;
  SeriesData series_;
};

// The nearer the larger: exp(-(d / deviation)^2), below 0.1 none.
void weigh_distances(graph::CompactEdgeList& edges, std::vector<std::string>& notes,
                     const std::string& where) {
  double mean = 0.0;
  double square = 0.0;
  const auto count = static_cast<double>(edges.weight.size());
  for (const double distance : edges.weight) mean += distance / count;
  for (const double distance : edges.weight)
    square += (distance - mean) * (distance - mean) / count;
  constexpr double kLeast = 0.1;
  graph::CompactEdgeList kept{.num_nodes = edges.num_nodes};
  for (std::size_t e = 0; e < edges.weight.size(); ++e) {
    const double distance = edges.weight[e];
    const double weight = square > 0.0 ? std::exp(-distance * distance / square) : 1.0;
    if (weight < kLeast || edges.src[e] == edges.dst[e]) continue;
    kept.src.push_back(edges.src[e]);
    kept.dst.push_back(edges.dst[e]);
    kept.weight.push_back(weight);
  }
  notes.push_back(
      fmt::format("{}: distances become weights exp(-(d / {:.4g})^2); {} of {} pairs "
                  "are near enough (0.1 and more)",
                  where, std::sqrt(square), kept.src.size(), edges.src.size()));
  edges = std::move(kept);
}

// `steps`: the times of the series.
void read_series_graph(const std::filesystem::path& path, std::span<const double> steps,
                       const LoadOptions& options, SeriesData& series,
                       std::vector<std::string>& notes) {
  const std::vector<std::string>& node_ids = series.node_ids;
  const io::CsvTable table = io::read_csv(path);
  NodeIndex ids(node_ids.size());
  for (const std::string& id : node_ids) ids.add(id);
  const auto [src, dst] = end_columns(table);
  const auto distance = first_of(table, {"distance", "cost", "dist", "length", "km", "meters"});
  const auto weight = distance ? distance : table.column("weight");
  const auto time = first_of(table, {"time", "timestamp", "date", "step"});
  // Distances say where nodes are, which one graph for all times does as well.
  const Clock clock = time && !distance ? read_clock(table, *time) : Clock{};
  std::vector<double> times;
  EdgeColumns others(table, {src, dst, weight.value_or(src)});
  graph::CompactEdgeList edges{.num_nodes = ids.size()};
  std::int64_t unknown = 0;
  std::string example;
  Values values(table);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::int64_t a = ids.find(table.rows[row][src]);
    const std::int64_t b = ids.find(table.rows[row][dst]);
    if (a < 0 || b < 0) {
      if (unknown++ == 0) example = table.rows[row][a < 0 ? src : dst];
      continue;
    }
    edges.src.push_back(static_cast<std::int32_t>(a));
    edges.dst.push_back(static_cast<std::int32_t>(b));
    others.add(table.rows[row]);
    if (!clock.time.empty()) times.push_back(clock.time[row]);
    if (!weight) continue;
    edges.weight.push_back(values.at(row, *weight));
    if (!std::isfinite(edges.weight.back()) || (distance && edges.weight.back() < 0.0)) {
      fail_cell(table, row, *weight, distance ? "a distance of 0 or more" : "a finite number");
    }
  }
  if (edges.src.empty()) {
    throw base::Error(
        shown(path),
        fmt::format("expected edges between nodes of the series, such as "
                    "'{}', got none{}",
                    base::printable(node_ids.front()),
                    example.empty() ? "" : "; '" + base::printable(example) + "' is none of them"));
  }
  if (unknown > 0) {
    notes.push_back(
        fmt::format("{}: {} edge(s) to nodes without a series, such as '{}', are left "
                    "out",
                    shown(path), unknown, base::printable(example)));
  }
  if (!others.empty()) {
    series.edge_table = {.src = edges.src, .dst = edges.dst, .columns = others.take()};
  }
  note_kept(shown(path), series.edge_table, notes);
  if (time) {
    notes.push_back(fmt::format(
        "{}: edges that change over time, by column '{}': the model has one graph for all times, "
        "of all edges that are there at any{}{}",
        shown(path), base::printable(table.header[*time]),
        weight ? ", each with the mean of its weights" : "",
        distance ? "" : "; with data.graph_over_time=true one for each step"));
    if (!distance) {
      series.changing = changing_graph(shown(path), edges, times, steps, options.directed);
    }
    edges = with_mean_weights(std::move(edges));
  }
  if (distance) weigh_distances(edges, notes, shown(path));
  series.graph = make_series_graph(shown(path), std::move(edges), Merge::kMean, options.directed);
}

}  // namespace

Dataset read_series_tables(const std::filesystem::path& path, const std::filesystem::path& edges,
                           const LoadOptions& options) {
  std::vector<std::string> notes;
  SeriesTable table(path, options);
  SeriesData series = table.read(notes);
  read_series_graph(edges, table.steps(), options, series, notes);
  Dataset dataset = finish_series(path, std::move(series), {}, options);
  dataset.source += ", " + shown(edges);
  dataset.why = "a table of values over time";
  dataset.notes.insert(dataset.notes.begin(), notes.begin(), notes.end());
  return dataset;
}

}  // namespace mpssm::data
