// SPDX-License-Identifier: MIT
// Comma-separated values (RFC 4180) with a header line: row by row, or as a whole table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::io {

/// A file and the names of its columns.
struct CsvHeader {
  std::filesystem::path path;
  std::vector<std::string> header;
  char separator = ',';  ///< between cells

  std::optional<std::size_t> column(std::string_view name) const;
};

/// Takes rows off a file one by one. Cells are text, trimmed of blanks unless quoted.
///
/// Takes a byte-order mark, CRLF, quoted cells with commas and line breaks, blank lines at the end,
/// and ';' or tab instead of ',' if the header has those and no comma. Throws base::Error: empty
/// file, no header, repeated or empty column name, ragged row ("nodes.csv:7: expected 5 cells as in
/// the header, got 4"), open quote, NUL byte, invalid UTF-8.
class CsvReader {
 public:
  explicit CsvReader(const std::filesystem::path& path);
  /// Of a text; `path` names it in messages.
  CsvReader(const std::filesystem::path& path, std::string text);

  const CsvHeader& head() const { return head_; }
  /// No fewer than there are, for who wants to reserve memory.
  std::size_t max_rows() const;

  /// Goes to the next row; false: there is none.
  bool next();
  /// Of the current row; the list is there until the next one, the texts as long as the reader.
  std::span<const std::string_view> cells() const { return cells_; }
  std::int64_t line() const { return row_line_; }  ///< in the file, from 1
  /// "FILE:LINE: column 'NAME'", the start of a message about a cell of the current row.
  std::string place(std::size_t column) const { return place(row_line_, column); }
  std::string place(std::int64_t line, std::size_t column) const;  ///< of an earlier row

 private:
  friend class CsvRows;
  bool at_end() const { return at_ == text_.size(); }
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  bool at_blank() const {
    return text_[at_] != head_.separator && (text_[at_] == ' ' || text_[at_] == '\t');
  }
  void skip_blanks();
  void skip_line_end();
  bool skip_blank_line();
  void take_cells();
  std::string_view take_cell();
  std::string_view take_quoted_cell();
  [[noreturn]] void fail_ragged(std::int64_t line, const std::string& found) const;

  CsvHeader head_;
  std::string text_;  // without NUL, so that the one behind its end ends every loop
  std::array<bool, 256> ends_cell_ = {};
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t blank_line_ = 0;  // the first one that was skipped
  std::vector<std::string_view> cells_;
  std::int64_t row_line_ = 0;
};

/// Counts through anything that has operator[].
template <typename Container>
class IndexIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = typename Container::value_type;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  IndexIterator(const Container& container, std::size_t index)
      : container_(&container), index_(index) {}
  value_type operator*() const { return (*container_)[index_]; }
  IndexIterator& operator++() {
    ++index_;
    return *this;
  }
  IndexIterator operator++(int) { return {*container_, index_++}; }
  bool operator==(const IndexIterator& other) const { return index_ == other.index_; }

 private:
  const Container* container_;
  std::size_t index_;
};

/// One row of a table, a range of texts.
class CsvRow {
 public:
  using const_iterator = IndexIterator<CsvRow>;
  using iterator = const_iterator;
  using value_type = std::string_view;

  CsvRow(const char* text, std::span<const std::uint32_t> ends) : text_(text), ends_(ends) {}

  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t column) const {
    const std::uint32_t begin = column == 0 ? 0 : ends_[column - 1];
    return {text_ + begin, ends_[column] - begin};
  }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }

 private:
  const char* text_;
  std::span<const std::uint32_t> ends_;  // of each cell
};

/// The rows of a table: the text of the file and four bytes a cell.
class CsvRows {
 public:
  using const_iterator = IndexIterator<CsvRows>;
  using iterator = const_iterator;
  using value_type = CsvRow;

  CsvRows() = default;
  /// Takes all rows of `reader` and the line of each.
  CsvRows(CsvReader& reader, std::vector<std::int64_t>& lines);

  std::size_t size() const { return begin_.size(); }
  bool empty() const { return begin_.empty(); }
  CsvRow operator[](std::size_t row) const {
    return {text_.data() + begin_[row], std::span(end_).subspan(row * columns_, columns_)};
  }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }

 private:
  std::size_t columns_ = 0;
  std::string text_;                  // of all cells, one behind the other
  std::vector<std::uint64_t> begin_;  // [rows]
  std::vector<std::uint32_t> end_;    // [rows, columns], from the row's begin
};

/// All cells as text.
struct CsvTable : CsvHeader {
  CsvRows rows;
  std::vector<std::int64_t> line;  ///< of each row in the file, from 1

  /// "FILE:LINE: column 'NAME'", the start of a message about one cell.
  std::string place(std::size_t row, std::size_t column) const;
};

/// What is left of the file.
CsvTable read_csv(CsvReader reader);
CsvTable read_csv(const std::filesystem::path& path);

/// Whole text as a finite number; nullopt otherwise ("", "1.5x", "nan", "inf", "0x10").
std::optional<double> to_number(std::string_view text);
std::optional<std::int64_t> to_integer(std::string_view text);

/// The shortest text that to_number() reads back to the same.
std::string number_text(double value);

/// `text` as one cell, quoted if it has to be.
std::string csv_cell(std::string_view text);

}  // namespace mpssm::io
