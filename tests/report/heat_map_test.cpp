// SPDX-License-Identifier: MIT
// The picture read back: which colour each cell has.
#include "mpssm/report/heat_map.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
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

using ::testing::AllOf;
using ::testing::Contains;
using testing::corners;
using testing::Element;
using testing::expect_inside;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::kInfinity;
using testing::kNan;
using ::testing::Not;
using testing::parse;
using testing::Places;
using ::testing::StrEq;
using testing::texts;
using ::testing::ThrowsMessage;

std::vector<Element> draw_map(const HeatMap& map) {
  std::vector<Element> elements = parse(heat_map_svg(map));
  expect_inside(elements);
  return elements;
}

// The colour of each cell: a background and runs in the only scaled group.
std::vector<std::string> cells(const std::vector<Element>& elements, std::size_t columns) {
  std::vector<std::string> out;
  for (const Element& element : elements) {
    if (element.group.find("scale(") == std::string::npos) continue;
    if (element.name == "rect") {
      EXPECT_EQ(element.at("width"), static_cast<double>(columns));
      out.assign(static_cast<std::size_t>(element.at("height")) * columns, element.get("fill"));
      continue;
    }
    for (const Places& run : corners(element.get("d"))) {
      for (double x = run[0].first; x < run[1].first; ++x) {
        out.at(static_cast<std::size_t>(run[0].second * static_cast<double>(columns) + x)) =
            element.get("stroke");
      }
    }
  }
  return out;
}

std::vector<std::string> cells(const std::vector<double>& values, std::int64_t columns, bool log) {
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  const HeatMap map{"title", "row", "column", "value", rows, columns, values, log};
  return cells(draw_map(map), static_cast<std::size_t>(columns));
}

int darkness(const std::string& colour) {
  int sum = 0;
  for (int i = 1; i < 7; i += 2) sum += 255 - std::stoi(colour.substr(i, 2), nullptr, 16);
  return sum;
}

std::vector<double> random_values(std::size_t size) {
  std::mt19937 generator(static_cast<unsigned>(size));
  std::vector<double> out(size);
  for (double& value : out) value = static_cast<double>(generator() % 1000) - 200.0;
  return out;
}

TEST(HeatMap, LargerValuesAreDarker) {
  const std::vector<double> values = random_values(30 * 40);
  const std::vector<std::string> colours = cells(values, 40, false);
  ASSERT_EQ(colours.size(), values.size());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    EXPECT_LE(darkness(colours[order[i - 1]]), darkness(colours[order[i]]));
  }
  EXPECT_GT(std::set<std::string>(colours.begin(), colours.end()).size(), 40u);
}

TEST(HeatMap, LogScaleFollowsTheExponent) {
  std::vector<double> values, exponents;
  for (int i = 0; i <= 50; ++i) {
    exponents.push_back(-3.0 * i);
    values.push_back(std::pow(10.0, -3.0 * i));
  }
  EXPECT_EQ(cells(values, 17, true), cells(exponents, 17, false));
  EXPECT_NE(cells(values, 17, true), cells(values, 17, false));
}

TEST(HeatMap, ScaleAndShiftOfTheValuesDoNotMatter) {
  const std::vector<double> values = random_values(99);
  std::vector<double> other = values;
  for (double& value : other) value = 1024.0 * value - 4096.0;
  EXPECT_EQ(cells(other, 11, false), cells(values, 11, false));
}

