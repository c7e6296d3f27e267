// SPDX-License-Identifier: MIT
#include "mpssm/io/csv.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

#include "tests/support/scratch.h"

namespace mpssm::io {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using testing::message_of;
using testing::Scratch;

CsvTable parse(std::string_view text) {
  const Scratch scratch;
  return read_csv(scratch.put("t.csv", text));
}

std::string error_of(std::string_view text) {
  const std::string message = message_of([&] { parse(text); });
  return message.substr(message.find("t.csv"));
}

TEST(Csv, GivesHeaderAndCells) {
  const CsvTable table = parse("id,name\n1, a b \n2,\n");
  EXPECT_THAT(table.header, ElementsAre("id", "name"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "a b"), ElementsAre("2", "")));
  EXPECT_THAT(table.line, ElementsAre(2, 3));
  EXPECT_EQ(table.column("name"), 1u);
  EXPECT_EQ(table.column("other"), std::nullopt);
}

TEST(Csv, MayHaveNoRows) { EXPECT_THAT(parse("a,b").rows, IsEmpty()); }

TEST(Csv, TakesByteOrderMarkAndAnyLineEnd) {
  for (const char* text : {"\xEF\xBB\xBF"
                           "a,b\r\n1,2\r\n",
                           "a,b\r1,2", "a,b\n1,2\n\n  \n\r\n"}) {
    const CsvTable table = parse(text);
    EXPECT_THAT(table.header, ElementsAre("a", "b")) << text;
    EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2"))) << text;
  }
}

TEST(Csv, UnderstandsQuotes) {
  const CsvTable table =
      parse("a,b\n\" x, y \", \"say \"\"hi\"\"\" \n\"two\nlines\",5\" pipe\n\"\",2\n");
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre(" x, y ", "say \"hi\""),
                                      ElementsAre("two\nlines", "5\" pipe"), ElementsAre("", "2")));
  EXPECT_THAT(table.line, ElementsAre(2, 3, 5));
}

TEST(Csv, FindsItsSeparator) {
  EXPECT_THAT(parse("a;b\n1,5;2\n").rows, ElementsAre(ElementsAre("1,5", "2")));
  EXPECT_THAT(parse("a\tb\n \t2\n").rows, ElementsAre(ElementsAre("", "2")));
  EXPECT_THAT(parse("a;b,c\n1;2,3\n").header, ElementsAre("a;b", "c"));
  EXPECT_THAT(parse("\"a,b\";c\n1;2\n").header, ElementsAre("a,b", "c"));
  EXPECT_THAT(parse("a\n1;2\n").rows, ElementsAre(ElementsAre("1;2")));
}

TEST(Csv, NamesTheRaggedLine) {
  EXPECT_EQ(error_of("a,b\n1,2\n1\n"), "t.csv:3: expected 2 cells as in the header, got 1");
  EXPECT_EQ(error_of("a\n\"x\n\ny\"\n1,2,3\n"), "t.csv:5: expected 1 cell as in the header, got 3");
}

TEST(Csv, RefusesBlankLinesInside) {
  EXPECT_EQ(error_of("a,b\n1,2\n \n\n3,4\n"),
            "t.csv:3: expected 2 cells as in the header, got a blank line; remove it");
}

TEST(Csv, RefusesAFileWithoutHeader) {
  EXPECT_THAT(error_of(""), EndsWith("got an empty file"));
  EXPECT_THAT(error_of("\xEF\xBB\xBF"), EndsWith("got an empty file"));
  EXPECT_THAT(error_of("\n\n"), EndsWith("got a blank line"));
  EXPECT_THAT(error_of("\n1,2\n"), EndsWith("got a blank line"));
}

TEST(Csv, RefusesColumnsWithoutNameOfTheirOwn) {
  EXPECT_EQ(error_of("a,,b\n"), "t.csv:1: expected a name for each column, got none for column 2");
  EXPECT_EQ(error_of("a,b, a\n"), "t.csv:1: expected each column once, got 'a' twice; rename one");
}

