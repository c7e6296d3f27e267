// SPDX-License-Identifier: MIT
// The engine against the same recurrence in plain libtorch operations (CSR sparse product + mm,
// autograd), in one process, taking turns.
//
//   engine_bench [--json FILE] [--quick] [--rounds N] [--only CASE]
//
// Peak memory is that of a first call in a process of its own: the program runs itself for it.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>
#include <vector>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/nn/block.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/runtime.h"

#include "bench/measure.h"

namespace {

using mpssm::bench::Contender;
using mpssm::graph::Gso;
using mpssm::ops::Plan;

struct Settings {
  std::string json_file;
  std::string only;
  std::string peak_plan;  // with `only`: measure the memory of this contender and nothing else
  bool quick = false;
  int rounds = 7;
};

/// A as torch would hold it.
torch::Tensor torch_matrix(const Gso& gso) {
  const std::int64_t n = gso.num_nodes();
  const auto row_ptr = torch::empty({n + 1}, torch::kLong);
  std::copy(gso.row_ptr().begin(), gso.row_ptr().end(), row_ptr.data_ptr<std::int64_t>());
  const auto col = torch::empty({gso.num_nonzeros()}, torch::kLong);
  std::copy(gso.col().begin(), gso.col().end(), col.data_ptr<std::int64_t>());
  const auto values = torch::empty({gso.num_nonzeros()});
  std::copy(gso.values<float>().begin(), gso.values<float>().end(), values.data_ptr<float>());
  return torch::sparse_csr_tensor(row_ptr, col, values, {n, n},
                                  torch::TensorOptions(torch::kFloat).layout(torch::kSparseCsr));
}

/// The baseline, X = A X W + C, by torch alone.
torch::Tensor torch_recurrence(const torch::Tensor& a, const torch::Tensor& c,
                               const torch::Tensor& w, std::int64_t hops) {
  torch::Tensor x = c;
  for (std::int64_t hop = 0; hop < hops; ++hop) x = torch::addmm(c, torch::mm(a, x), w);
  return x;
}

class Report {
 public:
  explicit Report(const Settings& settings) : settings_(settings) {
    if (!settings_.peak_plan.empty()) return;
    std::printf("%-24s %-10s %12s %9s %10s\n", "case", "plan", "ms", "vs torch", "peak MiB");
  }

  bool wants(const std::string& name) const {
    return settings_.only.empty() || settings_.only == name;
  }

  /// Measures and prints; `baseline_ms` < 0: the first contender is the baseline.
  std::vector<Contender> run(const std::string& name, std::vector<Contender> contenders, int rounds,
                             double baseline_ms = -1.0, const std::string& note = "") {
    if (!settings_.peak_plan.empty()) {
      for (const Contender& contender : contenders) {
        if (contender.plan == settings_.peak_plan) {
          std::printf("%.3f\n", mpssm::bench::peak_of(contender.run));
        }
      }
      return contenders;
    }
    for (Contender& contender : contenders)
      contender.peak_mib = peak_elsewhere(name, contender.plan);
    mpssm::bench::measure(contenders, rounds);
    if (baseline_ms < 0.0) baseline_ms = contenders.front().milliseconds;
    for (const Contender& contender : contenders) {
      const double ratio = baseline_ms / contender.milliseconds;
      std::printf("%-24s %-10s %12.4f %9.2f %10.1f%s%s\n", name.c_str(), contender.plan.c_str(),
                  contender.milliseconds, ratio, contender.peak_mib, note.empty() ? "" : "  ",
                  note.c_str());
      std::fflush(stdout);
      nlohmann::json row = {{"case", name},
                            {"plan", contender.plan},
                            {"milliseconds", contender.milliseconds},
                            {"ratio_vs_torch", ratio},
                            {"peak_mib", contender.peak_mib}};
      if (!note.empty()) row["note"] = note;
      rows_.push_back(row);
    }
    return contenders;
  }

  /// What this program, started anew, says of one contender.
  double peak_elsewhere(const std::string& name, const std::string& plan) const {
    const std::string command = "/proc/" + std::to_string(getpid()) + "/exe --only " + name +
                                " --peak " + plan + (settings_.quick ? " --quick" : "");
    double peak = -1.0;
    if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
      if (std::fscanf(pipe, "%lf", &peak) != 1) peak = -1.0;
      pclose(pipe);
    }
    return peak;
  }

  bool write() const {
    if (settings_.json_file.empty()) return true;
    std::ofstream file(settings_.json_file);
    file << rows_.dump(2) << "\n";
    file.close();
    if (!file) std::fprintf(stderr, "engine_bench: cannot write %s\n", settings_.json_file.c_str());
    return static_cast<bool>(file);
  }