TEST(HeatMap, AveragesLargeMatrices) {
  // Sizes that 128 does not divide, and the bins by definition.
  for (const auto& [rows, columns] : {std::pair{300, 129}, {128, 1000}, {256, 5}, {3, 400}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const std::vector<double> values = random_values(static_cast<std::size_t>(rows) * columns);
    const int bin_rows = std::min(rows, 128);
    const int bin_columns = std::min(columns, 128);
    std::vector<double> sum(bin_rows * bin_columns, 0.0), count(sum), row_size(bin_rows, 0.0);
    for (int i = 0; i < rows; ++i) {
      // The last bin that does not start after the row.
      const int bin_i = ((i + 1) * bin_rows - 1) / rows;
      row_size[bin_i] += 1;
      for (int j = 0; j < columns; ++j) {
        const int bin = bin_i * bin_columns + ((j + 1) * bin_columns - 1) / columns;
        sum[bin] += values[i * columns + j];
        count[bin] += 1;
      }
    }
    const auto [least, most] = std::minmax_element(row_size.begin(), row_size.end());
    EXPECT_LE(*most - *least, 1.0);
    for (std::size_t bin = 0; bin < sum.size(); ++bin) sum[bin] /= count[bin];
    const HeatMap map{"", "", "", "", rows, columns, values, false};
    const std::vector<std::string> got = cells(draw_map(map), bin_columns);
    const std::vector<std::string> want = cells(sum, bin_columns, false);
    int different = 0;  // rounding at the border of two colours
    for (std::size_t bin = 0; bin < sum.size(); ++bin) different += got[bin] != want[bin] ? 1 : 0;
    EXPECT_LE(different, static_cast<int>(sum.size() / 1000));
  }
}

TEST(HeatMap, SaysThatItAverages) {
  const auto texts_of = [](std::int64_t rows, std::int64_t columns) {
    const std::vector<double> values(static_cast<std::size_t>(rows * columns), 1.0);
    return texts(draw_map({"title", "row", "column", "value", rows, columns, values}), "text");
  };
  EXPECT_THAT(texts_of(kMaxHeatMapBins, 5), Not(Contains(HasSubstr("mean"))));
  EXPECT_THAT(texts_of(2 * kMaxHeatMapBins, 5),
              Contains(StrEq("a cell is the mean of 2 x 1 entries")));
  EXPECT_THAT(texts_of(3 * kMaxHeatMapBins + 7, 2 * kMaxHeatMapBins + 1),
              Contains(StrEq("a cell is the mean of 3-4 x 2-3 entries")));
}

TEST(HeatMap, LongTitlesAreBrokenNotCut) {
  const std::string title =
      "rainfall-stations-of-the-north-and-the-south: what the station on Grosser-Feldberg hears in "
      "100 hops (the 400 nearest nodes)";
  const std::vector<double> values(4, 1.0);
  std::string joined;
  for (const std::string& line :
       texts(draw_map({title, "row", "column", "value", 2, 2, values}), "text")) {
    if (title.find(line) != std::string::npos) joined += (joined.empty() ? "" : " ") + line;
    if (joined == title) break;
  }
  EXPECT_EQ(joined, title);
}

TEST(HeatMap, OneValueThatIsNotFiniteSpoilsItsBin) {
  std::vector<double> values(256 * 256, 1.0);
  values[3 * 256 + 255] = kNan;
  const HeatMap map{"", "", "", "", 256, 256, values, false};
  const std::vector<std::string> got = cells(draw_map(map), 128);
  EXPECT_EQ(std::count(got.begin(), got.end(), got[0]), 128 * 128 - 1);
  EXPECT_NE(got[128 + 127], got[0]);
}

TEST(HeatMap, NamesTheColoursOfSpecialValues) {
  const auto draw_row = [](const std::vector<double>& values, bool log) {
    return draw_map({"", "", "", "", 1, static_cast<std::int64_t>(values.size()), values, log});
  };
  const std::vector<double> all = {0.0, -1.0, kNan, kInfinity, -kInfinity, 1.0, 2.0, 1e-3};
  const std::vector<std::string> got = cells(draw_row(all, true), all.size());
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(got[2], got[3]);
  EXPECT_EQ(got[2], got[4]);
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), 5u);
  EXPECT_THAT(texts(draw_row(all, true)), IsSupersetOf({"zero or less", "not finite"}));
  EXPECT_THAT(texts(draw_row({0.0, 1.0}, true)),
              AllOf(Contains("zero"), Not(Contains("not finite"))));
  EXPECT_THAT(texts(draw_row({-1.0, 1.0}, true)), Contains("less than zero"));
  EXPECT_THAT(texts(draw_row({0.0, -1.0}, false)), Not(Contains(HasSubstr("zero"))));
  EXPECT_THAT(texts(draw_row({kNan, -1.0}, false)), Contains("not finite"));
  // A swatch of the legend has the colour of the cells.
  int swatches = 0;
  for (const Element& element : draw_row(all, true)) {
    swatches += element.group.empty() && element.get("fill") == got[0] ? 1 : 0;
  }
  EXPECT_EQ(swatches, 1);
}

TEST(HeatMap, TheBarIsTheScale) {
  // The bar is a group of its own, its ticks stand between its ends in the order of the values.
  const std::vector<double> values = {0.0, 10.0};
  const std::vector<Element> elements = draw_map({"", "", "", "", 1, 2, values, false});
  std::vector<std::pair<double, double>> ticks;  // y, value
  for (const Element& element : elements) {
    if (element.name == "text" && element.get("text-anchor").empty() && !element.text.empty()) {
      ticks.emplace_back(element.at("y"), std::stod(element.text));
    }
  }
  ASSERT_GE(ticks.size(), 4u);
  EXPECT_EQ(ticks.front().second, 0.0);
  EXPECT_EQ(ticks.back().second, 10.0);
  for (const auto& [y, value] : ticks) {
    EXPECT_NEAR(y, ticks.front().first + value / 10 * (ticks.back().first - ticks.front().first),
                0.1);
  }
}

TEST(HeatMap, DrawsAwkwardMatrices) {
  const double huge = std::numeric_limits<double>::max();
  for (const bool log : {false, true}) {
    for (const std::vector<double>& values : {std::vector<double>{0.0},
                                              {kNan},
                                              {5.0},
                                              {5.0, 5.0},
                                              {-huge, huge},
                                              {5e-324, 0.0},
                                              {1.0, 1.0 + 1e-15},
                                              {kInfinity, kNan, -1.0},
                                              std::vector<double>(5000, huge)}) {
      cells(values, 1, log);
      cells(values, static_cast<std::int64_t>(std::min<std::size_t>(values.size(), 100)), log);
    }
  }
}

TEST(HeatMap, IsCompact) {
  const std::vector<double> calm(128 * 128, 1.0);
  EXPECT_LT(heat_map_svg({"", "", "", "", 128, 128, calm, false}).size(), 10'000u);
  EXPECT_LT(heat_map_svg({"", "", "", "", 500, 500, random_values(250'000), false}).size(),
            250'000u);
}

TEST(HeatMap, EscapesHostileText) {
  const std::string hostile = "</text><script>\x02 & \"\xff";
  const std::vector<double> values = {1.0};
  const HeatMap map{hostile, hostile, hostile, hostile, 1, 1, values, false};
  draw_map(map);
  const std::string svg = heat_map_svg(map);
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;  &amp; &quot; "));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\xff"))));
}

TEST(HeatMap, RefusesWrongSizes) {
  const std::vector<double> values(6, 1.0);
  EXPECT_THAT(
      [&] {
        heat_map_svg({"", "", "", "", 2, 4, values, false});
      },
      ThrowsMessage<std::invalid_argument>(StrEq("heat_map_svg: expected 2 x 4 values, got 6")));
  EXPECT_THAT([] { heat_map_svg({}); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("heat_map_svg: expected a matrix of at least one entry, got 0 x 0")));
  constexpr std::int64_t kBig = std::int64_t{1} << 62;
  EXPECT_THROW(heat_map_svg({"", "", "", "", kBig, 4, {}, false}), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::report
