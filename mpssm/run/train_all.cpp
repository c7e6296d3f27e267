// SPDX-License-Identifier: MIT
#include "mpssm/run/train_all.h"

#include <fmt/core.h>

#include "mpssm/io/file.h"
#include "mpssm/report/run_summary.h"

namespace mpssm::run {

std::optional<std::vector<report::RunRecord>> train_all(const train::Config& config,
                                                        std::vector<std::int64_t> splits,
                                                        std::vector<std::int64_t> seeds,
                                                        const std::filesystem::path& folder,
                                                        bool writes, const TrainRun& train_run) {
  if (splits.empty()) splits = {config.data.split};
  if (seeds.empty()) seeds = {config.seed};
  const std::filesystem::path summary = folder / "summary.json";
  io::check_replaceable(summary, {.bytes = "{\n  \"run\":", .kind = "a summary of runs"});
  std::vector<report::RunRecord> records;
  for (const std::int64_t split : splits) {
    for (const std::int64_t seed : seeds) {
      train::Config one = config;
      one.seed = seed;
      one.data.split = split;
      const auto record = train_run(one, folder / fmt::format("split-{}-seed-{}", split, seed));
      if (!record) return std::nullopt;
      records.push_back(*record);
    }
  }
  if (!writes) return records;
  io::write_file(summary, report::summary_json(folder.string(), records, 2) + "\n");
  return records;
}

}  // namespace mpssm::run
