// SPDX-License-Identifier: MIT
// What kind of column it is, and what is learned of it: means, medians, categories.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/tables.h"

namespace mpssm::data {
namespace {

// Up to so many categories are all kept; beyond, the frequent ones are.
constexpr std::size_t kFewCategories = 20;
constexpr std::size_t kMaxCategories = 100;
constexpr std::int64_t kLeastRows = 3;
// In a table of fewer rows a value of its own for each says nothing.
constexpr std::int64_t kLeastIds = 10;

class Fit {
 public:
  Fit(const io::CsvTable& table, std::size_t column, const std::vector<bool>& learn,
      ColumnReport& report, std::vector<std::string>& notes)
      : table_(table), column_(column), learn_(learn), report_(report), notes_(notes) {
    report_.name = table.header[column];
  }

  std::optional<Column> run(Wanted wanted, bool standardise) {
    for (const io::CsvRow row : table_.rows) {
      if (is_missing(row[column_])) ++report_.missing;
    }
    cells_ = std::ssize(table_.rows) - report_.missing;
    if (cells_ == 0) return leave_out("empty", "no cell has a value");
    if (wanted == Wanted::kText) return fit_text();
    if (wanted != Wanted::kCategorical) {
      if (is_number(wanted)) return fit_numbers(wanted, standardise);
      if (is_yes_no()) return fit_yes_no();
      if (is_date()) return fit_dates();
    }
    return fit_categories(wanted);
  }

 private:
  std::string_view cell(std::size_t row) const { return table_.rows[row][column_]; }
  std::string place() const {
    return fmt::format("{}: column '{}'", shown(table_.path), base::printable(report_.name));
  }

  std::optional<Column> leave_out(const char* type, const std::string& why) {
    report_.type = type;
    report_.unused = why;
    return std::nullopt;
  }

  // Plain ones, or such as people write; few words among many numbers are no values.
  bool is_number(Wanted wanted) {
    std::int64_t plain = 0;
    for (const io::CsvRow row : table_.rows) plain += io::to_number(row[column_]) ? 1 : 0;
    if (plain == cells_) return true;
    const Spelling spelling = spelling_of_numbers(table_, column_);
    if (2 * spelling.readable <= cells_ && wanted != Wanted::kNumeric) return false;
    std::set<std::string_view> words;
    std::optional<std::size_t> first;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      if (is_missing(cell(row)) || parse_number(cell(row), spelling.second)) continue;
      if (is_beyond_numbers(cell(row)) || wanted == Wanted::kNumeric) {
        throw base::Error(table_.place(row, column_),
                          fmt::format("expected a finite number or an empty cell, got '{}'",
                                      base::printable(cell(row))));
      }
      if (!first) first = row;
      words.insert(cell(row));
      if (words.size() > kMaxSlips) return false;
    }
    decimal_comma_ = spelling.second;
    if (first) {
      notes_.push_back(fmt::format(
          "{}: '{}' is no number: {} such cell(s) among {} numbers are read as missing; "
          "data.categorical={} reads the column as text",
          table_.place(*first, column_), base::printable(cell(*first)), cells_ - spelling.readable,
          spelling.readable, base::printable(report_.name)));
    }
    if (spelling.is_ambiguous) {
      notes_.push_back(fmt::format(
          "{}: commas are read as {}; write the numbers with a point, without marks between "
          "thousands, if that is wrong",
          place(), decimal_comma_ ? "decimal commas" : "marks between thousands"));
    }
    return true;
  }
  static constexpr std::size_t kMaxSlips = 3;

  bool is_yes_no() const {
    std::optional<int> pair;
    for (const io::CsvRow row : table_.rows) {
      if (is_missing(row[column_])) continue;
      const auto found = parse_yes_no(row[column_]);
      if (!found || pair.value_or(found->pair) != found->pair) return false;
      pair = found->pair;
    }
    return true;
  }

  bool is_date() {
    const Spelling spelling = spelling_of_dates(table_, column_);
    if (spelling.readable < cells_) return false;
    date_order_ = spelling.second ? DateOrder::kMonthFirst : DateOrder::kDayFirst;
    if (spelling.is_ambiguous) {
      notes_.push_back(
          fmt::format("{}: dates are read with the {}; write them as 2024-01-31 if "
                      "that is wrong",
                      place(), table_of(date_order_).name(date_order_)));
    }
    return true;
  }

