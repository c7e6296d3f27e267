// SPDX-License-Identifier: MIT
// How good the planner's choices are: every plan that can run a problem is timed, in turns, on one
// thread, and the one that `auto` takes is held against the fastest.
//
//   plan_bench [--json FILE] [--problems N] [--draw SEED] [--rounds N] [--calibrate] [--list]
//              [--quick]
//
// --calibrate measures the prices of work on this machine first and plans by them; --list prints
// every problem. Eigenvectors are not part of the times: a training shares them among its calls.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "mpssm/base/measure.h"
#include "mpssm/base/random.h"
#include "mpssm/engine/plan.h"
#include "mpssm/engine/plan_calibration.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/kernels/simd.h"

namespace {

using mpssm::engine::Outputs;
using mpssm::engine::Plan;
using mpssm::engine::PlanCosts;
using mpssm::engine::PlanQuery;
using mpssm::graph::Gso;

constexpr double kGood = 1.1;  // of the fastest plan's time

struct Settings {
  std::string json_file;
  std::int64_t problems = 200;
  std::uint64_t draw = 11;  // which of all problems
  int rounds = 5;
  bool calibrate = false;
  bool list = false;
};

struct Problem {
  std::int64_t graphs, nodes, degree;  // nodes of each graph
  PlanQuery query;

  std::string name() const {
    return fmt::format("{}x{} degree {} c {} k {} {}{} {}", graphs, nodes, degree, query.channels,
                       query.num_steps - 1, query.diagonal ? "diagonal" : "dense",
                       query.temporal
                           ? fmt::format(" temporal, {} windows{}", query.batch,
                                         query.outputs == Outputs::kAll ? ", all states" : "")
                           : "",
                       query.training ? "training" : "forward");
  }
};

/// All combinations of sizes and kinds, in an order drawn by `seed`.
std::vector<Problem> all_problems(std::uint64_t seed) {
  std::vector<Problem> problems;
  for (const std::int64_t graphs : {1, 40}) {
    for (const std::int64_t nodes : {10, 25, 50, 100, 250, 600, 2000, 8000, 25'000}) {
      if (graphs > 1 && nodes > 250) continue;
      for (const std::int64_t degree : {3, 8, 30}) {
        if (degree >= nodes / 2) continue;
        for (const std::int64_t channels : {8, 16, 32, 64, 128, 256}) {
          for (const std::int64_t hops : {1, 2, 4, 8, 16, 50, 200}) {
            for (const bool diagonal : {false, true}) {
              for (const bool training : {false, true}) {
                PlanQuery query{.num_steps = hops + 1,
                                .channels = channels,
                                .diagonal = diagonal,
                                .training = training,
                                .operator_calls = 100'000};
                problems.push_back({graphs, nodes, degree, query});
                if (hops < 4 || hops > 16 || graphs > 1 || nodes > 2000) continue;
                query.temporal = true;
                query.batch = 16;
                problems.push_back({graphs, nodes, degree, query});
                query.outputs = Outputs::kAll;
                problems.push_back({graphs, nodes, degree, query});
              }
            }
          }
        }
      }
    }
  }
  mpssm::base::Random(seed).shuffle(problems);
  return problems;
}

/// Operators by their sizes: problems share them, and their eigenvectors.
const Gso& operator_of(const Problem& problem) {
  static std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Gso> made;
  const auto key = std::tuple(problem.graphs, problem.nodes, problem.degree);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  std::vector<mpssm::graph::Graph> graphs;
  for (std::int64_t g = 0; g < problem.graphs; ++g) {
    graphs.push_back(mpssm::graph::make_random_connected(
        problem.nodes, problem.nodes * problem.degree / 2, static_cast<std::uint64_t>(g)));
  }
  return made[key] = mpssm::graph::make_gso(graphs.size() == 1 ? graphs[0]
                                                               : mpssm::graph::make_batch(graphs));
}

struct Timing {
  Plan plan;
  double nanoseconds;
};

/// Times of all plans that fit, the fastest first. One that takes three times as long as another
/// is not looked at again.
std::vector<Timing> time_plans(const Gso& gso, const PlanQuery& query, int rounds) {
  std::vector<Timing> timings;
  std::vector<mpssm::engine::TrialCall> calls;
  for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral}) {
    constexpr std::int64_t kLargestBasis = 1024;  // larger ones are never chosen unasked
    if (plan == Plan::kSpectral && query.diagonal &&
        gso.num_nodes() / gso.num_graphs() > kLargestBasis) {
      continue;
    }
    if (!why_not(plan, gso, query).empty()) continue;
    calls.emplace_back(plan, gso, query);
    timings.push_back({plan, 1e300});
  }
  double least = 1e300;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (round > 0 && timings[i].nanoseconds > 3.0 * least) continue;
      const double took = trial_nanoseconds(calls[i], round == 0 ? 2 : 3);
      timings[i].nanoseconds = std::min(timings[i].nanoseconds, took);
      least = std::min(least, took);
    }
  }
  std::sort(timings.begin(), timings.end(),
            [](const Timing& a, const Timing& b) { return a.nanoseconds < b.nanoseconds; });
  return timings;
}

