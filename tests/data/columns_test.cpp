// SPDX-License-Identifier: MIT
// Cells the way people write them, and what is learned of columns of them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mpssm/data/cells.h"
#include "mpssm/data/data_card.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Scratch;

TEST(Cells, WordsForNothingAreKnown) {
  for (const char* cell : {"", "NA", "na", "N/A", "NaN", "null", "NULL", "-", "?"}) {
    EXPECT_TRUE(is_missing(cell)) << cell;
  }
  for (const char* cell : {"0", "no", "none", "a-b", "nano", "inf", "."}) {
    EXPECT_FALSE(is_missing(cell)) << cell;
  }
}

TEST(Cells, NumbersAreReadAsPeopleWriteThem) {
  const auto point = [](const char* cell) { return parse_number(cell, false).value_or(-99); };
  EXPECT_EQ(point("-1.5e2"), -150);
  EXPECT_EQ(point("1,234.5"), 1234.5);
  EXPECT_EQ(point("1,234,567"), 1234567);
  EXPECT_EQ(point("1 234.5"), 1234.5);
  EXPECT_EQ(point("1'234"), 1234);
  EXPECT_EQ(point("5 %"), 0.05);
  EXPECT_EQ(point("12.5%"), 0.125);
  EXPECT_EQ(point("$12.50"), 12.5);
  EXPECT_EQ(point("-$3"), -3);
  EXPECT_EQ(point("\xE2\x88\x92"
                  "2"),
            -2);  // the sign of mathematics
  const auto comma = [](const char* cell) { return parse_number(cell, true).value_or(-99); };
  EXPECT_EQ(comma("3,25"), 3.25);
  EXPECT_EQ(comma("1.234,5"), 1234.5);
  EXPECT_EQ(comma("1\xC2\xA0"
                  "234,5"),
            1234.5);
  EXPECT_EQ(comma("12,5 \xE2\x82\xAC"), 12.5);
  EXPECT_EQ(comma("7"), 7);
}

TEST(Cells, WhatIsNoNumberIsNone) {
  for (const char* cell : {"", "x", "1,5", "1,2345", "12,34,567", "1 23", "1.2.3", "%", "$", "--1",
                           "1e999", "inf", "nan", "2024-01-31", "1,234 567", "0x10", "5%%"}) {
    EXPECT_FALSE(parse_number(cell, false)) << cell;
  }
  for (const char* cell : {"1.5", "1,5,5", "1,5.5"}) EXPECT_FALSE(parse_number(cell, true)) << cell;
}

TEST(Cells, DatesAreDaysSince1970) {
  const auto day = [](const char* cell, DateOrder order = DateOrder::kDayFirst) {
    const auto moment = parse_date(cell, order);
    return moment ? static_cast<double>(moment->day) + moment->day_share : -1e9;
  };
  EXPECT_EQ(day("1970-01-02"), 1);
  EXPECT_EQ(day("2024-02-29"), 19782);
  EXPECT_EQ(day("29.2.2024"), 19782);
  EXPECT_EQ(day("2/29/2024", DateOrder::kMonthFirst), 19782);
  EXPECT_EQ(day("2024-02-29T12:00:00Z"), 19782.5);
  EXPECT_EQ(day("2024-02-29 06:00"), 19782.25);
  EXPECT_EQ(day("2024-02-29 06:00+02:00"), 19782.25);
  for (const char* cell : {"2023-02-29", "2024-13-01", "31.4.2024", "2024-1", "12:30", "1.2.24",
                           "2024-02-29 25:00", "2024-02-29x", "2024.5"}) {
    EXPECT_FALSE(parse_date(cell, DateOrder::kDayFirst)) << cell;
  }
  EXPECT_EQ(year_share(19723), 0.0);  // 2024-01-01
}

