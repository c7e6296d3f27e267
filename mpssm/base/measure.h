// SPDX-License-Identifier: MIT
// Timing and memory of competing ways to do one thing: times are taken in turns in one process,
// memory in a process that does nothing else.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mpssm::base {

/// One way to do the job of a case.
struct Contender {
  std::string plan;  ///< its name
  std::function<void()> run;
  double milliseconds = 0.0;         ///< of a call, in the fastest round
  double milliseconds_median = 0.0;  ///< over the rounds
  double peak_mib = -1.0;            ///< < 0: not known
};

/// A line of /proc/self/status in MiB.
double status_mib(const char* key);

/// Memory of this process that is its own: without the pages of program and libraries, of which
/// more are read with each new function that is called.
double own_mib();

/// What one run adds to own_mib() at its peak. Buffers that allocators and threads keep from
/// earlier runs would hide it, so this is for a process that has done nothing else.
double peak_of(const std::function<void()>& run);

/// Average number of processes that wanted to run during the last minute.
double machine_load();

/// Fills in the times of `rounds` rounds after one that does not count, the contenders taking
/// turns so that a noisy neighbour hits all of them. Jobs too short for the clock are repeated
/// within a round. A peak that is not known becomes that of the first run in this process.
void measure(std::vector<Contender>& contenders, int rounds);

}  // namespace mpssm::base
