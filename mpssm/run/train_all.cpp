// SPDX-License-Identifier: MIT
#include "mpssm/run/train_all.h"

#include <fmt/core.h>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/partition.h"
#include "mpssm/io/file.h"
#include "mpssm/report/run_summary.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;
using Runs = std::vector<std::pair<train::Config, fs::path>>;
using Records = std::vector<report::RunRecord>;

std::string key_of(std::size_t run) { return fmt::format("run/{}", run); }

/// Run i is that of rank i modulo their number; how it ended is posted, nothing if it was
/// interrupted. Without an exchange: ranks may be hours apart.
bool train_own(const Runs& runs, ranks::Communicator& ranks, const TrainRun& train_run) {
  bool is_stopped = false;
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < runs.size();
       i += static_cast<std::size_t>(ranks.size())) {
    std::optional<report::RunRecord> record;
    if (!is_stopped) record = train_run(runs[i].first, runs[i].second, nullptr);
    is_stopped = !record.has_value();
    ranks.post(key_of(i), record ? report::to_json(*record) : "");
  }
  return !is_stopped;
}

/// What the others have posted, waited for. Throws base::Error if one has stopped with an error.
std::optional<Records> collect(const Runs& runs, ranks::Communicator& ranks) {
  constexpr double kLookAgain = 2.0;  // seconds
  Records records;
  bool is_stopped = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::int64_t owner = static_cast<std::int64_t>(i) % ranks.size();
    std::optional<std::string> text;
    while (!(text = ranks.read(key_of(i), kLookAgain))) {
      if (const auto error = ranks.read(fmt::format("error/{}", owner), 0.0)) {
        throw base::Error(fmt::format("rank {} of {}", owner, ranks.size()), *error);
      }
    }
    is_stopped |= text->empty();
    if (!text->empty()) records.push_back(report::run_record_from_json(*text, "a record"));
  }
  return is_stopped ? std::nullopt : std::optional(records);
}

}  // namespace

std::optional<Records> train_all(const train::Config& config, std::vector<std::int64_t> splits,
                                 std::vector<std::int64_t> seeds, const fs::path& folder,
                                 ranks::Communicator& ranks, const TrainRun& train_run) {
  if (splits.empty()) splits = {config.data.split};
  if (seeds.empty()) seeds = {config.seed};
  const fs::path summary = folder / "summary.json";
  io::check_replaceable(summary, {.bytes = "{\n  \"run\":", .kind = "a summary of runs"});
  Runs runs;
  for (const std::int64_t split : splits) {
    for (const std::int64_t seed : seeds) {
      train::Config one = config;
      one.seed = seed;
      one.data.split = split;
      runs.emplace_back(one, folder / fmt::format("split-{}-seed-{}", split, seed));
    }
  }
  Records records;
  if (ranks.size() > 1 && std::ssize(runs) >= ranks.size() &&
      !data::is_partition(config.data.name)) {
    const bool is_done = train_own(runs, ranks, train_run);
    if (!ranks.is_first()) return is_done ? std::optional(records) : std::nullopt;
    std::optional<Records> all = collect(runs, ranks);
    if (!all) return std::nullopt;
    records = std::move(*all);
  } else {
    for (const auto& [one, path] : runs) {
      const auto record = train_run(one, path, &ranks);
      if (!record) return std::nullopt;
      records.push_back(*record);
    }
    if (!ranks.is_first()) return records;
  }
  io::write_file(summary, report::summary_json(folder.string(), records, 2) + "\n");
  return records;
}

}  // namespace mpssm::run
