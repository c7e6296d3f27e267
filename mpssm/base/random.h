// SPDX-License-Identifier: MIT
// Draws that mean the same with every standard library.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace mpssm::base {

/// The engine is fixed by the standard, the distributions are not: these replace them.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  /// Uniform in [0, bound).
  std::int64_t below(std::int64_t bound) {
    const auto range = static_cast<std::uint64_t>(bound);
    // Values past the last whole multiple of `range` would favour small results.
    const std::uint64_t limit = std::mt19937_64::max() - std::mt19937_64::max() % range;
    std::uint64_t draw = engine_();
    while (draw >= limit) draw = engine_();
    return static_cast<std::int64_t>(draw % range);
  }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }  ///< [0, 1)
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[below(std::ssize(items))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::int64_t i = std::ssize(items) - 1; i > 0; --i) {
      std::swap(items[i], items[below(i + 1)]);
    }
  }
  /// Moves a random subset of `count` items, in random order, to the front.
  template <typename T>
  void shuffle_front(std::vector<T>& items, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::swap(items[i], items[i + below(std::ssize(items) - i)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace mpssm::base
