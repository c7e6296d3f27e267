// SPDX-License-Identifier: MIT
// The paper's runtime table (time against depth, beside a GCN) and its inference figure (one block
// over thousands of hops), measured on this machine.
#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ops/spmm.h"
#include "mpssm/report/curve_picture.h"

#include "bench/measure.h"
#include "cli/reproduce.h"
#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

using bench::Contender;
using nlohmann::ordered_json;

/// What `describe` makes of the file; `absent` if there is none.
template <typename Describe>
std::string describe_json(const std::filesystem::path& path, const std::string& absent,
                          const Describe& describe) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return absent;
  try {
    return describe(ordered_json::parse(io::read_file(path, 1 << 20)));
  } catch (const nlohmann::json::exception& error) {
    io::fail(path.string(), std::string("not a measurement: ") + error.what());
  }
}

// --- runtime ------------------------------------------------------------------------------------

struct Network {
  const char* name;
  std::shared_ptr<nn::GraphModule> module;
};

constexpr std::array<std::int64_t, 4> kDepths = {4, 8, 16, 32};

std::vector<Network> networks_of(std::int64_t depth, std::int64_t hidden) {
  constexpr std::int64_t kFeatures = 300;
  constexpr std::int64_t kClasses = 18;
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

// --- figure -------------------------------------------------------------------------------------

constexpr std::int64_t kFigureNodes = 100;
constexpr std::int64_t kFigureEdges = 1529;  // 3058 directed ones
constexpr std::int64_t kFigureChannels = 32;

/// tanh(A H W + b) over and over with one W.
torch::Tensor shared_gcn(const graph::Gso& gso, torch::Tensor h, const torch::Tensor& w,
                         const torch::Tensor& b, std::int64_t hops) {
  for (std::int64_t k = 0; k < hops; ++k) h = torch::tanh(ops::linear(ops::spmm(gso, h), w, b));
  return h;
}

}  // namespace

void measure_runtime(const std::filesystem::path& results, bool quick) {
  const std::int64_t nodes = quick ? 2000 : 22'662;
  const std::int64_t edges = quick ? 3000 : 32'927;
  const std::int64_t hidden = quick ? 64 : 256;
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(nodes, edges, 1));
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({nodes, 300});
  const torch::Tensor target = torch::randint(18, {nodes}, torch::kLong);
  ordered_json rows = ordered_json::array();
  for (const std::int64_t depth : kDepths) {
    const std::vector<Network> networks = networks_of(depth, hidden);
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
    const int rounds = quick ? 1 : 5;
    bench::measure(training, rounds);
    bench::measure(inference, rounds);
    for (std::size_t n = 0; n < networks.size(); ++n) {
      rows.push_back(
          {{"depth", depth},
           {"network", networks[n].name},
           {"training_ms", training[n].milliseconds},
           {"inference_ms", inference[n].milliseconds},
           {"training_over_gcn", training[n].milliseconds / training[0].milliseconds},
           {"inference_over_gcn", inference[n].milliseconds / inference[0].milliseconds}});
    }
    say(text("depth %lld: done", static_cast<long long>(depth)));
  }
  io::write_file(results / "runtime.json", ordered_json{{"nodes", nodes},
                                                        {"edges", edges},
                                                        {"hidden", hidden},
                                                        {"threads", ops::num_threads()},
                                                        {"rows", rows}}
                                                   .dump(1) +
                                               "\n");
}

namespace {

std::string describe_runtime(const ordered_json& json) {
  std::string page =
      "\n## Runtime\n\n`mpssm reproduce runtime`: " +
      text("%lld", json.at("nodes").get<long long>()) + " nodes, " +
      text("%lld", json.at("edges").get<long long>()) + " edges, hidden width " +
      text("%lld", json.at("hidden").get<long long>()) + ", " +
      text("%lld", json.at("threads").get<long long>()) +
      " threads; the fastest of several rounds, networks taking turns.\nThe graph has the size of "
      "Roman-empire but is random, and so are the features and the labels: nothing is learned, "
      "and a real\ngraph's order of nodes may be kinder to the cache. Training is forward, loss "
      "and "
      "backward, without the optimiser's step.\nAll networks have encoder and readout; MP-SSM has "
      "2 blocks of depth/2 hops, each with its MLP, and the GCN is ours. The\npaper, on a GPU and "
      "with other code: 1.15 to 1.26 times a GCN in training, 1.17 to 1.39 in inference.\n\n"
      "| depth | network | training ms | over GCN | inference ms | over GCN "
      "|\n|---|---|---|---|---|---|\n";
  for (const auto& row : json.at("rows")) {
    page += text("| %lld | %s | %.1f | %.2f | %.1f | %.2f |\n", row.at("depth").get<long long>(),
                 row.at("network").get<std::string>().c_str(), row.at("training_ms").get<double>(),
                 row.at("training_over_gcn").get<double>(), row.at("inference_ms").get<double>(),
                 row.at("inference_over_gcn").get<double>());
  }
  return page;
}

}  // namespace

std::string runtime_markdown(const std::filesystem::path& results) {
  return describe_json(results / "runtime.json",
                       "\n## Runtime\n\nNot run. `mpssm reproduce runtime`\n", describe_runtime);
}

