// SPDX-License-Identifier: MIT
// Private to data/: tables of numbers without a header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/gzip.h"

namespace mpssm::data {

inline constexpr const char* kRowsHint = "unpack the dataset anew, or put the file right";

/// Rows of numbers, all of one length.
template <typename Number>
struct NumberRows {
  std::filesystem::path path = {};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<Number> values = {};

  std::string place(std::int64_t row) const { return fmt::format("{}:{}", shown(path), row + 1); }
};

template <typename Number>
bool parse_plain(std::string_view cell, Number& value) {
  if constexpr (std::is_integral_v<Number>) {
    const auto number = io::to_integer(cell);
    if (number) value = *number;
    return number.has_value();
  } else {
    // OGB has "nan" where a label is not known.
    const bool is_none = cell.empty() || cell == "nan" || cell == "NaN";
    const auto number = is_none ? std::optional<double>() : io::to_number(cell);
    if (!is_none && !number) return false;
    value = number ? static_cast<Number>(*number) : std::numeric_limits<Number>::quiet_NaN();
    return true;
  }
}

template <typename Number>
NumberRows<Number> read_number_rows(const std::filesystem::path& path) {
  const std::string text = io::read_text(path);
  NumberRows<Number> table{.path = path};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() && at >= text.size()) break;
    std::int64_t columns = 0;
    for (std::size_t begin = 0; begin <= line.size(); ++columns) {
      const std::size_t comma = std::min(line.find(',', begin), line.size());
      const std::string_view cell = line.substr(begin, comma - begin);
      Number value = 0;
      if (!parse_plain(cell, value)) {
        throw base::Error({.where = table.place(table.rows),
                           .expected = std::is_integral_v<Number> ? "whole numbers" : "numbers",
                           .got = "'" + base::printable(cell, 40) + "'",
                           .hint = "these tables have no header"});
      }
      table.values.push_back(value);
      begin = comma + 1;
    }
    if (table.rows == 0) table.columns = columns;
    if (columns != table.columns) {
      throw base::Error({.where = table.place(table.rows),
                         .expected = fmt::format("{} cells as in the first row", table.columns),
                         .got = std::to_string(columns),
                         .hint = kRowsHint});
    }
    ++table.rows;
  }
  if (table.rows == 0) {
    throw base::Error(
        {.where = shown(path), .expected = "numbers", .got = "an empty file", .hint = kRowsHint});
  }
  return table;
}

template <typename Number>
void expect_shape(const NumberRows<Number>& table, std::int64_t rows, std::int64_t columns,
                  const char* what) {
  if ((rows < 0 || table.rows == rows) && (columns < 0 || table.columns == columns)) return;
  throw base::Error(
      {.where = shown(table.path),
       .expected = fmt::format("{} rows{}, {}", rows < 0 ? "any number of" : std::to_string(rows),
                               columns < 0 ? "" : fmt::format(" of {} number(s)", columns), what),
       .got = fmt::format("{} of {}", table.rows, table.columns),
       .hint = kRowsHint});
}

}  // namespace mpssm::data