  // Values that may be learned from, by parse(cell) -> optional number.
  template <typename Parse>
  std::vector<double> learnable(const Parse& parse, Column& column) const {
    std::vector<double> values;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      if (!learn_[row]) continue;
      const std::optional<double> value = is_missing(cell(row)) ? std::nullopt : parse(cell(row));
      if (value) values.push_back(*value);
      column.has_missing = column.has_missing || !value;
    }
    return values;
  }

  std::optional<Column> check_varies(const char* type, const std::vector<double>& values,
                                     Column column) {
    if (values.empty()) return leave_out(type, "no value in the training rows");
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least == *most && !column.has_missing) {
      return leave_out(type, "the same value in all training rows");
    }
    return column;
  }

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return 0.5 * (*middle + *std::max_element(values.begin(), middle));
  }

  std::optional<Column> fit_numbers(Wanted wanted, bool standardise) {
    if (wanted == Wanted::kAuto && looks_like_row_numbers()) {
      return leave_out("number", "a different whole number in every row, like an id");
    }
    Column column{.name = report_.name, .decimal_comma = decimal_comma_};
    const auto values = learnable(
        [&](std::string_view text) { return parse_number(text, decimal_comma_); }, column);
    const auto kept = check_varies("number", values, column);
    if (!kept) return kept;
    column.fill = median(values);
    if (!standardise) return column;
    const Column fitted = fit_number(report_.name, values);
    if (!std::isfinite(fitted.mean) || !std::isfinite(fitted.scale) || fitted.scale == 0.0) {
      throw base::Error(place() +
                        ": expected numbers that can be standardised, got values too far "
                        "apart or too close");
    }
    column.mean = fitted.mean;
    column.scale = fitted.scale;
    return column;
  }

  // 1, 2, 3, ... in any order, or whole numbers under the name of an id.
  bool looks_like_row_numbers() const {
    if (cells_ < kLeastIds || cells_ < std::ssize(table_.rows)) return false;
    std::vector<double> values;
    for (const io::CsvRow row : table_.rows) {
      const auto value = parse_number(row[column_], decimal_comma_);
      if (!value || *value != std::floor(*value)) return false;
      values.push_back(*value);
    }
    std::sort(values.begin(), values.end());
    if (std::adjacent_find(values.begin(), values.end()) != values.end()) return false;
    const bool has_no_gap = values.back() - values.front() == static_cast<double>(cells_ - 1);
    return has_no_gap || is_name_of_ids();
  }

  bool is_name_of_ids() const {
    std::string name = report_.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (name == "id" || name == "index" || name == "key" || name == "uuid") return true;
    for (const char* end : {"_id", " id", "-id", "_key", "_no", "_nr", "_number", "_index"}) {
      if (name.ends_with(end)) return true;
    }
    return report_.name.ends_with("Id") || report_.name.ends_with("ID");
  }

  std::optional<Column> fit_yes_no() {
    Column column{.name = report_.name, .kind = ColumnKind::kBoolean};
    const auto values = learnable(
        [](std::string_view text) -> std::optional<double> {
          const auto word = parse_yes_no(text);
          return word ? std::optional(word->value ? 1.0 : 0.0) : std::nullopt;
        },
        column);
    const auto yes = std::count(values.begin(), values.end(), 1.0);
    column.fill = 2 * yes > std::ssize(values) ? 1.0 : 0.0;
    return check_varies("yes/no", values, column);
  }

  std::optional<Column> fit_dates() {
    Column column{.name = report_.name, .kind = ColumnKind::kDate, .date_order = date_order_};
    for (const io::CsvRow row : table_.rows) {
      const auto moment = parse_date(row[column_], date_order_);
      column.has_time = column.has_time || (moment && moment->has_time);
    }
    const auto values = learnable(
        [&](std::string_view text) -> std::optional<double> {
          const auto moment = parse_date(text, date_order_);
          return moment ? std::optional(static_cast<double>(moment->day) + moment->day_share)
                        : std::nullopt;
        },
        column);
    const auto kept = check_varies("date", values, column);
    if (!kept) return kept;
    const Column fitted = fit_number(report_.name, values);
    column.mean = fitted.mean;
    column.scale = fitted.scale;
    column.fill = median(values);
    return column;
  }

  std::optional<Column> fit_categories(Wanted wanted) {
    std::set<std::string_view> all;
    std::map<std::string_view, std::int64_t> learned;
    std::int64_t blanks = 0;
    std::size_t first = 0;
    Column column{.name = report_.name, .kind = ColumnKind::kCategories};
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const std::string_view text = cell(row);
      const bool is_known = !is_missing(text);
      if (is_known && all.empty()) first = row;
      if (is_known) all.insert(text);
      if (is_known) blanks += std::count(text.begin(), text.end(), ' ');
      if (!learn_[row]) continue;
      if (is_known) ++learned[text];
      column.has_missing = column.has_missing || !is_known;
    }
    const auto different = std::ssize(all);
    // Four words and more on average, hardly ever twice the same.
    if (wanted == Wanted::kAuto && blanks >= 3 * cells_ && 2 * different > cells_) {
      throw base::Error(
          table_.place(first, column_),
          fmt::format(
              "'{1}' begins a column of free text, which is not understood; leave it out by "
              "data.ignore={0}, or have groups of characters counted by data.text={0}",
              base::printable(report_.name), base::printable(cell(first), 40)));
    }
    if (wanted == Wanted::kAuto && different == cells_ && cells_ > kLeastIds) {
      return leave_out("text", "a different value in every row, like an id");
    }
    choose_categories(learned, column);
    if (column.categories.empty()) {
      return leave_out("text", learned.empty() ? "no value in the training rows"
                                               : "almost every row has a value of its own");
    }
    if (column.categories.size() == 1 && !column.has_missing && !column.has_other) {
      return leave_out("categories", "the same value in all training rows");
    }
    return column;
  }

  Column fit_text() const {
    constexpr std::int64_t kBuckets = 128;
    Column column{.name = report_.name, .kind = ColumnKind::kText, .buckets = kBuckets};
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      column.has_missing = column.has_missing || (learn_[row] && is_missing(cell(row)));
    }
    return column;
  }

  void choose_categories(const std::map<std::string_view, std::int64_t>& count, Column& column) {
    std::vector<std::pair<std::string_view, std::int64_t>> order(count.begin(), count.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (!order.empty()) column.fill_category = order.front().first;
    if (order.size() > kFewCategories) {
      std::erase_if(order, [](const auto& entry) { return entry.second < kLeastRows; });
      order.resize(std::min(order.size(), kMaxCategories));
    }
    column.has_other = order.size() < count.size();
    for (const auto& [value, rows] : order) column.categories.emplace_back(value);
    std::sort(column.categories.begin(), column.categories.end());
  }

  const io::CsvTable& table_;
  std::size_t column_;
  const std::vector<bool>& learn_;
  ColumnReport& report_;
  std::vector<std::string>& notes_;
  std::int64_t cells_ = 0;  // with a value
  bool decimal_comma_ = false;
  DateOrder date_order_ = DateOrder::kDayFirst;
};

}  // namespace

