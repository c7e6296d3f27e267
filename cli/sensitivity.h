// SPDX-License-Identifier: MIT
// What `mpssm sensitivity` is asked, and how it answers: tables for people, JSON for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/data/bare_graph.h"
#include "mpssm/report/curve_picture.h"

namespace mpssm::cli {

struct SensitivityOptions {
  std::string what;  ///< graph or run
  std::string make;
  std::int64_t seed = 0;
  bool directed = false;
  std::string gso = "sym_normalized";
  double w = 1.0;
  std::string source;
  std::string target;
  std::string tau;  ///< empty: kDefaultTau
  bool all = false;
  std::int64_t worst = 0;
  std::string by = "value";
  bool limit = false;
  bool bounds = false;
  std::optional<double> depth;
  std::int64_t max_tau = 100'000;
  bool vanishing = false;
  // Of a run.
  std::string compare;
  std::int64_t block = 1;
  std::int64_t sample = 0;
  std::int64_t predictions = 0;
  std::int64_t top = 10;
  // Output.
  bool json = false;
  std::string plot;
  std::string picture;
  std::filesystem::path data_dir;
  std::int64_t threads = 0;
};

inline constexpr const char* kDefaultTau = "1:100";

int analyse_graph(const SensitivityOptions& options);
int analyse_run(const SensitivityOptions& options);

/// An answer as it grows.
struct Answer {
  std::string lines;
  nlohmann::ordered_json json;
  report::CurvePicture curve;  ///< for --picture curve

  void line(const std::string& words) { lines += words + "\n"; }
  /// After an empty line, below its heading if it has one.
  void table(const std::vector<std::vector<std::string>>& rows, const std::string& heading = "");
  void print(bool as_json) const;
};

/// Empty (kDefaultTau), "1:100", "0:1000:50", "11,12,100" or a mix; ascending, each once. Throws
/// io::InputError.
std::vector<std::int64_t> parse_taus(const std::string& list);

/// At most some 20 of many numbers, the first and last among them: what a table shows.
std::vector<std::size_t> rows_to_show(std::size_t count);

/// Cells of a table.
std::string shown(double value);
std::string shown(std::int64_t value);
std::string counted(std::int64_t count, const std::string& what);  ///< "1 hop", "2 hops"
std::string percent(double share);                                 ///< without the sign

std::string node_name(const data::BareGraph& graph, std::int64_t node);
/// A node in JSON: its number, or its id if it has one; null for -1.
nlohmann::ordered_json node_json(const data::BareGraph& graph, std::int64_t node);
/// Null for nullopt and for negative numbers.
nlohmann::ordered_json count_json(std::optional<std::int64_t> count);

}  // namespace mpssm::cli
