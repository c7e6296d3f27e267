// SPDX-License-Identifier: MIT
#include "mpssm/data/node_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "mpssm/base/error.h"

namespace mpssm::data {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
constexpr std::size_t kFirstSlots = 16;

// Only the one way in which a number is written: "7" and "07" are two ids.
std::optional<std::uint64_t> to_plain_number(std::string_view id) {
  constexpr std::size_t kMaxDigits = 18;
  if (id.empty() || id.size() > kMaxDigits || (id[0] == '0' && id.size() > 1)) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : id) {
    const auto digit = static_cast<unsigned char>(c - '0');
    if (digit > 9) return std::nullopt;
    number = 10 * number + digit;
  }
  return number;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size() * kOdd;
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(text.size(), sizeof word);
    std::memcpy(&word, text.data(), size);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
    text.remove_prefix(size);
  }
  return hash;
}

// Odd for a number, which is its own key; even for a text, of which it is a hash.
bool is_number(std::uint64_t key) { return (key & 1) != 0; }
std::uint64_t key_of(std::string_view id, const std::optional<std::uint64_t>& number) {
  return number ? *number << 1 | 1 : hash_of(id) << 1;
}

}  // namespace

NodeIndex::NodeIndex(std::size_t max_nodes)
    : dense_limit_(4 * std::uint64_t{max_nodes} + kFirstSlots) {
  slots_.resize(kFirstSlots);
  shift_ = 64 - std::countr_zero(kFirstSlots);
}

// Where the id is, or the empty slot where it belongs.
std::size_t NodeIndex::slot_of(std::uint64_t key, std::string_view id) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = key * kOdd >> shift_;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.node == kNone) return i;
    if (slot.key != key) continue;
    if (is_number(key) || std::string_view(slot.text, slot.size) == id) return i;
  }
}

void NodeIndex::prefetch(std::span<const std::string_view> ids) const {
  for (const std::string_view id : ids) {
    const std::optional<std::uint64_t> number = to_plain_number(id);
    if (number && *number < dense_limit_) {
      if (*number < dense_.size()) __builtin_prefetch(&dense_[*number]);
    } else {
      __builtin_prefetch(&slots_[key_of(id, number) * kOdd >> shift_]);
    }
  }
  if (num_used_ == 0) return;
  for (const std::string_view id : ids) {
    if (to_plain_number(id)) continue;
    __builtin_prefetch(slots_[key_of(id, std::nullopt) * kOdd >> shift_].text);
  }
}

std::int64_t NodeIndex::find(std::string_view id) const {
  const std::optional<std::uint64_t> number = to_plain_number(id);
  if (number && *number < dense_limit_) {
    return *number < dense_.size() ? dense_[*number] : kNone;
  }
  return slots_[slot_of(key_of(id, number), id)].node;
}

std::pair<std::int64_t, bool> NodeIndex::add(std::string_view id) {
  const std::optional<std::uint64_t> number = to_plain_number(id);
  if (number && *number < dense_limit_) {
    if (*number >= dense_.size()) {
      const std::uint64_t doubled = std::min<std::uint64_t>(2 * dense_.size(), dense_limit_);
      dense_.resize(std::max(*number + 1, doubled), kNone);
    }
    std::int32_t& node = dense_[*number];
    if (node != kNone) return {node, false};
    return {node = next_number(), true};
  }
  if (2 * (num_used_ + 1) > slots_.size()) grow();
  const std::uint64_t key = key_of(id, number);
  Slot& slot = slots_[slot_of(key, id)];
  if (slot.node != kNone) return {slot.node, false};
  slot = {.key = key,
          .text = id.data(),
          .size = static_cast<std::uint32_t>(id.size()),
          .node = next_number()};
  ++num_used_;
  return {slot.node, true};
}

std::int32_t NodeIndex::next_number() {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  if (size_ == kMost) {
    throw base::Error("nodes", "expected at most " + std::to_string(kMost) + ", got more");
  }
  return static_cast<std::int32_t>(size_++);
}

void NodeIndex::grow() {
  std::vector<Slot> old(2 * slots_.size());
  std::swap(old, slots_);
  --shift_;
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.node == kNone) continue;
    std::size_t i = slot.key * kOdd >> shift_;
    while (slots_[i].node != kNone) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

}  // namespace mpssm::data
