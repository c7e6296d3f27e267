// SPDX-License-Identifier: MIT
// What is made of exchanges: sums in a fixed order, shares put together, one rank's word for all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpssm/ranks/communicator.h"

namespace mpssm::ranks {

/// Rank 0's text.
std::string from_first(Communicator& ranks, const std::string& text);

/// The texts of all ranks, on rank 0; nothing on the others.
std::vector<std::string> to_first(Communicator& ranks, const std::string& text);

/// total [n] = the sum of all terms [n], added in their order, on every rank; `mine` as in
/// sum_in_order(). For few numbers: every term goes to every rank.
std::vector<double> sum_few_in_order(Communicator& ranks, std::span<const double> mine,
                                     std::int64_t num_terms, std::int64_t n);

/// True if it is on any rank.
bool any(Communicator& ranks, bool here);

/// total [n] = the sum of all terms [n], added in the order of the terms. `mine` [own, n] holds
/// terms Shares{num_terms, ranks}.begin(rank) and on. The same bits on every rank and for any
/// number of ranks. A rank sends n (own + 1) numbers times (P - 1) / P: each sums up its share of
/// the n.
void sum_in_order(Communicator& ranks, std::span<const float> mine, std::int64_t num_terms,
                  std::span<float> total);

/// all [count] = the numbers of all ranks one behind the other; `mine` holds Shares{count, ranks}
/// of this rank, and goes to each of the others.
void gather_shares(Communicator& ranks, std::span<const float> mine, std::span<float> all);

}  // namespace mpssm::ranks
