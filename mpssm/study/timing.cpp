// SPDX-License-Identifier: MIT
// The measuring itself.
#include "mpssm/study/timing.h"

#include <array>
#include <cmath>
#include <fmt/core.h>
#include <memory>

#include <torch/torch.h>

#include "mpssm/base/machine.h"
#include "mpssm/base/measure.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/baselines/gps.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::study {
namespace {

using base::Contender;

constexpr std::int64_t kFeatures = 300;
constexpr std::int64_t kEncodings = 20;  // of random walks, as more features
constexpr std::int64_t kClasses = 18;
constexpr std::int64_t kHeads = 4;

struct Network {
  const char* name;
  std::shared_ptr<nn::GraphModule> module;
  std::int64_t features = kFeatures;
  double training_mib = 0.0;  // 0: little
};

constexpr std::array<std::int64_t, 4> kDepths = {4, 8, 16, 32};

/// Of a training step, as train/compared_networks.cpp has measured it.
double gps_mib(std::int64_t nodes, std::int64_t depth, std::int64_t hidden) {
  const double units = 24.0 + 5.0 * std::log(static_cast<double>(hidden / kHeads));
  return units * static_cast<double>(nodes * depth * hidden) * sizeof(float) / (1 << 20);
}

std::vector<Network> networks_of(std::int64_t nodes, std::int64_t depth, std::int64_t hidden) {
  const auto mpssm = [&](nn::StateKind state) {
    nn::ModelOptions options{.in_channels = kFeatures,
                             .hidden_channels = hidden,
                             .out_channels = kClasses,
                             .num_blocks = 2,
                             .hops = depth / 2};
    options.state.kind = state;
    return nn::Model(options).ptr();
  };
  return {{"GCN", nn::Gcn(nn::LayeredOptions{.in_channels = kFeatures,
                                             .hidden_channels = hidden,
                                             .out_channels = kClasses,
                                             .num_layers = depth})
                      .ptr()},
          {"MP-SSM, dense W", mpssm(nn::StateKind::kDense)},
          {"MP-SSM, diagonal W", mpssm(nn::StateKind::kStable)},
          {.name = "GPS, GAT + Performer (RWSE)",
           .module = nn::Gps(nn::LayeredOptions{.in_channels = kFeatures + kEncodings,
                                                .hidden_channels = hidden,
                                                .out_channels = kClasses,
                                                .num_layers = depth,
                                                .norm = nn::NormKind::kLayer},
                             kHeads)
                         .ptr(),
           .features = kFeatures + kEncodings,
           .training_mib = gps_mib(nodes, depth, hidden)}};
}

constexpr std::array<std::int64_t, 5> kFigureHops = {10, 100, 500, 1000, 5000};
constexpr std::int64_t kFigureNodes = 100;
constexpr std::int64_t kFigureEdges = 1529;  // 3058 directed ones
constexpr std::int64_t kFigureInputs = 1;
constexpr std::int64_t kFigureChannels = 32;

nn::LayeredOptions figure_layers(std::int64_t hops) {
  return {.in_channels = kFigureInputs,
          .hidden_channels = kFigureChannels,
          .out_channels = kFigureChannels,
          .num_layers = hops,
          .activation = nn::Activation::kTanh};
}

/// A GCN whose layers share one W.
class SharedGcn : public nn::LayeredImpl {
 public:
  explicit SharedGcn(std::int64_t hops) : LayeredImpl("SharedGcn", figure_layers(hops)) {
    for (std::int64_t i = 0; i < hops; ++i) begin_layer();
    layer_ = register_module("layer", torch::nn::Linear(kFigureChannels, kFigureChannels));
    end_layers(nn::NormKind::kNone);
  }

 protected:
  torch::Tensor layer(std::int64_t, const torch::Tensor& h, const graph::Gso& gso) override {
    return ops::linear(ops::spmm(gso, h), layer_->weight, layer_->bias);
  }

 private:
  torch::nn::Linear layer_{nullptr};
};

/// One block with encoder and readout, as the GCN has them.
std::shared_ptr<nn::GraphModule> figure_block(std::int64_t hops, nn::StateKind state,
                                              engine::Plan plan) {
  nn::ModelOptions options{.in_channels = kFigureInputs,
                           .hidden_channels = kFigureChannels,
                           .out_channels = kFigureChannels,
                           .num_blocks = 1,
                           .hops = hops,
                           .norm = nn::NormKind::kNone,
                           .state_norm = nn::NormKind::kNone,
                           .residual = false,
                           .plan = plan};
  options.state.kind = state;
  return nn::Model(options).ptr();
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
  const torch::Tensor all_x = torch::randn({nodes, kFeatures + kEncodings});
  const torch::Tensor target = torch::randint(kClasses, {nodes}, torch::kLong);
  for (const std::int64_t depth : kDepths) {
    std::vector<Network> networks = networks_of(nodes, depth, table.setup.hidden);
    // What memory does not hold is left out, and the table says so by its absence.
    std::erase_if(networks, [](const Network& network) {
      return network.training_mib > 0.8 * base::available_mib();
    });
    std::vector<Contender> training;
    std::vector<Contender> inference;
    for (const Network& network : networks) {
      nn::GraphModule* module = network.module.get();
      const torch::Tensor x = all_x.slice(1, 0, network.features).contiguous();
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
    options.on_done(fmt::format("depth {}", depth));
  }
  return table;
}

FigureTable measure_figure(const TimingOptions& options) {
  const torch::NoGradGuard no_grad;
  const graph::Gso gso =
      graph::make_gso(graph::make_random_connected(kFigureNodes, kFigureEdges, 1));
  graph::eigen_basis(gso);  // once per graph, not part of an inference
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({kFigureNodes, kFigureInputs});
  FigureTable table{.setup = {.nodes = kFigureNodes,
                              .edges = kFigureEdges,
                              .hidden = kFigureChannels,
                              .threads = ops::num_threads(),
                              .code = options.code},
                    .times = FigureTimes::kNetworks,
                    .lines = {}};
  using engine::Plan;
  using nn::StateKind;
  for (const std::int64_t hops : kFigureHops) {
    if (options.quick && hops > 100) break;
    const std::vector<Network> networks = {
        {"GCN", nn::Gcn(figure_layers(hops)).ptr()},
        {"GCN, shared weights", std::make_shared<SharedGcn>(hops)},
        {"MP-SSM, loop", figure_block(hops, StateKind::kDense, Plan::kStepwise)},
        {"MP-SSM, doubling", figure_block(hops, StateKind::kDense, Plan::kDoubling)},
        {"MP-SSM, diagonal", figure_block(hops, StateKind::kStable, Plan::kDiagonal)},
        {"MP-SSM, spectral", figure_block(hops, StateKind::kStable, Plan::kSpectral)}};
    std::vector<Contender> contenders;
    for (const Network& network : networks) {
      network.module->eval();
      contenders.push_back({.plan = network.name, .run = [&, module = network.module.get()] {
                              module->forward(x, gso);
                            }});
    }
    base::measure(contenders, rounds_of(options));
    for (const Contender& contender : contenders) {
      table.lines.push_back(
          {.hops = hops, .network = contender.plan, .milliseconds = contender.milliseconds});
    }
    options.on_done(fmt::format("{} hops", hops));
  }
  return table;
}

}  // namespace mpssm::study
