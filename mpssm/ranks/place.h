// SPDX-License-Identifier: MIT
// Where a process stands among the ranks, as torchrun says it in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mpssm::ranks {

struct Place {
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::string address;  ///< of the store that all ranks meet at
  std::int64_t port = 0;
  bool agent_has_store = false;  ///< who started the ranks keeps it; else rank 0 does
  bool is_one_machine = false;   ///< all ranks are on this one
  std::int64_t attempt = 0;      ///< how often all ranks were started again
};

/// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and, where they are there, LOCAL_WORLD_SIZE,
/// TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT. nullopt if the first two are not set.
/// Throws base::Error that names a variable that makes no sense.
std::optional<Place> place_from_environment();

}  // namespace mpssm::ranks