 private:
  Settings settings_;
  nlohmann::json rows_ = nlohmann::json::array();
};

/// The recurrence at the size of Roman-empire: forward, training, and training over 1024 hops.
void run_recurrence(const Settings& settings, Report& report) {
  const std::int64_t n = settings.quick ? 2000 : 22662;
  const std::int64_t edges = settings.quick ? 3000 : 32927;
  const std::int64_t c = settings.quick ? 64 : 256;
  const std::int64_t hops = 16;
  const std::int64_t deep_hops = settings.quick ? 64 : 1024;
  const Gso gso = mpssm::graph::make_gso(mpssm::graph::make_random_connected(n, edges, 1));
  const auto a = torch_matrix(gso);

  torch::manual_seed(0);
  auto input = torch::randn({n, c});
  auto dense = torch::empty({c, c});
  torch::nn::init::orthogonal_(dense);
  auto sigma = torch::polar(0.8 + 0.19 * torch::rand({c / 2}), 3.14 * torch::rand({c / 2}));
  const auto gradient = torch::randn({n, c});

  const auto ours = [&](Plan plan, std::int64_t steps) {
    const auto& w = plan == Plan::kDiagonal ? sigma : dense;
    return mpssm::ops::recurrence_static(gso, input, {w}, steps, {.plan = plan}).output;
  };
  const auto forward = [&](Plan plan, std::int64_t steps) {
    return [&, plan, steps] {
      const torch::NoGradGuard no_grad;
      ours(plan, steps);
    };
  };
  const auto train = [&](const std::function<torch::Tensor()>& output) {
    return [&, output] {
      output().backward(gradient);
      for (auto* leaf : {&input, &dense, &sigma}) leaf->mutable_grad() = torch::Tensor();
    };
  };
  const auto training = [&](Plan plan, std::int64_t steps) {
    return train([&, plan, steps] { return ours(plan, steps); });
  };
  const auto contenders = [&](const auto& torch_run, const auto& run_plan) {
    std::vector<Contender> list = {{.plan = "torch", .run = torch_run}};
    for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal}) {
      list.push_back({.plan = std::string(to_string(plan)), .run = run_plan(plan, hops + 1)});
    }
    return list;
  };

  if (report.wants("forward")) {
    const auto torch_forward = [&] {
      const torch::NoGradGuard no_grad;
      torch_recurrence(a, input, dense, hops);
    };
    report.run("forward", contenders(torch_forward, forward), settings.rounds);
  }

  if (!report.wants("training") && !report.wants("training_k1024")) return;
  for (auto* leaf : {&input, &dense, &sigma}) leaf->requires_grad_();
  const auto torch_training = train([&] { return torch_recurrence(a, input, dense, hops); });
  double shallow_ms = 0.0;
  if (report.wants("training")) {
    shallow_ms =
        report
            .run("training", contenders(torch_training, training), std::max(1, settings.rounds / 2))
            .front()
            .milliseconds;
  }
  if (!report.wants("training_k1024")) return;
  if (shallow_ms == 0.0 && settings.peak_plan.empty()) {
    std::vector<Contender> baseline = {{.plan = "torch", .run = torch_training}};
    mpssm::bench::measure(baseline, std::max(1, settings.rounds / 2));
    shallow_ms = baseline.front().milliseconds;
  }
  // The baseline cannot run this: its states alone are 64 times those of k = 16.
  const double scaled = shallow_ms * static_cast<double>(deep_hops) / hops;
  report.run("training_k1024",
             {{.plan = "doubling", .run = training(Plan::kDoubling, deep_hops + 1)},
              {.plan = "diagonal", .run = training(Plan::kDiagonal, deep_hops + 1)}},
             std::max(1, settings.rounds / 3), scaled,
             "ratio to the k=16 baseline times " + std::to_string(deep_hops / hops));
}