class Columns : public ::testing::Test {
 protected:
  // Rows "cell,label" with ids 0, 1, ...; the first half is train, then val and test in turns.
  Dataset load_cells(const std::vector<std::string>& cells, const LoadOptions& options = {},
                     char separator = ',') {
    const auto s = std::string(1, separator);
    std::string nodes = "id" + s + "c" + s + "label" + s + "split\n";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const char* part = 2 * i < cells.size() ? "train" : i % 2 == 0 ? "val" : "test";
      nodes +=
          std::to_string(i) + "n" + s + cells[i] + s + (i % 2 == 0 ? "u" : "v") + s + part + "\n";
    }
    folder_.put("t/nodes.csv", nodes);
    folder_.put("t/edges.csv", "src,dst\n0n,1n\n");
    return load(folder_ / "t", options);
  }
  std::string complaint(const std::vector<std::string>& cells, const LoadOptions& options = {}) {
    return testing::message_of([&] { load_cells(cells, options); });
  }
  static const NodeData& nodes(const Dataset& dataset) {
    return std::get<NodeData>(dataset.content);
  }
  // The features of one row.
  static std::vector<float> row(const Dataset& dataset, std::int64_t i) {
    const Matrix& matrix = nodes(dataset).features;
    const auto first = matrix.values.begin() + i * matrix.columns;
    return {first, first + matrix.columns};
  }

  Scratch folder_;
};

TEST_F(Columns, MissingNumbersTakeTheTrainingMedianAndAMark) {
  const Dataset dataset =
      load_cells({"1", "3", "NA", "8", "", "3", "100", "-", "100", "100"}, {.standardise = false});
  EXPECT_THAT(row(dataset, 0), ElementsAre(1, 0));
  EXPECT_THAT(row(dataset, 2), ElementsAre(3, 1));  // of 1, 3, 8
  EXPECT_THAT(row(dataset, 7), ElementsAre(3, 1));
  EXPECT_EQ(dataset.columns.at(0).missing, 3);
  EXPECT_THAT(dataset.columns.at(0).encoding, HasSubstr("median"));
}

TEST_F(Columns, MissingOutsideTrainingHasNoMark) {
  const Dataset dataset = load_cells({"1", "3", "5", "", "2", ""}, {.standardise = false});
  EXPECT_THAT(row(dataset, 3), ElementsAre(3));
}

TEST_F(Columns, NothingIsLearnedFromValidationAndTest) {
  const Dataset a = load_cells({"1", "3", "", "2", "5", "7", "9", "9", "9", "9"});
  const Dataset b = load_cells({"1", "3", "", "2", "5", "-70", "1e6", "", "0", "3"});
  const Column& first = nodes(a).columns.at(0);
  const Column& second = nodes(b).columns.at(0);
  EXPECT_EQ(first.mean, second.mean);
  EXPECT_EQ(first.scale, second.scale);
  EXPECT_EQ(first.fill, second.fill);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(row(a, i), row(b, i)) << i;
}

TEST_F(Columns, MissingCategoriesTakeTheMostFrequentOneAndAMark) {
  const Dataset dataset = load_cells({"x", "y", "y", "null", "y", "N/A", "x", "z"});
  EXPECT_THAT(nodes(dataset).columns.at(0).categories, ElementsAre("x", "y"));
  EXPECT_THAT(row(dataset, 3), ElementsAre(0, 1, 1));
  EXPECT_THAT(row(dataset, 5), ElementsAre(0, 1, 1));
  EXPECT_THAT(row(dataset, 7), ElementsAre(0, 0, 0));  // not seen in training
}

TEST_F(Columns, EuropeanNumbersAreNumbers) {
  const Dataset dataset =
      load_cells({"1,5", "2,25", "1.000,5", "7", "3,5", "4,5"}, {.standardise = false}, ';');
  EXPECT_THAT(nodes(dataset).features.values, ElementsAre(1.5, 2.25, 1000.5, 7, 3.5, 4.5));
  EXPECT_TRUE(nodes(dataset).columns[0].decimal_comma);
  EXPECT_THAT(dataset.notes, Not(Contains(HasSubstr("column 'c'"))));
}

