// SPDX-License-Identifier: MIT
// From a command line to ranks and back: one process becomes several, or one of several.
#pragma once

#include <cstdint>
#include <functional>

#include "mpssm/ranks/communicator.h"

namespace mpssm::ranks {

struct SessionOptions {
  std::int64_t ranks = 0;  ///< how many to start; 0: as the environment says, else one
  double timeout = 300.0;  ///< seconds that a rank waits for the others
};

/// Runs `body` as one of the ranks that the environment tells of (torchrun), or starts
/// `options.ranks` processes that do, or runs it alone. Only rank 0 speaks: stdout and stderr of
/// the others go nowhere while `body` runs. What it throws leaves here with the rank's name before
/// it, on a rank other than 0 only if rank 0 does not say the same. Returns the exit code.
int run_session(const SessionOptions& options, const std::function<int(Communicator&)>& body);

}  // namespace mpssm::ranks
