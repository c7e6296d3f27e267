// SPDX-License-Identifier: MIT
// The measuring itself.
#include "mpssm/study/timing.h"

#include <array>
#include <memory>

#include <torch/torch.h>

#include "mpssm/base/measure.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::study {
namespace {

using base::Contender;

struct Network {
  const char* name;
  std::shared_ptr<nn::GraphModule> module;
};

constexpr std::array<std::int64_t, 4> kDepths = {4, 8, 16, 32};
constexpr std::int64_t kFeatures = 300;
constexpr std::int64_t kClasses = 18;

std::vector<Network> networks_of(std::int64_t depth, std::int64_t hidden) {
  const auto mpssm = [&](nn::StateKind state) {
    nn::ModelOptions options{.in_channels = kFeatures,
                             .hidden_channels = hidden,
                             .out_channels = kClasses,
                             .num_blocks = 2,
                             .hops = depth / 2};
    options.state.kind = state;
    return nn::Model(options).ptr();
  };
  return {{"GCN", nn::Gcn(nn::GcnOptions{.in_channels = kFeatures,
                                         .hidden_channels = hidden,
                                         .out_channels = kClasses,
                                         .num_layers = depth})
                      .ptr()},
          {"MP-SSM, dense W", mpssm(nn::StateKind::kDense)},
          {"MP-SSM, diagonal W", mpssm(nn::StateKind::kStable)}};
}

constexpr std::array<std::int64_t, 5> kFigureHops = {10, 100, 500, 1000, 5000};
constexpr std::int64_t kFigureNodes = 100;
constexpr std::int64_t kFigureEdges = 1529;  // 3058 directed ones
constexpr std::int64_t kFigureChannels = 32;

/// tanh(A H W + b) over and over with one W.
torch::Tensor shared_gcn(const graph::Gso& gso, torch::Tensor h, const torch::Tensor& w,
                         const torch::Tensor& b, std::int64_t hops) {
  for (std::int64_t k = 0; k < hops; ++k) h = torch::tanh(ops::linear(ops::spmm(gso, h), w, b));
  return h;
}

int rounds_of(const TimingOptions& options) { return options.quick ? 1 : 5; }

}  // namespace

RuntimeTable measure_runtime(const TimingOptions& options) {
  RuntimeTable table{.setup = {.nodes = options.quick ? 2000 : 22'662,
                               .edges = options.quick ? 3000 : 32'927,
                               .hidden = options.quick ? 64 : 256,
                               .threads = ops::num_threads(),
                               .code = options.code},
                     .lines = {}};
  const std::int64_t nodes = table.setup.nodes;
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(nodes, table.setup.edges, 1));
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({nodes, kFeatures});
  const torch::Tensor target = torch::randint(kClasses, {nodes}, torch::kLong);
  for (const std::int64_t depth : kDepths) {
    const std::vector<Network> networks = networks_of(depth, table.setup.hidden);
    std::vector<Contender> training;
    std::vector<Contender> inference;
    for (const Network& network : networks) {
      nn::GraphModule* module = network.module.get();
      training.push_back({.plan = network.name, .run = [=, &gso] {
                            module->train();
                            module->zero_grad();
                            torch::cross_entropy_loss(module->forward(x, gso), target).backward();
                          }});
      inference.push_back({.plan = network.name, .run = [=, &gso] {
                             const torch::NoGradGuard no_grad;
                             module->eval();
                             module->forward(x, gso);
                           }});
    }
    base::measure(training, rounds_of(options));
    base::measure(inference, rounds_of(options));
    for (std::size_t n = 0; n < networks.size(); ++n) {
      table.lines.push_back(
          {.depth = depth,
           .network = networks[n].name,
           .training_ms = training[n].milliseconds,
           .inference_ms = inference[n].milliseconds,
           .training_over_gcn = training[n].milliseconds / training[0].milliseconds,
           .inference_over_gcn = inference[n].milliseconds / inference[0].milliseconds});
    }
    options.on_done(depth);
  }
  return table;
}

FigureTable measure_figure(const TimingOptions& options) {
  const torch::NoGradGuard no_grad;
  const graph::Gso gso =
      graph::make_gso(graph::make_random_connected(kFigureNodes, kFigureEdges, 1));
  graph::eigen_basis(gso);  // once per graph, not part of an inference
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({kFigureNodes, kFigureChannels});
  const torch::Tensor w = torch::randn({kFigureChannels, kFigureChannels}) / 6.0;
  const torch::Tensor b = torch::zeros({kFigureChannels});
  const torch::Tensor sigma = torch::polar(0.7 + 0.3 * torch::rand({kFigureChannels / 2}),
                                           torch::rand({kFigureChannels / 2}));
  FigureTable table{.setup = {.nodes = kFigureNodes,
                              .edges = kFigureEdges,
                              .hidden = kFigureChannels,
                              .threads = ops::num_threads(),
                              .code = options.code},
                    .lines = {}};
  for (const std::int64_t hops : kFigureHops) {
    if (options.quick && hops > 100) break;
    nn::Gcn gcn(nn::GcnOptions{.in_channels = kFigureChannels,
                               .hidden_channels = kFigureChannels,
                               .out_channels = kFigureChannels,
                               .num_layers = hops,
                               .activation = nn::Activation::kTanh});
    gcn->eval();
    const auto block = [&](const torch::Tensor& state, engine::Plan plan) {
      return [&, state, plan, hops] {
        ops::recurrence_static(gso, x, {state}, hops + 1, {.plan = plan});
      };
    };
    std::vector<Contender> contenders = {
        {.plan = "GCN", .run = [&] { gcn->forward(x, gso); }},
        {.plan = "GCN, shared weights", .run = [&] { shared_gcn(gso, x, w, b, hops); }},
        {.plan = "MP-SSM, loop", .run = block(w, engine::Plan::kStepwise)},
        {.plan = "MP-SSM, doubling", .run = block(w, engine::Plan::kDoubling)},
        {.plan = "MP-SSM, diagonal", .run = block(sigma, engine::Plan::kDiagonal)},
        {.plan = "MP-SSM, spectral", .run = block(sigma, engine::Plan::kSpectral)}};
    base::measure(contenders, rounds_of(options));
    for (const Contender& contender : contenders) {
      table.lines.push_back(
          {.hops = hops, .network = contender.plan, .milliseconds = contender.milliseconds});
    }
    options.on_done(hops);
  }
  return table;
}

}  // namespace mpssm::study
