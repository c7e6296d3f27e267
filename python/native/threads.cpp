// SPDX-License-Identifier: MIT
#include "python/native/threads.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

namespace mpssm::native {
namespace {

std::atomic<ParallelFor> g_parallel_for{nullptr};
std::atomic<NumThreads> g_num_threads{nullptr};

std::int64_t threads_from_environment() {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  const char* text = std::getenv("MPSSM_NUM_THREADS");
  if (text == nullptr) return kAny;
  const std::string_view view(text);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0) {
    throw std::invalid_argument("MPSSM_NUM_THREADS: expected a whole number, got '" +
                                std::string(view) + "'");
  }
  return value == 0 ? kAny : value;
}

struct Job {
  const std::function<void(std::int64_t)>* worker;
  std::mutex mutex;
  std::exception_ptr error;
};

// One range per thread, or all of it on one thread inside another parallel region: then the first
// worker does the work of all, and the others find none left.
void run_range(std::int64_t begin, std::int64_t end, void* context) {
  auto& job = *static_cast<Job*>(context);
  try {
    for (std::int64_t i = begin; i < end; ++i) (*job.worker)(i);
  } catch (...) {
    const std::lock_guard lock(job.mutex);
    if (!job.error) job.error = std::current_exception();
  }
}

}  // namespace

void use_threads(ParallelFor parallel_for, NumThreads num_threads) {
  g_parallel_for = parallel_for;
  g_num_threads = num_threads;
}

HostThreads::HostThreads() : workers_(1) {
  static const std::int64_t most = threads_from_environment();
  std::uint32_t count = 1;
  const NumThreads num_threads = g_num_threads;
  if (num_threads != nullptr && num_threads(&count) == 0) {
    workers_ = std::clamp<std::int64_t>(count, 1, most);
  }
}

void HostThreads::run(const std::function<void(std::int64_t)>& worker) const {
  const ParallelFor parallel_for = g_parallel_for;
  if (workers_ == 1 || parallel_for == nullptr) return worker(0);
  Job job{.worker = &worker, .mutex = {}, .error = nullptr};
  const std::int32_t failed = parallel_for(0, workers_, 1, run_range, &job);
  if (job.error) std::rethrow_exception(job.error);
  if (failed != 0) throw std::runtime_error("torch_parallel_for failed");
}

}  // namespace mpssm::native
