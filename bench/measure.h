// SPDX-License-Identifier: MIT
// Timing and memory of competing ways to do one thing: times are taken in turns in one process,
// memory in a process that does nothing else.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <malloc.h>
#include <string>
#include <vector>

namespace mpssm::bench {

/// One way to do the job of a case.
struct Contender {
  std::string plan;  ///< its name
  std::function<void()> run;
  double milliseconds = 0.0;         ///< of a call, in the fastest round
  double milliseconds_median = 0.0;  ///< over the rounds
  double peak_mib = -1.0;            ///< < 0: not known
};

/// A line of /proc/self/status in MiB.
inline double status_mib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) {
      return std::stod(line.substr(line.find_first_of("0123456789"))) / 1024.0;
    }
  }
  return 0.0;
}

/// Memory of this process that is its own: without the pages of program and libraries, of which
/// more are read with each new function that is called.
inline double own_mib() {
  malloc_trim(0);  // what was freed must not count as there
  return status_mib("RssAnon:");
}

/// What one run adds to own_mib() at its peak. Buffers that allocators and threads keep from
/// earlier runs would hide it, so this is for a process that has done nothing else.
inline double peak_of(const std::function<void()>& run) {
  const double before = own_mib();
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the kernel's high-water mark
  run();
  // Pages of files are never given back here, so those of now were there at the peak at most.
  return std::max(0.0, status_mib("VmHWM:") - status_mib("RssFile:") - before);
}

/// Average number of processes that wanted to run during the last minute.
inline double machine_load() {
  double load = -1.0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

/// Fills in the times of `rounds` rounds after one that does not count, the contenders taking
/// turns so that a noisy neighbour hits all of them. Jobs too short for the clock are repeated
/// within a round. A peak that is not known becomes that of the first run in this process.
inline void measure(std::vector<Contender>& contenders, int rounds) {
  constexpr double kShortestTiming = 2.0;  // milliseconds
  const auto time = [](const Contender& contender, int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) contender.run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    return took.count() / calls;
  };
  std::vector<int> calls;
  for (Contender& contender : contenders) {
    const auto start = std::chrono::steady_clock::now();
    if (contender.peak_mib < 0.0) {
      contender.peak_mib = peak_of(contender.run);
    } else {
      contender.run();
    }
    const std::chrono::duration<double, std::milli> first =
        std::chrono::steady_clock::now() - start;
    const bool is_short = first.count() < 100.0 * kShortestTiming;
    const double once = is_short ? time(contender, 1) : first.count();
    calls.push_back(std::max(1, static_cast<int>(std::ceil(kShortestTiming / once))));
  }
  std::vector<std::vector<double>> timings(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      timings[i].push_back(time(contenders[i], calls[i]));
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::sort(timings[i].begin(), timings[i].end());
    const std::size_t half = timings[i].size() / 2;
    contenders[i].milliseconds = timings[i].front();
    contenders[i].milliseconds_median = timings[i].size() % 2 == 1
                                            ? timings[i][half]
                                            : (timings[i][half - 1] + timings[i][half]) / 2.0;
  }
}

}  // namespace mpssm::bench
