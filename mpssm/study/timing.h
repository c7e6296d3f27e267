// SPDX-License-Identifier: MIT
// The paper's runtime table (time against depth, beside a GCN and GPS) and its inference figure
// (one block over thousands of hops), measured on this machine. Kept in results/runtime.json and
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

/// What the rows of MP-SSM in a figure are.
enum class FigureTimes {
  kRecurrences,  ///< of older measurements: the recurrence alone, on as many inputs as channels
  kNetworks,     ///< encoder, B, recurrence, MLP and readout, from one input channel
};

struct FigureTable {
  struct Line {
    std::int64_t hops = 0;
    std::string network;
    double milliseconds = 0.0;
  };
  TimingSetup setup;
  FigureTimes times = FigureTimes::kRecurrences;
  std::vector<Line> lines;
};

struct TimingOptions {
  bool quick = false;
  std::string code = {};                            ///< for TimingSetup
  std::function<void(const std::string&)> on_done;  ///< with what is done: "depth 8", "100 hops"
};
RuntimeTable measure_runtime(const TimingOptions& options);
FigureTable measure_figure(const TimingOptions& options);

/// The experiments that take times.
enum class Timing { kRuntime, kFigure };
/// Measures one, writes it into a folder of results, which is made if it is not there, and gives
/// its part of the page. Throws base::Error like check_timing_files(), before anything is measured.
std::string run_timing(Timing which, const std::filesystem::path& results,
                       const TimingOptions& options);

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
