// SPDX-License-Identifier: MIT
// Comma-separated values (RFC 4180) with a header line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::io {

/// All cells as text, trimmed of blanks unless quoted.
struct CsvTable {
  std::filesystem::path path;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::int64_t> line;  ///< of each row in the file, from 1

  std::optional<std::size_t> column(std::string_view name) const;
  /// "FILE:LINE: column 'NAME'", the start of a message about one cell.
  std::string place(std::size_t row, std::size_t column) const;
};

/// Takes a byte-order mark, CRLF, quoted cells with commas and line breaks, blank lines at the end,
/// and ';' or tab instead of ',' if the header has those and no comma. Throws base::Error: empty
/// file, no header, repeated or empty column name, ragged row ("nodes.csv:7: expected 5 cells as in
/// the header, got 4"), open quote, NUL byte, invalid UTF-8.
CsvTable read_csv(const std::filesystem::path& path);

/// Whole text as a finite number; nullopt otherwise ("", "1.5x", "nan", "inf", "0x10").
std::optional<double> to_number(std::string_view text);
std::optional<std::int64_t> to_integer(std::string_view text);

/// The shortest text that to_number() reads back to the same.
std::string number_text(double value);

/// `text` as one cell, quoted if it has to be.
std::string csv_cell(std::string_view text);

}  // namespace mpssm::io
