// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ATen/Parallel.h>

#include "mpssm/kernels/simd.h"

namespace mpssm::ops {
namespace {

std::atomic<bool> g_threads_chosen{false};

/// Cores this process may run on, which can be fewer than the machine has.
int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return 1;
}

std::int64_t threads_from_environment() {
  const char* text = std::getenv("MPSSM_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view view(text);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0) {
    throw std::invalid_argument("MPSSM_NUM_THREADS: expected a whole number >= 0, got '" +
                                std::string(view) + "'");
  }
  return value;
}

}  // namespace

void set_num_threads(std::int64_t num_threads) {
  if (num_threads < 0) {
    throw std::invalid_argument("set_num_threads: expected a number >= 0, got " +
                                std::to_string(num_threads));
  }
  g_threads_chosen = true;
  at::set_num_threads(num_threads == 0 ? usable_cores() : static_cast<int>(num_threads));
}

std::int64_t num_threads() {
  ensure_runtime();
  return at::get_num_threads();
}

void ensure_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::int64_t wanted = threads_from_environment();
    if (const char* target = std::getenv("MPSSM_SIMD")) kernels::set_simd_target(target);
    if (!g_threads_chosen) set_num_threads(wanted);
  });
}

}  // namespace mpssm::ops
