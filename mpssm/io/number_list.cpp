// SPDX-License-Identifier: MIT
#include "mpssm/io/number_list.h"

#include <algorithm>
#include <fmt/core.h>
#include <string_view>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/csv.h"

namespace mpssm::io {

using base::Error;
using base::printable;

std::vector<std::int64_t> parse_number_list(const std::string& where, const std::string& list,
                                            std::int64_t max_value, std::int64_t max_count) {
  const auto refuse = [&](const std::string& why) {
    throw Error(where,
                fmt::format("expected numbers like 1:100, 0:1000:50 or 11,12,100{}, got '{}'", why,
                            printable(list)));
  };
  const auto number = [&](std::string_view item) {
    const auto value = to_integer(item);
    if (!value || *value < 0) refuse("");
    if (*value > max_value) refuse(fmt::format(" up to {}", max_value));
    return *value;
  };
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = std::string_view(list).substr(begin, end - begin);
    const std::size_t colon = item.find(':');
    const std::int64_t first = number(item.substr(0, colon));
    std::int64_t last = first;
    std::int64_t stride = 1;
    if (colon != std::string_view::npos) {
      const std::string_view rest = item.substr(colon + 1);
      const std::size_t second = rest.find(':');
      last = number(rest.substr(0, second));
      if (second != std::string_view::npos) stride = number(rest.substr(second + 1));
    }
    if (last < first || stride < 1) refuse("");
    if ((last - first) / stride + 1 + std::ssize(numbers) > max_count) {
      refuse(fmt::format(", at most {} of them", max_count));
    }
    for (std::int64_t next = first; next <= last; next += stride) numbers.push_back(next);
    begin = end + 1;
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::int64_t> parse_ranges(const std::string& where, const std::string& list) {
  const auto fail = [&] {
    throw base::Error(
        where, fmt::format("expected numbers like 0,2,5 or 0-9, got '{}'", base::printable(list)));
  };
  std::vector<std::int64_t> values;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = std::string_view(list).substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    const auto first = to_integer(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_integer(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last - *first > 10'000) fail();
    for (std::int64_t value = *first; value <= *last; ++value) values.push_back(value);
    begin = end + 1;
  }
  return values;
}

}  // namespace mpssm::io
