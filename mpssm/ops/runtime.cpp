// SPDX-License-Identifier: MIT
#include "mpssm/ops/runtime.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <mutex>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "mpssm/base/machine.h"
#include "mpssm/engine/thread_pool.h"
#include "mpssm/kernels/simd.h"

namespace mpssm::ops {
namespace {

std::atomic<std::int64_t> g_threads_set{0};             // by set_num_threads(); 0: not
std::atomic<std::int64_t> g_threads_of_environment{0};  // MPSSM_NUM_THREADS; 0: none
std::unique_ptr<engine::ThreadPool> g_pool;             // of a program; null: a guest
// Debian's libtorch 1.13 starts with one thread unasked.
const std::int64_t g_torch_threads_at_start = TORCH_VERSION_MAJOR < 2 ? at::get_num_threads() : 0;

std::int64_t checked_threads(const std::string& who, std::int64_t threads) {
  const std::int64_t most = base::max_threads();
  if (threads >= 0 && threads <= most) return threads;
  throw std::invalid_argument(
      fmt::format("{}: expected a number from 0 to {} (64 for each core of this process), got {}",
                  who, most, threads));
}

std::int64_t threads_from_environment() {
  const char* text = std::getenv("MPSSM_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view view(text);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0 ||
      value > base::max_threads()) {
    throw std::invalid_argument(
        fmt::format("MPSSM_NUM_THREADS: expected a whole number from 0 to {} (64 for each core of "
                    "this process), got '{}'",
                    base::max_threads(), view));
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
  return torch_was_told() ? at::get_num_threads() : base::usable_cores();
}

void set_process_threads(std::int64_t num_threads) {
  ensure_runtime();
  std::int64_t threads = checked_threads("set_process_threads", num_threads);
  if (threads == 0) threads = g_threads_of_environment;
  if (threads == 0) threads = openmp_was_told() ? at::get_num_threads() : base::usable_cores();
  g_threads_set = threads;
  if (g_pool == nullptr || g_pool->workers() != threads) {
    g_pool.reset();
    g_pool = std::make_unique<engine::ThreadPool>(threads);
  }
  at::set_num_threads(static_cast<int>(threads));
}

void Threads::run(const std::function<void(std::int64_t)>& worker) const {
  if (workers_ == 1 || omp_in_parallel() != 0 || at::in_parallel_region()) return worker(0);
  if (g_pool != nullptr && g_pool->workers() == workers_) return g_pool->run(worker);
  // Always the same number, needed or not: libgomp ends and starts threads when it changes.
  const auto threads = static_cast<int>(workers_);
  std::exception_ptr error;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
#pragma omp parallel num_threads(threads)
  {
    try {
      worker(omp_get_thread_num());
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void ensure_runtime() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_threads_of_environment = threads_from_environment();
    if (const char* target = std::getenv("MPSSM_SIMD")) kernels::set_simd_target(target);
  });
}

}  // namespace mpssm::ops
