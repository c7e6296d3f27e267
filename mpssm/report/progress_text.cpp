// SPDX-License-Identifier: MIT
#include "mpssm/report/progress_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>

#include "mpssm/base/utf8.h"

namespace mpssm::report {
namespace {

constexpr const char* kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                   "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr const char* kPlain[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
constexpr std::size_t kWidestSparkline = 40;
constexpr std::size_t kNarrowestSparkline = 6;

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return base::starts_character(c); }));
}

struct Part {
  std::string text;
  int matters = 0;  ///< parts that matter least go first
  const char* colour = "";
};

}  // namespace

std::string duration(double seconds) {
  if (seconds < 10.0) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

TerminalStyle terminal_style(std::size_t width) {
  const auto says = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::string_view locale = !says("LC_ALL").empty()     ? says("LC_ALL")
                                  : !says("LC_CTYPE").empty() ? says("LC_CTYPE")
                                                              : says("LANG");
  const auto has = [&](const char* part) { return locale.find(part) != std::string_view::npos; };
  return {.width = width,
          .colours = says("NO_COLOR").empty() && says("TERM") != "dumb",
          .blocks = has("UTF-8") || has("utf8") || has("UTF8") || has("utf-8")};
}

std::string sparkline(std::span<const double> values, std::size_t width, bool blocks) {
  double low = INFINITY, high = -INFINITY;
  std::size_t finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    ++finite;
  }
  if (finite < 2 || width == 0) return "";
  const std::size_t count = std::min(width, values.size());
  std::string line;
  for (std::size_t k = 0; k < count; ++k) {
    const double value = values[(k + 1) * values.size() / count - 1];
    if (!std::isfinite(value)) {
      line += " ";
      continue;
    }
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    line += (blocks ? kBlocks : kPlain)[static_cast<std::size_t>(std::lround(7.0 * share))];
  }
  return line;
}

std::string progress_text(const ProgressText& progress, const TerminalStyle& style) {
  const bool is_last = progress.step == progress.num_steps;
  std::vector<Part> parts = {
      {fmt::format("step {}/{}", progress.step, progress.num_steps), 9},
      {fmt::format("loss {:.4f}", progress.loss), 3},
  };
  const double value = progress.values.empty() ? NAN : progress.values.back();
  const std::size_t place = std::isnan(value) ? 0 : 4;
  if (place > 0) {
    constexpr const char* kGreen = "\033[32m";
    parts.push_back({fmt::format("val {} {:.4f}", progress.metric, value), 8,
                     value == progress.best ? kGreen : ""});
    parts.push_back({fmt::format("best {:.4f}", progress.best), 2});
  }
  constexpr const char* kDim = "\033[2m";
  parts.push_back({duration(progress.seconds) +
                       (is_last ? "" : ", " + duration(progress.seconds_left) + " left"),
                   4, kDim});
  const auto columns = [&] {
    std::size_t sum = 0;
    for (const Part& part : parts) sum += columns_of(part.text) + 2;
    return sum - 2;
  };
  // A terminal wraps at its last column.
  const std::size_t room = style.width == 0 ? SIZE_MAX : style.width - 1;
  if (place > 0 && style.width > 0 && columns() + 2 + kNarrowestSparkline <= room) {
    constexpr const char* kCyan = "\033[36m";
    const std::size_t width = std::min(room - columns() - 2, kWidestSparkline);
    const std::string line = sparkline(progress.values, width, style.blocks);
    if (!line.empty()) parts.insert(parts.begin() + 4, {line, 1, kCyan});
  }
  while (columns() > room && parts.size() > 1) {
    parts.erase(std::min_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.matters < b.matters;
    }));
  }
  std::string line;
  for (const Part& part : parts) {
    const bool is_coloured = style.colours && *part.colour != '\0';
    line += (line.empty() ? "" : "  ") +
            (is_coloured ? part.colour + part.text + "\033[0m" : part.text);
  }
  if (columns() > room) line.resize(room);  // "step ..." alone, and that is ASCII
  return line;
}

}  // namespace mpssm::report
