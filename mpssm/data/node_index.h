// SPDX-License-Identifier: MIT
// Private to data/: the number of a node by its id, for millions of ids. Whole numbers that are not
// much larger than there are nodes, the usual ids, take one look into an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace mpssm::data {

class NodeIndex {
 public:
  /// `id_of` gives the id of a node that is in, by its number: texts are not kept here.
  /// `max_nodes`: about as many as will come.
  NodeIndex(std::size_t max_nodes, std::function<std::string_view(std::int64_t)> id_of);

  std::int64_t size() const { return size_; }
  /// -1 if it is not in.
  std::int64_t find(std::string_view id) const;
  /// The number of `id`, and whether it is new: then it is size() before, and `id_of` has to know
  /// it from now on. Throws base::Error beyond 2^31 - 1 nodes, the most that a graph has.
  std::pair<std::int64_t, bool> add(std::string_view id);

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t node = kNone;
  };
  static constexpr std::int32_t kNone = -1;

  std::size_t slot_of(std::uint64_t key, std::string_view id) const;
  void grow();
  std::int32_t next_number();

  std::function<std::string_view(std::int64_t)> id_of_;
  std::uint64_t dense_limit_;
  std::vector<std::int32_t> dense_ = {};  // of the ids 0, 1, 2, ... below the limit
  std::vector<Slot> slots_;               // of all others; a power of two, half of it empty
  int shift_ = 0;                         // 64 - log2 of that
  std::size_t num_used_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace mpssm::data
