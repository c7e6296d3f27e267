// SPDX-License-Identifier: MIT
// Threads and instruction set. The library is a guest in its process: nothing here but
// set_process_threads() touches torch's own settings.
#pragma once

#include <cstdint>
#include <functional>

#include "mpssm/engine/executor.h"

namespace mpssm::ops {

/// Threads that our operators use; torch's number stays as it is. 0 means as if never set. Throws
/// std::invalid_argument if negative or more than 64 for each core that the process may use.
void set_num_threads(std::int64_t num_threads);

/// What set_num_threads() said; else MPSSM_NUM_THREADS; else torch's number, which is
/// OMP_NUM_THREADS or what at::set_num_threads() said (also later); else, where torch was told
/// nothing and starts with one thread (Debian's 1.13), base::usable_cores().
std::int64_t num_threads();

/// For programs, which own their process: sets our threads and torch's, and gives ours a pool that
/// waits politely (engine::ThreadPool) where a guest takes OpenMP's. 0 means MPSSM_NUM_THREADS,
/// else OMP_NUM_THREADS, else base::usable_cores(). Throws like set_num_threads(). Not while an
/// operator runs.
void set_process_threads(std::int64_t num_threads);

/// num_threads() threads of this process for one call of the engine, the calling one among them;
/// that one alone inside another parallel region. Not by at::parallel_for, whose threads are
/// torch's to count.
class Threads final : public engine::Executor {
 public:
  Threads() : workers_(num_threads()) {}
  std::int64_t workers() const override { return workers_; }
  void run(const std::function<void(std::int64_t)>& worker) const override;

 private:
  std::int64_t workers_;
};

/// Called by every operator; reads MPSSM_NUM_THREADS and MPSSM_SIMD (the instruction set) once.
/// Throws std::invalid_argument, each time, if a variable makes no sense.
void ensure_runtime();

}  // namespace mpssm::ops
