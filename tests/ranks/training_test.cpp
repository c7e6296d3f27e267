// SPDX-License-Identifier: MIT
// A training by several ranks ends like one by one process.
#include <numeric>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/io/file.h"
#include "mpssm/nn/channel_ranks.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/adam.h"
#include "mpssm/train/built_model.h"
#include "mpssm/train/shared_batch.h"
#include "mpssm/train/trainer.h"

#include "tests/ranks/threads_as_ranks.h"
#include "tests/support/scratch.h"
#include "tests/train/small_data.h"

namespace mpssm::train {
namespace {

using mpssm::testing::as_ranks;
using mpssm::testing::Scratch;

/// One graph is shared by its channels.
std::shared_ptr<nn::ChannelRanks> by_channels(const task::Problem& problem, const BuiltModel& built,
                                              ranks::Communicator& all) {
  if (problem.num_train() > 1 || all.size() == 1) return nullptr;
  return std::make_shared<nn::ChannelRanks>(std::dynamic_pointer_cast<nn::ModelImpl>(built.module),
                                            all);
}

/// Trains with `count` ranks into the folder; stops after so many steps if that is not -1, asked
/// for by the last rank.
void train_by(std::int64_t count, const std::filesystem::path& folder, const data::Dataset& dataset,
              const Config& config, bool resume = false, std::int64_t stop_after = -1) {
  // Models are drawn one after the other: torch's generator belongs to the whole process.
  const auto problem = task::make_problem(dataset, problem_options(config));
  std::vector<BuiltModel> built;
  for (std::int64_t rank = 0; rank < count; ++rank) built.push_back(build_model(*problem, config));
  as_ranks(count, [&](ranks::Communicator& all) {
    const BuiltModel& mine = built[all.rank()];
    const TrainJob job{.problem = *problem,
                       .config = config,
                       .metric = dataset.metric,
                       .model = mine.module,
                       .generator = mine.generator,
                       .folder = folder,
                       .metadata = {},
                       .resume = resume,
                       .ranks = &all,
                       .shared = by_channels(*problem, mine, all)};
    std::int64_t made = 0;
    TrainHooks hooks;
    hooks.should_stop = [&] { return ++made == stop_after && all.rank() == all.size() - 1; };
    const TrainOutcome outcome = train(job, hooks);
    EXPECT_EQ(outcome.finished, stop_after < 0);
  });
}

/// Graphs and series, a diagonal W and a dense one; one graph, a diagonal W.
std::vector<std::pair<data::Dataset, Config>> trainings() {
  std::vector<std::pair<data::Dataset, Config>> result;
  for (const nn::StateKind state : {nn::StateKind::kStable, nn::StateKind::kDense}) {
    Config config = testing::small_config();
    config.model.state = state;
    config.train.epochs = 2;
    config.train.pieces = 4;
    result.emplace_back(testing::make_graphs_data(), config);
    config.train.patience = 1;
    result.emplace_back(testing::make_series_data(), config);
  }
  return result;
}

std::vector<std::pair<data::Dataset, Config>> all_trainings() {
  auto result = trainings();
  Config config = testing::small_config();
  config.model.channels = 10;
  result.emplace_back(data::load("board:60x40"), config);
  return result;
}

TEST(RanksTraining, AnyNumberOfThemEndsWithTheBitsOfOneProcess) {
  MPSSM_NEEDS_GLOO();
  for (const auto& [dataset, config] : all_trainings()) {
    std::string alone;
    for (const std::int64_t count : {1, 2, 3, 4, 5}) {
      const Scratch scratch;
      train_by(count, scratch.folder(), dataset, config);
      const std::string result = testing::result_of(scratch.folder());
      if (count == 1) alone = result;
      EXPECT_TRUE(result == alone) << dataset.name << " by " << count << " ranks";
    }
  }
}

TEST(RanksTraining, GoesOnWithAnotherNumberOfThem) {
  MPSSM_NEEDS_GLOO();
  for (const auto& [dataset, config] : all_trainings()) {
    const Scratch unbroken;
    train_by(1, unbroken.folder(), dataset, config);
    const Scratch broken;
    train_by(4, broken.folder(), dataset, config, false, 2);
    train_by(2, broken.folder(), dataset, config, true, 1);
    train_by(3, broken.folder(), dataset, config, true);
    EXPECT_TRUE(testing::result_of(broken.folder()) == testing::result_of(unbroken.folder()))
        << dataset.name;
  }
}

TEST(TrainPieces, MakeTheGradientOfTheWholeBatch) {
  for (auto [dataset, config] : trainings()) {
    config.model.dropout = 0.0;  // pieces have random numbers of their own
    if (auto* series = std::get_if<data::SeriesData>(&dataset.content)) {
      series->null_value = series->values[200];  // pieces do not count the same
    }
    const auto problem = task::make_problem(dataset, problem_options(config));
    const BuiltModel built = build_model(*problem, config);
    Adam adam(*built.module, {});
    std::vector<std::int64_t> samples(7);
    std::iota(samples.begin(), samples.end(), 1);
    adam.zero_grad();
    const torch::Tensor loss = problem->loss(*built.module, samples);
    loss.backward();
    std::vector<torch::Tensor> whole;
    for (const Adam::Slot& slot : adam.slots()) whole.push_back(slot.parameter.grad().clone());
    const auto alone = ranks::alone();
    for (const std::int64_t pieces : {1, 2, 3, 7, 10}) {
      const SharedBatch shared{*problem, *built.module, adam, *built.generator, *alone, pieces};
      EXPECT_NEAR(shared.gradient(samples), loss.item<double>(), 1e-6 * loss.item<double>());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const torch::Tensor difference = adam.slots()[i].parameter.grad() - whole[i];
        constexpr double kRounding = 1e-5;  // sums of a few hundred floats in another order
        EXPECT_LE(difference.norm().item<double>(),
                  kRounding * (whole[i].norm().item<double>() + loss.item<double>()))
            << dataset.name << " " << adam.slots()[i].name << " in " << pieces << " pieces";
      }
    }
  }
}

}  // namespace
}  // namespace mpssm::train
