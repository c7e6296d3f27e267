// SPDX-License-Identifier: MIT
// Private to data/: the number of a node by its id, for millions of ids. Whole numbers that are not
// much larger than there are nodes, the usual ids, take one look into an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mpssm::data {

class NodeIndex {
 public:
  /// `max_nodes`: about as many as will come.
  explicit NodeIndex(std::size_t max_nodes);

  std::int64_t size() const { return size_; }
  /// -1 if it is not in.
  std::int64_t find(std::string_view id) const;
  /// Brings what find() and add() of these ids will look at into the cache, all at once: of many
  /// nodes each look is at memory of its own, and one after the other they would wait for it.
  void prefetch(std::span<const std::string_view> ids) const;
  /// The number of `id`, and whether it is new: then it is size() before, and the text has to stay
  /// where it is. Throws base::Error beyond 2^31 - 1 nodes, the most that a graph has.
  std::pair<std::int64_t, bool> add(std::string_view id);

 private:
  struct Slot {
    std::uint64_t key = 0;
    const char* text = nullptr;  // of keys that are hashes
    std::uint32_t size = 0;
    std::int32_t node = kNone;
  };
  static constexpr std::int32_t kNone = -1;

  std::size_t slot_of(std::uint64_t key, std::string_view id) const;
  void grow();
  std::int32_t next_number();

  std::uint64_t dense_limit_;
  std::vector<std::int32_t> dense_ = {};  // of the ids 0, 1, 2, ... below the limit
  std::vector<Slot> slots_;               // of all others; a power of two, half of it empty
  int shift_ = 0;                         // 64 - log2 of that
  std::size_t num_used_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace mpssm::data
