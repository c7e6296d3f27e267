// SPDX-License-Identifier: MIT
// Measured times as files: JSON and a picture.
#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/report/curve_picture.h"
#include "mpssm/report/picture_kind.h"
#include "mpssm/study/timing.h"

namespace mpssm::study {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNetworks = "networks";  // of FigureTimes

void write_timing(const std::filesystem::path& path, const TimingSetup& setup,
                  const ordered_json& rows, const ordered_json& more = ordered_json::object()) {
  ordered_json json = {{"nodes", setup.nodes},
                       {"edges", setup.edges},
                       {"hidden", setup.hidden},
                       {"threads", setup.threads},
                       {"code", setup.code}};
  json.update(more);
  json["rows"] = rows;
  io::write_file(path, json.dump(1) + "\n");
}

/// read_line(json of a row) gives a line of the table.
template <typename Table, typename ReadLine>
std::optional<Table> read_timing(const std::filesystem::path& path, const ReadLine& read_line) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  try {
    const auto json = ordered_json::parse(io::read_file(path, 1 << 20));
    Table table{.setup = {.nodes = json.at("nodes"),
                          .edges = json.at("edges"),
                          .hidden = json.at("hidden"),
                          .threads = json.at("threads"),
                          .code = json.value("code", "")},
                .lines = {}};
    if constexpr (std::is_same_v<Table, FigureTable>) {
      if (json.value("times", "") == kNetworks) table.times = FigureTimes::kNetworks;
    }
    for (const ordered_json& row : json.at("rows")) table.lines.push_back(read_line(row));
    return table;
  } catch (const ordered_json::exception& error) {
    throw base::Error(path.string(), fmt::format("not a measurement: {}", error.what()));
  }
}

std::string figure_svg(const FigureTable& table) {
  report::CurvePicture picture;
  picture.title = table.times == FigureTimes::kNetworks ? "Inference time of whole networks"
                                                        : "Inference time: recurrence alone, GCN";
  picture.x_label = "hops";
  picture.y_label = "milliseconds";
  picture.log_x = picture.log_y = true;
  for (const FigureTable::Line& line : table.lines) {
    auto curve =
        std::find_if(picture.curves.begin(), picture.curves.end(),
                     [&](const report::Curve& known) { return known.name == line.network; });
    if (curve == picture.curves.end()) {
      picture.curves.push_back({.name = line.network, .markers = true});
      curve = picture.curves.end() - 1;
    }
    curve->x.push_back(static_cast<double>(line.hops));
    curve->y.push_back(line.milliseconds);
  }
  return report::curve_svg(picture);
}

}  // namespace

void check_timing_files(const std::filesystem::path& results) {
  read_runtime(results);
  read_figure(results);
  io::check_replaceable(results / "figure.svg", report::kPictureMark);
}

void write_runtime(const std::filesystem::path& results, const RuntimeTable& table) {
  ordered_json rows = ordered_json::array();
  for (const RuntimeTable::Line& line : table.lines) {
    rows.push_back({{"depth", line.depth},
                    {"network", line.network},
                    {"training_ms", line.training_ms},
                    {"inference_ms", line.inference_ms},
                    {"training_over_gcn", line.training_over_gcn},
                    {"inference_over_gcn", line.inference_over_gcn}});
  }
  write_timing(results / "runtime.json", table.setup, rows);
}

void write_figure(const std::filesystem::path& results, const FigureTable& table) {
  ordered_json rows = ordered_json::array();
  for (const FigureTable::Line& line : table.lines) {
    rows.push_back(
        {{"hops", line.hops}, {"network", line.network}, {"milliseconds", line.milliseconds}});
  }
  write_timing(results / "figure.json", table.setup, rows,
               table.times == FigureTimes::kNetworks ? ordered_json{{"times", kNetworks}}
                                                     : ordered_json::object());
  io::write_file(results / "figure.svg", figure_svg(table));
}

std::optional<RuntimeTable> read_runtime(const std::filesystem::path& results) {
  return read_timing<RuntimeTable>(results / "runtime.json", [](const ordered_json& row) {
    return RuntimeTable::Line{.depth = row.at("depth"),
                              .network = row.at("network"),
                              .training_ms = row.at("training_ms"),
                              .inference_ms = row.at("inference_ms"),
                              .training_over_gcn = row.at("training_over_gcn"),
                              .inference_over_gcn = row.at("inference_over_gcn")};
  });
}

std::optional<FigureTable> read_figure(const std::filesystem::path& results) {
  return read_timing<FigureTable>(results / "figure.json", [](const ordered_json& row) {
    return FigureTable::Line{.hops = row.at("hops"),
                             .network = row.at("network"),
                             .milliseconds = row.at("milliseconds")};
  });
}

}  // namespace mpssm::study
