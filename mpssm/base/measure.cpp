// SPDX-License-Identifier: MIT
#include "mpssm/base/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <malloc.h>

namespace mpssm::base {

double status_mib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) {
      return std::stod(line.substr(line.find_first_of("0123456789"))) / 1024.0;
    }
  }
  return 0.0;
}

double own_mib() {
  malloc_trim(0);  // what was freed must not count as there
  return status_mib("RssAnon:");
}

double peak_of(const std::function<void()>& run) {
  const double before = own_mib();
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the kernel's high-water mark
  run();
  // Pages of files are never given back here, so those of now were there at the peak at most.
  return std::max(0.0, status_mib("VmHWM:") - status_mib("RssFile:") - before);
}

double machine_load() {
  double load = -1.0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

void measure(std::vector<Contender>& contenders, int rounds) {
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

}  // namespace mpssm::base