TEST_F(Columns, CommasThatMayBeBothAreNoted) {
  const std::vector<std::string> cells = {"\"1,500\"", "\"2,250\"", "7", "\"1,000\"", "1", "2"};
  const Dataset english = load_cells(cells, {.standardise = false});
  EXPECT_EQ(row(english, 0)[0], 1500);
  EXPECT_THAT(english.notes, Contains(HasSubstr("marks between thousands")));
  const Dataset german = load_cells(cells, {.standardise = false}, ';');
  EXPECT_EQ(row(german, 0)[0], 1.5);
  EXPECT_THAT(german.notes, Contains(HasSubstr("decimal commas")));
}

TEST_F(Columns, PercentSignsAreHundredths) {
  const Dataset dataset = load_cells({"5%", "50 %", "NA", "100%"}, {.standardise = false});
  EXPECT_THAT(row(dataset, 1), ElementsAre(0.5f));
}

TEST_F(Columns, YesAndNoAreOneFeature) {
  const Dataset dataset = load_cells({"Yes", "no", "YES", "", "no", "no"});
  EXPECT_THAT(nodes(dataset).features.values, ElementsAre(1, 0, 1, 1, 0, 0));
  EXPECT_EQ(dataset.columns.at(0).type, "yes/no");
}

TEST_F(Columns, DatesBecomePlacesInTheYearAndWeek) {
  const Dataset dataset = load_cells({"2024-01-01", "2024-01-02", "", "2024-01-08"});
  const std::vector<float> first = row(dataset, 0);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_FLOAT_EQ(first[0], -1);
  EXPECT_FLOAT_EQ(first[1], 0);
  EXPECT_FLOAT_EQ(first[2], 1);
  const std::vector<float> week_later = row(dataset, 3);
  EXPECT_FLOAT_EQ(week_later[3], first[3]);
  EXPECT_FLOAT_EQ(week_later[4], first[4]);
  EXPECT_FLOAT_EQ(week_later[0], 13);
  EXPECT_EQ(load_cells({"2024-01-01 12:00", "2024-01-02", "2024-01-03", "2024-01-08"})
                .columns[0]
                .features,
            7);
}

TEST_F(Columns, OrderOfDayAndMonthIsFoundOut) {
  const auto order = [&](const std::vector<std::string>& cells) {
    return nodes(load_cells(cells)).columns.at(0).date_order;
  };
  EXPECT_EQ(order({"1/31/2024", "2/1/2024", "3/1/2024", "4/1/2024"}), DateOrder::kMonthFirst);
  EXPECT_EQ(order({"31/1/2024", "2/1/2024", "3/1/2024", "4/1/2024"}), DateOrder::kDayFirst);
  EXPECT_THAT(load_cells({"1/2/2024", "2/1/2024", "3/1/2024", "4/1/2024"}).notes,
              Contains(HasSubstr("month first")));
}

TEST_F(Columns, FreeTextIsRefusedWithTheWayOut) {
  const std::vector<std::string> cells = {"the quick brown fox jumps", "over the lazy dog again",
                                          "and then it went home", "to sleep the whole day"};
  EXPECT_THAT(complaint(cells), AllOf(HasSubstr("nodes.csv:2: column 'c'"), HasSubstr("free text"),
                                      HasSubstr("data.ignore=c")));
  const Dataset dataset = load_cells(cells, {.ignore = "c"});
  EXPECT_EQ(dataset.columns.at(0).unused, "data.ignore");
  EXPECT_THAT(complaint(cells, {.ignore = "d"}), AllOf(HasSubstr("data.ignore"), HasSubstr("'d'")));
}

TEST_F(Columns, IdsAreWarnedAboutAndLeftOut) {
  std::vector<std::string> words;
  std::vector<std::string> numbers;
  std::vector<std::string> measured;
  for (int i = 0; i < 24; ++i) {
    words.push_back("w" + std::to_string(i));
    numbers.push_back(std::to_string(1000 + (7 * i) % 24));
    measured.push_back(std::to_string(i * i));
  }
  EXPECT_THAT(load_cells(words).notes, Contains(HasSubstr("column 'c' is not used: a different")));
  EXPECT_THAT(load_cells(numbers).notes, Contains(HasSubstr("whole number in every row")));
  EXPECT_EQ(nodes(load_cells(numbers, {.numeric = "c"})).columns.at(0).name, "c");
  EXPECT_EQ(nodes(load_cells(measured)).columns.at(0).name, "c");
}

