// SPDX-License-Identifier: MIT
#include "mpssm/report/text.h"

#include <algorithm>
#include <fmt/core.h>
#include <string_view>
#include <utility>

#include "mpssm/base/utf8.h"

namespace mpssm::report {
namespace {

/// Columns that the text takes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), base::starts_character));
}

bool looks_like_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_of("0123456789") != std::string_view::npos &&
         cell.find_first_not_of("0123456789.+-e±() %x") == std::string_view::npos;
}

}  // namespace

std::string table(const Rows& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], width_of(row[c]));
  }
  std::string result;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string fill(width[c] - width_of(row[c]), ' ');
      const bool right = looks_like_number(row[c]);
      line += (c > 0 ? "  " : "") + (right ? fill + row[c] : row[c] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

std::vector<std::size_t> rows_to_show(std::size_t count) {
  constexpr std::size_t kRows = 24;
  std::vector<std::size_t> rows;
  if (count <= kRows) {
    for (std::size_t i = 0; i < count; ++i) rows.push_back(i);
    return rows;
  }
  // 1, 2, 3, 5 and their tens: what happens early is told in detail.
  for (std::size_t ten = 1; ten <= count; ten *= 10) {
    for (const std::size_t digit : {1, 2, 3, 5}) {
      if (digit * ten <= count) rows.push_back(digit * ten - 1);
    }
  }
  if (rows.back() != count - 1) rows.push_back(count - 1);
  return rows;
}

std::string shown(double value) { return fmt::format("{:.6g}", value); }
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string counted(std::int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", shown(count), what, count == 1 ? "" : "s");
}
std::string percent(double share) { return fmt::format("{:.4g}", 100.0 * share); }

std::string coloured(std::string_view text) {
  constexpr std::string_view kPlain = "\033[0m";
  constexpr std::string_view kBold = "\033[1m";
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"mpssm:", "\033[1;31m"},
                                                                      {"note:", "\033[33m"},
                                                                      {"next:", "\033[32m"},
                                                                      {"report:", "\033[32m"},
                                                                      {"picture:", "\033[32m"}};
  for (const auto& [word, colour] : kWords) {
    if (text.starts_with(word)) {
      return fmt::format("{}{}{}{}", colour, word, kPlain, text.substr(word.size()));
    }
  }
  // Tables end with a line break of their own, see table().
  const std::size_t end = text.find('\n');
  const bool is_table =
      end != std::string_view::npos && end + 1 < text.size() && text.ends_with('\n');
  if (!is_table) return std::string(text);
  return fmt::format("{}{}{}{}", kBold, text.substr(0, end), kPlain, text.substr(end));
}

}  // namespace mpssm::report
