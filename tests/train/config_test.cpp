// SPDX-License-Identifier: MIT
#include "mpssm/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/data/registry.h"
#include "mpssm/train/preset.h"

namespace mpssm::train {
namespace {

using base::Error;
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
              ThrowsMessage<Error>(AllOf(HasSubstr("my.toml:3:"), HasSubstr("model.chanels"),
                                         HasSubstr("'model.channels'"))));
  EXPECT_THAT([&] { apply_setting(config, "channels=3"); },
              ThrowsMessage<Error>(HasSubstr("did you mean 'model.channels'?")));
  EXPECT_THAT([&] { apply_setting(config, "xyzzy=3"); }, ThrowsMessage<Error>(HasSubstr("--keys")));
}

TEST(Config, RefusesValuesOfAnotherType) {
  Config config;
  EXPECT_THAT([&] { apply_setting(config, "model.channels=many"); },
              ThrowsMessage<Error>(HasSubstr("model.channels: expected a whole number")));
  EXPECT_THAT([&] { apply_setting(config, "model.residual=1"); },
              ThrowsMessage<Error>(HasSubstr("true or false")));
  EXPECT_THAT([&] { apply_toml(config, "[train]\nlr = \"high\"\n", "f"); },
              ThrowsMessage<Error>(HasSubstr("f:2: train.lr: expected a number")));
  EXPECT_THAT([&] { apply_toml(config, "[train]\nlr = nan\n", "f"); },
              ThrowsMessage<Error>(HasSubstr("train.lr")));
  EXPECT_THAT([&] { apply_toml(config, "train = 3\n", "f"); },
              ThrowsMessage<Error>(HasSubstr("train")));
  EXPECT_THAT([&] { apply_toml(config, "[train\n", "f"); },
              ThrowsMessage<Error>(HasSubstr("f:1:")));
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Config, RefusesDeepNestingBeforeItIsParsed) {
  const auto expect_refused = [](const std::string& text, const std::string& place) {
    Config config;
    EXPECT_THAT([&] { apply_toml(config, text, "my.toml"); },
                ThrowsMessage<Error>(AllOf(HasSubstr("my.toml:" + place), HasSubstr("many"))));
  };
  const std::string deep = repeated("a.", 10'000);
  expect_refused("seed = 1\n" + deep + "a = 1\n", "2:18:");
  expect_refused("[" + deep + "a]\n", "1:");
  expect_refused("x = {" + deep + "a = 1}\n", "1:");
  expect_refused(repeated("'a'.", 10'000) + "a = 1\n", "1:");
  expect_refused(repeated("\"a\" . ", 10'000) + "a = 1\n", "1:");
  expect_refused("x = " + repeated("[", 10'000) + "\n", "1:");
  expect_refused("x = " + repeated("{a = ", 10'000) + "\n", "1:");
  expect_refused("x = [\"\"\"a\"\"\"\", {" + deep + "a = 1}]\n", "1:");
  // Each level within bounds, together deep.
  expect_refused("x = " + repeated("{a.a.a.a.a.a = ", 10'000) + "\n", "1:");
}

TEST(Config, DotsAndBracketsInTextAreNoNesting) {
  Config config;
  const std::string dots = repeated("../[{", 1000) + "x";
  apply_toml(config,
             "# " + dots + "\n[data]\nname = \"" + dots + "\\\"" + dots + "\"\ntarget = '" + dots +
                 "'\n[train]\nmetric = \"\"\"" + dots + "\n\"" + dots + "\"\"\"\n",
             "my.toml");
  EXPECT_EQ(config.data.name, dots + "\"" + dots);
  EXPECT_EQ(config.data.target, dots);
  EXPECT_EQ(config.train.metric, dots + "\n\"" + dots);
}

TEST(Config, RefusesControlCharactersBeforeTheParserAssertsThereAreNone) {
  Config config;
  for (const std::string& text :
       {std::string("seed = 1\n[\0", 11), std::string("seed = 1\n#\0\n", 12),
        std::string("seed = 1\n\"\0\" = 1\n", 17), std::string("seed = 1\n\0", 10)}) {
    EXPECT_THAT([&] { apply_toml(config, text, "my.toml"); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("my.toml:2:"), HasSubstr("control character '\\x00'"))));
  }
  EXPECT_THAT([&] { apply_toml(config, "seed\x1b = 1\n", "my.toml"); },
              ThrowsMessage<Error>(HasSubstr("my.toml:1:5: expected text")));
  EXPECT_THAT([&] { apply_toml(config, "seed\x7f = 1\n", "my.toml"); },
              ThrowsMessage<Error>(HasSubstr("\\x7f")));
  apply_toml(config, "seed\t=\t7\r\n", "my.toml");
  EXPECT_EQ(config.seed, 7);
}

TEST(Config, NamesComeFromTheTableOfTheirEnum) {
  Config config;
  for (const auto& [plan, name] : engine::kPlanNames) {
    apply_setting(config, "model.plan=" + std::string(name));
    EXPECT_EQ(config.model.plan, plan);
  }
  apply_toml(config, "[data]\ntask = \"forecast\"\n", "my.toml");
  EXPECT_EQ(config.data.task, data::Task::kForecast);
  apply_setting(config, "data.task=auto");
  EXPECT_FALSE(config.data.task);
  EXPECT_THAT([&] { apply_toml(config, "[model]\nnorm = \"rms\"\n", "my.toml"); },
              ThrowsMessage<Error>(HasSubstr(
                  "my.toml:2: model.norm: expected one of layer, batch, none, got 'rms'")));
  EXPECT_THAT([&] { apply_setting(config, "data.task=guess"); },
              ThrowsMessage<Error>(HasSubstr("expected one of auto, node_binary, ")));
  EXPECT_THAT([&] { apply_toml(config, "[model]\nnorm = 1\n", "my.toml"); },
              ThrowsMessage<Error>(HasSubstr("model.norm: expected text in quotes")));
}

TEST(Config, HelpListsTheNames) {
  for (const Setting& setting : settings_of({})) {
    if (setting.key == "model.plan") {
      EXPECT_EQ(setting.value, "auto");
      EXPECT_EQ(setting.help, "auto, stepwise, doubling, diagonal, spectral, reference");
    }
    if (setting.key == "model.state") {
      EXPECT_EQ(setting.help, "W: dense, diagonal, stable");
    }
  }
}

TEST(Config, RefusesValuesOutOfRange) {
  const auto expect_refused = [](const std::string& setting) {
    Config config;
    const auto apply_and_check = [&] {
      apply_setting(config, setting);
      check(config);
    };
    EXPECT_THAT(apply_and_check,
                ThrowsMessage<Error>(HasSubstr(setting.substr(0, setting.find('=')))))
        << setting;
  };
  check(Config{});
  for (const char* setting : {"model.dropout=1",
                              "model.channels=0",
                              "model.channels=33",
                              "model.channels=99999999",
                              "model.kind=cnn",
                              "model.gso=custom",
                              "train.lr=0",
                              "train.lr=-1",
                              "train.epochs=0",
                              "train.schedule=linear",
                              "train.optimiser=sgd",
                              "train.plateau_factor=1",
                              "data.train_ratio=1",
                              "model.max_modulus=1.5",
                              "model.max_modulus=1",
                              "model.max_modulus=0.5",
                              "model.min_modulus=0",
                              "seed=-1",
                              "model.plan=fast",
                              "model.hops_per_step=0",
                              "model.gso=",
                              "model.gso=adjacency:0",
                              "model.gso=virtual_node"}) {
    expect_refused(setting);
  }
}

TEST(Config, OperatorsPerGroupAreANameOrAList) {
  Config config;
  apply_toml(config, "[model]\ngso = [\"random_walk:2\", \"transpose\"]\n", "my.toml");
  EXPECT_EQ(to_string(config.model.gso), "random_walk:2,transpose");
  check(config);
  Config again;
  apply_toml(again, to_toml(config), "again.toml");
  EXPECT_EQ(again.model.gso, config.model.gso);
  apply_setting(again, "model.gso=identity");
  EXPECT_EQ(again.model.gso, graph::GsoKind::kIdentity);
  EXPECT_THAT([&] { apply_toml(config, "model.gso = [1, 2]", "my.toml"); },
              ThrowsMessage<Error>(HasSubstr("model.gso: expected text in quotes")));
  EXPECT_THAT([&] { apply_setting(config, "model.gso=random_walk,gcn"); },
              ThrowsMessage<Error>(HasSubstr("expected one of sym_normalized")));
  for (const char* setting : {"model.kind=gcn", "model.channels=2"}) {
    Config other = config;
    apply_setting(other, setting);
    EXPECT_THAT([&] { check(other); }, ThrowsMessage<Error>(HasSubstr("model.gso: expected")));
  }
}

TEST(Config, Bf16IsForModelsThatHaveIt) {
  Config config;
  apply_setting(config, "train.precision=bf16");
  EXPECT_NO_THROW(check(config));
  for (const char* setting : {"model.kind=gcn", "model.plan=reference"}) {
    Config other = config;
    apply_setting(other, setting);
    EXPECT_THAT([&] { check(other); },
                ThrowsMessage<Error>(HasSubstr("train.precision: expected float32 with model.")));
  }
  EXPECT_THAT([&] { apply_setting(config, "train.precision=fp16"); },
              ThrowsMessage<Error>(HasSubstr("expected one of float32, bf16, got 'fp16'")));
}

TEST(Config, EveryRegisteredDatasetHasAValidPresetOrGoesByRules) {
  for (const data::DatasetInfo& info : data::registry()) {
    const char* own = preset(info.name);
    const char* text = own != nullptr ? own : preset(info.family);
    EXPECT_EQ(preset_config(info.name).by_rules, text == nullptr) << info.name;
    if (text == nullptr) continue;
    Config config;
    apply_toml(config, text, info.name);
    EXPECT_NO_THROW(check(config)) << info.name;
  }
  EXPECT_EQ(preset("no such dataset"), nullptr);
}

}  // namespace
}  // namespace mpssm::train
