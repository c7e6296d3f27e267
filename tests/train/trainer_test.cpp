// SPDX-License-Identifier: MIT
#include "mpssm/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/io/safetensors.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/train_into.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/checkpoint.h"

#include "tests/support/scratch.h"
#include "tests/train/small_data.h"

namespace mpssm::train {
namespace {

using mpssm::testing::Scratch;
using ::testing::HasSubstr;
using testing::small_config;
using ::testing::ThrowsMessage;

TrainOutcome train_in(const std::filesystem::path& folder, const data::Dataset& dataset,
                      const Config& config, bool resume = false, std::int64_t stop_after = -1) {
  const auto problem = task::make_problem(dataset, problem_options(config));
  const BuiltModel built = build_model(*problem, config);
  const TrainJob job{.problem = *problem,
                     .config = config,
                     .metric = dataset.metric,
                     .model = built.module,
                     .generator = built.generator,
                     .folder = folder,
                     .metadata = {},
                     .resume = resume};
  std::int64_t made = 0;
  TrainHooks hooks;
  hooks.should_stop = [&] { return ++made == stop_after; };
  return train(job, hooks);
}

constexpr engine::Precision kPrecisions[] = {engine::Precision::kFloat32, engine::Precision::kBf16};

/// One of each shape, dropout, shuffling and a schedule included.
std::vector<data::Dataset> datasets() {
  return {testing::make_board_data(), testing::make_graphs_data(), testing::make_series_data()};
}

class TrainerIn : public ::testing::TestWithParam<engine::Precision> {};
INSTANTIATE_TEST_SUITE_P(Precision, TrainerIn, ::testing::ValuesIn(kPrecisions),
                         [](const auto& in) { return std::string(to_string(in.param)); });

TEST_P(TrainerIn, EndsTheSameAfterAnyInterruption) {
  for (const data::Dataset& dataset : datasets()) {
    Config config = small_config();
    config.train.precision = GetParam();
    config.train.schedule = Schedule::kPlateau;
    config.train.plateau_patience = 0;
    const Scratch unbroken;
    const TrainOutcome whole = train_in(unbroken.folder(), dataset, config);
    ASSERT_TRUE(whole.finished);
    for (const std::int64_t stop_after : {std::int64_t{1}, whole.steps / 2, whole.steps - 1}) {
      const Scratch broken;
      EXPECT_FALSE(train_in(broken.folder(), dataset, config, false, stop_after).finished);
      EXPECT_FALSE(train_in(broken.folder(), dataset, config, true, 1).finished &&
                   stop_after + 1 < whole.steps);
      const TrainOutcome rest = train_in(broken.folder(), dataset, config, true);
      EXPECT_TRUE(rest.finished);
      EXPECT_EQ(rest.best_step, whole.best_step);
      EXPECT_TRUE(testing::result_of(broken.folder()) == testing::result_of(unbroken.folder()))
          << dataset.name << ", stopped after step " << stop_after;
    }
  }
}

TEST(Trainer, AFinishedRunMadeLongerEndsLikeOneThatWasThatLongFromTheStart) {
  for (const data::Dataset& dataset : datasets()) {
    Config longer = small_config();
    longer.train.epochs = 8;
    Config shorter = longer;
    shorter.train.epochs = 4;
    const Scratch at_once;
    const Scratch in_two;
    const TrainOutcome whole = train_in(at_once.folder(), dataset, longer);
    EXPECT_TRUE(train_in(in_two.folder(), dataset, shorter).finished);
    const TrainOutcome rest = train_in(in_two.folder(), dataset, longer, /*resume=*/true);
    EXPECT_TRUE(rest.finished);
    EXPECT_EQ(rest.steps, whole.steps);
    EXPECT_TRUE(testing::result_of(in_two.folder()) == testing::result_of(at_once.folder()))
        << dataset.name;
  }
}

TEST(Trainer, WhatStoppedEarlyGoesOnWithMorePatienceOnly) {
  Config config = small_config();
  config.train.epochs = 60;
  config.train.lr = 0.3;  // too large to gain for long
  config.train.patience = 2;
  const Scratch scratch;
  const data::Dataset dataset = testing::make_series_data();
  const TrainOutcome first = train_in(scratch.folder(), dataset, config);
  config.train.epochs = 80;
  EXPECT_EQ(train_in(scratch.folder(), dataset, config, /*resume=*/true).steps, first.steps);
  config.train.patience = 5;
  EXPECT_GT(train_in(scratch.folder(), dataset, config, /*resume=*/true).steps, first.steps);
  config.model.dropout = 0.3;
  EXPECT_THAT([&] { train_in(scratch.folder(), dataset, config, /*resume=*/true); },
              ThrowsMessage<base::Error>(HasSubstr("other settings")));
}

TEST_P(TrainerIn, GivesTheSameBitsForAnyNumberOfThreads) {
  Config config = small_config();
  config.train.precision = GetParam();
  for (const data::Dataset& dataset : datasets()) {
    const Scratch one;
    const Scratch two;
    ops::set_num_threads(1);
    train_in(one.folder(), dataset, config);
    ops::set_num_threads(2);
    train_in(two.folder(), dataset, config);
    ops::set_num_threads(0);
    EXPECT_TRUE(testing::result_of(one.folder()) == testing::result_of(two.folder()))
        << dataset.name;
  }
}

/// Encodings with their signs, a mean of weights, dropout wherever there may be some.
Config config_with_aids() {
  Config config = small_config();
  config.data.encodings = "rwse:3,lap:2,degree";
  config.model.input_dropout = 0.2;
  config.model.readout_layers = 3;
  config.model.readout_shape = nn::ReadoutShape::kConstant;
  config.model.readout_dropout = 0.3;
  config.train.ema = 0.9;
  return config;
}

TEST(Trainer, WithAidsEndsTheSameAfterAnInterruptionAndOnAnyNumberOfThreads) {
  for (const data::Dataset& dataset : datasets()) {
    const Config config = config_with_aids();
    const Scratch unbroken;
    const TrainOutcome whole = train_in(unbroken.folder(), dataset, config);
    const Scratch broken;
    ops::set_num_threads(2);
    EXPECT_FALSE(train_in(broken.folder(), dataset, config, false, whole.steps / 2).finished);
    ops::set_num_threads(1);
    EXPECT_TRUE(train_in(broken.folder(), dataset, config, true).finished);
    ops::set_num_threads(0);
    EXPECT_TRUE(testing::result_of(broken.folder()) == testing::result_of(unbroken.folder()))
        << dataset.name;
  }
}

TEST(Trainer, KeepsTheMeanOfTheWeightsThatItHasEvaluated) {
  const data::Dataset dataset = testing::make_board_data();
  Config config = small_config();
  const Scratch plain;
  train_in(plain.folder(), dataset, config);
  config.train.ema = 0.99;
  const Scratch averaged;
  train_in(averaged.folder(), dataset, config);
  EXPECT_FALSE(testing::result_of(plain.folder()) == testing::result_of(averaged.folder()));
  // The steps themselves know nothing of it.
  const auto weights = [](const Scratch& run) {
    return io::read_safetensors(run.folder() / "state.safetensors").tensors;
  };
  const auto of_plain = weights(plain);
  const auto of_averaged = weights(averaged);
  EXPECT_EQ(of_plain.at("model.encoder.weight").bytes,
            of_averaged.at("model.encoder.weight").bytes);
  EXPECT_NE(of_averaged.at("ema.encoder.weight").bytes,
            of_averaged.at("model.encoder.weight").bytes);
}

TEST(Trainer, KeepsTheBestModelOnValidation) {
  const data::Dataset dataset = testing::make_series_data();
  Config config = small_config();
  config.train.epochs = 12;
  config.train.lr = 0.05;  // high enough to get worse again at times
  const Scratch scratch;
  const TrainOutcome outcome = train_in(scratch.folder(), dataset, config);
  const auto problem = task::make_problem(dataset, problem_options(config));
  const auto model = build_model(*problem, config).module;
  set_weights(*model, load_model(scratch / "model.safetensors").weights, "model");
  model->eval();
  const torch::NoGradGuard no_grad;
  const double kept = problem->evaluate(*model, data::Part::kVal).at("mae");

  const std::string history = io::read_file(scratch / "metrics.csv");
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 13);
  double least = std::numeric_limits<double>::infinity();
  std::int64_t least_step = 0;
  std::istringstream lines(history);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 24), "step,epoch,lr,train_loss");
  std::vector<std::string> names;
  std::istringstream header(line);
  for (std::string name; std::getline(header, name, ',');) names.push_back(name);
  const auto column = std::find(names.begin(), names.end(), "val_mae") - names.begin();
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::vector<double> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
    if (values[column] < least) {
      least = values[column];
      least_step = static_cast<std::int64_t>(values[0]);
    }
  }
  EXPECT_NEAR(kept, least, 1e-6);
  EXPECT_EQ(outcome.best_step, least_step);
}

