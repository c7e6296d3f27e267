// SPDX-License-Identifier: MIT
// The paper's runtime table (time against depth, beside a GCN) and its inference figure (one block
// over thousands of hops), measured on this machine. Kept in results/runtime.json and
// results/figure.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mpssm::study {

/// What was measured on which graph, and with how many threads.
struct TimingSetup {
  std::int64_t nodes = 0;
  std::int64_t edges = 0;
  std::int64_t hidden = 0;
  std::int64_t threads = 0;
  std::string code = {};  ///< which program measured, and where, in words; empty: not recorded
};

struct RuntimeTable {
  struct Line {
    std::int64_t depth = 0;
    std::string network;
    double training_ms = 0.0;
    double inference_ms = 0.0;
    double training_over_gcn = 0.0;
    double inference_over_gcn = 0.0;
  };
  TimingSetup setup;
  std::vector<Line> lines;
};

struct FigureTable {
  struct Line {
    std::int64_t hops = 0;
    std::string network;
    double milliseconds = 0.0;
  };
  TimingSetup setup;
  std::vector<Line> lines;
};

struct TimingOptions {
  bool quick = false;
  std::string code = {};                      ///< for TimingSetup
  std::function<void(std::int64_t)> on_done;  ///< with each depth or number of hops that is done
};
RuntimeTable measure_runtime(const TimingOptions& options);
FigureTable measure_figure(const TimingOptions& options);

/// Before they are measured: throws base::Error if a file of these names is there and is not what
/// we write.
void check_timing_files(const std::filesystem::path& results);

/// Into a folder of results; the figure as a picture, too (figure.svg).
void write_runtime(const std::filesystem::path& results, const RuntimeTable& table);
void write_figure(const std::filesystem::path& results, const FigureTable& table);
/// nullopt: not measured. Throws base::Error if the file is damaged.
std::optional<RuntimeTable> read_runtime(const std::filesystem::path& results);
std::optional<FigureTable> read_figure(const std::filesystem::path& results);

}  // namespace mpssm::study
