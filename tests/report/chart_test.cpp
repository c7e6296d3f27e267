// SPDX-License-Identifier: MIT
#include "mpssm/report/chart.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/svg_reader.h"

namespace mpssm::report::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Chart, EscapesEveryWord) {
  const std::string html = chart_html({.title = "<b>&",
                                       .x_label = "<x>",
                                       .y_label = "<y>",
                                       .series = {{.name = "<s>", .x = {0, 1}, .y = {1, 2}}},
                                       .marked_x = 1.0,
                                       .marked_label = "<m>",
                                       .note = "<n>"});
  for (const char* bad : {"<b>", "<x>", "<y>", "<s>", "<m>", "<n>"}) {
    EXPECT_THAT(html, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(html,
              HasSubstr("aria-label=\"&lt;b&gt;&amp;: &lt;y&gt; over &lt;x&gt;. &lt;n&gt;\""));
}

TEST(Chart, LongLinesKeepTheirExtremes) {
  Series series{.name = "long"};
  for (int i = 0; i < 20000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 12345 ? 5.0 : 0.0);
  }
  const std::string html =
      chart_html({.title = "t", .series = {series}, .y_range = std::pair(0.0, 5.0)});
  EXPECT_LT(html.size(), 20000u);
  EXPECT_THAT(html, HasSubstr(" 12L"));  // the upper edge of the frame
}

TEST(Chart, GapsAreNotDrawnAndSinglePointsAreDots) {
  const std::string html = chart_html(
      {.title = "t",
       .series = {
           {.name = "s", .x = {0, 1, 2, 3, 4}, .y = {1, testing::kNan, 2, testing::kNan, 3}}}});
  EXPECT_EQ(occurrences(html, "h.01"), 3u);
  const std::string logarithmic =
      chart_html({.title = "t", .series = {{.x = {0, 1, 2}, .y = {1, 0, 100}}}, .log_y = true});
  EXPECT_EQ(occurrences(logarithmic, "h.01"), 2u);
}

TEST(Chart, OfNothingHasAFrame) {
  const std::string html = chart_html({.title = "nothing", .series = {{.name = "s"}}});
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace mpssm::report::page
