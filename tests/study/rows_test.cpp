// SPDX-License-Identifier: MIT
#include "mpssm/study/rows.h"

#include <string>

#include <gtest/gtest.h>

#include "mpssm/study/run_row.h"
#include "mpssm/train/config.h"

namespace mpssm::study {
namespace {

/// Whether the settings stand in the config: applied once more they change nothing.
void expect_taken(const train::Config& config, const Settings& settings) {
  train::Config again = config;
  for (const std::string& setting : settings) train::apply_setting(again, setting);
  EXPECT_EQ(train::to_toml(again), train::to_toml(config));
}

TEST(Rows, SettingsAndCandidatesOfEachAreTaken) {
  int candidates = 0;
  for (const Experiment& experiment : experiments()) {
    for (const Row& row : experiment.rows) {
      SCOPED_TRACE(experiment.name + " " + row.name);
      if (row.candidates.empty()) expect_taken(config_of(row, /*quick=*/false), row.settings);
      for (const Settings& candidate : row.candidates) {
        const Settings all = candidate_settings(row, candidate);
        expect_taken(config_of(row, /*quick=*/false, all), all);
        ++candidates;
      }
      EXPECT_EQ(config_of(row, /*quick=*/true).data.name,
                row.quick_dataset.empty() ? row.dataset : row.quick_dataset);
    }
  }
  EXPECT_GT(candidates, 0);
}

}  // namespace
}  // namespace mpssm::study
