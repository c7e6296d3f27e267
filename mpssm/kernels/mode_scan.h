// SPDX-License-Identifier: MIT
// The temporal recurrence in an eigenbasis: each mode is a scalar scan.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// z_t = a z_(t-1) + v_t with a = lambda(row) sigma(channel), for every mode. Numbers come in pairs
/// (re, im); number (b, t, row, j) lies at ((b * num_steps + t) * rows + row) * 2 channels + j.
template <typename T>
struct ModeScanArgs {
  std::int64_t batch = 1;
  std::int64_t num_steps = 0;
  std::int64_t rows = 0;
  std::int64_t channels = 0;         // complex
  const double* lambda = nullptr;    // [rows]
  const double* sigma_re = nullptr;  // [channels]
  const double* sigma_im = nullptr;
  const T* initial = nullptr;  // z_0: [batch][rows][2 channels], optional
  T* scratch = nullptr;        // [2 channels], one per caller
};

/// Turns v into z in place, rows [row_begin, row_end).
template <typename T>
void mode_scan(const ModeScanArgs<T>& args, T* v, std::int64_t row_begin,
               std::int64_t row_end) noexcept;

/// Backwards: turns the gradient of z into that of v in place, and writes that of z_0 (optional)
/// and adds that of sigma (optional); `z` is what mode_scan left.
template <typename T>
void mode_scan_adjoint(const ModeScanArgs<T>& args, const T* z, T* grad, T* grad_initial,
                       double* grad_sigma_re, double* grad_sigma_im, std::int64_t row_begin,
                       std::int64_t row_end) noexcept;

}  // namespace mpssm::kernels
