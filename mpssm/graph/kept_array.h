// SPDX-License-Identifier: MIT
// Numbers that are kept here, or in memory that somebody else keeps.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mpssm::graph {

/// Read-only. Of somebody else's memory it is a view, which must not outlive it.
template <typename T>
class KeptArray {
 public:
  using value_type = T;
  using const_iterator = const T*;

  KeptArray() = default;
  KeptArray(std::vector<T> own) : own_(std::move(own)), numbers_(own_) {}
  KeptArray(std::span<const T> numbers) : numbers_(numbers) {}
  // A vector that is moved takes its memory along.
  KeptArray(KeptArray&&) noexcept = default;
  KeptArray& operator=(KeptArray&&) noexcept = default;

  const T* data() const { return numbers_.data(); }
  std::size_t size() const { return numbers_.size(); }
  bool empty() const { return numbers_.empty(); }
  const T& operator[](std::size_t i) const { return numbers_[i]; }
  const_iterator begin() const { return numbers_.data(); }
  const_iterator end() const { return numbers_.data() + numbers_.size(); }

 private:
  std::vector<T> own_;
  std::span<const T> numbers_;
};

}  // namespace mpssm::graph
