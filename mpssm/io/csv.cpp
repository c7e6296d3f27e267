// SPDX-License-Identifier: MIT
#include "mpssm/io/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <limits>
#include <unordered_set>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/gzip.h"

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

// Whether all eight bytes are characters of ASCII other than NUL.
bool are_plain(const char* bytes) {
  const auto word = load<std::uint64_t>(bytes);
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  return ((word | (word - kOnes)) & kHighBits) == 0;
}

void check_text(const std::filesystem::path& path, std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '\0') {
    while (at + 8 <= text.size() && are_plain(text.data() + at)) at += 8;
    if (at == text.size()) return;
    const std::size_t size = text[at] == '\0' ? 0 : utf8_size(text.substr(at, 4));
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

void check_header(const CsvHeader& table) {
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

std::optional<std::size_t> CsvHeader::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

CsvReader::CsvReader(const std::filesystem::path& path) : CsvReader(path, read_text(path)) {}

CsvReader::CsvReader(const std::filesystem::path& path, std::string text)
    : head_{.path = path, .header = {}}, text_(std::move(text)) {
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (at_end()) throw Error(path, "expected a line of column names, got an empty file");
  check_text(path, std::string_view(text_).substr(at_));
  head_.separator = find_separator(std::string_view(text_).substr(at_));
  for (const char c : {head_.separator, '\n', '\r', '\0'}) {
    ends_cell_[static_cast<unsigned char>(c)] = true;
  }
  if (skip_blank_line()) {
    throw Error(place_of(path, 1), "expected a line of column names, got a blank line");
  }
  take_cells();
  head_.header.assign(cells_.begin(), cells_.end());
  check_header(head_);
}

std::size_t CsvReader::max_rows() const {
  const std::string_view rest = std::string_view(text_).substr(at_);
  const auto line_ends =
      std::count(rest.begin(), rest.end(), '\n') + std::count(rest.begin(), rest.end(), '\r');
  // A cell and what ends it take a byte at least.
  return std::min(static_cast<std::size_t>(line_ends), rest.size() / head_.header.size()) + 1;
}

bool CsvReader::next() {
  while (!at_end()) {
    row_line_ = line_;
    if (skip_blank_line()) {
      if (blank_line_ == 0) blank_line_ = row_line_;
      continue;
    }
    if (blank_line_ != 0) fail_ragged(blank_line_, "a blank line; remove it");
    take_cells();
    if (cells_.size() != head_.header.size()) {
      fail_ragged(row_line_, std::to_string(cells_.size()));
    }
    return true;
  }
  return false;
}

std::string CsvReader::place(std::int64_t line, std::size_t column) const {
  return fmt::format("{}: column '{}'", place_of(head_.path, line),
                     printable(head_.header.at(column)));
}

void CsvReader::fail_ragged(std::int64_t line, const std::string& found) const {
  const std::size_t columns = head_.header.size();
  throw Error(place_of(head_.path, line),
              fmt::format("expected {}{} as in the header, got {}", columns,
                          columns == 1 ? " cell" : " cells", found));
}

void CsvReader::skip_blanks() {
  while (at_blank()) ++at_;
}

void CsvReader::skip_line_end() {
  if (at_end()) return;
  at_ += text_[at_] == '\r' && text_[at_ + 1] == '\n' ? 2 : 1;
  ++line_;
}

bool CsvReader::skip_blank_line() {
  const std::size_t start = at_;
  skip_blanks();
  if (at_end() || at_line_end()) {
    skip_line_end();
    return true;
  }
  at_ = start;
  return false;
}

void CsvReader::take_cells() {
  cells_.clear();
  cells_.push_back(take_cell());
  while (text_[at_] == head_.separator) {
    ++at_;
    cells_.push_back(take_cell());
  }
  skip_line_end();
}

std::string_view CsvReader::take_cell() {
  skip_blanks();
  if (text_[at_] == kQuote) return take_quoted_cell();
  const char* const begin = text_.data() + at_;
  const char* end = begin;
  while (!ends_cell_[static_cast<unsigned char>(*end)]) ++end;
  at_ += static_cast<std::size_t>(end - begin);
  while (end > begin && kBlanks.find(end[-1]) != std::string_view::npos) --end;
  return {begin, end};
}

// Two quotes inside become one where they stand: what was read is not needed any more.
std::string_view CsvReader::take_quoted_cell() {
  const std::int64_t first_line = line_;
  const std::size_t begin = at_ + 1;
  std::size_t written = begin;
  while (true) {
    ++at_;  // the quote that opens the cell, or the second of two
    const std::size_t end = text_.find(kQuote, at_);
    if (end == std::string::npos) {
      throw Error(place_of(head_.path, first_line),
                  "expected a closing quote '\"', got the end of the file");
    }
    const std::size_t size = end - at_;
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                        text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    std::memmove(&text_[written], &text_[at_], size);
    written += size;
    at_ = end + 1;
    if (text_[at_] != kQuote) break;
    text_[written++] = kQuote;
  }
  skip_blanks();
  if (!ends_cell_[static_cast<unsigned char>(text_[at_])]) {
    throw Error(place_of(head_.path, line_),
                "expected the cell to end after its closing quote, got '" +
                    printable(std::string_view(text_).substr(at_, 20)) +
                    "'; write a quote inside a cell twice");
  }
  return std::string_view(text_).substr(begin, written - begin);
}

CsvRows::CsvRows(CsvReader& reader, std::vector<std::int64_t>& lines)
    : columns_(reader.head().header.size()) {
  const std::size_t max_rows = reader.max_rows();
  begin_.reserve(max_rows);
  end_.reserve(max_rows * columns_);
  lines.reserve(max_rows);
  // The cells move together where they stand, over what was read already.
  char* const text = reader.text_.data();
  std::uint64_t written = 0;
  while (reader.next()) {
    const std::uint64_t begin = written;
    for (const std::string_view cell : reader.cells()) {
      std::memmove(text + written, cell.data(), cell.size());
      written += cell.size();
      if (written - begin > std::numeric_limits<std::uint32_t>::max()) {
        throw Error(place_of(reader.head().path, reader.line()),
                    "expected a row of less than 4 GiB, got a longer one");
      }
      end_.push_back(static_cast<std::uint32_t>(written - begin));
    }
    begin_.push_back(begin);
    lines.push_back(reader.line());
  }
  text_ = std::move(reader.text_);
}

std::string CsvTable::place(std::size_t row, std::size_t column) const {
  return fmt::format("{}: column '{}'", place_of(path, line.at(row)), printable(header.at(column)));
}

CsvTable read_csv(CsvReader reader) {
  CsvTable table;
  static_cast<CsvHeader&>(table) = reader.head();
  table.rows = CsvRows(reader, table.line);
  return table;
}

CsvTable read_csv(const std::filesystem::path& path) { return read_csv(CsvReader(path)); }

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
