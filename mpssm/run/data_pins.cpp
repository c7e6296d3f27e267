// SPDX-License-Identifier: MIT
#include "mpssm/run/data_pins.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/run/graph_edit_file.h"

namespace mpssm::run {
namespace {

using base::Error;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "mpssm-data-1";

std::string to_text(const std::vector<data::Part>& parts) {
  std::string text;
  for (const data::Part part : parts) text += static_cast<char>('0' + static_cast<int>(part));
  return text;
}

std::vector<data::Part> to_parts(const std::string& text) {
  std::vector<data::Part> parts;
  for (const char c : text) parts.push_back(static_cast<data::Part>(c - '0'));
  return parts;
}

ordered_json to_json(const data::Column& column) {
  ordered_json json = {{"name", column.name},
                       {"kind", table_of(column.kind).name(column.kind)},
                       {"mean", column.mean},
                       {"scale", column.scale},
                       {"categories", column.categories},
                       {"marks_missing", column.has_missing},
                       {"fill", column.fill}};
  if (column.kind == data::ColumnKind::kCategories) {
    json["other"] = column.has_other;
    json["fill"] = column.fill_category;
  }
  if (column.decimal_comma) json["decimal_comma"] = true;
  if (column.kind == data::ColumnKind::kText) json["buckets"] = column.buckets;
  if (column.kind == data::ColumnKind::kDate) {
    json["order"] = table_of(column.date_order).name(column.date_order);
    json["has_time"] = column.has_time;
  }
  return json;
}

/// Runs of 0.3.0 and older know numbers and categories only.
data::Column column_from(const ordered_json& json) {
  data::Column column{.name = json.at("name"), .mean = json.at("mean"), .scale = json.at("scale")};
  json.at("categories").get_to(column.categories);
  const std::string kind = json.value("kind", column.categories.empty() ? "number" : "categories");
  column.kind = data::table_of(data::ColumnKind{}).find(kind).value_or(data::ColumnKind::kNumber);
  column.has_missing = json.value("marks_missing", false);
  if (column.kind != data::ColumnKind::kCategories) {
    column.fill = json.value("fill", column.mean);
  } else {
    column.fill_category = json.value("fill", "");
    column.has_other = json.value("other", false);
  }
  column.decimal_comma = json.value("decimal_comma", false);
  column.date_order = json.value("order", "day first") == "month first"
                          ? data::DateOrder::kMonthFirst
                          : data::DateOrder::kDayFirst;
  column.has_time = json.value("has_time", false);
  constexpr std::int64_t kMostBuckets = 1 << 16;  // a hostile file may say anything
  column.buckets = std::clamp<std::int64_t>(json.value("buckets", 1), 1, kMostBuckets);
  return column;
}

ordered_json to_json(const analysis::GraphEdit& edit) {
  return {{"weight", edit.weight},
          {"saw_validation", edit.saw_validation},
          {"add", edit.add},
          {"remove", edit.remove}};
}

/// Whether the nodes exist is looked at when it is applied.
analysis::GraphEdit edit_from(const ordered_json& json) {
  analysis::GraphEdit edit;
  json.at("weight").get_to(edit.weight);
  edit.saw_validation = json.value("saw_validation", false);
  json.at("add").get_to(edit.add);
  json.at("remove").get_to(edit.remove);
  return edit;
}

/// "src dst src dst ...": short, whatever the indentation of the JSON around it.
std::string to_text(const std::vector<data::NodePair>& pairs) {
  std::string text;
  for (const data::NodePair& pair : pairs) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : " ", pair.src,
                   pair.dst);
  }
  return text;
}

/// False if the text is none of these.
bool take_pairs(const std::string& text, std::vector<data::NodePair>& pairs) {
  std::istringstream words(text);
  data::NodePair pair;
  while (words >> pair.src >> pair.dst) {
    if (pair.src < 0 || pair.dst < 0) return false;
    pairs.push_back(pair);
  }
  return words.eof() && to_text(pairs) == text && std::is_sorted(pairs.begin(), pairs.end());
}