TEST(Csv, RefusesBrokenQuotes) {
  EXPECT_EQ(error_of("a,b\n1,\"open\n3,4\n"),
            "t.csv:2: expected a closing quote '\"', got the end of the file");
  EXPECT_EQ(
      error_of("a,b\n\"1\"2,3\n"),
      "t.csv:2: expected the cell to end after its closing quote, got '2,3\\n'; write a quote "
      "inside a cell twice");
}

TEST(Csv, RefusesOtherThanUtf8) {
  EXPECT_EQ(error_of(std::string_view("a\nb\0\n", 5)),
            "t.csv:2: expected text in UTF-8, got a NUL byte; save the file as UTF-8");
  EXPECT_EQ(error_of("a\nb\n\xFC\n"),
            "t.csv:3: expected text in UTF-8, got other bytes; save the file as UTF-8");
}

TEST(Csv, PlaceIsFileLineAndColumn) {
  const CsvTable table = parse("a,b\n1,2\n");
  EXPECT_THAT(table.place(0, 1), EndsWith("t.csv:2: column 'b'"));
}

TEST(Csv, SurvivesDamage) {
  const Scratch scratch;
  testing::for_each_damage("a,\"b\"\n1, \"x \"\"y\"\"\nz\"\r\n\xC3\xBC,2\n\n",
                           [&](const std::string& damaged) {
                             const CsvTable table = read_csv(scratch.put("t.csv", damaged));
                             for (const auto& row : table.rows) {
                               ASSERT_EQ(row.size(), table.header.size());
                             }
                             ASSERT_EQ(table.rows.size(), table.line.size());
                           });
}

TEST(Csv, ReadsBackItsCells) {
  const Scratch scratch;
  const std::vector<std::string> cells = {"plain",      "a,b",   "a;b", "say \"hi\"", " blank ",
                                          "two\nlines", "\ttab", "",    "\"",         "\r"};
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? ",c" : "c") + std::to_string(i);
  text += '\n';
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(cells[i]);
  EXPECT_THAT(read_csv(scratch.put("t.csv", text)).rows, ElementsAre(ElementsAreArray(cells)));
  EXPECT_EQ(csv_cell("plain text"), "plain text");
}

// A table of random cells, and one of the many ways to write it.
class RandomTable {
 public:
  explicit RandomTable(std::uint64_t seed) : random_(seed) {
    const std::size_t columns = 1 + below(4);
    separator_ = std::string(1, ",;\t"[columns == 1 ? 0 : below(3)]);
    line_end_ = std::vector<std::string>{"\n", "\r\n", "\r"}[below(3)];
    text_ = below(2) == 0 ? "\xEF\xBB\xBF" : "";
    std::vector<std::string> header;
    for (std::size_t c = 0; c < columns; ++c) header.push_back("c" + std::to_string(c));
    write(header);
    for (std::size_t count = below(30); count > 0; --count) {
      rows_.emplace_back();
      for (std::size_t c = 0; c < columns; ++c) rows_.back().push_back(random_cell());
      lines_.push_back(line_);
      write(rows_.back());
    }
    if (below(2) == 0)
      text_.resize(text_.size() - line_end_.size());
    else
      for (std::size_t count = below(3); count > 0; --count) text_ += " " + line_end_;
  }

  const std::string& text() const { return text_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  const std::vector<std::int64_t>& lines() const { return lines_; }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  std::string random_cell() {
    const std::vector<std::string> parts = {
        "a",  "B",  "7",  "-0.5",   "1e9", "+3",   " ",   "\t",  ",",   ";",
        "\"", "\n", "\r", "\u00fc", "",    "\"\"", "nan", "0x1", "x y", "\U0001F600"};
    std::string cell;
    for (std::size_t count = below(5); count > 0; --count) cell += parts[below(parts.size())];
    return cell;
  }

  void write(const std::vector<std::string>& cells) {
    std::string row;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      row +=
          (c > 0 ? separator_ : "") + padding() + written(cells[c], cells.size() == 1) + padding();
    }
    text_ += row + line_end_;
    // A line break inside quotes counts where it is a line feed.
    line_ += 1 + std::count(row.begin(), row.end(), '\n');
  }