/// The paper's inference figure: 100 nodes, 3058 directed edges, 1 input channel, 32 hidden.
void run_inference_figure(const Settings& settings, Report& report) {
  const Gso gso = mpssm::graph::make_gso(mpssm::graph::make_random_connected(100, 1529, 1));
  mpssm::graph::eigen_basis(gso);  // once per graph, not part of a call
  const auto a = torch_matrix(gso);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  const auto u = torch::randn({100, 1});
  const auto w_in = torch::randn({1, 32});
  const auto w = torch::nn::init::orthogonal_(torch::empty({32, 32}));

  for (const std::int64_t hops : {10, 5000}) {
    const std::string name = "inference_figure_k" + std::to_string(hops);
    if (!report.wants(name)) continue;
    const auto block_with = [&](mpssm::nn::StateKind kind, Plan plan) {
      mpssm::nn::Block block(mpssm::nn::BlockOptions{.in_channels = 1,
                                                     .state_channels = 32,
                                                     .out_channels = 32,
                                                     .hops = hops,
                                                     .state = {.kind = kind},
                                                     .state_norm = mpssm::nn::NormKind::kNone,
                                                     .plan = plan});
      block->eval();
      const int calls = hops > 1000 && plan != Plan::kSpectral ? 1 : 50;
      return Contender{.plan = std::string(to_string(plan)),
                       .run = [block, &gso, &u]() mutable { block->forward(u, gso); },
                       .calls = calls};
    };
    const auto gcn = [&, hops] {
      torch::Tensor x = torch::mm(u, w_in);
      for (std::int64_t hop = 0; hop < hops; ++hop) x = torch::tanh(torch::mm(torch::mm(a, x), w));
    };
    report.run(name,
               {{.plan = "torch", .run = gcn, .calls = hops > 1000 ? 1 : 50},
                block_with(mpssm::nn::StateKind::kDense, Plan::kStepwise),
                block_with(mpssm::nn::StateKind::kDense, Plan::kDoubling),
                block_with(mpssm::nn::StateKind::kStable, Plan::kDiagonal),
                block_with(mpssm::nn::StateKind::kStable, Plan::kSpectral)},
               settings.rounds, -1.0, "torch = tanh GCN of k steps");
  }
}

/// A block so small that what is left is the price of the call itself. The baseline does the same
/// arithmetic with as few torch calls as it takes.
void run_overhead(const Settings& settings, Report& report) {
  if (!report.wants("block_call_overhead")) return;
  const torch::NoGradGuard no_grad;
  const Gso gso = mpssm::graph::make_gso(mpssm::graph::make_path(2));
  const auto a = torch_matrix(gso);
  const auto u = torch::randn({2, 2});
  const auto block_with = [&](mpssm::nn::StateKind kind, Plan plan) {
    mpssm::nn::Block block(mpssm::nn::BlockOptions{.in_channels = 2,
                                                   .state_channels = 2,
                                                   .out_channels = 2,
                                                   .hops = 1,
                                                   .state = {.kind = kind},
                                                   .state_norm = mpssm::nn::NormKind::kNone,
                                                   .plan = plan});
    block->eval();
    return Contender{.plan = std::string(to_string(plan)),
                     .run = [block, &gso, &u]() mutable { block->forward(u, gso); },
                     .calls = 2000};
  };
  const auto w = torch::randn({2, 2});
  const auto bias = torch::randn({2});
  const auto torch_block = [&] {
    const auto c = torch::mm(u, w);
    const auto x = torch::addmm(c, torch::mm(a, c), w);
    torch::linear(torch::gelu(torch::linear(x, w, bias)), w, bias);
  };
  report.run("block_call_overhead",
             {{.plan = "torch", .run = torch_block, .calls = 2000},
              block_with(mpssm::nn::StateKind::kDense, Plan::kStepwise),
              block_with(mpssm::nn::StateKind::kDense, Plan::kDoubling),
              block_with(mpssm::nn::StateKind::kStable, Plan::kDiagonal)},
             settings.rounds);
}

int usage(const char* problem) {
  if (problem[0] != '\0') std::fprintf(stderr, "engine_bench: %s\n", problem);
  std::fprintf(stderr,
               "usage: engine_bench [--json FILE] [--quick] [--rounds N] [--only CASE]\n"
               "cases: forward training training_k1024 inference_figure_k10 "
               "inference_figure_k5000 block_call_overhead\n");
  return problem[0] == '\0' ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") return usage("");
    if (argument == "--quick") {
      settings.quick = true;
      settings.rounds = 1;
      continue;
    }
    if (i + 1 >= argc) return usage((argument + ": unknown, or its value is missing").c_str());
    const std::string value = argv[++i];
    if (argument == "--json") {
      settings.json_file = value;
    } else if (argument == "--only") {
      settings.only = value;
    } else if (argument == "--peak") {
      settings.peak_plan = value;
    } else if (argument == "--rounds") {
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    } else {
      return usage(("unknown option " + argument).c_str());
    }
  }
  if (settings.peak_plan.empty()) {
    std::printf("libtorch %s, %s, %lld threads\n", TORCH_VERSION,
                mpssm::kernels::active_simd_target().c_str(),
                static_cast<long long>(mpssm::ops::num_threads()));
  }
  Report report(settings);
  run_recurrence(settings, report);
  run_inference_figure(settings, report);
  run_overhead(settings, report);
  return report.write() ? 0 : 1;
}
