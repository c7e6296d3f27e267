// SPDX-License-Identifier: MIT
#include "mpssm/run/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/run/run_folder.h"

#include "tests/support/scratch.h"

namespace mpssm::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Stands for a training: writes config.toml and says that more dropout is better, on test worse.
class FakeTraining {
 public:
  std::optional<report::RunRecord> operator()(const train::Config& config, const fs::path& run,
                                              ranks::Communicator*) {
    ++count;
    epochs.push_back(config.train.epochs);
    if (config.model.hops == 3) throw base::Error("hops of 3 are not for this test");
    fs::create_directories(run);
    io::write_file(run / "config.toml", train::to_toml(config));
    report::RunRecord record;
    record.run = run.string();
    record.metric = "roc_auc";
    record.metrics["val"]["roc_auc"] =
        config.model.dropout + 0.001 * static_cast<double>(config.seed);
    record.metrics["test"]["roc_auc"] = 1.0 - config.model.dropout;
    record.metrics["val"]["loss"] = record.metrics["test"]["loss"] = 0.0;
    record.seconds = 2.0;
    return record;
  }
  int count = 0;
  std::vector<std::int64_t> epochs;
};

class Tuning : public ::testing::Test {
 protected:
  TuneOutcome search(TuneOptions options) {
    options.folder = scratch_.folder();
    config_.data.name = "board:6x6";
    config_.train.epochs = 27;
    return tune(config_, options, std::ref(train_));
  }
  testing::Scratch scratch_;
  train::Config config_;
  FakeTraining train_;
};

TEST_F(Tuning, ValidationDecidesAndTheBestIsWrittenDown) {
  const TuneOutcome outcome =
      search({.axes = {"model.dropout=0.1,0.5,0.3"}, .seeds = {0, 1}, .splits = {0, 2}});
  EXPECT_THAT(outcome.trials.front().settings, ElementsAre("model.dropout=0.5"));
  EXPECT_EQ(outcome.tried, 3);
  EXPECT_EQ(train_.count, 12);
  EXPECT_NEAR(outcome.trials.front().val_mean(), 0.5005, 1e-9);
  train::Config best;
  train::apply_toml(best, io::read_file(scratch_.folder() / "best.toml"), "best.toml");
  EXPECT_EQ(best.model.dropout, 0.5);
  EXPECT_EQ(best.seed, 0);
  EXPECT_EQ(best.data.name, "board:6x6");
  EXPECT_THAT(to_text(outcome), HasSubstr("best on validation of 3 settings tried"));
  EXPECT_THAT(io::read_file(scratch_.folder() / "tune.json"), HasSubstr("\"settings_tried\": 3"));
}

TEST_F(Tuning, AFailedTrialIsCountedAndDoesNotEndTheSearch) {
  const TuneOutcome outcome = search({.axes = {"model.hops=2,3"}});
  EXPECT_EQ(outcome.tried, 2);
  EXPECT_EQ(outcome.trials.size(), 1U);
  EXPECT_THROW(search({.axes = {"model.hops=3"}}), base::Error);
}

TEST_F(Tuning, ImpossibleSettingsAreRefusedBeforeAnythingIsTrained) {
  EXPECT_THROW(search({.axes = {"model.hops=2,many"}}), base::Error);
  EXPECT_THROW(search({.axes = {"model.depth=2"}}), base::Error);
  EXPECT_EQ(train_.count, 0);
}

TEST_F(Tuning, TakesThePapersGridsByName) {
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {
      {"gpp", 24}, {"lrgb", 1800}, {"hetero", 3600}, {"temporal", 480}};
  for (const auto& [name, size] : sizes) {
    const TuneOutcome outcome = search({.axes = {name}, .is_over = [] { return true; }});
    EXPECT_EQ(outcome.planned, size) << name;
  }
  const TuneOutcome outcome = search({.axes = {"gpp"}, .random = 2});
  EXPECT_EQ(outcome.tried, 2);
  const train::Config one = read_run_config(outcome.trials.front().run);
  EXPECT_EQ(one.model.state, nn::StateKind::kDense);
  EXPECT_EQ(one.train.optimiser, train::Optimiser::kAdam);
  EXPECT_EQ(one.train.lr, 3e-3);
}

TEST_F(Tuning, DoesNotSearchWhatIsSet) {
  train::apply_setting(config_, "model.blocks=3");
  train::apply_setting(config_, "train.lr=0.5");
  EXPECT_EQ(search({.axes = {"gpp"}, .is_over = [] { return true; }}).planned, 12);
  const TuneOutcome outcome = search({.axes = {"gpp", "model.activation=tanh,gelu"}, .random = 1});
  const train::Config one = read_run_config(outcome.trials.front().run);
  EXPECT_EQ(one.model.blocks, 3);
  EXPECT_EQ(one.train.lr, 0.5);
}

TEST_F(Tuning, WithoutAxesTheDefaultsAreTheFirstToBeat) {
  const TuneOutcome outcome = search({.random = 5});
  EXPECT_EQ(outcome.tried, 5);
  EXPECT_EQ(std::count_if(outcome.trials.begin(), outcome.trials.end(),
                          [](const Trial& trial) { return trial.settings.empty(); }),
            1);
}

TEST_F(Tuning, HalvingTrainsFewerLonger) {
  EXPECT_THAT(halving_rounds(9, 27), ElementsAre(3, 9, 27));
  EXPECT_THAT(halving_rounds(2, 27), ElementsAre(27));
  EXPECT_THAT(halving_rounds(100, 5), ElementsAre(5));
  const TuneOutcome outcome =
      search({.axes = {"model.dropout=0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8"}, .halving = true});
  EXPECT_EQ(std::count(train_.epochs.begin(), train_.epochs.end(), 3), 9);
  EXPECT_EQ(std::count(train_.epochs.begin(), train_.epochs.end(), 9), 3);
  EXPECT_EQ(std::count(train_.epochs.begin(), train_.epochs.end(), 27), 1);
  EXPECT_EQ(outcome.tried, 9);
  EXPECT_EQ(outcome.trials.front().epochs, 27);
  EXPECT_THAT(outcome.trials.front().settings, ElementsAre("model.dropout=0.8"));
}

TEST_F(Tuning, TimeThatIsUpEndsTheSearchWithWhatThereIs) {
  int asked = 0;
  const TuneOutcome outcome =
      search({.axes = {"model.dropout=0.1,0.5,0.3"}, .is_over = [&] { return ++asked > 2; }});
  EXPECT_FALSE(outcome.is_complete);
  EXPECT_EQ(outcome.tried, 2);
  EXPECT_EQ(outcome.planned, 3);
}

TEST_F(Tuning, NothingOfOthersIsReplaced) {
  io::write_file(scratch_.folder() / "best.toml", "mine = 1\n");
  EXPECT_THROW(search({.axes = {"model.dropout=0.1"}}), base::Error);
  EXPECT_EQ(train_.count, 0);
}

}  // namespace
}  // namespace mpssm::run