  // Blanks around a cell mean nothing; a tab may be the separator.
  std::string padding() { return std::string(below(4) == 0 ? 1 + below(2) : 0, ' '); }

  std::string written(const std::string& cell, bool is_alone) {
    const bool must_quote = cell.find_first_of(",;\t\"\r\n") != std::string::npos ||
                            cell.starts_with(' ') || cell.ends_with(' ') ||
                            (is_alone && cell.empty());
    if (!must_quote && below(3) > 0) return cell;
    std::string quoted = "\"";
    for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }

  std::mt19937_64 random_;
  std::string separator_;
  std::string line_end_;
  std::string text_;
  std::int64_t line_ = 1;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::int64_t> lines_;
};

TEST(Csv, RandomTablesComeBackAsMeant) {
  const Scratch scratch;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RandomTable table(seed);
    const std::filesystem::path path = scratch.put("t.csv", table.text());
    const CsvTable read = read_csv(path);
    ASSERT_EQ(read.rows.size(), table.rows().size()) << seed << "\n" << table.text();
    EXPECT_EQ(read.line, table.lines());
    CsvReader reader(path);
    EXPECT_GE(reader.max_rows(), table.rows().size());
    for (std::size_t row = 0; row < table.rows().size(); ++row) {
      ASSERT_TRUE(reader.next());
      EXPECT_THAT(read.rows[row], ElementsAreArray(table.rows()[row])) << seed;
      EXPECT_THAT(reader.cells(), ElementsAreArray(table.rows()[row])) << seed;
      EXPECT_EQ(reader.line(), table.lines()[row]);
      EXPECT_EQ(reader.place(0), read.place(row, 0));
    }
    EXPECT_FALSE(reader.next());
  }
}

TEST(Csv, FindsOtherThanUtf8WhereverItStands) {
  for (std::size_t at = 0; at < 40; ++at) {
    std::string text = "name\n" + std::string(40, 'x');
    text[5 + at] = '\xFC';
    EXPECT_THAT(error_of(text),
                ::testing::StartsWith("t.csv:2: expected text in UTF-8, got other"));
    text[5 + at] = '\0';
    EXPECT_THAT(error_of(text),
                ::testing::StartsWith("t.csv:2: expected text in UTF-8, got a NUL"));
  }
}

TEST(Csv, MovesWithItsText) {
  const Scratch scratch;
  CsvReader first(scratch.put("t.csv", "a\n1\n2\n"));  // short enough to be kept inside a string
  ASSERT_TRUE(first.next());
  const CsvTable rest = read_csv(std::move(first));
  EXPECT_THAT(rest.rows, ElementsAre(ElementsAre("2")));
  EXPECT_THAT(CsvTable(rest).rows, ElementsAre(ElementsAre("2")));
}

TEST(ToNumber, TakesFiniteDecimalNumbersOnly) {
  EXPECT_EQ(to_number("1.5"), 1.5);
  EXPECT_EQ(to_number("-2e3"), -2000.0);
  EXPECT_EQ(to_number("+4"), 4.0);
  for (const char* text :
       {"", "+", "+-1", "1.5x", " 1", "nan", "inf", "-inf", "0x10", "1,5", "1e999"}) {
    EXPECT_EQ(to_number(text), std::nullopt) << text;
  }
}

TEST(ToInteger, TakesWholeNumbersOfSixtyFourBits) {
  EXPECT_EQ(to_integer("-12"), -12);
  EXPECT_EQ(to_integer("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "1.0", "1e3", "9223372036854775808", "x", "++1"}) {
    EXPECT_EQ(to_integer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mpssm::io
