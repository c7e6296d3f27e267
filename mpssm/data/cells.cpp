// SPDX-License-Identifier: MIT
#include "mpssm/data/cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

namespace mpssm::data {
namespace {

constexpr std::size_t kLongestWord = 12;

std::string lower(std::string_view text) {
  std::string word(text.substr(0, kLongestWord + 1));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return word;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes `prefix` off the front if it is there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void trim(std::string_view& text) {
  while (take(text, " ") || take(text, "\xC2\xA0")) continue;
  while (text.ends_with(' ')) text.remove_suffix(1);
}

constexpr std::array<std::string_view, 4> kCurrencies = {"$", "\xE2\x82\xAC", "\xC2\xA3",
                                                         "\xC2\xA5"};
// Blank, the two blanks that do not break a line, apostrophes.
constexpr std::array<std::string_view, 5> kGroupMarks = {" ", "\xC2\xA0", "\xE2\x80\xAF", "'",
                                                         "\xE2\x80\x99"};

// Digits up to a sign that is none, with marks between groups of three taken out; false: a group of
// another size.
bool take_whole_part(std::string_view& text, char other_mark, std::string& digits) {
  std::string_view mark;
  std::size_t in_group = 0;
  bool has_groups = false;
  while (!text.empty()) {
    if (is_digit(text.front())) {
      digits += text.front();
      text.remove_prefix(1);
      ++in_group;
      continue;
    }
    std::string_view here = text.front() == other_mark ? text.substr(0, 1) : std::string_view();
    for (const std::string_view known : kGroupMarks) {
      if (here.empty() && text.starts_with(known)) here = known;
    }
    const bool goes_on = text.size() > here.size() && is_digit(text[here.size()]);
    if (here.empty() || !goes_on) break;
    const bool fits = has_groups ? in_group == 3 && here == mark : in_group >= 1 && in_group <= 3;
    if (!fits) return false;
    mark = here;
    has_groups = true;
    in_group = 0;
    text.remove_prefix(here.size());
  }
  return !has_groups || in_group == 3;
}

// `count` digits, or up to `count` if there are fewer; -1: none.
int take_digits(std::string_view& text, std::size_t least, std::size_t most) {
  int value = 0;
  std::size_t taken = 0;
  while (taken < most && !text.empty() && is_digit(text.front())) {
    value = 10 * value + (text.front() - '0');
    text.remove_prefix(1);
    ++taken;
  }
  return taken >= least ? value : -1;
}

// "12:30", "12:30:15.25", with "Z" or "+02:00" behind it.
bool take_time(std::string_view text, double& day_share) {
  const int hour = take_digits(text, 1, 2);
  if (hour < 0 || hour > 23 || !take(text, ":")) return false;
  const int minute = take_digits(text, 2, 2);
  if (minute < 0 || minute > 59) return false;
  double second = 0.0;
  if (take(text, ":")) {
    const int whole = take_digits(text, 2, 2);
    if (whole < 0 || whole > 59) return false;
    second = whole;
    if (take(text, ".")) {
      if (take_digits(text, 1, 9) < 0) return false;
    }
  }
  if (!take(text, "Z") && (take(text, "+") || take(text, "-"))) {
    if (take_digits(text, 2, 2) < 0) return false;
    take(text, ":");
    take_digits(text, 0, 2);
  }
  day_share = (hour + (minute + second / 60.0) / 60.0) / 24.0;
  return text.empty();
}

// Reads all cells with a value in both ways.
template <typename Parse>
Spelling compare(const io::CsvTable& table, std::size_t column, bool second_wins_ties,
                 const Parse& parse) {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t cells = 0;
  bool differs = false;
  for (const io::CsvRow row : table.rows) {
    const std::string_view cell = row[column];
    if (is_missing(cell)) continue;
    ++cells;
    const auto a = parse(cell, false);
    const auto b = parse(cell, true);
    first += a ? 1 : 0;
    second += b ? 1 : 0;
    differs = differs || (a && b && *a != *b);
  }
  const bool is_tie = first == second;
  const bool is_second = is_tie ? second_wins_ties && differs : second > first;
  return {.second = is_second,
          .is_ambiguous = is_tie && differs,
          .readable = std::max(first, second),
          .cells = cells};
}

}  // namespace

bool is_missing(std::string_view cell) {
  if (cell.empty()) return true;
  if (cell.size() > 4) return false;
  constexpr std::array<std::string_view, 10> kWords = {"na", "n/a", "nan", "null", "-",
                                                       "--", "?",   "#na", "n.a.", "nil"};
  const std::string word = lower(cell);
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() || word == "#n/a";
}

std::optional<double> parse_number(std::string_view cell, bool decimal_comma) {
  if (!decimal_comma) {
    if (const auto number = io::to_number(cell)) return number;
  }
  trim(cell);
  const bool is_percent = cell.ends_with('%');
  if (is_percent) cell.remove_suffix(1);
  trim(cell);
  std::string digits;
  const auto take_sign = [&] {
    if (take(cell, "-") || take(cell, "\xE2\x88\x92")) digits += '-';
    take(cell, "+");
  };
  take_sign();
  for (const std::string_view currency : kCurrencies) {
    if (take(cell, currency) || !cell.ends_with(currency)) continue;
    cell.remove_suffix(currency.size());
  }
  trim(cell);
  if (digits.empty()) take_sign();
  if (cell.empty() || !take_whole_part(cell, decimal_comma ? '.' : ',', digits)) {
    return std::nullopt;
  }
  if (take(cell, decimal_comma ? "," : ".")) {
    digits += '.';
    while (!cell.empty() && is_digit(cell.front())) {
      digits += cell.front();
      cell.remove_prefix(1);
    }
  }
  digits += cell;  // an exponent, or what makes it no number
  const auto number = io::to_number(digits);
  if (!number) return std::nullopt;
  return is_percent ? *number / 100.0 : *number;
}

std::optional<YesNo> parse_yes_no(std::string_view cell) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kPairs = {
      {{"true", "false"},
       {"yes", "no"},
       {"on", "off"},
       {"t", "f"},
       {"y", "n"},
       {"ja", "nein"},
       {"oui", "non"}}};
  if (cell.size() > 5) return std::nullopt;
  const std::string word = lower(cell);
  for (std::size_t i = 0; i < kPairs.size(); ++i) {
    const auto& [yes, no] = kPairs[i];
    if (word == yes || word == no) {
      return YesNo{.value = word == yes, .pair = static_cast<int>(i)};
    }
  }
  return std::nullopt;
}

std::optional<Moment> parse_date(std::string_view cell, DateOrder order) {
  if (cell.size() < 8 || cell.size() > 40 || !is_digit(cell.front())) return std::nullopt;
  const std::size_t first_mark = cell.find_first_of("-/.");
  if (first_mark == std::string_view::npos) return std::nullopt;
  const char mark = cell[first_mark];
  const bool year_first = first_mark == 4;
  std::array<int, 3> parts = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_year = year_first ? i == 0 : i == 2;
    parts[i] = take_digits(cell, is_year ? 4 : 1, is_year ? 4 : 2);
    if (parts[i] < 0) return std::nullopt;
    if (i < 2 && !take(cell, std::string_view(&mark, 1))) return std::nullopt;
  }
  const bool month_first = year_first || order == DateOrder::kMonthFirst;
  const int year = parts[year_first ? 0 : 2];
  const int month = parts[year_first ? 1 : (month_first ? 0 : 1)];
  const int day = parts[year_first ? 2 : (month_first ? 1 : 0)];
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || year < 1000) return std::nullopt;
  Moment moment{.day = std::chrono::sys_days(date).time_since_epoch().count()};
  if (cell.empty()) return moment;
  if (!take(cell, "T") && !take(cell, " ")) return std::nullopt;
  moment.has_time = true;
  if (!take_time(cell, moment.day_share)) return std::nullopt;
  return moment;
}