void measure_figure(const std::filesystem::path& results, bool quick) {
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
  ordered_json rows = ordered_json::array();
  const std::vector<std::int64_t> all = {10, 100, 500, 1000, 5000};
  for (const std::int64_t hops : all) {
    if (quick && hops > 100) break;
    nn::Gcn gcn(nn::GcnOptions{.in_channels = kFigureChannels,
                               .hidden_channels = kFigureChannels,
                               .out_channels = kFigureChannels,
                               .num_layers = hops,
                               .activation = nn::Activation::kTanh});
    gcn->eval();
    const auto block = [&](const torch::Tensor& state, ops::Plan plan) {
      return [&, state, plan, hops] {
        ops::recurrence_static(gso, x, {state}, hops + 1, {.plan = plan});
      };
    };
    std::vector<Contender> contenders = {
        {.plan = "GCN", .run = [&] { gcn->forward(x, gso); }},
        {.plan = "GCN, shared weights", .run = [&] { shared_gcn(gso, x, w, b, hops); }},
        {.plan = "MP-SSM, loop", .run = block(w, ops::Plan::kStepwise)},
        {.plan = "MP-SSM, doubling", .run = block(w, ops::Plan::kDoubling)},
        {.plan = "MP-SSM, diagonal", .run = block(sigma, ops::Plan::kDiagonal)},
        {.plan = "MP-SSM, spectral", .run = block(sigma, ops::Plan::kSpectral)}};
    bench::measure(contenders, quick ? 1 : 5);
    for (const Contender& contender : contenders) {
      rows.push_back(
          {{"hops", hops}, {"network", contender.plan}, {"milliseconds", contender.milliseconds}});
    }
    say(text("%lld hops: done", static_cast<long long>(hops)));
  }
  io::write_file(results / "figure.json", ordered_json{{"nodes", kFigureNodes},
                                                       {"edges", kFigureEdges},
                                                       {"hidden", kFigureChannels},
                                                       {"threads", ops::num_threads()},
                                                       {"rows", rows}}
                                                  .dump(1) +
                                              "\n");
  report::CurvePicture picture;
  picture.title = "Inference time: recurrence alone, GCN";
  picture.x_label = "hops";
  picture.y_label = "milliseconds";
  picture.log_x = picture.log_y = true;
  for (const auto& row : rows) {
    const std::string name = row.at("network");
    auto curve = std::find_if(picture.curves.begin(), picture.curves.end(),
                              [&](const report::Curve& known) { return known.name == name; });
    if (curve == picture.curves.end()) {
      picture.curves.push_back({.name = name, .markers = true});
      curve = picture.curves.end() - 1;
    }
    curve->x.push_back(row.at("hops"));
    curve->y.push_back(row.at("milliseconds"));
  }
  io::write_file(results / "figure.svg", report::curve_svg(picture));
}

namespace {

/// How the time of the first network grows from one row of hops to the next, where the work grows
/// as the hops do: whoever reads the figure sees how rough it is.
std::string growth_of(const ordered_json& rows) {
  std::vector<std::pair<double, double>> times;
  for (const auto& row : rows) {
    if (row.at("network") != rows.front().at("network")) continue;
    times.emplace_back(row.at("hops").get<double>(), row.at("milliseconds").get<double>());
  }
  std::string words;
  for (std::size_t i = 1; i < times.size(); ++i) {
    words += text("%s%.1f (%.0f)", i > 1 ? ", " : "", times[i].second / times[i - 1].second,
                  times[i].first / times[i - 1].first);
  }
  return words;
}

std::string describe_figure(const ordered_json& json) {
  std::string page =
      "\n## Inference figure\n\n`mpssm reproduce figure`: a random graph of " +
      text("%lld", json.at("nodes").get<long long>()) + " nodes, " +
      text("%lld", json.at("edges").get<long long>()) + " edges, width " +
      text("%lld", json.at("hidden").get<long long>()) +
      ". The rows of MP-SSM time the recurrence alone, on as many\ninput channels (the paper's "
      "figure has one): no B, no MLP. The GCN has encoder and readout as well; with shared weights "
      "it has\nneither. So this compares the plans with each other; it is no fair race against the "
      "GCN. The spectral plan's eigenvectors\nare computed once per graph and not timed. The GCN's "
      "times are rough: from row to row they grow by the factor (and its work\nby) " +
      growth_of(json.at("rows")) +
      ".\n\n![Inference time against hops](../results/figure.svg)\n\n"
      "| hops | network | ms |\n|---|---|---|\n";
  for (const auto& row : json.at("rows")) {
    page +=
        text("| %lld | %s | %.3f |\n", row.at("hops").get<long long>(),
             row.at("network").get<std::string>().c_str(), row.at("milliseconds").get<double>());
  }
  return page;
}

}  // namespace

std::string figure_markdown(const std::filesystem::path& results) {
  return describe_json(results / "figure.json",
                       "\n## Inference figure\n\nNot run. `mpssm reproduce figure`\n",
                       describe_figure);
}

}  // namespace mpssm::cli
