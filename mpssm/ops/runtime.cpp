// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "mpssm/kernels/simd.h"
#include "mpssm/ops/launch.h"

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

at::Tensor empty_tensor(at::IntArrayRef sizes, const at::TensorOptions& options) {
  at::Tensor tensor = at::empty(sizes, options);
  constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;
  const std::size_t bytes = tensor.nbytes();
  if (bytes >= 2 * kLargePage) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
    const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
    const std::uintptr_t last = (begin + bytes) / kLargePage * kLargePage;
    // Only advice: an error changes nothing.
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
  return tensor;
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
