// SPDX-License-Identifier: MIT
#include "mpssm/train/checkpoint.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"
#include "mpssm/io/safetensors.h"
#include "mpssm/ops/generator.h"

#include "tests/support/scratch.h"

namespace mpssm::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Checkpoint, ModelFileReadsBackToTheSameBits) {
  const mpssm::testing::Scratch scratch;
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
  net->forward(torch::randn({8, 3}));  // fills the buffers
  save_model(scratch / "m.safetensors", copy_weights(*net), {{"note", "n"}});
  const ModelFile file = load_model(scratch / "m.safetensors");
  EXPECT_EQ(file.metadata.at("note"), "n");
  torch::nn::Sequential other(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
  set_weights(*other, file.weights, "m");
  for (const auto& [name, tensor] : copy_weights(*net)) {
    EXPECT_TRUE(torch::equal(tensor, copy_weights(*other).at(name))) << name;
  }
}

TEST(Checkpoint, RefusesWeightsOfAnotherModel) {
  torch::nn::Linear small(3, 4);
  torch::nn::Linear wide(5, 4);
  torch::nn::Linear bare(torch::nn::LinearOptions(3, 4).bias(false));
  EXPECT_THAT([&] { set_weights(*wide, copy_weights(*small), "f"); },
              ThrowsMessage<base::Error>(HasSubstr("weight 'weight': expected [4, 5]")));
  EXPECT_THAT([&] { set_weights(*small, copy_weights(*bare), "f"); },
              ThrowsMessage<base::Error>(HasSubstr("no weight 'bias'")));
  EXPECT_THAT([&] { set_weights(*bare, copy_weights(*small), "f"); },
              ThrowsMessage<base::Error>(HasSubstr("'bias' is not of this model")));
}

TEST(Checkpoint, StateBringsBackPositionMomentsAndGenerator) {
  const mpssm::testing::Scratch scratch;
  torch::nn::Linear net(3, 2);
  Adam adam(*net, {});
  net->forward(torch::ones({1, 3})).sum().backward();
  adam.step(0.1);
  Position position;
  position.step = 1;
  position.has_best = true;
  position.best_value = std::numeric_limits<double>::quiet_NaN();
  position.loss_sum = 0.1 + 0.2;
  position.history = "a,b\n";
  at::Generator generator = ops::make_generator(1);
  save_state(scratch / "s", *net, adam, generator, copy_weights(*net), {}, position, "config");
  const auto drawn = torch::rand({4}, generator);

  torch::nn::Linear other(3, 2);
  Adam other_adam(*other, {});
  at::Generator again = ops::make_generator(2);
  const RestoredState state = load_state(scratch / "s", *other, other_adam, again, "config");
  EXPECT_TRUE(torch::equal(torch::rand({4}, again), drawn));
  EXPECT_TRUE(torch::equal(other->weight, net->weight));
  EXPECT_TRUE(torch::equal(other_adam.slots()[0].mean, adam.slots()[0].mean));
  EXPECT_TRUE(torch::equal(other_adam.slots()[1].variance, adam.slots()[1].variance));
  EXPECT_EQ(other_adam.num_steps(), 1);
  EXPECT_EQ(state.position.loss_sum, position.loss_sum);
  EXPECT_EQ(state.position.history, "a,b\n");
  EXPECT_TRUE(std::isnan(state.position.best_value));
  EXPECT_THAT([&] { load_state(scratch / "s", *other, other_adam, again, "other"); },
              ThrowsMessage<base::Error>(HasSubstr("other settings")));
}

TEST(Checkpoint, AnInfiniteBestValueStaysInfinite) {
  const mpssm::testing::Scratch scratch;
  torch::nn::Linear net(3, 2);
  Adam adam(*net, {});
  at::Generator generator = ops::make_generator(1);
  for (const double sign : {1.0, -1.0}) {
    Position position;
    position.has_best = true;
    position.best_value = sign * std::numeric_limits<double>::infinity();
    save_state(scratch / "s", *net, adam, generator, copy_weights(*net), {}, position, "");
    EXPECT_EQ(load_state(scratch / "s", *net, adam, generator, "").position.best_value,
              position.best_value);
  }
}

TEST(Checkpoint, RefusesTypesAndFilesThatAreNotOurs) {
  const mpssm::testing::Scratch scratch;
  io::SafeTensors file;
  file.tensors["w"] = {"F16", {2}, std::vector<std::byte>(4)};
  io::write_safetensors(scratch / "half", file);
  EXPECT_THAT([&] { load_model(scratch / "half"); },
              ThrowsMessage<base::Error>(HasSubstr("expected type F32")));
  torch::nn::Linear net(3, 2);
  Adam adam(*net, {});
  at::Generator generator = ops::make_generator(1);
  EXPECT_THAT([&] { load_state(scratch / "half", *net, adam, generator, ""); },
              ThrowsMessage<base::Error>(HasSubstr("written by mpssm?")));
}

}  // namespace
}  // namespace mpssm::train
