// SPDX-License-Identifier: MIT
// Table columns as features: numbers standardised, text as one feature per value.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/tables.h"

namespace mpssm::data {
namespace {

constexpr std::size_t kMaxCategories = 100;

// A number that no double holds, like 1e999.
bool is_out_of_range(std::string_view cell) {
  double ignored = 0.0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), ignored);
  return error == std::errc::result_out_of_range && end == cell.data() + cell.size();
}

double number_at(const io::CsvTable& table, std::size_t row, std::size_t column) {
  const std::string_view cell = table.rows[row][column];
  const auto number = io::to_number(cell);
  if (number) return *number;
  throw base::Error(
      table.place(row, column),
      fmt::format("expected a finite number, got {}; fill it in, or drop the row or the column",
                  cell.empty() ? "an empty cell" : "'" + base::printable(cell) + "'"));
}

std::vector<double> numbers_of(const io::CsvTable& table, std::size_t column) {
  std::vector<double> numbers(table.rows.size());
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    numbers[row] = number_at(table, row, column);
  }
  return numbers;
}

// First row whose cell makes the column text; the number of rows if there is none.
std::size_t first_text(const io::CsvTable& table, std::size_t column) {
  std::size_t row = 0;
  for (; row < table.rows.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    const bool may_be_number =
        cell.empty() || io::to_number(cell) || is_non_finite_word(cell) || is_out_of_range(cell);
    if (!may_be_number) break;
  }
  return row;
}

std::vector<std::string> categories_of(const io::CsvTable& table, std::size_t column,
                                       std::size_t text_row) {
  std::set<std::string> values;
  for (const io::CsvRow row : table.rows) {
    if (!row[column].empty()) values.emplace(row[column]);
  }
  if (values.size() > kMaxCategories) {
    throw base::Error(
        table.place(text_row, column),
        fmt::format("'{}' makes this a text column, for which at most {} different values are "
                    "expected, got {}; drop the column or make it numbers",
                    base::printable(table.rows[text_row][column]), kMaxCategories, values.size()));
  }
  return {values.begin(), values.end()};
}

bool is_empty(const io::CsvTable& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [column](const auto& row) { return row[column].empty(); });
}

std::size_t width_of(const Column& column) {
  return std::max<std::size_t>(column.categories.size(), 1);
}

class Writer {
 public:
  Writer(const io::CsvTable& table, Matrix& matrix) : table_(table), matrix_(matrix) {}

  void write_numbers(const Column& column, std::size_t source, std::size_t first) {
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const double raw = number_at(table_, row, source);
      const auto value = static_cast<float>((raw - column.mean) / column.scale);
      if (!std::isfinite(value)) {
        throw base::Error(table_.place(row, source),
                          fmt::format("expected a number that fits 32 bits, got '{}'",
                                      base::printable(table_.rows[row][source])));
      }
      at(row, first) = value;
    }
  }

  // Cells without a value stay zero.
  void write_categories(const Column& column, std::size_t source, std::size_t first,
                        std::vector<std::string>& notes) {
    std::unordered_map<std::string_view, std::size_t> number_of;
    for (const std::string& category : column.categories) {
      number_of.emplace(category, number_of.size());
    }
    std::set<std::string_view> unknown;
    std::int64_t cells = 0;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const std::string_view cell = table_.rows[row][source];
      const auto found = number_of.find(cell);
      if (found != number_of.end()) {
        at(row, first + found->second) = 1.0f;
      } else if (!cell.empty()) {
        unknown.insert(cell);
        ++cells;
      }
    }
    if (unknown.empty()) return;
    notes.push_back(
        fmt::format("{}: column '{}': {} cell(s) hold {} value(s) that training has not seen, such "
                    "as '{}': read as \"other\"",
                    shown(table_.path), base::printable(column.name), cells, unknown.size(),
                    base::printable(*unknown.begin())));
  }

 private:
  float& at(std::size_t row, std::size_t column) {
    return matrix_.values[row * static_cast<std::size_t>(matrix_.columns) + column];
  }

  const io::CsvTable& table_;
  Matrix& matrix_;
};

}  // namespace

bool is_non_finite_word(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  std::string word(text.substr(0, 9));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word == "nan" || word == "inf" || word == "infinity";
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

// A column of numbers with a slip in it, more likely than one of words.
bool are_mostly_numbers(const io::CsvTable& table, std::size_t column) {
  const auto numbers = std::count_if(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return io::to_number(row[column]).has_value();
  });
  return 2 * numbers > std::ssize(table.rows);
}

Column fit_column(const io::CsvTable& table, std::size_t column, bool standardise,
                  std::vector<std::string>& notes) {
  const std::string& name = table.header[column];
  if (is_empty(table, column)) {
    throw base::Error(
        shown(table.path),
        fmt::format("column '{}': expected values, got empty cells only; drop the column",
                    base::printable(name)));
  }
  const std::size_t text_row = first_text(table, column);
  if (text_row < table.rows.size()) {
    if (are_mostly_numbers(table, column)) {
      notes.push_back(fmt::format("{}: '{}' is no number, so the whole column is read as text",
                                  table.place(text_row, column),
                                  base::printable(table.rows[text_row][column])));
    }
    return {.name = name, .categories = categories_of(table, column, text_row)};
  }
  const std::vector<double> numbers = numbers_of(table, column);
  if (!standardise) return {.name = name};
  const Column fitted = fit_number(name, numbers);
  if (!std::isfinite(fitted.mean) || !std::isfinite(fitted.scale) || fitted.scale == 0.0) {
    throw base::Error(shown(table.path),
                      fmt::format("column '{}': expected numbers that can be standardised, got "
                                  "values too far apart or too close",
                                  base::printable(name)));
  }
  return fitted;
}

Matrix apply_columns(const io::CsvTable& table, const std::vector<Column>& columns,
                     std::vector<std::string>& notes) {
  Matrix matrix{.rows = static_cast<std::int64_t>(table.rows.size())};
  for (const Column& column : columns) {
    matrix.columns += static_cast<std::int64_t>(width_of(column));
  }
  matrix.values.assign(static_cast<std::size_t>(matrix.rows * matrix.columns), 0.0f);
  Writer writer(table, matrix);
  std::size_t first = 0;
  for (const Column& column : columns) {
    const auto source = table.column(column.name);
    if (!source) {
      throw base::Error(
          shown(table.path),
          fmt::format("expected the {} feature columns of the training table, got none named '{}'",
                      columns.size(), base::printable(column.name)));
    }
    if (column.categories.empty()) {
      writer.write_numbers(column, *source, first);
    } else {
      writer.write_categories(column, *source, first, notes);
    }
    first += width_of(column);
  }
  return matrix;
}

}  // namespace mpssm::data
