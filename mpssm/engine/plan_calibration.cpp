// SPDX-License-Identifier: MIT
#include "mpssm/engine/plan_calibration.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/core.h>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "mpssm/base/random.h"
#include "mpssm/base/sha256.h"
#include "mpssm/engine/call_memory.h"
#include "mpssm/engine/recurrence.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/kernels/simd.h"

namespace mpssm::engine {
namespace {

/// Below 1, so that powers stay in range, and close to it, so that none becomes denormal.
constexpr float kModulus = 0.97F;

double thread_nanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

std::vector<float> random_numbers(std::int64_t count, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random.unit() - 0.5);
  return numbers;
}

/// A reflection times kModulus, or complex numbers of that modulus.
std::vector<float> made_up_w(const RecurrenceShape& shape) {
  const std::int64_t c = shape.channels;
  std::vector<float> v = random_numbers(c, 2);
  if (shape.diagonal) {
    for (std::int64_t i = 0; i + 1 < c; i += 2) {
      const float angle = 3.0F * v[i];
      v[i] = kModulus * std::cos(angle);
      v[i + 1] = kModulus * std::sin(angle);
    }
    return v;
  }
  float square = 0.0F;
  for (const float x : v) square += x * x;
  std::vector<float> w(static_cast<std::size_t>(c * c));
  for (std::int64_t i = 0; i < c; ++i) {
    for (std::int64_t j = 0; j < c; ++j) {
      w[i * c + j] = kModulus * ((i == j ? 1.0F : 0.0F) - 2.0F * v[i] * v[j] / square);
    }
  }
  return w;
}

}  // namespace

struct TrialCall::Parts {
  RecurrenceCall call;
  SerialExecutor executor;
  std::vector<float> input, w, output, saved, grad, grad_input, grad_w;
};

TrialCall::TrialCall(Plan plan, const graph::Gso& gso, const PlanQuery& query)
    : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  p.call.plan = plan;
  p.call.shape = {.gso = gso,
                  .batch = query.batch,
                  .num_steps = query.num_steps,
                  .channels = query.channels,
                  .temporal = query.temporal,
                  .diagonal = query.diagonal,
                  .outputs = query.outputs};
  p.call.wanted = {.input = query.training, .w_state = query.training};
  const RecurrenceShape& shape = p.call.shape;
  const std::int64_t out = shape.state() * (shape.all_outputs() ? shape.num_steps : 1);
  p.input = random_numbers(shape.state() * (shape.temporal ? shape.num_steps : 1), 1);
  p.w = made_up_w(shape);
  p.output.resize(static_cast<std::size_t>(out));
  p.saved.resize(static_cast<std::size_t>(saved_size<float>(p.call)));
  if (!query.training) return;
  p.grad = random_numbers(out, 3);
  p.grad_input.resize(p.input.size());
  p.grad_w.resize(p.w.size());
}
TrialCall::~TrialCall() = default;
TrialCall::TrialCall(TrialCall&&) noexcept = default;

void TrialCall::run() {
  Parts& p = *parts_;
  const RecurrenceInputs<float> in{.input = p.input.data(), .w_state = p.w.data()};
  {
    const CallMemory memory(forward_bytes<float>(p.call, 1));
    // Doubling alone may say no, and not to a W of this modulus.
    (void)forward<float>(p.call, in, p.output.data(), p.saved.data(), memory.workspace(),
                         p.executor);
  }
  if (!p.call.wanted.any()) return;
  const CallMemory memory(backward_bytes<float>(p.call, 1));
  backward<float>(p.call, {in, p.output.data(), p.saved.data()}, p.grad.data(),
                  {.input = p.grad_input.data(), .w_state = p.grad_w.data()}, memory.workspace(),
                  p.executor);
}

double trial_nanoseconds(TrialCall& call, int rounds) {
  constexpr double kShortestTiming = 2e5;
  call.run();  // fresh pages, and what is found out about an operator
  double least = std::numeric_limits<double>::infinity();
  std::int64_t calls = 1;
  for (int round = 0; round < rounds; ++round) {
    const double start = thread_nanoseconds();
    for (std::int64_t i = 0; i < calls; ++i) call.run();
    least = std::min(least, (thread_nanoseconds() - start) / static_cast<double>(calls));
    calls = std::max<std::int64_t>(1, std::llround(kShortestTiming / std::max(least, 1.0)));
  }
  return least;
}

