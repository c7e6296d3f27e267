// SPDX-License-Identifier: MIT
// The engine against the same work in plain libtorch operations, dense against dense and diagonal
// against diagonal, in one process, taking turns.
//
//   engine_bench [--json FILE] [--threads N] [--rounds N] [--only CASE] [--quick]
//
// CASE may be a pattern, as in --only 'spmm-*'.
// Contenders give the same numbers, or the program stops. Peak memory is that of a first call in a
// process of its own: the program runs itself with --one CASE CONTENDER for it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/core.h>
#include <numeric>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "mpssm/base/random.h"
#include "mpssm/engine/plan.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/nn/block.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/spmm.h"

#include "bench/channel_groups.h"
#include "bench/matrix_products.h"
#include "bench/plain_torch.h"
#include "bench/recurrence_contenders.h"
#include "bench/report.h"
#include "bench/roofs.h"

namespace {

using mpssm::bench::Contest;
using mpssm::bench::Entry;
using mpssm::bench::gathered_bytes;
using mpssm::bench::gathering;
using mpssm::bench::Job;
using mpssm::bench::kBag;
using mpssm::bench::kBf16Bag;
using mpssm::bench::kCsr;
using mpssm::bench::kMatrix;
using mpssm::bench::Multiply;
using mpssm::bench::ours;
using mpssm::bench::ours_under_roofs;
using mpssm::bench::Product;
using mpssm::bench::Recurrence;
using mpssm::bench::Report;
using mpssm::bench::Sequence;
using mpssm::bench::Settings;
using mpssm::bench::Tensors;
using mpssm::bench::torch_dense;
using mpssm::bench::torch_dense_bf16;
using mpssm::bench::torch_diagonal;
using mpssm::bench::Work;
using mpssm::engine::Plan;
using mpssm::engine::Precision;
using mpssm::graph::Gso;

Gso random_gso(std::int64_t nodes, std::int64_t edges) {
  return mpssm::graph::make_gso(mpssm::graph::make_random_connected(nodes, edges, 1));
}

// ---- one product with A ---------------------------------------------------------------------

void run_spmm(const Settings& settings, Report& report) {
  struct Shape {
    std::int64_t nodes;
    std::int64_t edges;
    const char* degree;
  };
  std::vector<Shape> shapes = {{22'662, 32'927, "2.9"},
                               {22'662, 226'620, "20"},
                               {200'000, 400'000, "4"},
                               {1'000'000, 2'000'000, "4"}};
  std::vector<std::int64_t> widths = {32, 64, 128, 256};
  if (settings.quick) {
    shapes = {{2000, 2906, "2.9"}};
    widths = {32};
  }
  for (const Shape& shape : shapes) {
    for (const std::int64_t c : widths) {
      const std::string name = fmt::format("spmm-{}-degree{}-c{}", shape.nodes, shape.degree, c);
      if (!report.wants(name)) continue;
      const Gso gso = random_gso(shape.nodes, shape.edges);
      torch::manual_seed(0);
      const auto x = torch::randn({shape.nodes, c});
      const Work work = gathering(gso, c, 1, 4 * c);
      const auto ours = [&] {
        return Job{[&] {
          const torch::NoGradGuard no_grad;
          return Tensors{mpssm::ops::spmm(gso, x)};
        }};
      };
      const auto theirs = [&](Multiply (*product)(const Gso&)) {
        return [&, product] {
          return Job{[&x, multiply = product(gso)] {
            const torch::NoGradGuard no_grad;
            return Tensors{multiply(x)};
          }};
        };
      };
      report.run(name,
                 fmt::format("n = {}, mean degree {} and self-loops, c = {}", shape.nodes,
                             shape.degree, c),
                 {{"mpssm", ours, work},
                  {"torch csr", theirs(mpssm::bench::csr_product), work},
                  {"torch bag", theirs(mpssm::bench::bag_product), work}},
                 settings.rounds);
    }
  }
}

// ---- the recurrence, static -----------------------------------------------------------------

/// The size of Roman-empire.
void run_recurrence(const Settings& settings, Report& report) {
  const std::int64_t n = settings.quick ? 2000 : 22'662;
  const std::int64_t edges = settings.quick ? 2906 : 32'927;
  const std::int64_t c = settings.quick ? 64 : 256;
  const std::int64_t deep_hops = settings.quick ? 64 : 1024;
  const auto run = [&](bool training, bool diagonal, std::int64_t hops) {
    const bool deep = hops == deep_hops;
    const std::string name = std::string(training ? "training" : "forward") +
                             (diagonal ? "-diagonal" : "-dense") +
                             (deep ? fmt::format("-k{}", hops) : "");
    if (!report.wants(name)) return;
    const Recurrence job = {random_gso(n, edges), c, hops, diagonal, training};
    std::vector<Entry> entries = {ours_under_roofs(job, Plan::kAuto)};
    // Deep: the states that torch keeps do not fit, nor do those of stepwise.
    if (!deep && diagonal) {
      entries.push_back(ours_under_roofs(job, Plan::kDiagonal));
      entries.push_back(torch_diagonal(job, kCsr));
      entries.push_back(torch_diagonal(job, kBag));
      entries.push_back(torch_diagonal(job, kBag, 32));
    } else if (!deep) {
      entries.push_back(ours_under_roofs(job, Plan::kDoubling));
      entries.push_back(ours_under_roofs(job, Plan::kStepwise));
      entries.push_back(torch_dense(job, kCsr));
      entries.push_back(torch_dense(job, kBag));
    }
    report.run(name, fmt::format("n = {}, c = {}, k = {}", n, c, hops), entries,
               std::min(settings.rounds, deep       ? 2
                                         : training ? 3
                                                    : settings.rounds));
  };
  for (const bool training : {false, true}) {
    for (const bool diagonal : {false, true}) {
      run(training, diagonal, 16);
      if (training) run(training, diagonal, deep_hops);
    }
  }
}

/// True if this torch multiplies sparse matrices of bfloat16.
bool torch_has_bf16_bag() {
  try {
    const torch::NoGradGuard no_grad;
    mpssm::bench::bf16_bag_product(random_gso(10, 12))(torch::ones({10, 8}, torch::kBFloat16));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

/// The same with states and factors in bfloat16, beside ours and torch's best in float32.
void run_bf16_recurrence(const Settings& settings, Report& report) {
  const std::int64_t n = settings.quick ? 2000 : 22'662;
  const std::int64_t edges = settings.quick ? 2906 : 32'927;
  const std::int64_t c = settings.quick ? 64 : 256;
  constexpr std::int64_t kHops = 16;
  for (const bool training : {false, true}) {
    for (const bool diagonal : {false, true}) {
      const std::string name = fmt::format("{}-{}-bf16", training ? "training" : "forward",
                                           diagonal ? "diagonal" : "dense");
      if (!report.wants(name)) continue;
      const Recurrence job = {random_gso(n, edges), c, kHops, diagonal, training};
      std::vector<Entry> entries = {ours(job, Plan::kAuto, Precision::kBf16),
                                    ours(job, Plan::kAuto)};
      entries.push_back(diagonal ? torch_diagonal(job, kBag, 32) : torch_dense(job, kBag));
      if (torch_has_bf16_bag()) {
        entries.push_back(diagonal ? torch_diagonal(job, kBf16Bag, 32) : torch_dense_bf16(job));
      }
      report.run(name, fmt::format("n = {}, c = {}, k = {}", n, c, kHops), entries,
                 std::min(settings.rounds, training ? 3 : settings.rounds), Contest::kRounded);
    }
  }
}

/// The grid with its nodes in random order.
Gso shuffled_grid(std::int64_t rows, std::int64_t columns) {
  const mpssm::graph::Graph grid = mpssm::graph::make_grid(rows, columns);
  std::vector<std::int64_t> name(static_cast<std::size_t>(grid.num_nodes()));
  std::iota(name.begin(), name.end(), 0);
  mpssm::base::Random(1).shuffle(name);
  mpssm::graph::EdgeList edges;
  edges.num_nodes = grid.num_nodes();
  for (std::int64_t node = 0; node < grid.num_nodes(); ++node) {
    for (std::int64_t e = grid.row_ptr()[node]; e < grid.row_ptr()[node + 1]; ++e) {
      if (grid.col()[e] < node) {
        edges.src.push_back(name[grid.col()[e]]);
        edges.dst.push_back(name[node]);
      }
    }
  }
  return mpssm::graph::make_gso(mpssm::graph::Graph::from_edges(edges));
}

/// From a graph that fits the cache to one that does not, in order and shuffled, diagonal W: the
/// ratios are those of the time per entry of A, channel and hop.
void run_grids(const Settings& settings, Report& report) {
  struct Shape {
    std::int64_t rows;
    std::int64_t columns;
    bool shuffled;
  };
  std::vector<Shape> shapes = {{150, 151, false}, {1000, 1000, false}, {1000, 1000, true}};
  if (settings.quick) shapes = {{15, 10, false}, {40, 50, false}, {40, 50, true}};
  constexpr std::int64_t kChannels = 64;
  constexpr std::int64_t kHops = 16;
  for (const bool training : {false, true}) {
    const std::string name = fmt::format("grids-{}", training ? "training" : "forward");
    if (!report.wants(name)) continue;
    std::vector<Entry> entries;
    for (const Shape& shape : shapes) {
      const std::string contender = fmt::format("mpssm {}x{}{}", shape.rows, shape.columns,
                                                shape.shuffled ? ", shuffled" : "");
      // Where memory is measured there is one graph and no other.
      if (!settings.one.empty() && settings.one != contender) continue;
      const Gso gso =
          shape.shuffled
              ? shuffled_grid(shape.rows, shape.columns)
              : mpssm::graph::make_gso(mpssm::graph::make_grid(shape.rows, shape.columns));
      // A grid has neighbours near each other: gathers at random are no roof for it.
      entries.push_back(
          {contender,
           ours(Recurrence{gso, kChannels, kHops, true, training}, Plan::kDiagonal).prepare,
           {.gathered_bytes = gathered_bytes(gso, kChannels, (training ? 2 : 1) * kHops)}});
    }
    report.run(name, fmt::format("grids with 4 neighbours, c = {}, k = {}", kChannels, kHops),
               entries, std::min(settings.rounds, 3), Contest::kSeveralSizes);
  }
}

/// Batches of small graphs, training, diagonal W.
void run_small_graphs(const Settings& settings, Report& report) {
  struct Shape {
    std::int64_t graphs;
    std::int64_t nodes;
    std::int64_t edges;
    std::int64_t channels;
  };
  std::vector<Shape> shapes = {{64, 30, 60, 64}, {200, 150, 300, 128}};
  if (settings.quick) shapes = {{16, 30, 60, 32}};
  for (const Shape& shape : shapes) {
    const std::string name = fmt::format("graphs-{}x{}", shape.graphs, shape.nodes);
    if (!report.wants(name)) continue;
    std::vector<mpssm::graph::Graph> graphs;
    for (std::int64_t g = 0; g < shape.graphs; ++g) {
      graphs.push_back(mpssm::graph::make_random_connected(shape.nodes, shape.edges, g));
    }
    const Recurrence job = {mpssm::graph::make_gso(mpssm::graph::make_batch(graphs)),
                            shape.channels, 8, true, true};
    report.run(name,
               fmt::format("{} graphs of {} nodes and {} edges, c = {}, k = 8", shape.graphs,
                           shape.nodes, shape.edges, shape.channels),
               {ours(job, Plan::kAuto), ours(job, Plan::kDiagonal), torch_diagonal(job, kCsr),
                torch_diagonal(job, kBag), torch_diagonal(job, kMatrix)},
               settings.rounds);
  }
}

/// The graph of the paper's inference figure, 100 nodes and 3058 directed edges, 32 channels.
void run_hundred_nodes(const Settings& settings, Report& report) {
  for (const bool diagonal : {false, true}) {
    for (const std::int64_t hops : {10, 5000}) {
      if (settings.quick && hops == 5000) continue;
      const std::string name =
          fmt::format("hundred-nodes{}-k{}", diagonal ? "-diagonal" : "-dense", hops);
      if (!report.wants(name)) continue;
      // Eigenvectors are computed once per graph, not as part of a call, and auto is told so.
      const Recurrence job = {random_gso(100, 1529), 32, hops, diagonal, false, 100'000};
      if (diagonal) mpssm::graph::eigen_basis(job.gso);
      std::vector<Entry> entries = {ours(job, Plan::kAuto)};
      for (const Plan plan : diagonal ? std::array{Plan::kSpectral, Plan::kDiagonal}
                                      : std::array{Plan::kDoubling, Plan::kStepwise}) {
        entries.push_back(ours(job, plan));
      }
      for (const Product& product : {kCsr, kBag, kMatrix}) {
        entries.push_back(diagonal ? torch_diagonal(job, product) : torch_dense(job, product));
      }
      report.run(name, fmt::format("n = 100, 1529 edges, c = 32, k = {}", hops), entries,
                 settings.rounds);
    }
  }
}

// ---- the recurrence, temporal ---------------------------------------------------------------

/// The size of METR-LA: windows of 12 steps, 207 sensors.
void run_temporal(const Settings& settings, Report& report) {
  for (const bool training : {false, true}) {
    const std::string name = fmt::format("temporal-{}", training ? "training" : "forward");
    if (!report.wants(name)) continue;
    const Sequence job = {random_gso(207, 760), settings.quick ? 4 : 64, 12, 64, training};
    report.run(name, fmt::format("batch {}, 12 steps, n = 207, 760 edges, c = 64", job.batch),
               {ours(job, Plan::kAuto), ours(job, Plan::kDiagonal), torch_diagonal(job, kCsr),
                torch_diagonal(job, kBag)},
               settings.rounds);
  }
}

// ---- the price of a call --------------------------------------------------------------------

/// A block so small that what is left is the price of the call itself.
void run_call(const Settings& settings, Report& report) {
  if (!report.wants("call")) return;
  const Gso gso = mpssm::graph::make_gso(mpssm::graph::make_path(2));
  torch::manual_seed(0);
  const auto u = torch::randn({2, 2});
  mpssm::nn::Block block(mpssm::nn::BlockOptions{.in_channels = 2,
                                                 .state_channels = 2,
                                                 .out_channels = 2,
                                                 .hops = 1,
                                                 .state = {.kind = mpssm::nn::StateKind::kDense},
                                                 .state_norm = mpssm::nn::NormKind::kNone});
  block->eval();
  const auto ours_job = [&] {
    return Job{[&] {
      const torch::NoGradGuard no_grad;
      return Tensors{block->forward(u, gso)};
    }};
  };
  const auto torch_job = [&] {
    return Job{[&, multiply = mpssm::bench::csr_product(gso)] {
      const torch::NoGradGuard no_grad;
      const auto c = torch::mm(u, block->w_in);
      const auto x = torch::addmm(c, multiply(c), block->w_state->weight);
      return Tensors{
          torch::linear(torch::gelu(torch::linear(x, block->mlp_in->weight, block->mlp_in->bias)),
                        block->mlp_out->weight, block->mlp_out->bias)};
    }};
  };
  report.run("call", "a block with its MLP on n = 2, c = 2, k = 1, dense W",
             {{"mpssm auto", ours_job}, {"torch csr", torch_job}}, settings.rounds);
}

/// torch calls its CSR tensors a beta, once per process.
class QuietAboutCsr : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("Sparse CSR") == std::string::npos)
      c10::WarningHandler::process(warning);
  }
};

int usage(const std::string& problem) {
  if (!problem.empty()) std::fprintf(stderr, "engine_bench: %s\n", problem.c_str());
  std::fprintf(stderr,
               "usage: engine_bench [--json FILE] [--threads N] [--rounds N] [--only CASE] "
               "[--quick]\n");
  return problem.empty() ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) try {
  static QuietAboutCsr handler;
  c10::WarningUtils::set_warning_handler(&handler);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") return usage("");
    if (argument == "--quick") {
      settings.quick = true;
      settings.rounds = 1;
      continue;
    }
    if (i + 1 >= argc) return usage(argument + ": unknown, or its value is missing");
    const std::string value = argv[++i];
    if (argument == "--json") {
      settings.json_file = value;
    } else if (argument == "--only") {
      settings.only = value;
    } else if (argument == "--one" && i + 1 < argc) {
      settings.only = value;
      settings.one = argv[++i];
    } else if (argument == "--rounds") {
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    } else if (argument == "--threads") {
      settings.threads = std::max(1, std::atoi(value.c_str()));
    } else {
      return usage("unknown option " + argument);
    }
  }
  torch::set_num_threads(static_cast<int>(settings.threads));
  mpssm::ops::set_num_threads(settings.threads);
  Report report(settings);
  report.run_roofs();
  run_spmm(settings, report);
  mpssm::bench::run_matrix_products(settings, report);
  mpssm::bench::run_bf16_products(settings, report);
  run_recurrence(settings, report);
  run_bf16_recurrence(settings, report);
  mpssm::bench::run_channel_groups(settings, report);
  run_grids(settings, report);
  run_small_graphs(settings, report);
  run_hundred_nodes(settings, report);
  run_temporal(settings, report);
  run_call(settings, report);
  if (!settings.only.empty() && !report.knows(settings.only)) {
    return usage("no case '" + settings.only + "'");
  }
  return report.write() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "engine_bench: %s\n", error.what());
  return 1;
}
