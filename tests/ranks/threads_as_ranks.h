// SPDX-License-Identifier: MIT
// Ranks as threads of the test, each with links and a store of its own, as processes have them.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/ranks/c10d.h"

namespace mpssm::testing {

/// What each rank threw, empty if nothing.
inline std::vector<std::string> errors_of_ranks(
    std::int64_t count, double timeout,
    const std::function<void(std::unique_ptr<ranks::Communicator>)>& body) {
  const auto point = ranks::open_meeting_point();
  std::vector<std::string> errors(count);
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(ranks::join({.rank = rank,
                          .size = count,
                          .address = "127.0.0.1",
                          .port = point->port(),
                          .agent_has_store = true,
                          .is_one_machine = true},
                         timeout));
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// Runs body(communicator) on `count` ranks, which must not throw.
inline void as_ranks(std::int64_t count, const std::function<void(ranks::Communicator&)>& body) {
  constexpr double kTimeout = 60.0;
  const auto errors = errors_of_ranks(
      count, kTimeout, [&](std::unique_ptr<ranks::Communicator> all) { body(*all); });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace mpssm::testing

#define MPSSM_NEEDS_GLOO() \
  if (!::mpssm::ranks::is_available()) GTEST_SKIP() << "this libtorch has no Gloo"
