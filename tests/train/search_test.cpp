// SPDX-License-Identifier: MIT
#include "mpssm/train/search.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

namespace mpssm::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Search, GridHasEveryCombination) {
  EXPECT_THAT(search_points({"a=1,2", "b=x"}, 0),
              ElementsAre(ElementsAre("a=1", "b=x"), ElementsAre("a=2", "b=x")));
  EXPECT_EQ(search_points({"a=1,2,3", "b=1,2", "c=1,2"}, 0).size(), 12U);
}

TEST(Search, RandomPointsDifferAndStayTheSame) {
  const auto points = search_points({"a=1,2,3", "b=1,2,3"}, 5);
  EXPECT_EQ(points.size(), 5U);
  EXPECT_EQ(std::set(points.begin(), points.end()).size(), 5U);
  EXPECT_EQ(points, search_points({"a=1,2,3", "b=1,2,3"}, 5));
  EXPECT_EQ(search_points({"a=1,2"}, 5).size(), 2U);
}

TEST(Search, RefusesWhatIsNoGrid) {
  const auto expect_refused = [](const std::vector<std::string>& axes, const std::string& what) {
    EXPECT_THAT([&] { search_points(axes, 0); }, ThrowsMessage<base::Error>(HasSubstr(what)));
  };
  expect_refused({"a"}, "KEY=A,B,C");
  expect_refused({"a=1,,2"}, "empty value");
  expect_refused({"a="}, "empty value");
  expect_refused({"a=1", "a=2"}, "given twice");
}

TEST(Search, FoldersOfDifferentPointsDiffer) {
  EXPECT_EQ(folder_name({"model.blocks=2", "seed=1"}), "blocks=2,seed=1");
  const std::string same(200, 'x');
  EXPECT_NE(folder_name({"a=" + same + "1"}), folder_name({"a=" + same + "2"}));
  EXPECT_EQ(folder_name({"data.name=a/b"}).find('/'), std::string::npos);
}

}  // namespace
}  // namespace mpssm::train