namespace {

struct Sample {
  PlanWork work;
  double nanoseconds;
};

/// The prices, none negative, that explain the times with the least sum of squared relative errors;
/// what the samples say little about stays near the built-in price.
PlanCosts fit(const std::vector<Sample>& samples) {
  const PlanCosts& known = builtin_plan_costs();
  constexpr double kTrust = 1e-2;
  constexpr int kSweeps = 20'000;
  // In units of the built-in prices: normal equations, then coordinate descent.
  double gram[kNumWorkKinds][kNumWorkKinds] = {};
  double right[kNumWorkKinds] = {};
  for (const Sample& sample : samples) {
    double row[kNumWorkKinds];
    for (std::size_t i = 0; i < kNumWorkKinds; ++i) {
      row[i] = sample.work.of[i] * known.of[i] / sample.nanoseconds;
    }
    for (std::size_t i = 0; i < kNumWorkKinds; ++i) {
      right[i] += row[i];
      for (std::size_t j = 0; j < kNumWorkKinds; ++j) gram[i][j] += row[i] * row[j];
    }
  }
  double scale[kNumWorkKinds];
  for (std::size_t i = 0; i < kNumWorkKinds; ++i) {
    gram[i][i] += kTrust;
    right[i] += kTrust;
    scale[i] = 1.0;
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < kNumWorkKinds; ++i) {
      double rest = right[i];
      for (std::size_t j = 0; j < kNumWorkKinds; ++j) {
        if (j != i) rest -= gram[i][j] * scale[j];
      }
      scale[i] = std::max(0.0, rest / gram[i][i]);
    }
  }
  PlanCosts costs;
  for (std::size_t i = 0; i < kNumWorkKinds; ++i) {
    // Three digits are more than a measurement has.
    costs.of[i] = std::stod(fmt::format("{:.3g}", scale[i] * known.of[i]));
  }
  return costs;
}

}  // namespace

std::string calibration_machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string processor = " unknown processor";
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    processor = line.substr(line.find(':') + 1);
    break;
  }
  std::string kinds;
  for (const auto& row : kWorkKindNames) kinds.append(row.name).append(" ");
  return fmt::format("mpssm plan costs 1;{}; {}; {}", processor, kernels::active_simd_target(),
                     base::sha256(kinds).substr(0, 8));
}

PlanCosts calibrate_plan_costs() {
  constexpr int kProblems = 72;
  constexpr double kLongest = 4e6;  // nanoseconds, by the built-in prices
  constexpr std::int64_t kLargestBasis = 200;
  base::Random random(5);
  const auto between = [&](double low, double high) {
    return static_cast<std::int64_t>(std::llround(low * std::pow(high / low, random.unit())));
  };
  std::vector<Sample> samples;
  for (int problem = 0; problem < kProblems; ++problem) {
    // A third each: small graphs, batches of them, larger ones.
    const bool large = problem % 3 == 2;
    const std::int64_t nodes = large ? between(1000, 20'000) : between(8, 200);
    const std::int64_t edges = std::clamp(nodes * between(1.3, 12), nodes, nodes * (nodes - 1) / 2);
    const std::int64_t copies = problem % 3 == 1 ? between(2, 20) : 1;
    const graph::Graph one = graph::make_random_connected(nodes, edges, 1);
    const graph::Gso gso = graph::make_gso(
        copies == 1
            ? one
            : graph::make_batch(std::vector<graph::Graph>(static_cast<std::size_t>(copies), one)));
    PlanQuery query{.num_steps = between(2, 80), .channels = 2 * between(4, 100)};
    query.diagonal = random.unit() < 0.5;
    query.temporal = random.unit() < 0.3;
    if (query.temporal) {
      query.num_steps = std::min<std::int64_t>(query.num_steps, 12);
      query.batch = large ? 1 : between(1, 16);
      query.outputs = random.unit() < 0.5 ? Outputs::kLast : Outputs::kAll;
    }
    query.training = random.unit() < 0.5;
    query.has_basis = nodes <= kLargestBasis;
    for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral}) {
      if (plan == Plan::kSpectral && !query.has_basis) continue;
      if (!why_not(plan, gso, query).empty() || plan_cost(plan, gso, query) > kLongest) continue;
      TrialCall call(plan, gso, query);
      samples.push_back({plan_work(plan, gso, query), trial_nanoseconds(call, 6)});
    }
  }
  return fit(samples);
}

}  // namespace mpssm::engine
