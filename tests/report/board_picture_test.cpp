// SPDX-License-Identifier: MIT
// The picture read back: which colour each cell has.
#include "mpssm/report/board_picture.h"

#include <cstdint>
#include <limits>
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
using testing::corners;
using testing::Element;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::parse;
using testing::Places;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

struct Board {
  std::int64_t rows;
  std::int64_t columns;
  std::vector<std::int8_t> shown;
  std::vector<std::uint8_t> mine;
  std::vector<float> probability;
  std::string svg(const std::string& title = "a board") const {
    return board_svg({rows, columns, shown, mine, probability, title});
  }
};

Board random_board(std::int64_t rows, std::int64_t columns) {
  Board board{rows, columns, {}, {}, {}};
  std::mt19937 generator(static_cast<unsigned>(rows * 1000 + columns));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    board.shown.push_back(static_cast<std::int8_t>(static_cast<int>(generator() % 10) - 1));
    board.mine.push_back(generator() % 5 == 0 ? 1 : 0);
    board.probability.push_back(std::uniform_real_distribution<float>(0, 1)(generator));
  }
  return board;
}

using Cells = std::vector<std::string>;  // the colour of each

// A panel is a group that is scaled to cells: a background and one path of runs per colour.
std::vector<Cells> read_panels(const std::string& svg, const Board& board) {
  std::vector<Cells> panels;
  for (const Element& element : parse(svg)) {
    if (element.group.find("scale(") == std::string::npos) continue;
    if (element.name == "rect") {
      panels.emplace_back(board.rows * board.columns, element.get("fill"));
    }
    if (element.name != "path" || element.get("stroke") == "#fff") continue;
    for (const Places& run : corners(element.get("d"))) {
      const auto row = static_cast<std::int64_t>(run.at(0).second);
      const auto end = static_cast<std::int64_t>(run.at(1).first);
      for (auto column = static_cast<std::int64_t>(run[0].first); column < end; ++column) {
        panels.back().at(row * board.columns + column) = element.get("stroke");
      }
    }
  }
  return panels;
}

std::int64_t count(const std::string& text, const std::string& what) {
  std::int64_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

// Cells of one kind have one colour, and cells of two kinds have two.
template <typename Kind>
void expect_colours_tell(const Cells& cells, const Kind& kind) {
  std::set<std::pair<int, std::string>> pairs;
  std::set<int> kinds;
  std::set<std::string> colours;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    pairs.emplace(kind(i), cells[i]);
    kinds.insert(kind(i));
    colours.insert(cells[i]);
  }
  EXPECT_EQ(pairs.size(), kinds.size());
  EXPECT_EQ(pairs.size(), colours.size());
}

TEST(BoardPicture, ColoursTellTheKindOfEveryCell) {
  for (const auto& [rows, columns] :
       {std::pair{100, 100}, {10, 14}, {14, 10}, {1, 1}, {1, 300}, {700, 2}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Board board = random_board(rows, columns);
    const std::vector<Cells> panels = read_panels(board.svg(), board);
    ASSERT_EQ(panels.size(), 3u);
    expect_colours_tell(panels[0], [&](std::size_t i) { return board.shown[i]; });
    expect_colours_tell(panels[1], [&](std::size_t i) { return board.mine[i]; });
    expect_colours_tell(
        panels[2], [&](std::size_t i) { return static_cast<int>(board.probability[i] * 10.0f); });
  }
}

TEST(BoardPicture, HasOneColourForEachTenth) {
  Board board = random_board(2, 6);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  board.probability = {0.0f, 0.05f, -3.0f, 0.95f, 1.0f, 9.0f, 0.5f, 0.59f, 0.62f, nan, nan, 0.3f};
  const Cells cells = read_panels(board.svg(), board).at(2);
  EXPECT_EQ(cells[1], cells[0]);
  EXPECT_EQ(cells[2], cells[0]);
  EXPECT_EQ(cells[4], cells[3]);
  EXPECT_EQ(cells[5], cells[3]);
  EXPECT_EQ(cells[7], cells[6]);
  EXPECT_NE(cells[8], cells[7]);
  EXPECT_EQ(std::set<std::string>(cells.begin(), cells.end()).size(), 6u);
}

TEST(BoardPicture, TakesEveryByteForANumber) {
  Board board = random_board(2, 2);
  board.shown = {127, 8, -128, -1};
  board.mine = {0, 1, 255, 0};
  const std::vector<Cells> panels = read_panels(board.svg(), board);
  EXPECT_EQ(panels[0][0], panels[0][1]);
  EXPECT_EQ(panels[0][2], panels[0][3]);
  EXPECT_EQ(panels[1][1], panels[1][2]);
}

TEST(BoardPicture, IsWellFormed) {
  for (const auto& [rows, columns] : {std::pair{100, 100}, {10, 14}}) {
    const std::vector<Element> elements = parse(random_board(rows, columns).svg("a < b & \"c\""));
    EXPECT_GT(elements.size(), 10u);
  }
}

TEST(BoardPicture, EscapesTheTitle) {
  const std::string svg = random_board(3, 3).svg("</text><script>\x01 A & \"B\"");
  EXPECT_THAT(svg, HasSubstr(">&lt;/text&gt;&lt;script&gt;  A &amp; &quot;B&quot;<"));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\x01"))));
}

TEST(BoardPicture, ShowsDigitsOnlyInLargeCells) {
  Board small = random_board(10, 14);
  small.shown.assign(small.shown.size(), -1);
  const std::int64_t without = count(small.svg(), "<text");
  small.shown[0] = 3;
  small.shown[1] = 5;
  small.shown[2] = 0;
  EXPECT_EQ(count(small.svg(), "<text"), without + 2);
  EXPECT_EQ(count(random_board(100, 100).svg(), "<text"), without);
}

TEST(BoardPicture, IsCompact) {
  const std::string svg = random_board(100, 100).svg();  // noise: hardly a run of two
  EXPECT_LT(svg.size(), 3u * 100 * 100 * 9);
  EXPECT_LE(count(svg, "<path"), 9 + 1 + 9);
  Board calm = random_board(100, 100);
  calm.shown.assign(10000, -1);
  calm.mine.assign(10000, 0);
  calm.probability.assign(10000, 0.5f);
  EXPECT_LT(calm.svg().size(), 6000u);
}

TEST(BoardPicture, RefusesWrongSizes) {
  Board board = random_board(2, 3);
  board.mine.pop_back();
  EXPECT_THAT([&] { board.svg(); }, ThrowsMessage<std::invalid_argument>(
                                        StrEq("board_svg: expected mine of size 6, got 5")));
  EXPECT_THAT([] { board_svg({}); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("board_svg: expected a board of at least one cell, got 0 x 0")));
}

}  // namespace
}  // namespace mpssm::report
