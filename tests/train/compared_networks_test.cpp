// SPDX-License-Identifier: MIT
#include "mpssm/train/compared_networks.h"

#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/built_model.h"

#include "tests/train/small_data.h"

namespace mpssm::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool for_series_alone(ModelKind kind) {
  return kind == ModelKind::kGgrnn || kind == ModelKind::kGraphSsm;
}

/// Loss on all training samples before and after some steps of Adam.
std::pair<double, double> losses(const data::Dataset& dataset, const Config& config, int steps) {
  const auto problem = task::make_problem(dataset, problem_options(config));
  const BuiltModel built = build_model(*problem, config);
  torch::optim::Adam adam(built.module->parameters(), torch::optim::AdamOptions(1e-2));
  std::vector<std::int64_t> samples(static_cast<std::size_t>(problem->num_train()));
  std::iota(samples.begin(), samples.end(), 0);
  const auto now = [&] {
    built.module->eval();
    return problem->loss(*built.module, samples).item<double>();
  };
  const double before = now();
  for (int step = 0; step < steps; ++step) {
    built.module->train();
    adam.zero_grad();
    problem->loss(*built.module, samples).backward();
    adam.step();
  }
  return {before, now()};
}

TEST(ComparedNetworks, LearnABoardOrWaves) {
  const data::Dataset board = testing::make_board_data();
  const data::Dataset waves = testing::make_series_data();
  for (const auto& [kind, name] : kModelKinds) {
    Config config = testing::small_config();
    config.model.kind = kind;
    config.model.norm = nn::NormKind::kLayer;
    const bool on_waves = for_series_alone(kind);
    const auto [before, after] = losses(on_waves ? waves : board, config, 40);
    // On the board the mean of the labels leaves 0.5; linear hops on it lose little more.
    EXPECT_LT(after, (on_waves ? 0.3 : 0.9) * before) << name;
  }
}

TEST(ComparedNetworks, SayWhichDataTheyAreFor) {
  const data::Dataset board = testing::make_board_data();
  const data::Dataset waves = testing::make_series_data();
  for (const auto& [kind, name] : kModelKinds) {
    if (kind == ModelKind::kMpssm) continue;
    Config config = testing::small_config();
    config.model.kind = kind;
    const auto problem =
        task::make_problem(for_series_alone(kind) ? board : waves, problem_options(config));
    EXPECT_THAT([&] { build_model(*problem, config); },
                ThrowsMessage<base::Error>(
                    HasSubstr(for_series_alone(kind) ? "have no time" : "no temporal mode")))
        << name;
  }
}

TEST(ComparedNetworks, KnowWhichSettingsMeanNothing) {
  Config config;
  for (const char* setting : {"model.hops=3", "model.state=dense", "model.heads=2", "train.lr=1"}) {
    apply_setting(config, setting);
  }
  EXPECT_THAT(settings_without_meaning(config), ElementsAre("model.heads"));
  config.model.kind = ModelKind::kGat;
  EXPECT_THAT(settings_without_meaning(config), ElementsAre("model.hops", "model.state"));
  config.model.kind = ModelKind::kAdgn;
  EXPECT_THAT(settings_without_meaning(config), ElementsAre("model.state", "model.heads"));
}

TEST(ComparedNetworks, RefuseWhatTheyCannotDo) {
  Config config;
  config.model.kind = ModelKind::kGat;
  config.model.channels = 30;
  EXPECT_THAT([&] { check(config); },
              ThrowsMessage<base::Error>(HasSubstr("model.heads: expected a divisor")));
  config.model.kind = ModelKind::kAdgn;
  config.model.hops = 0;
  EXPECT_THAT([&] { check(config); }, ThrowsMessage<base::Error>(HasSubstr("model.hops")));
}

}  // namespace
}  // namespace mpssm::train
