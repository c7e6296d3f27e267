// SPDX-License-Identifier: MIT
// Ranks on this machine, started by the program itself.
#pragma once

#include <cstdint>

namespace mpssm::ranks {

/// Runs this program again, `count` times with its own arguments, with the variables that torchrun
/// would set and one thread each (unless OMP_NUM_THREADS or MPSSM_NUM_THREADS say otherwise), and
/// waits for all of them; once one has failed, for `timeout` seconds and a few more, then the rest
/// is killed. Ctrl-C, SIGTERM and SIGHUP are handed on. Returns the first exit code that is not 0;
/// throws base::Error that names a rank that was ended by a signal.
int launch(std::int64_t count, double timeout);

}  // namespace mpssm::ranks
