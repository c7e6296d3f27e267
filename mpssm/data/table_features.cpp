// SPDX-License-Identifier: MIT
// A table as features, by columns that are fitted to it or were fitted to another one.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numbers>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/tables.h"

namespace mpssm::data {
namespace {

// Features of the values alone.
std::size_t value_width(const Column& column) {
  switch (column.kind) {
    case ColumnKind::kCategories:
      return column.categories.size() + (column.has_other ? 1 : 0);
    case ColumnKind::kDate:
      return column.has_time ? 7 : 5;
    case ColumnKind::kText:
      return static_cast<std::size_t>(column.buckets);
    case ColumnKind::kNumber:
    case ColumnKind::kBoolean:
      break;
  }
  return 1;
}

// Groups of three characters (UTF-8, ASCII letters in lower case, blanks around the words), each
// counted up or down in the feature that its hash names; the counts of a cell have length 1.
void count_characters(std::string_view cell, std::span<float> features) {
  std::string text = " ";
  for (const char c : cell) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const bool is_blank = lower == ' ' || lower == '\t' || lower == '\n' || lower == '\r';
    if (!is_blank || text.back() != ' ') text += is_blank ? ' ' : lower;
  }
  if (text.back() != ' ') text += ' ';
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (base::starts_character(text[i])) begins.push_back(i);
  }
  begins.push_back(text.size());
  constexpr std::size_t kGroup = 3;
  double squares = 0.0;
  for (std::size_t i = 0; i + kGroup < begins.size(); ++i) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (std::size_t at = begins[i]; at < begins[i + kGroup]; ++at) {
      hash = (hash ^ static_cast<unsigned char>(text[at])) * 0x100000001b3u;
    }
    hash ^= hash >> 32;
    features[hash % features.size()] += (hash >> 31 & 1) != 0 ? 1.0f : -1.0f;
  }
  for (const float count : features) squares += static_cast<double>(count) * count;
  if (squares == 0.0) return;
  for (float& count : features) count = static_cast<float>(count / std::sqrt(squares));
}

std::size_t width_of(const Column& column) {
  return value_width(column) + (column.has_missing ? 1 : 0);
}

class Writer {
 public:
  Writer(const io::CsvTable& table, Matrix& matrix, std::vector<std::string>& notes)
      : table_(table), matrix_(matrix), notes_(notes) {}