bool is_beyond_numbers(std::string_view cell) {
  double ignored = 0.0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), ignored);
  if (error == std::errc::result_out_of_range) return end == cell.data() + cell.size();
  if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
  std::string word(cell.substr(0, 9));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word == "inf" || word == "infinity";
}

bool is_degree(const LoadOptions& options) {
  return options.columns != nullptr && options.columns->size() == 1 &&
         options.columns->front().name == kDegree;
}

std::vector<bool> rows_to_learn_from(std::span<const Part> parts) {
  std::vector<bool> rows;
  for (const Part part : parts) rows.push_back(part == Part::kTrain || part == Part::kNone);
  return rows;
}

Column fit_number(const std::string& name, std::span<const double> values) {
  Column column{.name = name};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) column.mean += value / count;
  // Compared directly: rounding of the mean would give equal values a tiny deviation.
  if (std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); })) {
    column.mean = values.empty() ? 0.0 : values.front();
    return column;
  }
  double variance = 0.0;
  for (const double value : values)
    variance += (value - column.mean) * (value - column.mean) / count;
  column.scale = std::sqrt(variance);
  return column;
}

std::optional<Column> fit_column(const io::CsvTable& table, std::size_t column,
                                 const std::vector<bool>& learn, Wanted wanted, bool standardise,
                                 ColumnReport& report, std::vector<std::string>& notes) {
  return Fit(table, column, learn, report, notes).run(wanted, standardise);
}

}  // namespace mpssm::data
