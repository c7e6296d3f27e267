// SPDX-License-Identifier: MIT
// Closed form of the static recurrence in an eigenbasis: each mode is a geometric series.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// For z(c) = lambda * sigma(c), the series g(z) = 1 + z + ... + z^(K-1), the power p(z) = z^K, and
/// on request both derivatives. All arrays have `channels` numbers.
struct SeriesValues {
  double* g_re = nullptr;
  double* g_im = nullptr;
  double* p_re = nullptr;
  double* p_im = nullptr;
  double* dg_re = nullptr;  // g'(z); the four derivatives are all given or all absent
  double* dg_im = nullptr;
  double* dp_re = nullptr;  // p'(z) = K z^(K-1)
  double* dp_im = nullptr;
};

/// By doubling over the bits of K: g(2m) = g(m) (1 + p(m)). That costs O(log K), and unlike
/// (1 - z^K) / (1 - z) it has no cancellation and no special case near z = 1 or z = 0.
/// K = 0 gives g = 0, p = 1.
void geometric_series(std::int64_t num_steps, double lambda, const double* sigma_re,
                      const double* sigma_im, std::int64_t channels,
                      const SeriesValues& out) noexcept;

/// The static recurrence on modes. Numbers come in pairs (re, im); rows are modes of the operator,
/// `batch` independent copies of them lie `batch_stride` numbers apart.
template <typename T>
struct ModeSeriesArgs {
  std::int64_t num_steps = 0;
  std::int64_t channels = 0;  // complex
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
  const double* lambda = nullptr;    // [N]
  const double* sigma_re = nullptr;  // [channels]
  const double* sigma_im = nullptr;
  const T* input = nullptr;    // [batch][N][2 channels]
  const T* initial = nullptr;  // the same, optional
  double* scratch = nullptr;   // [mode_series_scratch(channels)], one per caller
};

inline std::int64_t mode_series_scratch(std::int64_t channels) { return 8 * channels; }

/// output = g(lambda sigma) input + p(lambda sigma) initial, rows [row_begin, row_end).
template <typename T>
void mode_series(const ModeSeriesArgs<T>& args, T* output, std::int64_t row_begin,
                 std::int64_t row_end) noexcept;

/// From the gradient of the output: grad_input = conj(g) grad, grad_initial = conj(p) grad
/// (optional), and, added up over rows and batch, the gradient of sigma (optional).
template <typename T>
void mode_series_adjoint(const ModeSeriesArgs<T>& args, const T* grad, T* grad_input,
                         T* grad_initial, double* grad_sigma_re, double* grad_sigma_im,
                         std::int64_t row_begin, std::int64_t row_end) noexcept;

}  // namespace mpssm::kernels
