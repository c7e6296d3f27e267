// SPDX-License-Identifier: MIT
// A single-source profile of a large graph against the bare sparse products it is made of, timed in
// turns in one process.
//
//   sensitivity_bench [--quick]
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>

#include "mpssm/analysis/walk.h"
#include "mpssm/base/measure.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/ops/runtime.h"

namespace {

using mpssm::base::Contender;

/// y = A x, row by row, equal shares of rows for the threads: what anyone would write.
void bare_product(const mpssm::kernels::CsrView<double>& a, const std::vector<double>& x,
                  std::vector<double>& y) {
  at::parallel_for(0, a.num_rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0.0;
      for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
        sum += a.value[e] * x[a.col[e]];
      }
      y[i] = sum;
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "usage: sensitivity_bench [--quick]\n");
    return 2;
  }
  const std::int64_t nodes = quick ? 20'000 : 1'000'000;
  const std::int64_t edges = 5 * nodes;
  constexpr std::int64_t kSteps = 100;
  mpssm::ops::ensure_runtime();
  const mpssm::graph::Gso gso =
      mpssm::graph::make_gso(mpssm::graph::make_random_connected(nodes, edges, 1));
  const double built_mib = mpssm::base::status_mib("VmHWM:");
  std::vector<std::int64_t> taus(kSteps);
  std::iota(taus.begin(), taus.end(), 1);

  std::vector<double> x(static_cast<std::size_t>(nodes));
  std::vector<double> y(x.size());
  std::vector<Contender> contenders = {{.plan = "100 bare products",
                                        .run =
                                            [&] {
                                              std::fill(x.begin(), x.end(), 0.0);
                                              x[0] = 1.0;
                                              for (std::int64_t step = 0; step < kSteps; ++step) {
                                                bare_product(gso.view<double>(), x, y);
                                                std::swap(x, y);
                                              }
                                            }},
                                       {.plan = "profile, tau = 1..100", .run = [&] {
                                          mpssm::analysis::reach_profile(
                                              gso, 0, mpssm::analysis::View::kFromSource, taus,
                                              mpssm::ops::Threads());
                                        }}};
  mpssm::base::measure(contenders, quick ? 1 : 5);
  std::printf("%lld nodes, %lld edges, %lld threads\n", static_cast<long long>(nodes),
              static_cast<long long>(edges), static_cast<long long>(mpssm::ops::num_threads()));
  std::printf("%-24s %10s %10s %14s\n", "", "ms", "ratio", "extra MiB");
  for (const Contender& contender : contenders) {
    std::printf("%-24s %10.1f %10.3f %14.1f\n", contender.plan.c_str(), contender.milliseconds,
                contender.milliseconds / contenders[0].milliseconds, contender.peak_mib);
  }
  std::printf("peak of the process: %.0f MiB while the operator was built, %.0f MiB after that\n",
              built_mib, mpssm::base::status_mib("VmHWM:"));
  return 0;
}
