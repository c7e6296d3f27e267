// SPDX-License-Identifier: MIT
// The line of a training: fits every width, colours only where they are asked for.
#include "mpssm/report/progress_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/utf8.h"

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t visible(const std::string& line) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = line.find('m', i);
    } else {
      count += base::starts_character(line[i]) ? 1 : 0;
    }
  }
  return count;
}

ProgressText half_way() {
  ProgressText progress{.step = 120,
                        .num_steps = 300,
                        .loss = 0.312,
                        .metric = "ROC AUC",
                        .best = 0.95,
                        .seconds = 12.0,
                        .seconds_left = 75.0};
  for (int k = 0; k < 30; ++k) progress.values.push_back(0.5 + 0.015 * k);
  progress.values.push_back(0.94);
  return progress;
}

TEST(ProgressText, FitsEveryWidthAndKeepsWhatMattersMost) {
  for (std::size_t width = 1; width <= 200; ++width) {
    for (const bool colours : {false, true}) {
      const std::string line =
          progress_text(half_way(), {.width = width, .colours = colours, .blocks = true});
      EXPECT_LT(visible(line), std::max<std::size_t>(width, 2)) << width;
      EXPECT_TRUE(base::is_utf8(line));
      EXPECT_EQ(line.find("step 120/300") != line.npos, width > 12) << width;
      EXPECT_EQ(line.find("val ROC AUC 0.9400") != line.npos, width > 32) << width;
    }
  }
  const std::string wide = progress_text(half_way(), {.width = 160});
  for (const char* part : {"loss 0.3120", "best 0.9500", "12 s, 1 min 15 s left", "\u2588"}) {
    EXPECT_THAT(wide, HasSubstr(part));
  }
}

TEST(ProgressText, InALogIsPlainAndWhole) {
  const std::string line = progress_text(half_way(), {.width = 0, .blocks = false});
  EXPECT_EQ(line,
            "step 120/300  loss 0.3120  val ROC AUC 0.9400  best 0.9500  12 s, 1 min 15 s left");
  ProgressText first{.step = 1, .num_steps = 1, .loss = 2.0, .seconds = 0.5};
  EXPECT_EQ(progress_text(first, {.width = 0}), "step 1/1  loss 2.0000  0.5 s");
}

TEST(ProgressText, ColoursOnlyWhereAskedFor) {
  EXPECT_THAT(progress_text(half_way(), {.width = 120, .colours = true}), HasSubstr("\033["));
  EXPECT_THAT(progress_text(half_way(), {.width = 120, .colours = false}), Not(HasSubstr("\033")));
  ::setenv("TERM", "xterm", 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(terminal_style(80).colours);
  EXPECT_TRUE(terminal_style(80).blocks);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminal_style(80).colours);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  ::setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(terminal_style(80).colours);
  EXPECT_FALSE(terminal_style(80).blocks);
}

TEST(Sparkline, RisesWithItsValues) {
  const double values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(values, 8, false), "_.:-=+*#");
  EXPECT_EQ(sparkline(values, 8, true), "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
  EXPECT_EQ(sparkline(values, 4, false), ".-+#");  // the last of each stretch
  const double gap[] = {1, NAN, 3};
  EXPECT_EQ(sparkline(gap, 10, false), "_ #");
  const double one[] = {1, NAN};
  EXPECT_EQ(sparkline(one, 10, false), "");
}

}  // namespace
}  // namespace mpssm::report
