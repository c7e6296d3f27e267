// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "mpssm/kernels/simd.h"
#include "mpssm/ops/launch.h"
#include "mpssm/ops/usable_cores.h"

namespace mpssm::ops {
namespace {

std::atomic<std::int64_t> g_threads_set{0};             // by set_num_threads(); 0: not
std::atomic<std::int64_t> g_threads_of_environment{0};  // MPSSM_NUM_THREADS; 0: none
// Debian's libtorch 1.13 starts with one thread unasked.
const std::int64_t g_torch_threads_at_start = TORCH_VERSION_MAJOR < 2 ? at::get_num_threads() : 0;

std::int64_t checked_threads(const std::string& who, std::int64_t threads) {
  const std::int64_t most = max_threads();
  if (threads >= 0 && threads <= most) return threads;
  throw std::invalid_argument(who + ": expected a number from 0 to " + std::to_string(most) +
                              " (64 for each core of this process), got " +
                              std::to_string(threads));
}

std::int64_t threads_from_environment() {
  const char* text = std::getenv("MPSSM_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view view(text);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0 ||
      value > max_threads()) {
    throw std::invalid_argument(
        "MPSSM_NUM_THREADS: expected a whole number from 0 to " + std::to_string(max_threads()) +
        " (64 for each core of this process), got '" + std::string(view) + "'");
  }
  return value;
}

bool openmp_was_told() {
  return std::getenv("OMP_NUM_THREADS") != nullptr || std::getenv("MKL_NUM_THREADS") != nullptr;
}

/// Torch's number is somebody's word, unless it is the one that 1.13 started with.
bool torch_was_told() {
  return TORCH_VERSION_MAJOR >= 2 || openmp_was_told() || at::get_num_threads() > 1 ||
         g_torch_threads_at_start > 1;
}

}  // namespace

void set_num_threads(std::int64_t num_threads) {
  g_threads_set = checked_threads("set_num_threads", num_threads);
}

std::int64_t num_threads() {
  ensure_runtime();
  if (const std::int64_t set = g_threads_set) return set;
  if (const std::int64_t wanted = g_threads_of_environment) return wanted;
  return torch_was_told() ? at::get_num_threads() : usable_cores();
}

void set_process_threads(std::int64_t num_threads) {
  ensure_runtime();
  std::int64_t threads = checked_threads("set_process_threads", num_threads);
  if (threads == 0) threads = g_threads_of_environment;
  if (threads == 0) threads = openmp_was_told() ? at::get_num_threads() : usable_cores();
  g_threads_set = threads;
  at::set_num_threads(static_cast<int>(threads));
}

void run_workers(const std::function<void()>& worker) {
  // Always the same number, needed or not: libgomp ends and starts threads when it changes.
  const auto threads = static_cast<int>(num_threads());
  if (threads == 1 || omp_in_parallel() != 0 || at::in_parallel_region()) return worker();
  std::exception_ptr error;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
#pragma omp parallel num_threads(threads)
  {
    try {
      worker();
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
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
    g_threads_of_environment = threads_from_environment();
    if (const char* target = std::getenv("MPSSM_SIMD")) kernels::set_simd_target(target);
  });
}

}  // namespace mpssm::ops
