// SPDX-License-Identifier: MIT
// Timing and memory of competing ways to do one thing, measured in turns in one process.
#pragma once

#include <algorithm>
#include <chrono>
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
  std::string plan;
  std::function<void()> run;
  int calls = 1;  ///< per timing, for jobs too short for the clock
  double milliseconds = 0.0;
  double peak_mib = 0.0;
};

inline double status_mib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) {
      return std::stod(line.substr(line.find_first_of("0123456789"))) / 1024.0;
    }
  }
  return 0.0;
}

/// Peak resident memory of one run beyond what was there before it. Buffers that allocators and
/// threads keep from earlier runs would hide it, so this is for a process that has done nothing
/// else.
inline double peak_of(const std::function<void()>& run) {
  malloc_trim(0);  // what set-up freed must not count as there already
  const double before = status_mib("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the kernel's high-water mark
  run();
  return std::max(0.0, status_mib("VmHWM:") - before);
}

/// Fills in the figures: the median of `rounds` timings, the contenders taking turns so that a
/// noisy neighbour hits all of them, and the peak of the first run, before any buffer is kept.
inline void measure(std::vector<Contender>& contenders, int rounds) {
  for (Contender& contender : contenders) contender.peak_mib = peak_of(contender.run);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int call = 0; call < contenders[i].calls; ++call) contenders[i].run();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      const double each = took.count() / contenders[i].calls;
      if (round == 0 || each < contenders[i].milliseconds) contenders[i].milliseconds = each;
    }
  }
}

}  // namespace mpssm::bench