TEST(Trainer, KeepsTheLastModelIfItTrainsOnValidation) {
  Config config = small_config();
  config.train.epochs = 12;
  config.train.lr = 0.05;
  config.train.patience = 1;
  config.train.on_validation = true;
  const Scratch scratch;
  const TrainOutcome outcome = train_in(scratch.folder(), testing::make_series_data(), config);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.best_step, outcome.steps);
}

TEST(Trainer, LearnsWhatIsThereToLearn) {
  const data::Dataset dataset = testing::make_series_data();
  Config config = small_config();
  config.train.epochs = 25;
  config.model.dropout = 0.0;
  const Scratch scratch;
  train_in(scratch.folder(), dataset, config);
  const auto problem = task::make_problem(dataset, problem_options(config));
  const auto model = build_model(*problem, config).module;
  set_weights(*model, load_model(scratch / "model.safetensors").weights, "model");
  model->eval();
  const torch::NoGradGuard no_grad;
  double last_value = 0.0;
  for (const task::Reference& reference : problem->references()) {
    if (reference.name == "last value") last_value = reference.test.at("mae");
  }
  EXPECT_LT(problem->evaluate(*model, data::Part::kTest).at("mae"), 0.3 * last_value);
}

TEST(Trainer, StopsEarlyWithoutGain) {
  const data::Dataset dataset = testing::make_board_data();
  Config config = small_config();
  config.train.epochs = 500;
  config.train.lr = 1e-12;  // nothing changes
  config.train.patience = 3;
  const Scratch scratch;
  const TrainOutcome outcome = train_in(scratch.folder(), dataset, config);
  EXPECT_TRUE(outcome.finished);
  EXPECT_LT(outcome.steps, 50);
}

