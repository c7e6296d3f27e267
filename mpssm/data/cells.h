// SPDX-License-Identifier: MIT
// Private to data/: cells of tables the way people write them: numbers with commas and percent
// signs, dates, yes and no, and the words for "not known".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mpssm/data/dataset.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// "", "NA", "N/A", "NaN", "null", "-", "?" in any case: nobody knows.
bool is_missing(std::string_view cell);

/// A finite number: "-1.5", "+2e3", "5 %" (0.05), "1,234.5", "1 234.5", "1'234.5", "$12.50"; with
/// `decimal_comma` "1.234,5" and so on. Groups have three digits and one kind of separator.
std::optional<double> parse_number(std::string_view cell, bool decimal_comma);

/// "yes", "true", "on", "t", "y" and their opposites, in any case. `pair` tells which words belong
/// together.
struct YesNo {
  bool value = false;
  int pair = 0;
};
std::optional<YesNo> parse_yes_no(std::string_view cell);

/// "2024-01-31", "31.1.2024", "1/31/2024", each with "12:30" or "T12:30:00Z" behind it.
struct Moment {
  std::int64_t day = 0;    ///< since 1970-01-01, by the clock that is written
  double day_share = 0.0;  ///< [0, 1)
  bool has_time = false;
};
std::optional<Moment> parse_date(std::string_view cell, DateOrder order);

/// Place of a day in its year, [0, 1).
double year_share(std::int64_t day);

/// Which of two ways to write it a column holds: the one that more cells can be read by.
struct Spelling {
  bool second = false;        ///< decimal comma; month first
  bool is_ambiguous = false;  ///< all cells can be read both ways, to different values
  std::int64_t readable = 0;  ///< cells, of those with a value
  std::int64_t cells = 0;     ///< with a value
};
Spelling spelling_of_numbers(const io::CsvTable& table, std::size_t column);
Spelling spelling_of_dates(const io::CsvTable& table, std::size_t column);

}  // namespace mpssm::data