  void write(const Column& column, std::size_t source, std::size_t first) {
    source_ = source;
    first_ = first;
    if (column.kind == ColumnKind::kCategories) return write_categories(column);
    if (column.kind == ColumnKind::kText) return write_text(column);
    slips_ = 0;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const std::string_view cell = table_.rows[row][source];
      if (column.kind == ColumnKind::kDate) {
        write_date(column, row, cell);
      } else {
        write_number(column, row, cell);
      }
    }
    check_slips(column);
  }

 private:
  // nullopt: missing, or no such value; the latter are counted.
  template <typename Value>
  const std::optional<Value>& counted(std::size_t row, const std::optional<Value>& value) {
    if (value || is_missing(table_.rows[row][source_])) return value;
    if (slips_++ == 0) first_slip_ = row;
    return value;
  }

  void write_number(const Column& column, std::size_t row, std::string_view cell) {
    std::optional<double> raw;
    if (column.kind == ColumnKind::kNumber) {
      raw = parse_number(cell, column.decimal_comma);
    } else if (const auto word = parse_yes_no(cell)) {
      raw = word->value ? 1.0 : 0.0;
    }
    const bool is_known = counted(row, raw).has_value();
    if (!is_known && is_beyond_numbers(cell)) fail(row, "a finite number or an empty cell");
    const auto value = static_cast<float>((raw.value_or(column.fill) - column.mean) / column.scale);
    if (!std::isfinite(value)) fail(row, "a number that fits 32 bits");
    at(row, 0) = value;
    if (column.has_missing && !is_known) at(row, 1) = 1.0f;
  }

  void write_date(const Column& column, std::size_t row, std::string_view cell) {
    std::optional<Moment> moment = parse_date(cell, column.date_order);
    const bool is_known = counted(row, moment).has_value();
    if (!is_known) {
      const double day = std::floor(column.fill);
      moment = Moment{.day = static_cast<std::int64_t>(day), .day_share = column.fill - day};
    }
    const double day = static_cast<double>(moment->day) + moment->day_share;
    at(row, 0) = static_cast<float>((day - column.mean) / column.scale);
    const auto turn = [&](std::size_t feature, double share) {
      const double angle = 2.0 * std::numbers::pi * share;
      at(row, feature) = static_cast<float>(std::sin(angle));
      at(row, feature + 1) = static_cast<float>(std::cos(angle));
    };
    turn(1, year_share(moment->day));
    turn(3, static_cast<double>(moment->day % 7) / 7.0);
    if (column.has_time) turn(5, moment->day_share);
    if (column.has_missing && !is_known) at(row, value_width(column)) = 1.0f;
  }

  void write_categories(const Column& column) {
    std::unordered_map<std::string_view, std::size_t> number_of;
    for (const std::string& category : column.categories) {
      number_of.emplace(category, number_of.size());
    }
    std::set<std::string_view> unknown;
    std::int64_t cells = 0;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      std::string_view cell = table_.rows[row][source_];
      if (is_missing(cell)) {
        if (column.has_missing) at(row, value_width(column)) = 1.0f;
        cell = column.fill_category;
      }
      const auto found = number_of.find(cell);
      if (found != number_of.end()) {
        at(row, found->second) = 1.0f;
      } else if (column.has_other) {
        at(row, column.categories.size()) = 1.0f;
      } else if (!cell.empty()) {
        unknown.insert(cell);
        ++cells;
      }
    }
    if (unknown.empty()) return;
    notes_.push_back(
        fmt::format("{}: column '{}': {} cell(s) hold {} value(s) that training has not seen, such "
                    "as '{}': read as \"other\"",
                    shown(table_.path), base::printable(column.name), cells, unknown.size(),
                    base::printable(*unknown.begin())));
  }

  void write_text(const Column& column) {
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const std::string_view cell = table_.rows[row][source_];
      if (is_missing(cell)) {
        if (column.has_missing) at(row, value_width(column)) = 1.0f;
        continue;
      }
      count_characters(cell, std::span(&at(row, 0), value_width(column)));
    }
  }

  // A few are read as missing; a column of them is another column.
  void check_slips(const Column& column) const {
    if (slips_ == 0) return;
    if (2 * slips_ >= std::ssize(table_.rows)) {
      fail(first_slip_, column.kind == ColumnKind::kNumber ? "a number, as in training"
                        : column.kind == ColumnKind::kDate ? "a date, as in training"
                                                           : "yes or no, as in training");
    }
    notes_.push_back(
        fmt::format("{}: '{}' and {} more cell(s) are none of what the column holds: "
                    "read as missing",
                    table_.place(first_slip_, source_),
                    base::printable(table_.rows[first_slip_][source_]), slips_ - 1));
  }

  [[noreturn]] void fail(std::size_t row, const std::string& expected) const {
    throw base::Error(
        table_.place(row, source_),
        fmt::format("expected {}, got '{}'", expected, base::printable(table_.rows[row][source_])));
  }

  float& at(std::size_t row, std::size_t feature) {
    return matrix_.values[row * static_cast<std::size_t>(matrix_.columns) + first_ + feature];
  }

  const io::CsvTable& table_;
  Matrix& matrix_;
  std::vector<std::string>& notes_;
  std::size_t source_ = 0;  // column of the table
  std::size_t first_ = 0;   // feature
  std::int64_t slips_ = 0;
  std::size_t first_slip_ = 0;
};

std::vector<Column> fit_columns(const io::CsvTable& table, std::span<const std::size_t> candidates,
                                const std::vector<bool>& learn, const LoadOptions& options,
                                std::vector<ColumnReport>& reports,
                                std::vector<std::string>& notes) {
  const auto numeric = columns_named(table, "data.numeric", options.numeric);
  const auto categorical = columns_named(table, "data.categorical", options.categorical);
  const auto text = columns_named(table, "data.text", options.text);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<Column> fitted;
  for (const std::size_t column : candidates) {
    const std::string& name = table.header[column];
    const Wanted wanted = has(numeric, name)       ? Wanted::kNumeric
                          : has(categorical, name) ? Wanted::kCategorical
                          : has(text, name)        ? Wanted::kText
                                                   : Wanted::kAuto;
    ColumnReport report;
    const auto kept =
        fit_column(table, column, learn, wanted, options.standardise.value_or(true), report, notes);
    if (kept) {
      fitted.push_back(*kept);
      continue;
    }
    notes.push_back(fmt::format("{}: column '{}' is not used: {}", shown(table.path),
                                base::printable(name), report.unused));
    reports.push_back(report);
  }
  return fitted;
}

}  // namespace

