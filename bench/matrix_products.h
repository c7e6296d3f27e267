// SPDX-License-Identifier: MIT
// Cases of the dense products of a layer: many rows times a small matrix, and the sum over rows
// that is the gradient of that matrix.
#pragma once

#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "mpssm/ops/linear.h"

#include "bench/report.h"

namespace mpssm::bench {

/// gemm-<rows>-c<channels>-bf16, gram-...: the same with factors in bfloat16, which torch is given
/// rounded.
inline void run_bf16_products(const Settings& settings, Report& report) {
  const std::int64_t rows = settings.quick ? 2000 : 22'662;
  std::vector<std::int64_t> widths = {64, 128, 256};
  if (settings.quick) widths = {64};
  for (const bool gram : {false, true}) {
    for (const std::int64_t c : widths) {
      const std::string name = fmt::format("{}-{}-c{}-bf16", gram ? "gram" : "gemm", rows, c);
      if (!report.wants(name)) continue;
      torch::manual_seed(0);
      const auto x = torch::randn({rows, c});
      const auto other = torch::randn({gram ? rows : c, c});
      const auto ours = [=](engine::Precision precision) {
        return [=] {
          return Job{[=] {
            const torch::NoGradGuard no_grad;
            return Tensors{gram ? ops::transposed_matmul(x, other, precision)
                                : ops::linear(x, other, {}, precision)};
          }};
        };
      };
      const auto theirs = [=](at::ScalarType type) {
        return [=] {
          return Job{[gram, x = x.to(type), other = other.to(type)] {
            const torch::NoGradGuard no_grad;
            return Tensors{gram ? torch::mm(x.t(), other) : torch::linear(x, other)};
          }};
        };
      };
      report.run(name, fmt::format("{} rows, {} channels in and out", rows, c),
                 {{"mpssm bf16", ours(engine::Precision::kBf16)},
                  {"mpssm", ours(engine::Precision::kFloat32)},
                  {"torch", theirs(torch::kFloat)},
                  {"torch, bf16", theirs(torch::kBFloat16)}},
                 settings.rounds, Contest::kRounded);
    }
  }
}

/// gemm-<rows>-c<channels>: x W' as in a linear layer; gram-...: x' g, its weight gradient.
inline void run_matrix_products(const Settings& settings, Report& report) {
  const std::int64_t rows = settings.quick ? 2000 : 22'662;
  std::vector<std::int64_t> widths = {64, 128, 256};
  if (settings.quick) widths = {64};
  for (const bool gram : {false, true}) {
    for (const std::int64_t c : widths) {
      const std::string name = fmt::format("{}-{}-c{}", gram ? "gram" : "gemm", rows, c);
      if (!report.wants(name)) continue;
      torch::manual_seed(0);
      const auto x = torch::randn({rows, c});
      const auto other = torch::randn({gram ? rows : c, c});
      const auto job = [](const auto& product) {
        return [=] {
          return Job{[=] {
            const torch::NoGradGuard no_grad;
            return Tensors{product()};
          }};
        };
      };
      const auto ours = [=] {
        return gram ? ops::transposed_matmul(x, other) : ops::linear(x, other, {});
      };
      const auto theirs = [=] { return gram ? torch::mm(x.t(), other) : torch::linear(x, other); };
      const Work work = {.flops = 2.0 * static_cast<double>(rows * c * c)};
      report.run(name, fmt::format("{} rows, {} channels in and out", rows, c),
                 {{"mpssm", job(ours), work}, {"torch", job(theirs), work}}, settings.rounds);
    }
  }
}

}  // namespace mpssm::bench