/// "a b c ...", each as short as it is read back to the same.
std::string to_text(const std::vector<float>& numbers) {
  std::string text;
  for (const float number : numbers) {
    fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : " ", number);
  }
  return text;
}

/// False if the text is none of these.
bool take_numbers(const std::string& text, std::vector<float>& numbers) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    float number = 0.0F;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number) || (next < end && *next != ' ')) {
      return false;
    }
    numbers.push_back(number);
    at = next < end ? next + 1 : end;
  }
  return true;
}

constexpr std::pair<const char*, std::size_t> kHeldOut[] = {{"val", 1}, {"test", 2}};

void check_count(const data::Dataset& dataset, const DataPins& pins, std::int64_t count,
                 const char* samples) {
  if (std::ssize(pins.parts) == count) return;
  throw Error(dataset.name, fmt::format("the run was trained on {} {}, got {}", pins.parts.size(),
                                        samples, count));
}

}  // namespace

DataPins pin(const data::Dataset& dataset, std::int64_t split, const task::Preprocessing& learned) {
  DataPins pins{.files = dataset.files, .learned = learned, .protocol = dataset.protocol};
  const auto* nodes = std::get_if<data::NodeData>(&dataset.content);
  if (nodes != nullptr && nodes->links) {
    pins.links = {.edges = nodes->links->edges, .others = nodes->links->others};
    pins.links->edges[0].clear();
  } else if (nodes != nullptr) {
    pins.parts = to_text(nodes->splits.at(static_cast<std::size_t>(split)));
  } else if (const auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
    pins.parts = to_text(graphs->part);
  } else {
    pins.windows = data::window_split(std::get<data::SeriesData>(dataset.content));
  }
  return pins;
}

void apply_pins(const DataPins& pins, std::int64_t split, data::Dataset& dataset) {
  dataset.is_new = false;
  dataset.protocol = pins.protocol;
  apply_edit(pins.edit, dataset);
  if (pins.links) return;  // they were read in
  if (auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    check_count(dataset, pins, nodes->graph.num_nodes(), "nodes");
    const auto index = static_cast<std::size_t>(split);
    if (nodes->splits.size() <= index) nodes->splits.resize(index + 1);
    nodes->splits[index] = to_parts(pins.parts);
  } else if (auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
    check_count(dataset, pins, graphs->num_graphs(), "graphs");
    graphs->part = to_parts(pins.parts);
    graphs->label_scale = pins.learned.label_scale;
  } else {
    const data::WindowSplit now = data::window_split(std::get<data::SeriesData>(dataset.content));
    const data::WindowSplit& then = pins.windows;
    if (now.val != then.val || now.test != then.test || now.end != then.end) {
      throw Error(dataset.name,
                  fmt::format("the run has its windows cut at {} and {}, got {} and {}", then.val,
                              then.test, now.val, now.test));
    }
  }
}

std::string what_changed(const std::vector<data::InputFile>& then,
                         const std::vector<data::InputFile>& now) {
  const auto name_of = [](const data::InputFile& file) {
    return base::printable(fs::path(file.path).filename().string());
  };
  for (std::size_t i = 0; i < std::max(then.size(), now.size()); ++i) {
    if (i >= now.size()) return name_of(then[i]) + " is not there any more";
    if (i >= then.size()) return name_of(now[i]) + " is there now";
    if (then[i].sha256 != now[i].sha256) {
      constexpr std::size_t kShown = 8;
      return fmt::format("{} has changed (sha256 {}... then, {}... now)", name_of(now[i]),
                         then[i].sha256.substr(0, kShown), now[i].sha256.substr(0, kShown));
    }
  }
  return {};
}

