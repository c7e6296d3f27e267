// SPDX-License-Identifier: MIT
#include "mpssm/run/train_all.h"

#include <fmt/core.h>
#include <utility>

#include "mpssm/data/partition.h"
#include "mpssm/io/file.h"
#include "mpssm/ranks/shared_work.h"
#include "mpssm/report/run_summary.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;
using Runs = std::vector<std::pair<train::Config, fs::path>>;
using Records = std::vector<report::RunRecord>;

/// Trains the own runs and says how they ended, nothing of those that were interrupted. Rank 0 then
/// waits for the others.
std::optional<Records> train_shared(const Runs& runs, ranks::Communicator& ranks,
                                    const TrainRun& train_run) {
  ranks::SharedWork work(ranks, "run");
  bool is_stopped = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!work.is_own(i)) continue;
    std::optional<report::RunRecord> record;
    if (!is_stopped) record = train_run(runs[i].first, runs[i].second, nullptr);
    is_stopped = !record.has_value();
    work.tell(i, record ? report::to_json(*record) : "");
  }
  Records records;
  for (std::size_t i = 0; ranks.is_first() && i < runs.size(); ++i) {
    const std::string text = *work.hear(i, /*waits=*/true);
    is_stopped |= text.empty();
    if (!text.empty()) records.push_back(report::run_record_from_json(text, "a record"));
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
    std::optional<Records> all = train_shared(runs, ranks, train_run);
    if (!all || !ranks.is_first()) return all;
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