TEST(Trainer, ExplainsALossThatIsNotFiniteAndKeepsTheLastCheckpoint) {
  const data::Dataset dataset = testing::make_series_data();
  Config config = small_config();
  config.train.lr = 1e30;
  config.train.epochs = 50;
  config.model.norm = nn::NormKind::kNone;
  config.model.state_norm = nn::NormKind::kNone;
  const Scratch scratch;
  EXPECT_THAT([&] { train_in(scratch.folder(), dataset, config); },
              ThrowsMessage<base::Error>(HasSubstr("not a finite number")));
  EXPECT_TRUE(std::filesystem::exists(scratch / "state.safetensors"));
}

/// A problem that passes everything on to another one, but for what a test changes.
struct Wrapped : task::Problem {
  explicit Wrapped(const task::Problem& problem) : whole(problem) {}
  task::ProblemShape shape() const override { return whole.shape(); }
  graph::Operators largest_gso(std::int64_t batch) const override {
    return whole.largest_gso(batch);
  }
  std::int64_t num_train() const override { return whole.num_train(); }
  std::int64_t data_bytes() const override { return whole.data_bytes(); }
  torch::Tensor loss(nn::GraphModule& model, std::span<const std::int64_t> samples) const override {
    return whole.loss(model, samples);
  }
  task::Metrics evaluate(nn::GraphModule& model, data::Part part) const override {
    return whole.evaluate(model, part);
  }
  void write_predictions(nn::GraphModule&, const io::Sink&) const override {}
  Sample sample(std::int64_t index) const override { return whole.sample(index); }
  const task::Problem& whole;
};

