// SPDX-License-Identifier: MIT
#include "mpssm/task/node_share.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "mpssm/ranks/collectives.h"

namespace mpssm::task {
namespace {

template <typename T>
void put(std::string& text, std::span<const T> values) {
  text.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
template <typename T>
T taken(const std::string& text, std::size_t& at) {
  T value;
  std::memcpy(&value, text.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

}  // namespace

std::vector<double> NodeShare::total(const std::vector<double>& of_parts, std::int64_t n) const {
  return ranks::sum_few_in_order(*ranks, of_parts, num_parts, n);
}

double NodeShare::total(const std::function<double(std::int64_t)>& of) const {
  std::vector<double> of_parts;
  for (std::size_t p = 0; p + 1 < bounds.size(); ++p) {
    double sum = 0.0;
    for (std::int64_t i = bounds[p]; i < bounds[p + 1]; ++i) sum += of(i);
    of_parts.push_back(sum);
  }
  return total(of_parts, 1)[0];
}

Metrics NodeShare::evaluate(const Rows& mine,
                            const std::function<Metrics(const Rows&)>& find) const {
  std::string text;
  const std::int64_t columns = mine.columns;
  for (std::size_t i = 0; i < mine.number.size(); ++i) {
    put<std::int64_t>(text, std::span(mine.number).subspan(i, 1));
    put<float>(text, std::span(mine.truth).subspan(i, 1));
    put<float>(text, std::span(mine.output).subspan(i * columns, columns));
  }
  const std::vector<std::string> texts = ranks::to_first(*ranks, text);
  std::string found;
  if (ranks->is_first()) {
    // Where each row is, by its number.
    std::vector<std::pair<std::int64_t, const char*>> places;
    const std::size_t row = sizeof(std::int64_t) + (1 + columns) * sizeof(float);
    for (const std::string& from : texts) {
      for (std::size_t at = 0; at < from.size(); at += row) {
        std::size_t begin = at;
        const auto node = taken<std::int64_t>(from, begin);
        places.emplace_back(node, from.data() + begin);
      }
    }
    std::sort(places.begin(), places.end());
    Rows all{.columns = columns};
    for (const auto& [node, place] : places) {
      std::vector<float> numbers(1 + columns);
      std::memcpy(numbers.data(), place, numbers.size() * sizeof(float));
      all.number.push_back(node);
      all.truth.push_back(numbers[0]);
      all.output.insert(all.output.end(), numbers.begin() + 1, numbers.end());
    }
    found = to_text(find(all));
  }
  return metrics_from_text(ranks::from_first(*ranks, found));
}

void NodeShare::write_lines(const std::function<std::string(std::int64_t)>& line_of,
                            const io::Sink& sink) const {
  constexpr std::int64_t kAtOnce = 1 << 16;  // nodes of the data
  std::vector<std::int64_t> order(number.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return number[a] < number[b]; });
  std::size_t next = 0;
  for (std::int64_t begin = 0; begin < num_nodes; begin += kAtOnce) {
    std::string text;
    for (; next < order.size() && number[order[next]] < begin + kAtOnce; ++next) {
      const std::string line = line_of(order[next]);
      const std::int64_t head[] = {number[order[next]] - begin, std::ssize(line)};
      put<std::int64_t>(text, head);
      text += line;
    }
    const std::vector<std::string> texts = ranks::to_first(*ranks, text);
    if (!ranks->is_first()) continue;
    std::vector<std::string> lines(std::min(kAtOnce, num_nodes - begin));
    for (const std::string& from : texts) {
      for (std::size_t at = 0; at < from.size();) {
        const auto place = taken<std::int64_t>(from, at);
        const auto length = taken<std::int64_t>(from, at);
        lines[place] = from.substr(at, static_cast<std::size_t>(length));
        at += static_cast<std::size_t>(length);
      }
    }
    std::string all;
    for (const std::string& line : lines) all += line;
    sink(all);
  }
}

}  // namespace mpssm::task
