// SPDX-License-Identifier: MIT
// Round values along an axis, with labels that stay short at every size of the values.
#include "mpssm/report/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <string_view>

#include "mpssm/report/svg.h"

namespace mpssm::report::svg {
namespace {

// Values beyond are drawn there: products and differences of axis ends stay finite.
constexpr double kHuge = 1e300;
constexpr double kTiny = 1e-300;

constexpr std::string_view kMinus = "\u2212";

std::string fixed(double value, int decimals) {
  char digits[400];  // the largest double has 309
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::fixed, decimals);
  const std::string_view written(digits, end.ptr - digits);
  return written.starts_with('-') ? std::string(kMinus) + std::string(written.substr(1))
                                  : std::string(written);
}

/// `factor` times a power of ten with the exponent raised; an empty factor is 1.
Tick power_tick(double fraction, const std::string& factor, int exponent) {
  const std::string base = factor.empty() ? "10" : factor + "\u00d7" + "10";
  const std::string raised = fixed(exponent, 0);
  return {fraction,
          fmt::format("{}<tspan dy=\"-.45em\" font-size=\".75em\">{}</tspan>", base, raised),
          text_width(base) + 0.75 * text_width(raised)};
}

Tick plain_tick(double fraction, const std::string& label) {
  return {fraction, label, text_width(label)};
}

/// A step of 1, 2 or 5 times a power of ten.
struct Step {
  int factor;
  int exponent;
  double size() const { return factor * std::pow(10.0, exponent); }
};

Step step_at_least(double size) {
  Step step{1, static_cast<int>(std::floor(std::log10(size)))};
  for (const int factor : {1, 2, 5}) {
    step.factor = factor;
    if (step.size() >= size * (1.0 - 1e-9)) return step;
  }
  return {1, step.exponent + 1};
}

/// Small and large numbers share one power of ten, so that the factors can be compared.
std::vector<Tick> linear_ticks(const Axis& axis, int most) {
  const Step step = step_at_least((axis.high - axis.low) / most);
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  const int exponent = static_cast<int>(std::floor(std::log10(largest)));
  const bool is_plain = exponent >= -4 && exponent < 6;
  const int shift = is_plain ? 0 : exponent;
  const int decimals = std::max(0, shift - step.exponent);
  std::vector<Tick> out;
  const double slack = 1e-9;  // an end of the axis that is a tick up to rounding
  const double last = std::floor(axis.high / step.size() + slack);
  for (double k = std::ceil(axis.low / step.size() - slack); k <= last; ++k) {
    const double fraction = axis.fraction(k * step.size());
    const double factor = k * step.factor * std::pow(10.0, step.exponent - shift);
    const std::string digits = k == 0.0 ? "0" : fixed(factor, decimals);
    if (is_plain || k == 0.0) {
      out.push_back(plain_tick(fraction, digits));
    } else {
      out.push_back(power_tick(fraction, digits == "1" ? "" : digits, exponent));
    }
  }
  return out;
}

Tick decade_tick(const Axis& axis, int factor, int exponent, bool is_plain) {
  const double value = factor * std::pow(10.0, exponent);
  const double fraction = axis.fraction(value);
  if (is_plain) return plain_tick(fraction, fixed(value, std::max(0, -exponent)));
  if (exponent == 0) return plain_tick(fraction, std::to_string(factor));
  return power_tick(fraction, factor == 1 ? "" : std::to_string(factor), exponent);
}

std::vector<Tick> log_ticks(const Axis& axis, int most) {
  constexpr double kSlack = 1e-9;
  const double decades = axis.high - axis.low;
  const int first = static_cast<int>(std::ceil(axis.low - kSlack));
  const int last = static_cast<int>(std::floor(axis.high + kSlack));
  const bool is_plain = axis.low > -3.5 && axis.high < 4.5;
  std::vector<Tick> out;
  if (decades >= 2.0) {
    const int stride =
        std::max(1, static_cast<int>(std::lround(step_at_least(decades / most).size())));
    for (int k = first; k <= last; ++k) {
      if (k % stride == 0) out.push_back(decade_tick(axis, 1, k, is_plain));
    }
  } else if (decades >= 1.0) {
    for (int k = first - 1; k <= last; ++k) {
      for (const int factor : {1, 2, 5}) {
        const double place = k + std::log10(factor);
        if (place < axis.low - kSlack || place > axis.high + kSlack) continue;
        out.push_back(decade_tick(axis, factor, k, is_plain));
      }
    }
  } else {
    const Axis values{std::pow(10.0, axis.low), std::pow(10.0, axis.high)};
    out = linear_ticks(values, most);
    for (Tick& tick : out) {
      const double value = values.low + tick.fraction * (values.high - values.low);
      tick.fraction = axis.fraction(value);
    }
  }
  return out;
}

}  // namespace

bool Axis::has(double value) const { return std::isfinite(value) && (!log || value > 0.0); }

double Axis::fraction(double value) const {
  const double place =
      log ? std::log10(std::clamp(value, kTiny, kHuge)) : std::clamp(value, -kHuge, kHuge);
  return std::clamp((place - low) / (high - low), 0.0, 1.0);
}

Axis fit_axis(std::span<const double> values, bool log, double margin) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Axis axis{kInfinity, -kInfinity, log};
  for (const double value : values) {
    if (!axis.has(value)) continue;
    axis.low = std::min(axis.low, std::clamp(value, log ? kTiny : -kHuge, kHuge));
    axis.high = std::max(axis.high, std::clamp(value, log ? kTiny : -kHuge, kHuge));
  }
  if (axis.low > axis.high) return {0.0, 1.0, log};
  if (log) {
    axis.low = std::log10(axis.low);
    axis.high = std::log10(axis.high);
  }
  // Closer values have labels of too many digits to read.
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  if (axis.high - axis.low <= (log ? 1e-6 : std::max(1e-9 * largest, kTiny))) {
    const double middle = axis.low / 2 + axis.high / 2;
    const double half = log || largest < kTiny ? 1.0 : 0.5 * largest;
    return {middle - half, middle + half, log};
  }
  const double more = margin * (axis.high - axis.low);
  return {axis.low - more, axis.high + more, log};
}

std::vector<Tick> ticks(const Axis& axis, int most) {
  return axis.log ? log_ticks(axis, most) : linear_ticks(axis, most);
}

double widest(std::span<const Tick> ticks) {
  double width = 0.0;
  for (const Tick& tick : ticks) width = std::max(width, tick.width);
  return width;
}

}  // namespace mpssm::report::svg
