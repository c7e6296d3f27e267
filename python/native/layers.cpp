// SPDX-License-Identifier: MIT
// The engine's layers for Python, and what belongs to the library as a whole.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <span>

#include "mpssm/engine/activation.h"
#include "mpssm/engine/call_memory.h"
#include "mpssm/engine/diagonal_form.h"
#include "mpssm/engine/dropout.h"
#include "mpssm/engine/edge_softmax.h"
#include "mpssm/engine/layer_norm.h"
#include "mpssm/engine/linear.h"
#include "mpssm/engine/pool.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/version.h"

#include "python/native/error.h"
#include "python/native/gso.h"
#include "python/native/threads.h"

namespace mpssm::native {
namespace {

/// Runs `body` with a value of type float or double.
template <typename Body>
std::int64_t with_type(std::int64_t is_double, const Body& body) {
  return guarded([&] { is_double != 0 ? body(double{}) : body(float{}); });
}

template <typename T>
std::int64_t bytes(std::int64_t count) {
  return static_cast<std::int64_t>(sizeof(T)) * count;
}

}  // namespace
}  // namespace mpssm::native

using namespace mpssm;
using native::HostThreads;

MPSSM_C_API const char* mpssm_error() { return native::last_error().c_str(); }
MPSSM_C_API const char* mpssm_version() { return kVersion; }

/// Gives the threads and reads MPSSM_SIMD.
MPSSM_C_API std::int64_t mpssm_start(native::ParallelFor parallel_for,
                                     native::NumThreads num_threads) {
  return native::guarded([&] {
    native::use_threads(parallel_for, num_threads);
    (void)HostThreads();  // says so if MPSSM_NUM_THREADS makes no sense
    if (const char* target = std::getenv("MPSSM_SIMD")) kernels::set_simd_target(target);
  });
}

MPSSM_C_API std::int64_t mpssm_num_threads() { return HostThreads().workers(); }

/// y [rows, columns] = x W (+ bias); W is w [inner, columns], or with `transposed` the transpose of
/// w [columns, inner].
MPSSM_C_API std::int64_t mpssm_matmul(std::int64_t is_double, std::int64_t rows, std::int64_t inner,
                                      std::int64_t columns, std::int64_t transposed,
                                      std::int64_t precision, const void* x, const void* w,
                                      const void* bias, void* y) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    engine::MatmulBatch<T> args;
    args.rows = rows;
    args.inner = inner;
    args.columns = columns;
    args.x = static_cast<const T*>(x);
    args.add = static_cast<const T*>(bias);
    args.add_is_bias = true;
    args.y = static_cast<T*>(y);
    const auto numbers = static_cast<engine::Precision>(precision);
    const HostThreads threads;
    const engine::CallMemory memory(
        native::bytes<T>(engine::matmul_scratch(inner, columns, numbers, threads.workers())));
    engine::matmul(args, transposed != 0 ? engine::Transpose::kYes : engine::Transpose::kNo,
                   static_cast<const T*>(w), memory.data<T>(), threads, numbers);
  });
}

/// out [left, right] = x' g for x [rows, left], g [rows, right]. `all_rows`, here and below:
/// engine::RowPlace.
MPSSM_C_API std::int64_t mpssm_transposed_matmul(std::int64_t is_double, std::int64_t rows,
                                                 std::int64_t left, std::int64_t right,
                                                 std::int64_t precision, std::int64_t all_rows,
                                                 const void* x, const void* g, void* out) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    const HostThreads threads;
    const engine::CallMemory memory(
        native::bytes<T>(engine::transposed_matmul_scratch(rows, left, right, threads.workers())));
    engine::transposed_matmul(static_cast<const T*>(x), static_cast<const T*>(g), rows, left, right,
                              static_cast<T*>(out), memory.data<T>(), threads,
                              static_cast<engine::Precision>(precision), {.all = all_rows});
  });
}

MPSSM_C_API std::int64_t mpssm_column_sums(std::int64_t is_double, std::int64_t rows,
                                           std::int64_t columns, std::int64_t all_rows,
                                           const void* g, void* out) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    const engine::CallMemory memory(native::bytes<T>(engine::column_sums_scratch(rows, columns)));
    engine::column_sums(static_cast<const T*>(g), rows, columns, static_cast<T*>(out),
                        memory.data<T>(), HostThreads(), {.all = all_rows});
  });
}

MPSSM_C_API std::int64_t mpssm_layer_norm(std::int64_t is_double, std::int64_t rows,
                                          std::int64_t width, double epsilon, const void* x,
                                          const void* scale, const void* shift, void* y, void* mean,
                                          void* inverse) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    engine::layer_norm<T>(
        {rows, width, epsilon, static_cast<const T*>(x), static_cast<const T*>(scale),
         static_cast<T*>(mean), static_cast<T*>(inverse)},
        static_cast<const T*>(shift), static_cast<T*>(y), HostThreads());
  });
}

