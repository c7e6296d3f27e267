// SPDX-License-Identifier: MIT
#include "mpssm/ranks/place.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"

namespace mpssm::ranks {
namespace {

/// A whole number of `least` to `most`.
std::int64_t number_of(const char* name, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {}) {
  const char* const text = std::getenv(name);
  if (text == nullptr && otherwise) return *otherwise;
  std::int64_t value = 0;
  const char* const end = text == nullptr ? nullptr : text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  if (text != nullptr && text != end && parsed.ec == std::errc() && parsed.ptr == end &&
      value >= least && value <= most) {
    return value;
  }
  throw base::Error({.where = fmt::format("environment variable {}", name),
                     .expected = fmt::format("a whole number from {} to {}", least, most),
                     .got = text == nullptr ? "none" : fmt::format("'{}'", base::printable(text)),
                     .hint = "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set by torchrun; "
                             "unset RANK and WORLD_SIZE to train in one process"});
}

}  // namespace

std::optional<Place> place_from_environment() {
  constexpr std::int64_t kMostRanks = 65536;
  if (std::getenv("RANK") == nullptr || std::getenv("WORLD_SIZE") == nullptr) return std::nullopt;
  Place place;
  place.size = number_of("WORLD_SIZE", 1, kMostRanks);
  place.rank = number_of("RANK", 0, place.size - 1);
  place.port = number_of("MASTER_PORT", 1, 65535);
  const char* const address = std::getenv("MASTER_ADDR");
  if (address == nullptr || *address == '\0') {
    throw base::Error({.where = "environment variable MASTER_ADDR",
                       .expected = "the address of rank 0's machine",
                       .got = "none"});
  }
  place.address = address;
  place.is_one_machine = number_of("LOCAL_WORLD_SIZE", 1, kMostRanks, 0) == place.size;
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  place.agent_has_store = agent != nullptr && std::strcmp(agent, "True") == 0;
  place.attempt = number_of("TORCHELASTIC_RESTART_COUNT", 0, 1 << 30, 0);
  return place;
}

}  // namespace mpssm::ranks