double year_share(std::int64_t day) {
  using std::chrono::days;
  const std::chrono::year_month_day date{std::chrono::sys_days(days(day))};
  const std::chrono::sys_days start = std::chrono::sys_days(date.year() / 1 / 1);
  constexpr double kDays = 366.0;
  return static_cast<double>((std::chrono::sys_days(days(day)) - start).count()) / kDays;
}

Spelling spelling_of_numbers(const io::CsvTable& table, std::size_t column) {
  return compare(table, column, table.separator != ',',
                 [](std::string_view cell, bool second) { return parse_number(cell, second); });
}

Spelling spelling_of_dates(const io::CsvTable& table, std::size_t column) {
  bool has_slashes = false;
  const auto parse = [&](std::string_view cell, bool second) -> std::optional<double> {
    const auto moment = parse_date(cell, second ? DateOrder::kMonthFirst : DateOrder::kDayFirst);
    if (!moment) return std::nullopt;
    has_slashes = has_slashes || cell.find('/') != std::string_view::npos;
    return static_cast<double>(moment->day) + moment->day_share;
  };
  Spelling found = compare(table, column, /*second_wins_ties=*/false, parse);
  // Points are put between day and month, slashes mostly between month and day.
  if (found.is_ambiguous) found.second = has_slashes;
  return found;
}

}  // namespace mpssm::data
