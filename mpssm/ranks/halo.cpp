// SPDX-License-Identifier: MIT
#include "mpssm/ranks/halo.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace mpssm::ranks {
namespace {

std::vector<std::int64_t> times(std::vector<std::int64_t> counts, std::int64_t bytes) {
  for (std::int64_t& count : counts) count *= bytes;
  return counts;
}

}  // namespace

Halo::Halo(Communicator& ranks, std::vector<std::int64_t> bounds, std::vector<std::int64_t> wanted)
    : ranks_(&ranks),
      wanted_(std::move(wanted)),
      sent_to_(ranks.size()),
      wanted_from_(ranks.size()) {
  const std::int64_t first = bounds[ranks.rank()];
  const std::int64_t last = bounds[ranks.rank() + 1];
  for (std::int64_t p = 0; p < ranks.size(); ++p) {
    wanted_from_[p] = std::lower_bound(wanted_.begin(), wanted_.end(), bounds[p + 1]) -
                      std::lower_bound(wanted_.begin(), wanted_.end(), bounds[p]);
  }
  std::int64_t found = 0;
  for (const std::int64_t count : wanted_from_) found += count;
  if (wanted_from_[ranks.rank()] != 0 || found != std::ssize(wanted_)) {
    throw std::invalid_argument("Halo: expected rows of other ranks, got own ones or none");
  }
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(std::int64_t));
  const std::vector<std::int64_t> one(ranks.size(), kNumber);
  ranks.exchange(wanted_from_.data(), one, sent_to_.data(), one);
  std::int64_t count = 0;
  for (const std::int64_t rows : sent_to_) count += rows;
  sent_.resize(count);
  ranks.exchange(wanted_.data(), times(wanted_from_, kNumber), sent_.data(),
                 times(sent_to_, kNumber));
  for (std::int64_t& row : sent_) {
    if (row < first || row >= last) {
      throw std::invalid_argument("Halo: another rank wants a row that is not here");
    }
    row -= first;
  }
}

void Halo::fill(const void* own, std::int64_t row_bytes, void* halo) const {
  packed_.resize(sent_.size() * static_cast<std::size_t>(row_bytes));
  char* next = packed_.data();
  for (const std::int64_t row : sent_) {
    std::memcpy(next, static_cast<const char*>(own) + row * row_bytes,
                static_cast<std::size_t>(row_bytes));
    next += row_bytes;
  }
  ranks_->exchange(packed_.data(), times(sent_to_, row_bytes), halo,
                   times(wanted_from_, row_bytes));
}

void Halo::fill_bytes(std::span<const std::int64_t> own_ptr, const void* items,
                      std::int64_t item_bytes, std::vector<std::int64_t>& ptr,
                      const std::function<void*(std::int64_t items)>& make_room) const {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i + 1 < own_ptr.size(); ++i) {
    lengths.push_back(own_ptr[i + 1] - own_ptr[i]);
  }
  std::vector<std::int64_t> wanted_lengths(wanted_.size());
  fill(lengths.data(), sizeof(std::int64_t), wanted_lengths.data());
  ptr.assign(1, 0);
  for (const std::int64_t length : wanted_lengths) ptr.push_back(ptr.back() + length);
  // Bytes of the rows that go to each rank and come from it.
  std::vector<std::int64_t> to;
  std::vector<std::int64_t> from;
  auto sent = sent_.begin();
  auto received = wanted_lengths.begin();
  packed_.clear();
  for (std::int64_t p = 0; p < ranks_->size(); ++p) {
    to.push_back(-std::ssize(packed_));
    for (const auto end = sent + sent_to_[p]; sent != end; ++sent) {
      const char* const row = static_cast<const char*>(items) + own_ptr[*sent] * item_bytes;
      packed_.insert(packed_.end(), row, row + lengths[*sent] * item_bytes);
    }
    to.back() += std::ssize(packed_);
    from.push_back(0);
    for (const auto end = received + wanted_from_[p]; received != end; ++received) {
      from.back() += *received * item_bytes;
    }
  }
  ranks_->exchange(packed_.data(), to, make_room(ptr.back()), from);
}

std::vector<std::int64_t> columns_of_others(std::int64_t first, std::int64_t last,
                                            std::span<const std::int32_t> columns) {
  std::vector<std::int64_t> others;
  for (const std::int32_t column : columns) {
    if (column < first || column >= last) others.push_back(column);
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  others.shrink_to_fit();
  return others;
}

std::vector<std::int64_t> localise(std::int64_t first, std::int64_t last,
                                   std::span<std::int32_t> columns) {
  const std::vector<std::int64_t> halo = columns_of_others(first, last, columns);
  const std::int64_t own = last - first;
  for (std::int32_t& column : columns) {
    const bool is_own = column >= first && column < last;
    column = static_cast<std::int32_t>(
        is_own ? column - first
               : own + (std::lower_bound(halo.begin(), halo.end(), column) - halo.begin()));
  }
  return halo;
}

}  // namespace mpssm::ranks