template <typename Changed>
void train_changed() {
  const data::Dataset dataset = testing::make_series_data();
  const Config config = small_config();
  const auto problem = task::make_problem(dataset, problem_options(config));
  const Changed changed(*problem);
  const BuiltModel built = build_model(*problem, config);
  const Scratch scratch;
  train({.problem = changed,
         .config = config,
         .metric = dataset.metric,
         .model = built.module,
         .generator = built.generator,
         .folder = scratch.folder(),
         .metadata = {}});
}

TEST(Trainer, StopsWhenTheValidationLossIsNoNumber) {
  struct Broken : Wrapped {
    using Wrapped::Wrapped;
    task::Metrics evaluate(nn::GraphModule&, data::Part) const override {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      return {{"loss", nan}, {"mae", nan}};
    }
  };
  EXPECT_THAT(train_changed<Broken>,
              ThrowsMessage<base::Error>(HasSubstr("the loss on validation")));
}

TEST(Trainer, RefusesToTrainOnNothing) {
  struct Empty : Wrapped {
    using Wrapped::Wrapped;
    std::int64_t num_train() const override { return 0; }
  };
  EXPECT_THAT(train_changed<Empty>, ThrowsMessage<base::Error>(HasSubstr("no sample")));
}

TEST(Trainer, NamesOnlyRemediesThatAreNotInUse) {
  Config config = small_config();
  config.train.lr = 1e30;
  config.train.epochs = 50;
  config.train.clip = 1.0;
  config.model.norm = nn::NormKind::kNone;
  config.model.state_norm = nn::NormKind::kNone;
  const Scratch scratch;
  EXPECT_THAT([&] { train_in(scratch.folder(), testing::make_series_data(), config); },
              ThrowsMessage<base::Error>(::testing::AllOf(
                  HasSubstr("smaller train.lr"), ::testing::Not(HasSubstr("model.state=stable")),
                  ::testing::Not(HasSubstr("train.clip=1")))));
}

TEST(Trainer, RefusesAPositionThatTheRunCannotHave) {
  const data::Dataset dataset = testing::make_series_data();
  const Config config = small_config();
  const Scratch scratch;
  train_in(scratch.folder(), dataset, config, /*resume=*/false, /*stop_after=*/3);
  io::SafeTensors file = io::read_safetensors(scratch / "state.safetensors");
  std::string& position = file.metadata["position"];
  position.replace(position.find("\"epoch\":0"), 9, "\"epoch\":9223372036854775807");
  io::write_safetensors(scratch / "state.safetensors", file);
  EXPECT_THAT([&] { train_in(scratch.folder(), dataset, config, /*resume=*/true); },
              ThrowsMessage<base::Error>(HasSubstr("the position of the run")));
}

TEST(Trainer, LeavesTorchsGeneratorToOthers) {
  torch::manual_seed(7);
  const auto expected = torch::rand({4});
  Config config = small_config();
  config.data.name = "board:12x12";
  torch::manual_seed(7);
  const Scratch scratch;
  run::Experiment experiment = run::set_up(config);
  run::train_into(run::RunFolder(scratch / "run", /*resume=*/false), experiment, /*resume=*/false);
  run::reopen(scratch / "run");
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

TEST(Trainer, OrderIsAPermutationThatDependsOnSeedAndEpoch) {
  const auto order = epoch_order(1000, 3, 5);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(sorted[i], i);
  EXPECT_EQ(order, epoch_order(1000, 3, 5));
  EXPECT_NE(order, epoch_order(1000, 3, 6));
  EXPECT_NE(order, epoch_order(1000, 4, 5));
}

TEST(Trainer, CosineScheduleRisesThenFallsToZero) {
  TrainConfig config;
  config.schedule = Schedule::kCosine;
  config.epochs = 250;
  config.warmup_epochs = 5;
  EXPECT_EQ(schedule_factor(config, 0.0), 1e-6);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 2.5), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 5.0), 1.0);
  EXPECT_NEAR(schedule_factor(config, 127.5), 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(config, 250.0), 0.0, 1e-12);
  config.schedule = Schedule::kConstant;
  EXPECT_EQ(schedule_factor(config, 3.0), 1.0);
}

}  // namespace
}  // namespace mpssm::train