TEST_F(Columns, RareCategoriesAreOther) {
  std::vector<std::string> cells;
  for (int i = 0; i < 400; ++i)
    cells.push_back(i % 2 == 0 ? "often" : "rare" + std::to_string(i % 80));
  const Dataset dataset = load_cells(cells);
  const Column& column = nodes(dataset).columns.at(0);
  EXPECT_TRUE(column.has_other);
  EXPECT_THAT(column.categories, Contains("often"));
  EXPECT_LT(column.categories.size(), 30u);
  const Column known = column;
  const std::vector<Column> pinned = {known};
  const Dataset again = load_cells({"often", "never seen", "often", "often"}, {.columns = &pinned});
  EXPECT_EQ(row(again, 1).back(), 1.0f);
}

TEST_F(Columns, NaIsNoClass) {
  folder_.put("t/nodes.csv", "id,x,label\na,1,u\nb,2,v\nc,3,NA\nd,4,u\ne,5,v\nf,7,u\n");
  folder_.put("t/edges.csv", "src,dst\na,b\n");
  const Dataset dataset = load(folder_ / "t");
  EXPECT_THAT(nodes(dataset).class_names, ElementsAre("u", "v"));
  EXPECT_TRUE(std::isnan(nodes(dataset).target[2]));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("no label")));
}

TEST_F(Columns, CompressedTablesAreTables) {
  const std::string command = "gzip -k -f " + (folder_ / "t/nodes.csv").string();
  const Dataset plain = load_cells({"1", "2", "4", "8"});
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove(folder_ / "t/nodes.csv");
  const Dataset packed = load(folder_ / "t");
  EXPECT_EQ(nodes(packed).features.values, nodes(plain).features.values);
  EXPECT_THAT(packed.files.at(0).path, HasSubstr("nodes.csv.gz"));
  folder_.put("t/nodes.csv.gz", "id,label\n");
  EXPECT_THAT(testing::load_complaint(folder_ / "t"),
              AllOf(HasSubstr("nodes.csv.gz"), HasSubstr("gzip")));
}

TEST_F(Columns, NodeLinkJsonIsTheTablesThatItHolds) {
  const std::string start =
      R"({"directed": false, "nodes": [{"id": 1, "x": 1.5, "ok": true, "label": "u", "split": "train"},
        {"id": 2, "x": null, "ok": false, "label": "v", "split": "train", "tags": [1]},
        {"id": "c", "x": 3, "label": "u", "split": "val"}, {"id": "d", "x": 4, "split": "test", "label": "v"}],)";
  const Dataset dataset = load(folder_.put(
      "g.json",
      start +
          R"("links": [{"source": 1, "target": 2, "weight": 2}, {"source": 2, "target": "c", "weight": 1}]})"));
  EXPECT_THAT(nodes(dataset).node_ids, ElementsAre("1", "2", "c", "d"));
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_THAT(dataset.notes,
              Contains(HasSubstr("nodes: not used, since a table cannot hold them")));
}

TEST_F(Columns, CardTellsWhatWasUnderstood) {
  const DataCard card = make_card(load_cells({"1", "NA", "4", "8", "5", "6", "7", "7"}));
  EXPECT_EQ(card.task, "node_binary");
  EXPECT_THAT(card.why, AllOf(HasSubstr("'label'"), HasSubstr("text, 2 different")));
  EXPECT_EQ(card.nodes, 8);
  EXPECT_EQ(card.edges, 1);
  EXPECT_EQ(card.components, 7);
  EXPECT_EQ(card.isolated, 6);
  EXPECT_EQ(card.train + card.val + card.test, 8);
  ASSERT_EQ(card.classes.size(), 2u);
  EXPECT_EQ(card.classes[0].count, 4);
  ASSERT_TRUE(card.homophily);
  EXPECT_EQ(card.homophily->edges, 1);
  EXPECT_EQ(card.homophily->share, 0.0);
  EXPECT_EQ(card.homophily->by_chance, 0.5);
  EXPECT_EQ(card.columns.at(0).missing, 1);
}

}  // namespace
}  // namespace mpssm::data
