// SPDX-License-Identifier: MIT
// The engine alone: no torch, own memory, own threads.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mpssm/engine/recurrence.h"
#include "mpssm/engine/thread_pool.h"
#include "mpssm/graph/generators.h"

int main() {
  using namespace mpssm;
  engine::RecurrenceCall call;
  call.plan = engine::Plan::kDiagonal;
  call.shape = {
      .gso = graph::make_gso(graph::make_path(5)), .num_steps = 3, .channels = 2, .diagonal = true};
  const std::vector<float> input(10, 1.0f);
  const std::vector<float> sigma = {0.5f, 0.0f};
  std::vector<float> output(10);
  const engine::ThreadPool threads(2);
  const auto bytes = engine::forward_bytes<float>(call, threads.workers());
  void* memory = std::aligned_alloc(64, static_cast<std::size_t>(bytes));
  const bool done = engine::forward<float>(call, {input.data(), sigma.data(), nullptr},
                                           output.data(), nullptr, {memory, bytes}, threads);
  std::free(memory);
  std::printf("core: %s, X(3) = %.4f\n", done ? "done" : "failed", output[0]);
  return done ? 0 : 1;
}
