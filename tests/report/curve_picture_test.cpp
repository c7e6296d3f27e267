// SPDX-License-Identifier: MIT
// The picture read back: where the lines, areas and labels are.
#include "mpssm/report/curve_picture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/svg_reader.h"

namespace mpssm::report {
namespace {

using ::testing::Contains;
using testing::corners;
using testing::Element;
using testing::expect_inside;
using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNan;
using ::testing::Not;
using testing::parse;
using testing::Places;
using ::testing::StrEq;
using testing::texts;
using ::testing::ThrowsMessage;

std::vector<Element> draw_curve(const CurvePicture& picture) {
  std::vector<Element> elements = parse(curve_svg(picture));
  expect_inside(elements);
  return elements;
}

// The first and the second colour.
constexpr const char* kFirst = "#0072b2";
constexpr const char* kSecond = "#d55e00";

// The lines of a colour, dots as lines of two equal points; what is in the legend has a transform.
std::vector<Places> lines(const std::vector<Element>& elements, const std::string& colour,
                          const char* attribute = "stroke") {
  std::vector<Places> out;
  for (const Element& element : elements) {
    if (element.name != "path" || !element.group.empty()) continue;
    if (element.get(attribute) != colour) continue;
    for (Places& line : corners(element.get("d"))) out.push_back(std::move(line));
  }
  return out;
}

CurvePicture picture_of(std::vector<double> x, std::vector<double> y) {
  return {"title", "x", "y", {{"a", std::move(x), std::move(y)}}};
}

TEST(CurvePicture, MonotoneDataGivesMonotonePixels) {
  for (const bool log_x : {false, true}) {
    for (const bool log_y : {false, true}) {
      CurvePicture picture = picture_of({1e-3, 0.5, 3, 40, 500}, {1e-12, 1e-9, 0.1, 3, 700});
      picture.log_x = log_x;
      picture.log_y = log_y;
      const std::vector<Places> drawn = lines(draw_curve(picture), kFirst);
      ASSERT_EQ(drawn.size(), 1u);
      ASSERT_EQ(drawn[0].size(), 5u);
      for (int i = 1; i < 5; ++i) {
        EXPECT_GE(drawn[0][i].first, drawn[0][i - 1].first);
        EXPECT_LE(drawn[0][i].second, drawn[0][i - 1].second);
      }
      EXPECT_GT(drawn[0][4].first, drawn[0][0].first + 500);
      EXPECT_LT(drawn[0][4].second, drawn[0][0].second - 300);
    }
  }
}

TEST(CurvePicture, EqualStepsOfTheAxisAreEqualInPixels) {
  CurvePicture picture = picture_of({0, 1, 2, 3}, {1, 10, 100, 1000});
  picture.log_y = true;
  const Places line = lines(draw_curve(picture), kFirst).at(0);
  for (int i = 1; i < 4; ++i) {
    EXPECT_NEAR(line[i].first - line[i - 1].first, (line[3].first - line[0].first) / 3, 0.2);
    EXPECT_NEAR(line[i].second - line[i - 1].second, (line[3].second - line[0].second) / 3, 0.2);
  }
}

// Which point of the plot a tick label stands at, against the axis through two points of the curve.
TEST(CurvePicture, TicksStandAtTheirValues) {
  const std::vector<Element> elements = draw_curve(picture_of({0, 10}, {-3, 4}));
  const Places line = lines(elements, kFirst).at(0);
  int found = 0;
  for (const Element& element : elements) {
    if (element.name != "text" || element.get("text-anchor") != "end") continue;
    const bool is_negative = element.text.starts_with("\u2212");
    const double value = is_negative ? -std::stod(element.text.substr(3)) : std::stod(element.text);
    const double y = line[0].second + (value + 3) / 7 * (line[1].second - line[0].second);
    EXPECT_NEAR(element.at("y") - 5, y, 0.2) << element.text;  // the base line is below the middle
    ++found;
  }
  EXPECT_GE(found, 4);
  EXPECT_LE(found, 10);
}

TEST(CurvePicture, LabelsPowersOfTenWithASuperscript) {
  CurvePicture picture = picture_of({0, 1}, {1e-30, 1});
  picture.log_y = true;
  const std::string svg = curve_svg(picture);
  EXPECT_THAT(svg, HasSubstr(">10<tspan dy=\"-.45em\" font-size=\".75em\">\u221210</tspan>"));
  EXPECT_THAT(texts(draw_curve(picture)), Contains("1"));
  EXPECT_THAT(curve_svg(picture_of({0, 1}, {0, 5e9})), HasSubstr(">4\u00d710<tspan"));
}

TEST(CurvePicture, HasAFewTicksOnEveryAxis) {
  for (const double low : {-1e300, -7.3, 0.0, 1e-320, 1e-9, 0.3, 99999.5, 1e12}) {
    for (const double length : {1e-12, 1e-4, 0.5, 7.0, 1e5, 1e300, 1.7e308}) {
      for (const bool log : {false, true}) {
        SCOPED_TRACE(std::to_string(low) + " + " + std::to_string(length));
        CurvePicture picture = picture_of({low, low + length}, {low, low + length});
        picture.log_x = picture.log_y = log;
        const std::vector<std::string> labels = texts(draw_curve(picture));
        EXPECT_GE(labels.size(), 4u + 2 + 2);  // title, axis labels, legend, two ticks an axis
        EXPECT_LE(labels.size(), 4u + 2 * 14);
      }
    }
  }
}

TEST(CurvePicture, GapsAreGaps) {
  CurvePicture picture = picture_of({0, 1, 2, 3, 4, 5, 6, 7, 8, kNan},
                                    {5, 4, kNan, 3, kInfinity, 2, 1, -kInfinity, 1, 1});
  std::vector<Places> drawn = lines(draw_curve(picture), kFirst);
  std::multiset<std::size_t> sizes;
  for (const Places& line : drawn) sizes.insert(line.size());
  EXPECT_EQ(sizes, (std::multiset<std::size_t>{2, 2, 2, 2}));  // two lines, two dots
  int dots = 0;
  for (const Places& line : drawn) dots += line[0] == line[1] ? 1 : 0;
  EXPECT_EQ(dots, 2);
}

TEST(CurvePicture, ValuesWithoutALogarithmAreGaps) {
  CurvePicture picture = picture_of({1, 2, 3, 4, 5}, {1, 0.1, 0, 0.01, 0.001});
  EXPECT_EQ(lines(draw_curve(picture), kFirst).size(), 1u);
  picture.log_y = true;
  EXPECT_EQ(lines(draw_curve(picture), kFirst).size(), 2u);
  picture.curves[0].x[4] = -5;
  picture.log_x = true;
  const std::vector<Places> drawn = lines(draw_curve(picture), kFirst);
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_EQ(drawn[1][0], drawn[1][1]);
}

// The other half of a gap must not stretch the axis.
TEST(CurvePicture, GapsDoNotCountForTheAxes) {
  const Places line = lines(draw_curve(picture_of({0, 1, 2}, {0, 1, 2})), kFirst).at(0);
  const std::vector<double> x = {0, 1, 2, kNan, 1e9};
  const std::vector<double> y = {0, 1, 2, 1e9, kNan};
  EXPECT_EQ(lines(draw_curve(picture_of(x, y)), kFirst).at(0), line);
}

TEST(CurvePicture, DrawsAlmostNothing) {
  for (const bool log : {false, true}) {
    for (const auto& [x, y] :
         std::vector<std::pair<std::vector<double>, std::vector<double>>>{{{}, {}},
                                                                          {{3}, {4}},
                                                                          {{3, 3}, {4, 4}},
                                                                          {{kNan}, {1}},
                                                                          {{-1}, {0}},
                                                                          {{0, 1}, {7, 7}}}) {
      CurvePicture picture = picture_of(x, y);
      picture.log_x = picture.log_y = log;
      picture.curves[0].markers = true;
      picture.bands = {{"b", x, y, y}};
      draw_curve(picture);
    }
  }
  draw_curve({});
  const Places dot = lines(draw_curve(picture_of({3}, {4})), kFirst).at(0);
  EXPECT_EQ(dot[0], dot[1]);
}

TEST(CurvePicture, SaysThatThereIsNothingToDraw) {
  CurvePicture picture{"title", "x", "y", {{"a", {1, 2, 3}, {0, 0, 0}}}};
  EXPECT_THAT(texts(draw_curve(picture), "text"), Not(Contains(HasSubstr("nothing to draw"))));
  picture.log_y = true;
  EXPECT_THAT(texts(draw_curve(picture), "text"),
              Contains(StrEq("nothing to draw: no value is above 0")));
  picture.curves[0].y[1] = 1e-9;
  EXPECT_THAT(texts(draw_curve(picture), "text"), Not(Contains(HasSubstr("nothing to draw"))));
}

TEST(CurvePicture, BandsReachFromEdgeToEdge) {
  CurvePicture picture = picture_of({0, 1, 2}, {2, 3, 4});
  picture.bands = {{"a", {0, 1, 2}, {1, 2, 3}, {3, 4, 5}}, {"b", {0, 1}, {2, 2}, {3, 3}}};
  const std::vector<Element> elements = draw_curve(picture);
  const Places line = lines(elements, kFirst).at(0);
  const Places area = lines(elements, kFirst, "fill").at(0);  // the colour of the curve "a"
  ASSERT_EQ(area.size(), 6u);
  EXPECT_NEAR(area[0].second, line[1].second, 0.11);  // 3
  EXPECT_NEAR(area[1].second, line[2].second, 0.11);  // 4
  EXPECT_NEAR(area[3].second, line[1].second, 0.11);  // 3, on the way back
  EXPECT_NEAR(area[4].second, line[0].second, 0.11);  // 2
  EXPECT_EQ(lines(elements, kSecond, "fill").size(), 1u);
  const std::vector<std::string> names = texts(elements);
  EXPECT_EQ(std::count(names.begin(), names.end(), "a"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "b"), 1);
}

TEST(CurvePicture, BandsWithoutALowerLogarithmReachTheBottom) {
  CurvePicture picture = picture_of({0, 4}, {1, 1});
  picture.log_y = true;
  picture.bands = {{"a", {0, 1, 2, 3, 4}, {0.1, 0, -5, kNan, 0.1}, {10, 10, 10, 10, -1}}};
  const std::vector<Places> areas = lines(draw_curve(picture), kFirst, "fill");
  ASSERT_EQ(areas.size(), 1u);  // NaN is a gap, and so is an upper edge below the axis
  ASSERT_EQ(areas[0].size(), 6u);
  EXPECT_EQ(areas[0][3].second, areas[0][4].second);
  EXPECT_GT(areas[0][4].second, areas[0][5].second + 5);
}

TEST(CurvePicture, EscapesHostileText) {
  const std::string hostile = "</text><script>\x01 A & \"B\" \xff\xc3( \xed\xa0\x80";
  CurvePicture picture{
      hostile, hostile, hostile, {{hostile, {0}, {0}}}, {{hostile, {0}, {0}, {1}}}};
  const std::string svg = curve_svg(picture);
  EXPECT_THAT(svg, HasSubstr(">&lt;/text&gt;&lt;script&gt;  A &amp; &quot;B&quot;   (    <"));
  for (const char* never : {"<script", "\x01", "\xff", "\xc3(", "\xed"}) {
    EXPECT_THAT(svg, Not(HasSubstr(never)));
  }
  draw_curve(picture);
  EXPECT_THAT(curve_svg({"\u00e9 \u2192 \U0001f600", "", ""}),
              HasSubstr("\u00e9 \u2192 \U0001f600"));
  draw_curve({std::string(5000, 'x'), std::string(5000, 'y'), std::string(5000, 'z')});
  EXPECT_LT(texts(draw_curve({"", std::string(5000, 'y'), ""})).at(12).size(), 100u);
}

TEST(CurvePicture, StaysCompact) {
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<double>(generator() % 10000); };
  CurvePicture ordered{"", "", ""}, wild{"", "", ""}, torn{"", "", ""};
  for (int i = 0; i < 8; ++i) {
    const std::string name = "curve " + std::to_string(i);
    Curve sorted{name}, any{name}, gaps{name};
    for (int k = 0; k < 20000; ++k) {
      sorted.x.push_back(k);
      sorted.y.push_back(random());
      any.x.push_back(random());
      any.y.push_back(random());
      gaps.x.push_back(k);
      gaps.y.push_back(k % 3 == 0 ? kNan : random());
    }
    gaps.markers = true;
    ordered.curves.push_back(sorted);
    ordered.bands.push_back({name, sorted.x, any.x, any.y});
    wild.curves.push_back(any);
    torn.curves.push_back(gaps);
  }
  for (const CurvePicture& picture : {ordered, wild, torn}) {
    const std::string svg = curve_svg(picture);
    EXPECT_LT(svg.size(), 100'000u);
    draw_curve(picture);
  }
}

// Thinned or not, each column of pixels is covered from the same top to the same bottom.
TEST(CurvePicture, ThinningKeepsTheLook) {
  constexpr int kPoints = 50000;
  Curve curve{"a"};
  for (int i = 0; i < kPoints; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(std::sin(i * 2e-4) + (i % 7) * 0.1);
  }
  curve.y[30000] = 5.0;  // a single spike must survive
  const Places line = lines(draw_curve({"", "", "", {curve}}), kFirst).at(0);
  EXPECT_LT(line.size(), 7000u);
  const auto top = std::min_element(line.begin(), line.end(),
                                    [](auto a, auto b) { return a.second < b.second; });
  const double left = line.front().first;
  const double right = line.back().first;
  EXPECT_NEAR((top->first - left) / (right - left), 30000.0 / kPoints, 1e-3);
  const double bottom = std::max_element(line.begin(), line.end(), [](auto a, auto b) {
                          return a.second < b.second;
                        })->second;
  const double pixels = (bottom - top->second) / (5.0 + 1.0);  // a unit of y
  std::map<int, std::pair<double, double>> want, got;
  const auto cover = [](auto& columns, double x, double y) {
    auto& [low, high] = columns.try_emplace(static_cast<int>(x / 4), y, y).first->second;
    low = std::min(low, y);
    high = std::max(high, y);
  };
  for (int i = 0; i < kPoints; ++i) {
    cover(want, left + (right - left) * i / (kPoints - 1), bottom - pixels * (curve.y[i] + 1.0));
  }
  for (const auto& [x, y] : line) cover(got, x, y);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [column, range] : want) {
    EXPECT_NEAR(got[column].first, range.first, 2.5) << column;
    EXPECT_NEAR(got[column].second, range.second, 2.5) << column;
  }
}

TEST(CurvePicture, TellsCurvesApart) {
  CurvePicture picture{"", "", ""};
  for (int i = 0; i < 8; ++i) {
    picture.curves.push_back({"c" + std::to_string(i), {0, 1}, {0, 1.0 * i}});
  }
  picture.curves[1].style = LineStyle::kDashed;
  picture.curves[2].style = LineStyle::kDotted;
  std::set<std::string> colours, dashes;
  for (const Element& element : draw_curve(picture)) {
    if (element.name != "path") continue;
    colours.insert(element.get("stroke"));
    dashes.insert(element.get("stroke-dasharray"));
  }
  EXPECT_EQ(colours.size(), 8u);
  EXPECT_EQ(dashes.size(), 3u);
}

TEST(CurvePicture, TheLegendIsRightOfThePlot) {
  CurvePicture picture = picture_of({0, 1}, {0, 1});
  picture.curves.push_back({"", {0, 1}, {1, 0}});
  const std::vector<Element> elements = draw_curve(picture);
  const Places line = lines(elements, kFirst).at(0);
  int samples = 0;
  for (const Element& element : elements) {
    double left = 0;
    if (std::sscanf(element.group.c_str(), "translate(%lf", &left) != 1) continue;
    ++samples;
    for (const auto& [x, y] : line) EXPECT_GT(left, x);
  }
  EXPECT_EQ(samples, 1);  // a curve without a name is not there
}

TEST(CurvePicture, DrawsMarkersOnThePoints) {
  CurvePicture picture = picture_of({0, 1, 2}, {0, 1, 0});
  EXPECT_EQ(lines(draw_curve(picture), kFirst).size(), 1u);
  picture.curves[0].markers = true;
  const std::vector<Places> drawn = lines(draw_curve(picture), kFirst);
  ASSERT_EQ(drawn.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(drawn[i + 1][0], drawn[0][i]);
}

TEST(CurvePicture, RefusesWrongSizes) {
  EXPECT_THAT(
      [] {
        curve_svg(picture_of({1, 2}, {1}));
      },
      ThrowsMessage<std::invalid_argument>(
          StrEq("curve_svg: expected as many values as x (2) in \"a\", got 1")));
  EXPECT_THROW(curve_svg({"", "", "", {}, {{"b", {1}, {1}, {}}}}), std::invalid_argument);
  EXPECT_THROW(curve_svg({"", "", "", {}, {{"b", {1}, {}, {1}}}}), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::report