ColumnReport report_of(const Column& column) {
  ColumnReport report{.name = column.name,
                      .type = std::string(table_of(column.kind).name(column.kind)),
                      .features = static_cast<std::int64_t>(width_of(column))};
  switch (column.kind) {
    case ColumnKind::kNumber:
      report.encoding = column.scale == 1.0 && column.mean == 0.0 ? "as it is" : "standardised";
      if (column.decimal_comma) report.encoding += ", decimal comma";
      break;
    case ColumnKind::kBoolean:
      report.encoding = "1 and 0";
      break;
    case ColumnKind::kDate:
      report.encoding =
          column.has_time ? "day; place in year, week and day" : "day; place in year and week";
      break;
    case ColumnKind::kText:
      report.encoding = fmt::format("groups of 3 characters, hashed to {}", column.buckets);
      break;
    case ColumnKind::kCategories:
      report.encoding =
          fmt::format("one of {}{}", column.categories.size(), column.has_other ? " or other" : "");
      break;
  }
  return report;
}

Matrix apply_columns(const io::CsvTable& table, const std::vector<Column>& columns,
                     std::vector<ColumnReport>& reports, std::vector<std::string>& notes) {
  Matrix matrix{.rows = static_cast<std::int64_t>(table.rows.size())};
  for (const Column& column : columns) {
    matrix.columns += static_cast<std::int64_t>(width_of(column));
  }
  matrix.values.assign(static_cast<std::size_t>(matrix.rows * matrix.columns), 0.0f);
  Writer writer(table, matrix, notes);
  std::size_t first = 0;
  for (const Column& column : columns) {
    const auto source = table.column(column.name);
    if (!source) {
      throw base::Error(
          shown(table.path),
          fmt::format("expected the {} feature columns of the training table, got none named '{}'",
                      columns.size(), base::printable(column.name)));
    }
    writer.write(column, *source, first);
    first += width_of(column);
    ColumnReport report = report_of(column);
    for (const io::CsvRow row : table.rows) report.missing += is_missing(row[*source]) ? 1 : 0;
    if (report.missing > 0) {
      report.encoding += fmt::format("; missing: {}{}",
                                     column.kind == ColumnKind::kCategories
                                         ? "'" + base::printable(column.fill_category, 40) + "'"
                                     : column.kind == ColumnKind::kText ? std::string("all 0")
                                     : column.kind == ColumnKind::kBoolean
                                         ? std::string(column.fill > 0.5 ? "1" : "0")
                                         : "the median",
                                     column.has_missing ? " and a feature that marks it" : "");
    }
    reports.push_back(std::move(report));
  }
  return matrix;
}

Features read_table_features(const io::CsvTable& table, std::span<const std::size_t> candidates,
                             const std::vector<bool>& learn, const LoadOptions& options,
                             std::vector<ColumnReport>& reports, std::vector<std::string>& notes) {
  Features features;
  const bool is_pinned = options.columns != nullptr && !options.columns->empty();
  std::vector<ColumnReport> unused;
  features.fitted =
      is_pinned ? *options.columns : fit_columns(table, candidates, learn, options, unused, notes);
  if (features.fitted.empty()) {
    reports.insert(reports.end(), unused.begin(), unused.end());
    return features;
  }
  features.values = apply_columns(table, features.fitted, reports, notes);
  reports.insert(reports.end(), unused.begin(), unused.end());
  return features;
}

std::vector<std::string> columns_named(const io::CsvHeader& table, const std::string& setting,
                                       const std::string& names) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    begin = end + 1;
    if (name.empty()) continue;
    if (!table.column(name)) {
      const std::vector<std::string_view> known(table.header.begin(), table.header.end());
      const std::string_view near = base::nearest(name, known);
      throw base::Error(
          setting,
          fmt::format("expected columns of {}, got '{}'{}", shown(table.path),
                      base::printable(name),
                      near.empty() ? "" : " (did you mean '" + base::printable(near) + "'?)"));
    }
    result.push_back(std::move(name));
  }
  return result;
}

}  // namespace mpssm::data