MPSSM_C_API std::int64_t mpssm_layer_norm_adjoint(std::int64_t is_double, std::int64_t rows,
                                                  std::int64_t width, std::int64_t all_rows,
                                                  const void* x, const void* scale, void* mean,
                                                  void* inverse, const void* grad, void* grad_x,
                                                  void* grad_scale, void* grad_shift) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    const engine::CallMemory memory(native::bytes<T>(engine::layer_norm_scratch(rows, width)));
    engine::layer_norm_adjoint<T>({rows,
                                   width,
                                   0.0,
                                   static_cast<const T*>(x),
                                   static_cast<const T*>(scale),
                                   static_cast<T*>(mean),
                                   static_cast<T*>(inverse),
                                   {.all = all_rows}},
                                  static_cast<const T*>(grad), static_cast<T*>(grad_x),
                                  static_cast<T*>(grad_scale), static_cast<T*>(grad_shift),
                                  memory.data<T>(), HostThreads());
  });
}

/// y = gelu(x), or with `grad` y = gelu'(x) grad.
MPSSM_C_API std::int64_t mpssm_gelu(std::int64_t count, const float* x, const float* grad,
                                    float* y) {
  return native::guarded([&] {
    if (grad == nullptr) {
      engine::activate(engine::Activation::kGelu, x, count, y, HostThreads());
    } else {
      engine::activate_adjoint(engine::Activation::kGelu, x, grad, count, y, HostThreads());
    }
  });
}

MPSSM_C_API std::int64_t mpssm_dropout(std::int64_t is_double, std::int64_t count,
                                       const std::uint64_t* seed, double probability, const void* x,
                                       void* y) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    engine::dropout(static_cast<const T*>(x), count, *seed, probability, static_cast<T*>(y),
                    HostThreads());
  });
}

/// pooling: 0 sum, 1 mean, 2 max, 3 all three. y is the pooled result, read if there is a `grad`.
MPSSM_C_API std::int64_t mpssm_pool(std::int64_t is_double, std::int64_t pooling,
                                    std::int64_t num_graphs, const std::int64_t* graph_ptr,
                                    std::int64_t width, const void* x, void* y, const void* grad,
                                    void* grad_x) {
  return native::with_type(is_double, [&](auto zero) {
    using T = decltype(zero);
    const auto kind = static_cast<engine::Pooling>(pooling);
    const std::span parts(graph_ptr, static_cast<std::size_t>(num_graphs) + 1);
    if (grad == nullptr) {
      engine::pool(kind, parts, static_cast<const T*>(x), width, static_cast<T*>(y), HostThreads());
    } else {
      engine::pool_adjoint(kind, parts, static_cast<const T*>(x), width, static_cast<const T*>(y),
                           static_cast<const T*>(grad), static_cast<T*>(grad_x), HostThreads());
    }
  });
}

/// entries [nonzeros]: engine::EdgeSoftmax of the numbers at nodes [N].
MPSSM_C_API std::int64_t mpssm_edge_softmax(const native::GsoArguments* gso, double slope,
                                            const void* target, const void* source, void* entries) {
  return native::with_type(gso->is_double, [&](auto zero) {
    using T = decltype(zero);
    engine::edge_softmax<T>({gso->borrow(), static_cast<const T*>(target),
                             static_cast<const T*>(source), static_cast<T>(slope)},
                            static_cast<T*>(entries), HostThreads());
  });
}

MPSSM_C_API std::int64_t mpssm_edge_softmax_adjoint(const native::GsoArguments* gso, double slope,
                                                    const void* target, const void* source,
                                                    const void* entries, const void* grad,
                                                    void* grad_target, void* grad_source) {
  return native::with_type(gso->is_double, [&](auto zero) {
    using T = decltype(zero);
    const engine::CallMemory memory(native::bytes<T>(gso->num_nodes));
    engine::edge_softmax_adjoint<T>({gso->borrow(), static_cast<const T*>(target),
                                     static_cast<const T*>(source), static_cast<T>(slope)},
                                    static_cast<const T*>(entries), static_cast<const T*>(grad),
                                    static_cast<T*>(grad_target), static_cast<T*>(grad_source),
                                    memory.data<T>(), HostThreads());
  });
}

/// engine::diagonal_form() of w [channels, channels]: how many pairs it has, its condition number,
/// and into room for as many pairs as channels sigma [pairs, 2], enter [channels, 2 pairs], leave
/// [2 pairs, channels].
MPSSM_C_API std::int64_t mpssm_diagonal_form(std::int64_t channels, const double* w,
                                             std::int64_t* num_pairs, double* condition,
                                             double* sigma, double* enter, double* leave) {
  return native::guarded([&] {
    const engine::DiagonalForm form = engine::diagonal_form(w, channels);
    *num_pairs = form.num_pairs();
    *condition = form.condition;
    std::ranges::copy(form.sigma, sigma);
    std::ranges::copy(form.enter, enter);
    std::ranges::copy(form.leave, leave);
  });
}
