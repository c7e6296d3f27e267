// SPDX-License-Identifier: MIT
// The powers of W that plan doubling needs, by squaring, and the way back to the gradient of W.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <vector>

#include "mpssm/engine/linear.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/engine/workspace.h"

namespace mpssm::engine {

/// One doubling of the recipe for T, from m to 2 m, and perhaps an increment after it.
struct Doubling {
  std::int64_t hops = 1;  // m
  bool then_increment = false;
};

inline std::vector<Doubling> recipe_for(std::int64_t num_steps) {
  std::vector<Doubling> recipe;
  std::int64_t m = 1;
  for (int bit = 62 - std::countl_zero(static_cast<std::uint64_t>(num_steps)); bit >= 0; --bit) {
    const bool increment = (num_steps >> bit & 1) != 0;
    recipe.push_back({.hops = m, .then_increment = increment});
    m = 2 * m + (increment ? 1 : 0);
  }
  return recipe;
}

inline std::int64_t num_moves(const std::vector<Doubling>& recipe) {
  const auto increments = std::count_if(recipe.begin(), recipe.end(),
                                        [](const Doubling& d) { return d.then_increment; });
  return static_cast<std::int64_t>(recipe.size()) + increments;
}

/// By squaring.
inline std::complex<double> power_of(std::complex<double> base, std::int64_t exponent) {
  std::complex<double> power = 1.0;
  for (std::int64_t rest = exponent; rest > 0; rest /= 2, base *= base) {
    if (rest % 2 == 1) power *= base;
  }
  return power;
}

/// Small square matrices [width, width] and products of them.
template <typename T>
struct Matrices {
  std::int64_t width = 0;
  T* scratch = nullptr;  // [scratch_size()]

  static std::int64_t scratch_size(std::int64_t width, std::int64_t workers) {
    return std::max(matmul_scratch(width, width),
                    transposed_matmul_scratch(width, width, width, workers));
  }
  /// out = a b or a b' (+ add). out may be add, and must not be a or b.
  void multiply(const T* a, const T* b, Transpose transpose, const T* add, T* out,
                const Executor& executor) const {
    MatmulBatch<T> args;
    args.rows = args.inner = args.columns = width;
    args.x = a;
    args.add = add;
    args.y = out;
    matmul(args, transpose, b, scratch, executor);
  }
  /// out = a' b.
  void multiply_transposed(const T* a, const T* b, T* out, const Executor& executor) const {
    transposed_matmul(a, b, width, width, width, out, scratch, executor);
  }
};

/// W^m for the m of each doubling and, `with_last`, W^T: [count][width, width], W first.
template <typename T>
struct PowerChain {
  std::vector<Doubling> recipe;
  Matrices<T> matrices;
  std::int64_t count = 0;
  T* powers = nullptr;
  T* square = nullptr;  // one more matrix

  PowerChain(std::int64_t num_steps, bool with_last, std::int64_t width, std::int64_t workers,
             Workspace& workspace)
      : recipe(recipe_for(num_steps)),
        count(static_cast<std::int64_t>(recipe.size()) + (with_last ? 1 : 0)) {
    matrices.width = width;
    matrices.scratch = workspace.take<T>(Matrices<T>::scratch_size(width, workers));
    powers = workspace.take<T>(std::max<std::int64_t>(count, 1) * width * width);
    square = workspace.take<T>(width * width);
  }

  T* power(std::int64_t j) const { return powers + j * matrices.width * matrices.width; }

  /// Fills the powers; w is [channels, channels].
  void compute(const T* w, std::int64_t channels, const Executor& executor) const {
    const std::int64_t width = matrices.width;
    std::fill(powers, powers + width * width, T{0});
    for (std::int64_t i = 0; i < channels; ++i) {
      std::copy(w + i * channels, w + (i + 1) * channels, powers + i * width);
    }
    for (std::int64_t j = 0; j + 1 < count; ++j) {
      const bool increment = recipe[static_cast<std::size_t>(j)].then_increment;
      T* const target = increment ? square : power(j + 1);
      matrices.multiply(power(j), power(j), Transpose::kNo, nullptr, target, executor);
      if (increment) {
        matrices.multiply(square, powers, Transpose::kNo, nullptr, power(j + 1), executor);
      }
    }
  }

  /// From the gradients of the powers, one after the other in `grads` and overwritten, to that of
  /// W, added to grad_w. `spare` is one more matrix.
  void descend(T* grads, T* grad_w, T* spare, const Executor& executor) const {
    const std::int64_t size = matrices.width * matrices.width;
    for (std::int64_t j = count - 2; j >= 0; --j) {
      // The next power is P P, or P P W.
      const T* p = power(j);
      const T* grad_next = grads + (j + 1) * size;
      T* const grad = grads + j * size;
      const T* grad_square = grad_next;
      if (recipe[static_cast<std::size_t>(j)].then_increment) {
        matrices.multiply(p, p, Transpose::kNo, nullptr, square, executor);
        matrices.multiply_transposed(square, grad_next, spare, executor);
        add_numbers(spare, size, grad_w, executor);
        matrices.multiply(grad_next, powers, Transpose::kYes, nullptr, square, executor);
        grad_square = square;
      }
      matrices.multiply(grad_square, p, Transpose::kYes, grad, grad, executor);
      matrices.multiply_transposed(p, grad_square, spare, executor);
      add_numbers(spare, size, grad, executor);
    }
    if (count > 0) add_numbers(grads, size, grad_w, executor);  // the first power is W
  }
};

}  // namespace mpssm::engine