int run(const Settings& settings) {
  const double load_before = mpssm::base::machine_load();
  PlanCosts costs = mpssm::engine::builtin_plan_costs();
  if (settings.calibrate) {
    costs = mpssm::engine::calibrate_plan_costs();
    std::printf("calibrated: %s\n", to_text(costs).c_str());
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::int64_t good = 0;
  std::int64_t count = 0;
  std::string worst_name;
  double worst = 0.0;
  for (Problem problem : all_problems(settings.draw)) {
    if (count == settings.problems) break;
    const Gso& gso = operator_of(problem);
    problem.query.costs = &costs;
    const Plan chosen = choose_plan(gso, problem.query);
    constexpr double kLongest = 3e7;  // nanoseconds: a problem must not take all the time
    constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;
    PlanQuery builtin = problem.query;
    builtin.costs = nullptr;  // the same problems, whatever was measured
    const bool too_long = plan_cost(choose_plan(gso, builtin), gso, builtin) > kLongest ||
                          plan_memory(Plan::kStepwise, gso, builtin) > kMostMemory;
    if (too_long) continue;
    const std::vector<Timing> timings = time_plans(gso, problem.query, settings.rounds);
    if (timings.size() < 2) continue;  // no choice
    ++count;
    double taken = 0.0;
    nlohmann::ordered_json row = {{"problem", problem.name()}, {"auto", to_string(chosen)}};
    for (const Timing& timing : timings) {
      row["milliseconds"][std::string(to_string(timing.plan))] = 1e-6 * timing.nanoseconds;
      row["planned"][std::string(to_string(timing.plan))] =
          1e-6 * plan_cost(timing.plan, gso, problem.query);
      if (timing.plan == chosen) taken = timing.nanoseconds;
    }
    const double ratio = taken / timings.front().nanoseconds;
    row["ratio"] = ratio;
    good += ratio <= kGood ? 1 : 0;
    if (ratio > worst) {
      worst = ratio;
      worst_name = problem.name();
    }
    if (settings.list || ratio > kGood) {
      std::printf("%6.2f  %-9s %-70s %s\n", ratio, std::string(to_string(chosen)).c_str(),
                  problem.name().c_str(), row["milliseconds"].dump().c_str());
      std::fflush(stdout);
    }
    rows.push_back(row);
  }
  std::printf("auto within 10 %% of the fastest plan in %lld of %lld problems, worst %.2f (%s)\n",
              static_cast<long long>(good), static_cast<long long>(count), worst,
              worst_name.c_str());
  if (settings.json_file.empty()) return 0;
  const nlohmann::ordered_json result = {{"prices", to_text(costs)},
                                         {"calibrated", settings.calibrate},
                                         {"good", good},
                                         {"problems", count},
                                         {"worst", worst},
                                         {"load", {load_before, mpssm::base::machine_load()}},
                                         {"simd", mpssm::kernels::active_simd_target()},
                                         {"rows", rows}};
  std::ofstream file(settings.json_file);
  file << result.dump(1) << "\n";
  file.close();
  if (!file) std::fprintf(stderr, "plan_bench: cannot write %s\n", settings.json_file.c_str());
  return file ? 0 : 1;
}

int usage(const std::string& problem) {
  if (!problem.empty()) std::fprintf(stderr, "plan_bench: %s\n", problem.c_str());
  std::fprintf(stderr,
               "usage: plan_bench [--json FILE] [--problems N] [--draw SEED] [--rounds N] "
               "[--calibrate] [--list] [--quick]\n");
  return problem.empty() ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) try {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") return usage("");
    if (argument == "--calibrate") {
      settings.calibrate = true;
    } else if (argument == "--list") {
      settings.list = true;
    } else if (argument == "--quick") {
      settings.problems = 8;
      settings.rounds = 1;
    } else if (i + 1 >= argc) {
      return usage(argument + ": unknown, or its value is missing");
    } else if (argument == "--json") {
      settings.json_file = argv[++i];
    } else if (argument == "--problems") {
      settings.problems = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--draw") {
      settings.draw = static_cast<std::uint64_t>(std::max(0, std::atoi(argv[++i])));
    } else if (argument == "--rounds") {
      settings.rounds = std::max(1, std::atoi(argv[++i]));
    } else {
      return usage("unknown option " + argument);
    }
  }
  return run(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "plan_bench: %s\n", error.what());
  return 1;
}
