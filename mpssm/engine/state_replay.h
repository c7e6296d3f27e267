// SPDX-License-Identifier: MIT
// The states of a recurrence once more, from the last to the first, though only a few are kept.
// Internal to engine/.
//
// The gradient of A's entries pairs the state X(t) with the gradient of X(t+1): one comes out of a
// walk forward, the other of a walk backward, and a step cannot be undone without A's inverse. So
// the walk forward is cut into about sqrt(K) stretches of sqrt(K) states. The first state of each
// is kept, and a stretch is walked again when its turn comes: fewer than 2 K steps in all, in the
// memory of 2 sqrt(K) states.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mpssm::engine {

class ReplayLayout {
 public:
  /// For states X(1), ..., X(K).
  explicit ReplayLayout(std::int64_t states)
      : states_(states),
        length_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(states)))))),
        stretches_((states + length_ - 1) / length_) {}

  std::int64_t states() const { return states_; }
  std::int64_t length() const { return length_; }
  std::int64_t stretches() const { return stretches_; }
  std::int64_t stretch_of(std::int64_t t) const { return (t - 1) / length_; }
  /// States kept at a time: the first of every stretch, and the others of one.
  std::int64_t kept() const { return states_ == 0 ? 0 : stretches_ + length_ - 1; }
  /// Steps walked beyond X(1).
  std::int64_t steps() const {
    return states_ == 0 ? 0 : states_ - 1 + (stretches_ - 1) * (length_ - 1);
  }
  /// Where X(t) is kept while its stretch is the one at hand.
  std::int64_t place(std::int64_t t) const {
    const std::int64_t in_stretch = (t - 1) % length_;
    return in_stretch == 0 ? stretch_of(t) : stretches_ + in_stretch - 1;
  }

 private:
  std::int64_t states_;
  std::int64_t length_;
  std::int64_t stretches_;
};

/// `step(t, x, y)` writes X(t+1) to y from x = X(t).
template <typename T, typename Step>
class StateReplay {
 public:
  /// `memory`: room for layout.kept() states of `size` numbers, of which first() holds X(1).
  StateReplay(const ReplayLayout& layout, std::int64_t size, T* memory, const Step& step)
      : layout_(layout), size_(size), memory_(memory), step_(step) {}

  T* first() const { return at_place(1); }

  /// X(t), for t = K, K - 1, ..., 1 in this order.
  const T* at(std::int64_t t) {
    if (current_ < 0) {
      for (std::int64_t next = 2; next <= layout_.states(); ++next) walk(next);
    } else if (layout_.stretch_of(t) != current_) {
      const std::int64_t begin = layout_.stretch_of(t) * layout_.length() + 1;
      for (std::int64_t next = begin + 1; next <= t; ++next) walk(next);
    }
    current_ = layout_.stretch_of(t);
    return at_place(t);
  }

 private:
  T* at_place(std::int64_t t) const { return memory_ + layout_.place(t) * size_; }
  void walk(std::int64_t next) { step_(next - 1, at_place(next - 1), at_place(next)); }

  ReplayLayout layout_;
  std::int64_t size_;
  T* memory_;
  const Step& step_;
  std::int64_t current_ = -1;
};

}  // namespace mpssm::engine
