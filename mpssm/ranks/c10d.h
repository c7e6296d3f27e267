// SPDX-License-Identifier: MIT
// Ranks on libtorch's own process groups: c10d with Gloo. What must be known of these is in
// c10d.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mpssm/ranks/communicator.h"
#include "mpssm/ranks/place.h"

namespace mpssm::ranks {

/// Whether the libtorch that this was built with has Gloo.
bool is_available();

/// Meets the other ranks; comes back when all are there. `timeout` in seconds, of this and of every
/// exchange. Throws RankLost that names those who did not come, base::Error if there is no Gloo.
std::unique_ptr<Communicator> join(const Place& place, double timeout);

/// A store for ranks to meet at, on a free port of this machine, for as long as it lives.
class MeetingPoint {
 public:
  virtual ~MeetingPoint() = default;
  virtual std::int64_t port() const = 0;
  virtual void post(const std::string& key, const std::string& text) = 0;  ///< for all ranks
};
std::unique_ptr<MeetingPoint> open_meeting_point();

}  // namespace mpssm::ranks
