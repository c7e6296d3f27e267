// SPDX-License-Identifier: MIT
#include "mpssm/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/data/registry.h"
#include "mpssm/io/error.h"

namespace mpssm::train {
namespace {

using io::InputError;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Config, IsWrittenAsTomlThatReadsBackToTheSame) {
  Config config;
  apply_toml(config, "seed = 3\n[model]\nchannels = 32\n[data]\nname = \"a \\\"b\\\\c\"\n", "x");
  apply_setting(config, "train.lr=0.1");
  apply_setting(config, "train.clip=5");
  apply_setting(config, "model.residual=false");
  Config again;
  apply_toml(again, to_toml(config), "again");
  EXPECT_EQ(to_toml(again), to_toml(config));
  EXPECT_EQ(again.data.name, "a \"b\\c");
  EXPECT_EQ(again.train.lr, 0.1);
  EXPECT_FALSE(again.model.residual);
}

TEST(Config, NamesTheNearestKeyAndTheLine) {
  Config config;
  EXPECT_THAT([&] { apply_toml(config, "[model]\n\nchanels = 3\n", "my.toml"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("my.toml:3:"), HasSubstr("model.chanels"),
                                              HasSubstr("'model.channels'"))));
  EXPECT_THAT([&] { apply_setting(config, "channels=3"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'model.channels'?")));
  EXPECT_THAT([&] { apply_setting(config, "xyzzy=3"); },
              ThrowsMessage<InputError>(HasSubstr("--keys")));
}

TEST(Config, RefusesValuesOfAnotherType) {
  Config config;
  EXPECT_THAT([&] { apply_setting(config, "model.channels=many"); },
              ThrowsMessage<InputError>(HasSubstr("model.channels: expected a whole number")));
  EXPECT_THAT([&] { apply_setting(config, "model.residual=1"); },
              ThrowsMessage<InputError>(HasSubstr("true or false")));
  EXPECT_THAT([&] { apply_toml(config, "[train]\nlr = \"high\"\n", "f"); },
              ThrowsMessage<InputError>(HasSubstr("f:2: train.lr: expected a number")));
  EXPECT_THAT([&] { apply_toml(config, "[train]\nlr = nan\n", "f"); },
              ThrowsMessage<InputError>(HasSubstr("train.lr")));
  EXPECT_THAT([&] { apply_toml(config, "train = 3\n", "f"); },
              ThrowsMessage<InputError>(HasSubstr("train")));
  EXPECT_THAT([&] { apply_toml(config, "[train\n", "f"); },
              ThrowsMessage<InputError>(HasSubstr("f:1:")));
}

TEST(Config, RefusesValuesOutOfRange) {
  const auto expect_refused = [](const std::string& setting) {
    Config config;
    apply_setting(config, setting);
    EXPECT_THAT([&] { check(config); },
                ThrowsMessage<InputError>(HasSubstr(setting.substr(0, setting.find('=')))))
        << setting;
  };
  check(Config{});
  for (const char* setting :
       {"model.dropout=1", "model.channels=0", "model.channels=33", "model.channels=99999999",
        "model.kind=cnn", "model.gso=custom", "train.lr=0", "train.lr=-1", "train.epochs=0",
        "train.schedule=linear", "train.optimiser=sgd", "train.plateau_factor=1",
        "data.train_ratio=1", "model.max_modulus=1.5", "model.max_modulus=1",
        "model.max_modulus=0.5", "model.min_modulus=0", "seed=-1", "model.plan=fast"}) {
    expect_refused(setting);
  }
}

TEST(Config, EveryRegisteredDatasetHasAValidPreset) {
  for (const data::DatasetInfo& info : data::registry()) {
    const char* own = preset(info.name);
    const char* text = own != nullptr ? own : preset(info.family);
    ASSERT_NE(text, nullptr) << info.name;
    Config config;
    apply_toml(config, text, info.name);
    EXPECT_NO_THROW(check(config)) << info.name;
  }
  EXPECT_EQ(preset("no such dataset"), nullptr);
}

}  // namespace
}  // namespace mpssm::train
