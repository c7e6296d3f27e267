// SPDX-License-Identifier: MIT
// Who runs the tasks of a call: each front gives the threads that its process already has.
#pragma once

#include <cstdint>
#include <functional>

namespace mpssm::engine {

/// Threads for one call of the engine. Results never depend on how many there are.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The most workers that run() starts; memory per worker is sized by it. Constant.
  virtual std::int64_t workers() const = 0;

  /// Calls worker(i) at once for different i in [0, workers()), worker(0) at least, and returns
  /// when all have. What one of them throws comes out.
  virtual void run(const std::function<void(std::int64_t)>& worker) const = 0;
};

/// The calling thread alone.
class SerialExecutor final : public Executor {
 public:
  std::int64_t workers() const override { return 1; }
  void run(const std::function<void(std::int64_t)>& worker) const override { worker(0); }
};

}  // namespace mpssm::engine
