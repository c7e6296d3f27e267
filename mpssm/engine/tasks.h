// SPDX-License-Identifier: MIT
// How algorithms put kernels on workers: tasks cut by the problem, never by the threads.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/row_place.h"

namespace mpssm::engine {

inline std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// Below this many multiply-adds a call stays on one thread: waking the others costs more.
inline constexpr std::int64_t kParallelWork = 1 << 18;

/// True if run_tasks() will ask for more than worker 0.
inline bool worth_sharing(std::int64_t count, std::int64_t work) {
  return work >= kParallelWork && count > 1;
}

/// Runs task(i) or task(i, worker) for i in [0, count), in parallel if `work` multiply-adds in all
/// are worth it. Workers take the next task when they are done with one, so which worker runs it
/// must not matter to its result.
template <typename Task>
void run_tasks(const Executor& executor, std::int64_t count, std::int64_t work, const Task& task) {
  const auto call = [&](std::int64_t i, std::int64_t worker) {
    if constexpr (std::is_invocable_v<Task, std::int64_t, std::int64_t>) {
      task(i, worker);
    } else {
      task(i);
    }
  };
  if (!worth_sharing(count, work)) {
    for (std::int64_t i = 0; i < count; ++i) call(i, 0);
    return;
  }
  std::atomic<std::int64_t> next{0};
  const auto worker = [&](std::int64_t index) {
    for (std::int64_t i = next++; i < count; i = next++) call(i, index);
  };
  executor.run(std::cref(worker));
}

/// Runs `body(begin, end)` over ranges of `count` numbers; one costs about 16 multiply-adds.
template <typename Body>
void for_numbers(const Executor& executor, std::int64_t count, const Body& body) {
  constexpr std::int64_t kTaskSize = 1 << 14;
  run_tasks(executor, (count + kTaskSize - 1) / kTaskSize, 16 * count, [&](std::int64_t task) {
    body(task * kTaskSize, std::min(count, (task + 1) * kTaskSize));
  });
}

/// y += x, elementwise.
template <typename T>
void add_numbers(const T* x, std::int64_t count, T* y, const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

template <typename T>
void copy_numbers(const T* x, std::int64_t count, T* y, const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    std::copy(x + begin, x + end, y + begin);
  });
}

/// out [size] = the sum of `count` parts [count, size], added in order.
template <typename T>
void sum_of_parts(const T* parts, std::int64_t count, std::int64_t size, T* out,
                  const Executor& executor) {
  if (count == 1) return copy_numbers(parts, size, out, executor);
  for_numbers(executor, size, [&](std::int64_t begin, std::int64_t end) {
    std::fill(out + begin, out + end, T{0});
    for (std::int64_t part = 0; part < count; ++part) {
      for (std::int64_t i = begin; i < end; ++i) out[i] += parts[part * size + i];
    }
  });
}

}  // namespace mpssm::engine
