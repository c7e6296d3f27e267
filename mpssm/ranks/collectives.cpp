// SPDX-License-Identifier: MIT
#include "mpssm/ranks/collectives.h"

#include <algorithm>
#include <vector>

namespace mpssm::ranks {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

}  // namespace

std::string from_first(Communicator& ranks, const std::string& text) {
  const bool is_first = ranks.is_first();
  const auto from_rank_0 = [&](const void* send, std::int64_t bytes, void* receive) {
    Sizes to(ranks.size(), is_first ? bytes : 0);
    Sizes from(ranks.size(), 0);
    from[0] = bytes;
    std::string repeated;  // each rank has a block of its own
    if (is_first) {
      for (std::int64_t p = 0; p < ranks.size(); ++p) {
        repeated.append(static_cast<const char*>(send), static_cast<std::size_t>(bytes));
      }
    }
    ranks.exchange(repeated.data(), to, receive, from);
  };
  auto length = static_cast<std::int64_t>(text.size());
  std::int64_t agreed = 0;
  from_rank_0(&length, sizeof(length), &agreed);
  std::string result(static_cast<std::size_t>(agreed), '\0');
  if (agreed > 0) from_rank_0(text.data(), agreed, result.data());
  return result;
}

std::vector<std::string> to_first(Communicator& ranks, const std::string& text) {
  const bool is_first = ranks.is_first();
  // Of each rank to rank 0: so many bytes.
  const auto to_rank_0 = [&](const void* send, std::int64_t bytes, void* receive, Sizes from) {
    Sizes to(ranks.size(), 0);
    to[0] = bytes;
    if (!is_first) from.assign(ranks.size(), 0);
    ranks.exchange(send, to, receive, from);
  };
  const auto length = static_cast<std::int64_t>(text.size());
  Sizes lengths(ranks.size(), 0);
  to_rank_0(&length, sizeof(length), lengths.data(), Sizes(ranks.size(), sizeof(length)));
  std::int64_t sum = 0;
  for (const std::int64_t bytes : lengths) sum += bytes;
  std::string all(static_cast<std::size_t>(is_first ? sum : 0), '\0');
  to_rank_0(text.data(), length, all.data(), lengths);
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (std::int64_t p = 0; is_first && p < ranks.size(); ++p) {
    texts.push_back(all.substr(begin, static_cast<std::size_t>(lengths[p])));
    begin += static_cast<std::size_t>(lengths[p]);
  }
  return texts;
}

std::vector<double> sum_few_in_order(Communicator& ranks, std::span<const double> mine,
                                     std::int64_t num_terms, std::int64_t n) {
  const Shares terms{num_terms, ranks.size()};
  constexpr auto kDouble = static_cast<std::int64_t>(sizeof(double));
  std::vector<double> sent;
  Sizes from;
  for (std::int64_t p = 0; p < ranks.size(); ++p) {
    sent.insert(sent.end(), mine.begin(), mine.end());
    from.push_back(terms.size(p) * n * kDouble);
  }
  std::vector<double> received(num_terms * n);
  ranks.exchange(sent.data(), Sizes(ranks.size(), std::ssize(mine) * kDouble), received.data(),
                 from);
  std::vector<double> total(received.begin(), received.begin() + n);
  for (std::int64_t t = 1; t < num_terms; ++t) {
    for (std::int64_t i = 0; i < n; ++i) total[i] += received[t * n + i];
  }
  return total;
}

bool any(Communicator& ranks, bool here) {
  const Sizes one(ranks.size(), 1);
  const std::string mine(ranks.size(), here ? 1 : 0);
  std::string all(ranks.size(), 0);
  ranks.exchange(mine.data(), one, all.data(), one);
  return std::any_of(all.begin(), all.end(), [](char flag) { return flag != 0; });
}

void sum_in_order(Communicator& ranks, std::span<const float> mine, std::int64_t num_terms,
                  std::span<float> total) {
  const auto n = static_cast<std::int64_t>(total.size());
  const std::int64_t size = ranks.size();
  const std::int64_t rank = ranks.rank();
  const Shares terms{num_terms, size};
  const Shares numbers{n, size};
  const std::int64_t own_terms = terms.size(rank);
  const std::int64_t own_numbers = numbers.size(rank);

  // Each rank gets its numbers of every term: [from rank][term][own numbers].
  std::vector<float> sent;
  sent.reserve(mine.size());
  Sizes to(size);
  Sizes from(size);
  for (std::int64_t p = 0; p < size; ++p) {
    for (std::int64_t t = 0; t < own_terms; ++t) {
      const float* const term = mine.data() + t * n;
      sent.insert(sent.end(), term + numbers.begin(p), term + numbers.end(p));
    }
    to[p] = own_terms * numbers.size(p) * kFloat;
    from[p] = terms.size(p) * own_numbers * kFloat;
  }
  std::vector<float> received(num_terms * own_numbers);
  ranks.exchange(sent.data(), to, received.data(), from);

  // Ranks in order hold terms in order.
  std::vector<float> sum(received.begin(), received.begin() + own_numbers);
  for (std::int64_t t = 1; t < num_terms; ++t) {
    const float* const term = received.data() + t * own_numbers;
    for (std::int64_t i = 0; i < own_numbers; ++i) sum[i] += term[i];
  }
  gather_shares(ranks, sum, total);
}

void gather_shares(Communicator& ranks, std::span<const float> mine, std::span<float> all) {
  const Shares shares{static_cast<std::int64_t>(all.size()), ranks.size()};
  std::vector<float> sent;
  sent.reserve(mine.size() * ranks.size());
  const Sizes to(ranks.size(), std::ssize(mine) * kFloat);
  Sizes from;
  for (std::int64_t p = 0; p < ranks.size(); ++p) {
    sent.insert(sent.end(), mine.begin(), mine.end());
    from.push_back(shares.size(p) * kFloat);
  }
  ranks.exchange(sent.data(), to, all.data(), from);
}

}  // namespace mpssm::ranks
