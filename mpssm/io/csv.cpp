// SPDX-License-Identifier: MIT
#include "mpssm/io/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <unordered_set>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/io/file.h"

namespace mpssm::io {
namespace {

using base::Error;
using base::printable;
using base::utf8_size;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlanks = " \t";
constexpr char kQuote = '"';

std::string place_of(const std::filesystem::path& path, std::int64_t line) {
  return fmt::format("{}:{}", path.string(), line);
}

void check_text(const std::filesystem::path& path, std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '\0') {
    const std::size_t size = utf8_size(text.substr(at, 4));
    if (size == 0) break;
    at += size;
  }
  if (at == text.size()) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Error(place_of(path, line),
              fmt::format("expected text in UTF-8, got {}; save the file as UTF-8",
                          text[at] == '\0' ? "a NUL byte" : "other bytes"));
}

// ',' unless the first line has none and has ';' or tabs.
char find_separator(std::string_view text) {
  char found = ',';
  bool in_quotes = false;
  for (const char c : text) {
    if (c == kQuote) in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == ',') return c;
    if (c == '\n' || c == '\r') break;
    if (found == ',' && (c == ';' || c == '\t')) found = c;
  }
  return found;
}

// Takes records off the front of a text, one by one.
class Records {
 public:
  Records(const std::filesystem::path& path, std::string_view text)
      : path_(path), text_(text), separator_(find_separator(text)) {}

  bool at_end() const { return at_ == text_.size(); }
  std::int64_t line() const { return line_; }

  bool skip_blank_line() {
    const std::size_t start = at_;
    skip_blanks();
    if (at_end() || at_line_end()) {
      skip_line_end();
      return true;
    }
    at_ = start;
    return false;
  }

  std::vector<std::string> take(std::size_t expected_cells) {
    std::vector<std::string> cells;
    cells.reserve(expected_cells);
    cells.push_back(take_cell());
    while (!at_end() && text_[at_] == separator_) {
      ++at_;
      cells.push_back(take_cell());
    }
    skip_line_end();
    return cells;
  }

 private:
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  bool at_blank() const {
    return text_[at_] != separator_ && kBlanks.find(text_[at_]) != std::string_view::npos;
  }

  void skip_blanks() {
    while (!at_end() && at_blank()) ++at_;
  }

  void skip_line_end() {
    if (at_end()) return;
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    ++line_;
  }

  std::string take_cell() {
    skip_blanks();
    if (!at_end() && text_[at_] == kQuote) return take_quoted_cell();
    const std::size_t start = at_;
    while (!at_end() && text_[at_] != separator_ && !at_line_end()) ++at_;
    const std::string_view cell = text_.substr(start, at_ - start);
    return std::string(cell.substr(0, cell.find_last_not_of(kBlanks) + 1));
  }

  std::string take_quoted_cell() {
    const std::int64_t first_line = line_;
    std::string cell;
    while (true) {
      ++at_;  // the quote that opens the cell, or the second of two
      const std::size_t end = text_.find(kQuote, at_);
      if (end == std::string_view::npos) {
        throw Error(place_of(path_, first_line),
                    "expected a closing quote '\"', got the end of the file");
      }
      const std::string_view part = text_.substr(at_, end - at_);
      cell += part;
      line_ += std::count(part.begin(), part.end(), '\n');
      at_ = end + 1;
      if (at_end() || text_[at_] != kQuote) break;
      cell += kQuote;
    }
    skip_blanks();
    if (!at_end() && text_[at_] != separator_ && !at_line_end()) {
      throw Error(place_of(path_, line_),
                  "expected the cell to end after its closing quote, got '" +
                      printable(text_.substr(at_, 20)) + "'; write a quote inside a cell twice");
    }
    return cell;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

void check_header(const CsvTable& table) {
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string& name = table.header[i];
    if (name.empty()) {
      throw Error(place_of(table.path, 1),
                  fmt::format("expected a name for each column, got none for column {}", i + 1));
    }
    if (!names.insert(name).second) {
      throw Error(place_of(table.path, 1),
                  "expected each column once, got '" + printable(name) + "' twice; rename one");
    }
  }
}

void take_rows(Records& records, CsvTable& table) {
  const std::size_t columns = table.header.size();
  const auto fail_ragged = [&](std::int64_t line, const std::string& found) {
    throw Error(place_of(table.path, line),
                fmt::format("expected {}{} as in the header, got {}", columns,
                            columns == 1 ? " cell" : " cells", found));
  };
  std::int64_t blank_line = 0;
  while (!records.at_end()) {
    const std::int64_t line = records.line();
    if (records.skip_blank_line()) {
      if (blank_line == 0) blank_line = line;
      continue;
    }
    if (blank_line != 0) fail_ragged(blank_line, "a blank line; remove it");
    std::vector<std::string> cells = records.take(columns);
    if (cells.size() != columns) fail_ragged(line, std::to_string(cells.size()));
    table.rows.push_back(std::move(cells));
    table.line.push_back(line);
  }
}

std::string_view without_plus(std::string_view text) {
  const bool has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return has_plus ? text.substr(1) : text;
}

// All of `text` or nothing.
template <typename T>
std::optional<T> parse(std::string_view text) {
  const std::string_view digits = without_plus(text);
  T value = {};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

std::string CsvTable::place(std::size_t row, std::size_t column) const {
  return fmt::format("{}: column '{}'", place_of(path, line.at(row)), printable(header.at(column)));
}

CsvTable read_csv(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  std::string_view text = content;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) throw Error(path, "expected a line of column names, got an empty file");
  check_text(path, text);
  Records records(path, text);
  if (records.skip_blank_line()) {
    throw Error(place_of(path, 1), "expected a line of column names, got a blank line");
  }
  CsvTable table = {.path = path, .header = records.take(0), .rows = {}, .line = {}};
  check_header(table);
  take_rows(records, table);
  return table;
}

std::optional<double> to_number(std::string_view text) {
  const std::optional<double> value = parse<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> to_integer(std::string_view text) { return parse<std::int64_t>(text); }

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string csv_cell(std::string_view text) {
  constexpr std::string_view kSpecial = ",;\t\"\r\n";
  const bool needs_quotes = text.find_first_of(kSpecial) != std::string_view::npos ||
                            text.starts_with(' ') || text.ends_with(' ');
  if (!needs_quotes) return std::string(text);
  std::string cell(1, kQuote);
  for (const char c : text) {
    if (c == kQuote) cell += kQuote;
    cell += c;
  }
  return cell + kQuote;
}

}  // namespace mpssm::io
