// SPDX-License-Identifier: MIT
#include "mpssm/run/remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::run {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

report::History history_of(const std::vector<double>& train_loss,
                           const std::vector<double>& val_loss) {
  report::History history;
  std::vector<double> steps;
  for (std::size_t i = 1; i <= train_loss.size(); ++i)
    steps.push_back(10.0 * static_cast<double>(i));
  history.name = {"step", "epoch", "train_loss", "val_loss"};
  history.value = {steps, steps, train_loss, val_loss};
  return history;
}

report::RunRecord record_of(std::int64_t best_step, std::int64_t steps) {
  report::RunRecord record;
  record.run = "runs/a";
  record.best_step = best_step;
  record.steps = steps;
  return record;
}

TEST(Remarks, OverfittingIsSaidWithWhatIsSetNow) {
  train::Config config;
  config.train.epochs = 50;
  const auto history = history_of({1.0, 0.6, 0.3, 0.1, 0.01}, {1.0, 0.8, 0.9, 1.5, 3.0});
  EXPECT_THAT(remarks_on(record_of(20, 50), config, history),
              ElementsAre(AllOf(HasSubstr("best at step 20 of 50"), HasSubstr("0.8 to 3"),
                                HasSubstr("model.dropout (0.2 now)"))));
}

TEST(Remarks, NothingIsSaidOfATrainingThatWentWell) {
  train::Config config;
  config.train.epochs = 50;
  config.train.schedule = train::Schedule::kCosine;
  EXPECT_THAT(remarks_on(record_of(50, 50), config,
                         history_of({1.0, 0.8, 0.6, 0.5, 0.4}, {1.1, 0.9, 0.7, 0.6, 0.5})),
              IsEmpty());
  // The metric was best early, but nothing is learned by heart.
  EXPECT_THAT(remarks_on(record_of(10, 50), config,
                         history_of({1.0, 0.8, 0.6, 0.5, 0.4}, {1.1, 0.9, 0.7, 0.6, 0.5})),
              IsEmpty());
}

TEST(Remarks, AnEarlyEndIsSaid) {
  train::Config config;
  config.train.epochs = 300;
  config.train.patience = 3;
  EXPECT_THAT(remarks_on(record_of(20, 50), config,
                         history_of({1.0, 0.6, 0.5, 0.5, 0.5}, {1.0, 0.8, 0.8, 0.8, 0.8})),
              ElementsAre(AllOf(HasSubstr("after 50 of 300 epochs"), HasSubstr("3 evaluations"))));
}

TEST(Remarks, WhatIsStillGettingBetterMayGoOn) {
  train::Config config;
  config.train.epochs = 120;
  const std::vector<double> falling = {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_THAT(remarks_on(record_of(120, 120), config, history_of(falling, falling)),
              ElementsAre(HasSubstr("mpssm train runs/a --resume --set train.epochs=240")));
}

TEST(Remarks, MoreThanAnHourIsSaidWithASmallerSetting) {
  train::Config config;
  config.train.epochs = 1000;
  train::Progress progress;
  progress.seconds = 10.0;
  progress.seconds_left = 35'990.0;
  EXPECT_THAT(time_remark(config, progress),
              AllOf(HasSubstr("10.0 hours"), HasSubstr("train.epochs=100 "),
                    HasSubstr("model.channels=32"), HasSubstr("model.blocks=2")));
  progress.seconds = 1.0;  // too early to say
  EXPECT_EQ(time_remark(config, progress), "");
  progress.seconds = 100.0;
  progress.seconds_left = 3400.0;
  EXPECT_EQ(time_remark(config, progress), "");
}

TEST(Remarks, ASmallerNetworkHasAnEvenWidth) {
  train::Config config;
  config.model.channels = 54;
  config.model.blocks = 1;
  train::Progress progress;
  progress.seconds = 10.0;
  progress.seconds_left = 1e7;
  EXPECT_THAT(time_remark(config, progress), HasSubstr("model.channels=26"));
}

}  // namespace
}  // namespace mpssm::run
