// SPDX-License-Identifier: MIT
// The shades of the scale are made once, by mixing neighbours of its few colours.
#include "mpssm/report/colour_scale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>

#include "mpssm/report/svg.h"

namespace mpssm::report::svg {
namespace {

constexpr int kShades = 60;
constexpr std::uint8_t kZeroLevel = kShades;
constexpr std::uint8_t kInvalidLevel = kShades + 1;
constexpr std::string_view kZeroColour = "#c5ddf3";  // none of the warm colours of the scale

constexpr double kBar = 18.0;      // width of the colour bar
constexpr double kSpecial = 24.0;  // height of a line of its legend
constexpr double kSwatch = 14.0;

std::string mixed(std::string_view from, std::string_view to, double share) {
  std::string out = "#";
  for (int channel = 1; channel < 7; channel += 2) {
    const auto value = [&](std::string_view colour) {
      int result = 0;
      std::from_chars(colour.data() + channel, colour.data() + channel + 2, result, 16);
      return result;
    };
    constexpr std::string_view kDigits = "0123456789abcdef";
    const long level = std::lround(value(from) + share * (value(to) - value(from)));
    out += kDigits[level / 16];
    out += kDigits[level % 16];
  }
  return out;
}

struct Shades {
  Shades() {
    for (int i = 0; i < kShades; ++i) {
      const double place = i * (kNumColours - 1.0) / (kShades - 1.0);
      const int from = std::min(static_cast<int>(place), kNumColours - 2);
      shades[i] = mixed(kSequential[from], kSequential[from + 1], place - from);
      colours[i] = shades[i];
    }
    colours[kZeroLevel] = kZeroColour;
    colours[kInvalidLevel] = kGrey;
  }
  std::array<std::string, kShades> shades;
  std::array<std::string_view, kShades + 2> colours;
};

}  // namespace

ColourScale::ColourScale(std::span<const double> values, bool log)
    : axis_(fit_axis(values, log, 0.0)), ticks_(svg::ticks(axis_, 6)) {
  for (const double value : values) {
    has_infinite_ |= !std::isfinite(value);
    if (!log || !std::isfinite(value)) continue;
    has_zero_ |= value == 0.0;
    has_negative_ |= value < 0.0;
  }
}

std::span<const std::string_view> ColourScale::colours() {
  static const Shades kAll;
  return kAll.colours;
}

std::uint8_t ColourScale::level(double value) const {
  if (!std::isfinite(value)) return kInvalidLevel;
  if (!axis_.has(value)) return kZeroLevel;
  return static_cast<std::uint8_t>(std::min(axis_.fraction(value) * kShades, kShades - 0.5));
}

std::vector<ColourScale::Special> ColourScale::specials() const {
  std::vector<Special> out;
  if (has_negative_) {
    out.push_back({kZeroLevel, has_zero_ ? "zero or less" : "less than zero"});
  } else if (has_zero_) {
    out.push_back({kZeroLevel, "zero"});
  }
  if (has_infinite_) out.push_back({kInvalidLevel, "not finite"});
  return out;
}

double ColourScale::bar_width() const {
  double width = kBar + 8 + widest(ticks_) + 28;  // the label stands upright beside the ticks
  for (const Special& special : specials()) {
    width = std::max(width, kSwatch + 6 + text_width(special.name));
  }
  return width;
}

std::string ColourScale::bar(double x, double y, double height, std::string_view label) const {
  const std::vector<Special> extra = specials();
  const double length =
      height - (extra.empty() ? 0.0 : 8 + kSpecial * static_cast<double>(extra.size()));
  std::string out = "<g shape-rendering=\"crispEdges\">\n";
  for (int i = 0; i < kShades; ++i) {
    // Each down to the end, under the next: no seam between them.
    const double from = length * i / kShades;
    out += rectangle(x, y + from, kBar, length - from, colours()[kShades - 1 - i]);
  }
  out += "</g>\n";
  for (const Tick& tick : ticks_) {
    const double at = y + length * (1.0 - tick.fraction);
    out += rectangle(x + kBar, at - 0.5, 4, 1, kGrey);
    out += marked_text(x + kBar + 8, at + 5, "", tick.label);
  }
  if (!label.empty()) {
    const double right = x + kBar + 8 + widest(ticks_) + 22;
    out += text(right, y + length / 2,
                fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                            number(right), number(y + length / 2)),
                shortened(label, length));
  }
  double top = y + length + 8 + kSpecial - kSwatch;
  for (const Special& special : extra) {
    out += rectangle(x, top, kSwatch, kSwatch, colours()[special.level]);
    out += text(x + kSwatch + 6, top + kSwatch - 2.5, "", special.name);
    top += kSpecial;
  }
  return out;
}

}  // namespace mpssm::report::svg
