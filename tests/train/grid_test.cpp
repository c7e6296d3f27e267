// SPDX-License-Identifier: MIT
#include "mpssm/train/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/train/config.h"

#include "tests/support/scratch.h"

namespace mpssm::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Grid, ListsAreSearchedAndTheRestIsSet) {
  const Grid grid = grid_from_toml(
      "seed = 3\n[model]\nhops = [1, 2]\nkind = \"gcn\"\n[train]\nlr = [1e-3, 0.5]\n", "my.toml");
  EXPECT_THAT(grid.settings, ElementsAre("model.kind=gcn", "seed=3"));
  EXPECT_THAT(grid.axes, ElementsAre("model.hops=1,2", "train.lr=0.001,0.5"));
}

TEST(Grid, RefusesWhatIsNoGrid) {
  const auto expect_refused = [](const char* text, const char* what) {
    EXPECT_THAT([&] { grid_from_toml(text, "my.toml"); },
                ThrowsMessage<base::Error>(HasSubstr(what)));
  };
  expect_refused("[model]\nhops = []\n", "my.toml: model.hops: expected a list of values");
  expect_refused("[model]\nkind = [\"a,b\"]\n", "without comma");
  expect_refused("[model]\nhops = [[1]]\n", "model.hops");
  expect_refused("[model\n", "my.toml:1");
  EXPECT_THAT([] { read_grid("no-such-grid"); },
              ThrowsMessage<base::Error>(HasSubstr("gpp, lrgb, hetero, temporal")));
}

TEST(Grid, ComesFromAFileOrByNameAndLeavesWhatIsSet) {
  const mpssm::testing::Scratch scratch;
  const std::string file = scratch.folder() / "my.toml";
  io::write_file(file, "[model]\nhops = [1, 2]\nblocks = [1, 2]\nstate = \"dense\"\n");
  Config base;
  apply_setting(base, "model.blocks=5");
  EXPECT_THAT(with_grids({file, "train.lr=1e-3,1e-2"}, base),
              ElementsAre("model.hops=1,2", "train.lr=1e-3,1e-2"));
  EXPECT_EQ(base.model.state, nn::StateKind::kDense);
  EXPECT_EQ(base.model.blocks, 5);
  apply_setting(base, "model.hops=5");
  EXPECT_THAT([&] { with_grids({file}, base); },
              ThrowsMessage<base::Error>(HasSubstr("nothing to search")));
}

}  // namespace
}  // namespace mpssm::train
