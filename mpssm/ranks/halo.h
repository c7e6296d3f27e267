// SPDX-License-Identifier: MIT
// Rows of a matrix that are on other ranks and that this one reads: at every hop of a graph whose
// nodes are dealt to ranks. No torch here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpssm/ranks/communicator.h"

namespace mpssm::ranks {

/// What a row that is computed again counts beside one that is sent: ten entries are gathered in
/// half the time that the numbers of a row take to be packed and sent by 10 Gbit/s.
inline constexpr double kRowComputedAgain = 0.5;

/// Rank p has rows bounds[p] to bounds[p + 1] of a matrix. Every rank says once which rows of
/// others it reads, and is told which of its own the others do; from then on fill() brings them.
class Halo {
 public:
  /// `wanted`: rows of other ranks, sorted, without repeats. Called by all ranks at once, which
  /// must outlive it. Throws std::invalid_argument if a row is an own one or none at all.
  Halo(Communicator& ranks, std::vector<std::int64_t> bounds, std::vector<std::int64_t> wanted);

  std::int64_t size() const { return std::ssize(wanted_); }  ///< rows that come
  std::int64_t rows_sent() const { return std::ssize(sent_); }
  const std::vector<std::int64_t>& wanted() const { return wanted_; }

  /// halo [size(), row_bytes] = the rows wanted, in order, out of own rows [own, row_bytes] of the
  /// ranks. Called by all ranks at once; this one sends rows_sent() * row_bytes bytes. Blocks of
  /// ranks lie in order, so that the rows of the halo do as well.
  void fill(const void* own, std::int64_t row_bytes, void* halo) const;

  /// The same for rows of different lengths: own row i is items own_ptr[i] to own_ptr[i + 1].
  /// Returns the items of the rows wanted, and in `ptr` [size() + 1] where each begins.
  template <typename T>
  std::vector<T> fill_lists(std::span<const std::int64_t> own_ptr, const T* items,
                            std::vector<std::int64_t>& ptr) const {
    std::vector<T> result;
    const auto make_room = [&](std::int64_t count) {
      result.resize(static_cast<std::size_t>(count));
      return result.data();
    };
    fill_bytes(own_ptr, items, sizeof(T), ptr, make_room);
    return result;
  }

 private:
  void fill_bytes(std::span<const std::int64_t> own_ptr, const void* items, std::int64_t item_bytes,
                  std::vector<std::int64_t>& ptr,
                  const std::function<void*(std::int64_t items)>& make_room) const;

  Communicator* ranks_;
  std::vector<std::int64_t> wanted_;
  std::vector<std::int64_t> sent_;         // own rows, from 0, rank by rank
  std::vector<std::int64_t> sent_to_;      // rows to each rank
  std::vector<std::int64_t> wanted_from_;  // rows from each
  mutable std::vector<char> packed_;
};

/// Columns outside [first, last), sorted, without repeats.
std::vector<std::int64_t> columns_of_others(std::int64_t first, std::int64_t last,
                                            std::span<const std::int32_t> columns);

/// Columns of the rows [first, last) of a square matrix, as numbers of its rows, become places in
/// [own rows, halo]: own ones from 0, the others behind them in order. Returns the halo, sorted.
std::vector<std::int64_t> localise(std::int64_t first, std::int64_t last,
                                   std::span<std::int32_t> columns);

}  // namespace mpssm::ranks