std::string to_json(const DataPins& pins) {
  ordered_json files = ordered_json::array();
  for (const data::InputFile& file : pins.files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  ordered_json columns = ordered_json::array();
  for (const data::Column& column : pins.learned.columns) {
    columns.push_back(to_json(column));
  }
  ordered_json json = {
      {"format", kFormat},
      {"protocol", pins.protocol},
      {"files", files},
      {"columns", columns},
      {"class_names", pins.learned.class_names},
      {"vocabulary", pins.learned.vocabulary},
      {"label_scale", pins.learned.label_scale},
      {"mean", pins.learned.mean},
      {"scale", pins.learned.scale},
      {"windows", {pins.windows.val, pins.windows.test, pins.windows.end}},
      {"parts", pins.parts},
  };
  if (!pins.learned.period_mean.empty()) {
    json["period_mean"] = to_text(pins.learned.period_mean);
  }
  for (const data::Column& column : pins.learned.edge_columns) {
    json["edge_columns"].push_back(to_json(column));
  }
  if (!pins.edit.empty()) json["edit"] = to_json(pins.edit);
  if (pins.links) {
    for (const auto& [name, part] : kHeldOut) {
      json["links"][name] = {{"edges", to_text(pins.links->edges[part])},
                             {"others", to_text(pins.links->others[part])}};
    }
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

DataPins pins_from_json(const std::string& text, const std::string& origin) {
  const Error unreadable(origin + ": what it keeps of its data cannot be read");
  DataPins pins;
  try {
    const ordered_json json = ordered_json::parse(text);
    if (json.at("format") != kFormat) throw unreadable;
    json.at("protocol").get_to(pins.protocol);
    for (const ordered_json& file : json.at("files")) {
      pins.files.push_back({file.at("path"), file.at("sha256")});
    }
    for (const ordered_json& column : json.at("columns")) {
      pins.learned.columns.push_back(column_from(column));
    }
    json.at("class_names").get_to(pins.learned.class_names);
    if (json.contains("vocabulary")) json.at("vocabulary").get_to(pins.learned.vocabulary);
    if (json.contains("edge_columns")) {
      for (const ordered_json& column : json.at("edge_columns")) {
        pins.learned.edge_columns.push_back(column_from(column));
      }
    }
    json.at("label_scale").get_to(pins.learned.label_scale);
    json.at("mean").get_to(pins.learned.mean);
    json.at("scale").get_to(pins.learned.scale);
    const auto windows = json.at("windows").get<std::array<std::int64_t, 3>>();
    pins.windows = {windows[0], windows[1], windows[2]};
    json.at("parts").get_to(pins.parts);
    if (json.contains("period_mean") &&
        !take_numbers(json.at("period_mean"), pins.learned.period_mean)) {
      throw unreadable;
    }
    if (json.contains("edit")) pins.edit = edit_from(json.at("edit"));
    if (json.contains("links")) {
      pins.links.emplace();
      for (const auto& [name, part] : kHeldOut) {
        const ordered_json& held_out = json.at("links").at(name);
        if (!take_pairs(held_out.at("edges"), pins.links->edges[part]) ||
            !take_pairs(held_out.at("others"), pins.links->others[part])) {
          throw unreadable;
        }
      }
    }
  } catch (const ordered_json::exception&) {
    throw unreadable;
  }
  const bool are_parts = std::all_of(pins.parts.begin(), pins.parts.end(),
                                     [](char c) { return c >= '0' && c <= '3'; });
  const auto& vocabulary = pins.learned.vocabulary;
  const bool are_sizes = std::all_of(vocabulary.begin(), vocabulary.end(), [](std::int32_t size) {
    return size >= 1 && size <= 256;  // of codes of one byte
  });
  const bool is_weight = std::isfinite(pins.edit.weight) && pins.edit.weight > 0.0;
  if (!are_parts || !are_sizes || !is_weight) throw unreadable;
  return pins;
}

fs::path pins_path(const fs::path& folder) { return folder / "data.json"; }

}  // namespace mpssm::run
