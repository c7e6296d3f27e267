// SPDX-License-Identifier: MIT
// What stands before and after a recurrence, each in one pass, for Python.
#include "mpssm/engine/feed_forward.h"

#include <cstdint>

#include "mpssm/engine/call_memory.h"

#include "python/native/error.h"
#include "python/native/threads.h"

namespace mpssm::native {
namespace {

/// Every field takes eight bytes. What a call does not have is null.
struct NormLinearArguments {
  std::int64_t is_double;
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
  std::int64_t precision;
  std::int64_t all_rows;
  kernels::Bf16* kept_x;
  const void* x;
  const void* scale;
  const void* shift;
  const void* w;
  void* y;  // of the forward pass; the rest is the backward pass's
  const void* grad;
  void* grad_x;
  void* grad_scale;
  void* grad_shift;
  void* grad_w;

  template <typename T>
  engine::NormLinear<T> call() const {
    return {.rows = rows,
            .in = in,
            .out = out,
            .x = static_cast<const T*>(x),
            .norm = {static_cast<const T*>(scale), static_cast<const T*>(shift)},
            .w = static_cast<const T*>(w),
            .precision = static_cast<engine::Precision>(precision),
            .kept_x = kept_x,
            .place = {.all = all_rows}};
  }
};

struct FeedForwardArguments {
  std::int64_t is_double;
  std::int64_t rows;
  std::int64_t in;
  std::int64_t hidden;
  std::int64_t out;
  std::int64_t activation;
  std::int64_t precision;
  std::int64_t first_row;
  std::int64_t all_rows;
  const std::uint64_t* seed_hidden;  // null: no dropout
  const std::uint64_t* seed_out;
  double drop_hidden;
  double drop_out;
  const void* x;
  const void* scale;
  const void* shift;
  const void* w1;
  const void* b1;
  const void* w2;
  const void* b2;
  const void* residual;
  kernels::Bf16* kept_x;  // of a call in bfloat16; null if nothing is kept
  void* y;                // of the forward pass; the rest is the backward pass's
  const void* grad;
  void* grad_x;
  void* grad_scale;
  void* grad_shift;
  void* grad_w1;
  void* grad_b1;
  void* grad_w2;
  void* grad_b2;

  template <typename T>
  engine::FeedForward<T> call() const {
    const auto drop = [](const std::uint64_t* seed, double probability) -> engine::Drop {
      return seed == nullptr ? engine::Drop{} : engine::Drop{*seed, probability};
    };
    return {.rows = rows,
            .in = in,
            .hidden = hidden,
            .out = out,
            .activation = static_cast<engine::Activation>(activation),
            .drop_hidden = drop(seed_hidden, drop_hidden),
            .drop_out = drop(seed_out, drop_out),
            .x = static_cast<const T*>(x),
            .norm = {static_cast<const T*>(scale), static_cast<const T*>(shift)},
            .w1 = static_cast<const T*>(w1),
            .b1 = static_cast<const T*>(b1),
            .w2 = static_cast<const T*>(w2),
            .b2 = static_cast<const T*>(b2),
            .residual = static_cast<const T*>(residual),
            .precision = static_cast<engine::Precision>(precision),
            .kept_x = kept_x,
            .place = {first_row, all_rows}};
  }
};

template <typename T>
void forward(const NormLinearArguments& arguments) {
  const auto call = arguments.call<T>();
  const HostThreads threads;
  const engine::CallMemory memory(engine::forward_bytes(call, threads.workers()));
  engine::forward(call, static_cast<T*>(arguments.y), memory.workspace(), threads);
}

template <typename T>
void backward(const NormLinearArguments& arguments) {
  const auto call = arguments.call<T>();
  const HostThreads threads;
  const engine::CallMemory memory(engine::backward_bytes(call, threads.workers()));
  engine::backward(call, static_cast<const T*>(arguments.grad), static_cast<T*>(arguments.grad_x),
                   static_cast<T*>(arguments.grad_w),
                   {static_cast<T*>(arguments.grad_scale), static_cast<T*>(arguments.grad_shift)},
                   memory.workspace(), threads);
}

template <typename T>
void forward(const FeedForwardArguments& arguments) {
  const auto call = arguments.call<T>();
  const HostThreads threads;
  const engine::CallMemory memory(engine::forward_bytes(call, threads.workers()));
  engine::forward(call, static_cast<T*>(arguments.y), memory.workspace(), threads);
}

template <typename T>
void backward(const FeedForwardArguments& arguments) {
  const auto call = arguments.call<T>();
  const HostThreads threads;
  const engine::CallMemory memory(engine::backward_bytes(call, threads.workers()));
  engine::backward(
      call, static_cast<const T*>(arguments.grad),
      {.x = static_cast<T*>(arguments.grad_x),
       .w1 = static_cast<T*>(arguments.grad_w1),
       .b1 = static_cast<T*>(arguments.grad_b1),
       .w2 = static_cast<T*>(arguments.grad_w2),
       .b2 = static_cast<T*>(arguments.grad_b2),
       .norm = {static_cast<T*>(arguments.grad_scale), static_cast<T*>(arguments.grad_shift)}},
      memory.workspace(), threads);
}

template <typename Arguments>
std::int64_t run(const Arguments* arguments) {
  return guarded([&] {
    const bool is_backward = arguments->grad != nullptr;
    if (arguments->is_double != 0) {
      is_backward ? backward<double>(*arguments) : forward<double>(*arguments);
    } else {
      is_backward ? backward<float>(*arguments) : forward<float>(*arguments);
    }
  });
}

}  // namespace
}  // namespace mpssm::native

using namespace mpssm;

/// Forward, or backward if there is a gradient of the result.
MPSSM_C_API std::int64_t mpssm_norm_linear(const native::NormLinearArguments* arguments) {
  return native::run(arguments);
}
MPSSM_C_API std::int64_t mpssm_feed_forward(const native::FeedForwardArguments* arguments) {
  return native::run(arguments);
}
