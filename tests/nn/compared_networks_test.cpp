// SPDX-License-Identifier: MIT
// The compared networks against naive versions of their equations: dense matrices and loops. Their
// gradients against differences, their bits against the number of threads.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"
#include "mpssm/nn/baselines/adgn.h"
#include "mpssm/nn/baselines/drew.h"
#include "mpssm/nn/baselines/gat.h"
#include "mpssm/nn/baselines/ggrnn.h"
#include "mpssm/nn/baselines/gps.h"
#include "mpssm/nn/baselines/graphssm.h"
#include "mpssm/nn/baselines/sage.h"
#include "mpssm/ops/runtime.h"

#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using mpssm::testing::to_dense;
using torch::Tensor;

constexpr std::int64_t kIn = 3;
constexpr std::int64_t kHidden = 4;
constexpr std::int64_t kOut = 2;

LayeredOptions small_layers(std::int64_t num_layers) {
  return {.in_channels = kIn,
          .hidden_channels = kHidden,
          .out_channels = kOut,
          .num_layers = num_layers,
          .activation = Activation::kTanh,
          .norm = NormKind::kLayer,
          .residual = true,
          .dropout = 0.3};
}

graph::Graph small_graph() { return graph::make_random_connected(9, 14, 7); }

/// Parameters by name, and the layers that all of them have.
struct Weights {
  explicit Weights(torch::nn::Module& module) {
    for (const auto& item : module.named_parameters()) of.insert(item.key(), item.value());
    for (const auto& item : module.named_buffers()) buffers.insert(item.key(), item.value());
  }
  Tensor linear(const std::string& name, const Tensor& h) const {
    return torch::linear(h, of[name + ".weight"], of[name + ".bias"]);
  }
  Tensor norm(const std::string& name, const Tensor& h) const {
    return torch::layer_norm(h, {h.size(-1)}, of[name + ".scale"], of[name + ".shift"]);
  }
  /// `name` of layer number i.
  static std::string at(const char* name, std::int64_t i) {
    return std::string(name) + "_" + std::to_string(i);
  }
  torch::OrderedDict<std::string, Tensor> of;
  torch::OrderedDict<std::string, Tensor> buffers;
};

using Naive = std::function<Tensor(const Weights&, Tensor)>;  // H after the encoder -> H at the end

void randomise(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : module.parameters()) parameter.add_(0.2 * torch::randn_like(parameter));
}

/// kFormal: something that depends on the input counts as a constant in the gradient.
enum class Derivative { kTrue, kFormal };

/// In evaluation mode: what comes out, and the derivative along a random direction of x and of all
/// parameters.
void expect_is(GraphModule& module, const graph::Gso& gso, const Tensor& x, const Naive& naive,
               Derivative derivative = Derivative::kTrue) {
  module.to(torch::kDouble);
  module.eval();
  randomise(module);
  const Weights weights(module);
  Tensor h = naive(weights, weights.linear("encoder", x));
  if (x.dim() > 2) h = h.select(-3, h.size(-3) - 1);
  if (weights.of.contains("final_norm.scale")) h = weights.norm("final_norm", h);
  const Tensor expected = weights.linear("readout_0", h);
  ASSERT_TRUE(close(module.forward(x, gso), expected, 1e-10));

  // All gradients by torch's own operators, and once more by differences along one direction.
  const Tensor first_grad = torch::randn_like(expected);
  const std::vector<Tensor> parameters = module.parameters();
  const auto theirs = torch::autograd::grad({expected}, parameters, {first_grad});
  const auto ours = torch::autograd::grad({module.forward(x, gso)}, parameters, {first_grad});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(close(ours[i], theirs[i], 1e-8)) << "parameter " << i;
  }
  if (derivative == Derivative::kFormal) return;
  std::vector<Tensor> points = parameters;
  const Tensor moved_x = x.clone().requires_grad_();
  points.push_back(moved_x);
  const Tensor grad = torch::randn_like(expected);
  const auto value = [&] { return (module.forward(moved_x, gso) * grad).sum(); };
  value().backward();
  std::vector<Tensor> directions;
  double slope = 0.0;
  for (const Tensor& point : points) {
    ASSERT_TRUE(point.grad().defined());
    directions.push_back(torch::randn_like(point));
    slope += (point.grad() * directions.back()).sum().item<double>();
  }
  const torch::NoGradGuard no_grad;
  const auto move_by = [&](double step) {
    for (std::size_t i = 0; i < points.size(); ++i) points[i].add_(directions[i], step);
  };
  constexpr double kStep = 1e-5;
  move_by(kStep);
  const double above = value().item<double>();
  move_by(-2.0 * kStep);
  const double below = value().item<double>();
  EXPECT_NEAR(slope, (above - below) / (2.0 * kStep), 1e-6 * (1.0 + std::abs(slope)));
}

/// Output and gradients of a training step of a large input, on one thread and on several.
void expect_same_bits(const std::function<std::shared_ptr<GraphModule>()>& make,
                      const graph::Gso& gso, const Tensor& x) {
  const auto run = [&](std::int64_t threads) {
    ops::set_num_threads(threads);
    at::set_num_threads(static_cast<int>(threads));
    torch::manual_seed(3);
    const auto module = make();
    const Tensor y = module->forward(x, gso);
    y.backward(torch::cos(y.detach()));
    std::vector<Tensor> out = {y.detach()};
    for (const Tensor& parameter : module->parameters()) out.push_back(parameter.grad());
    return out;
  };
  const int before = at::get_num_threads();
  const std::vector<Tensor> one = run(1);
  for (const std::int64_t threads : {2, 5}) {
    const std::vector<Tensor> many = run(threads);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(torch::equal(one[i], many[i])) << "tensor " << i << ", threads " << threads;
    }
  }
  ops::set_num_threads(0);
  at::set_num_threads(before);
}

LayeredOptions wide_layers() {
  LayeredOptions options = small_layers(2);
  options.hidden_channels = 48;
  return options;
}
graph::Gso large_gso() { return graph::make_gso(graph::make_random_connected(3000, 5000, 2)); }
Tensor large_x() {
  torch::manual_seed(1);
  return torch::randn({3000, kIn});
}

TEST(Sage, IsItsEquation) {
  torch::manual_seed(1);
  const graph::Gso gso = graph::make_gso(small_graph());
  const Tensor entries = (to_dense(gso) != 0).to(torch::kDouble);
  const Naive naive = [&](const Weights& weights, Tensor h) {
    for (int l = 0; l < 3; ++l) {
      const Tensor u = weights.norm(Weights::at("norm", l), h);
      std::vector<Tensor> rows;
      for (std::int64_t i = 0; i < u.size(0); ++i) {
        Tensor sum = torch::zeros({kHidden}, torch::kDouble);
        int count = 0;
        for (std::int64_t j = 0; j < u.size(0); ++j) {
          if (i == j || entries[i][j].item<double>() == 0.0) continue;
          sum = sum + u[j];
          ++count;
        }
        rows.push_back(torch::cat({u[i], sum / count}));
      }
      h = h + torch::tanh(weights.linear(Weights::at("layer", l), torch::stack(rows)));
    }
    return h;
  };
  Sage network(small_layers(3));
  expect_is(*network, gso, torch::randn({9, kIn}, torch::kDouble), naive);
}

TEST(Sage, HasTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits([] { return Sage(wide_layers()).ptr(); }, large_gso(), large_x());
}

/// Graph attention as dense matrices, one head after the other.
Tensor naive_attention(const Weights& weights, const std::string& name, const Tensor& entries,
                       const Tensor& h, std::int64_t heads) {
  const std::int64_t width = h.size(1) / heads;
  std::vector<Tensor> parts;
  for (std::int64_t head = 0; head < heads; ++head) {
    const Tensor w = weights.of[name + ".map.weight"].slice(0, head * width, (head + 1) * width);
    const Tensor moved = h.mm(w.t());
    const Tensor to = moved.mv(weights.of[name + ".to"][head]);
    const Tensor from = moved.mv(weights.of[name + ".from"][head]);
    const Tensor scores = torch::leaky_relu(to.unsqueeze(1) + from.unsqueeze(0), 0.2);
    const Tensor alpha = torch::softmax(
        scores.masked_fill(entries == 0, -std::numeric_limits<double>::infinity()), 1);
    parts.push_back(alpha.mm(moved));
  }
  return torch::cat(parts, 1) + weights.of[name + ".bias"];
}

TEST(Gat, IsItsEquation) {
  torch::manual_seed(5);
  const graph::Gso gso = graph::make_gso(small_graph());
  const Naive naive = [&](const Weights& weights, Tensor h) {
    for (int l = 0; l < 2; ++l) {
      const Tensor u = weights.norm(Weights::at("norm", l), h);
      h = h + torch::tanh(naive_attention(weights, Weights::at("layer", l), to_dense(gso), u, 2));
    }
    return h;
  };
  Gat network(small_layers(2), 2);
  expect_is(*network, gso, torch::randn({9, kIn}, torch::kDouble), naive);
  EXPECT_THROW(Gat(small_layers(2), 3), c10::Error);  // 4 channels
}

TEST(Gat, HasTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits([] { return Gat(wide_layers(), 4).ptr(); }, large_gso(), large_x());
}

/// Attention of all nodes of a graph to each other by the kernel of the random features.
Tensor naive_performer(const Weights& weights, const std::string& name, const Tensor& h,
                       std::span<const std::int64_t> graph_ptr, std::int64_t heads) {
  const std::int64_t width = h.size(1) / heads;
  const Tensor r = weights.buffers[name + ".directions"];
  const auto map = [&](const char* which) {
    return h.mm(weights.of[name + "." + which + ".weight"].t());
  };
  const Tensor q = map("query");
  const Tensor k = map("key");
  const Tensor v = map("value");
  const auto exponents = [&](const Tensor& u) {  // of one node
    const Tensor scaled = u / std::pow(static_cast<double>(width), 0.25);
    return r.mv(scaled) - scaled.dot(scaled) / 2.0;
  };
  std::vector<Tensor> rows;
  for (std::size_t g = 0; g + 1 < graph_ptr.size(); ++g) {
    for (std::int64_t i = graph_ptr[g]; i < graph_ptr[g + 1]; ++i) {
      std::vector<Tensor> parts;
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto of = [&](const Tensor& all, std::int64_t node) {
          return all[node].slice(0, head * width, (head + 1) * width);
        };
        double largest = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = graph_ptr[g]; j < graph_ptr[g + 1]; ++j) {
          largest = std::max(largest, exponents(of(k, j)).max().item<double>());
        }
        const Tensor asked = exponents(of(q, i));
        const Tensor f_q = torch::exp(asked - asked.detach().max()) + 1e-4;
        Tensor sum = torch::zeros({width}, torch::kDouble);
        Tensor total = torch::zeros({}, torch::kDouble);
        for (std::int64_t j = graph_ptr[g]; j < graph_ptr[g + 1]; ++j) {
          const Tensor weight = f_q.dot(torch::exp(exponents(of(k, j)) - largest) + 1e-4);
          sum = sum + weight * of(v, j);
          total = total + weight;
        }
        parts.push_back(sum / total);
      }
      rows.push_back(torch::cat(parts));
    }
  }
  return weights.linear(name + ".out", torch::stack(rows));
}

TEST(Gps, IsItsEquation) {
  torch::manual_seed(6);
  const std::vector<graph::Graph> two = {small_graph(), graph::make_path(4)};
  const graph::Gso gso = graph::make_gso(graph::make_batch(two));
  const Naive naive = [&](const Weights& weights, Tensor h) {
    for (int l = 0; l < 2; ++l) {
      const auto norm = [&](const char* name, const Tensor& rows) {
        return weights.norm(Weights::at(name, l), rows);
      };
      const Tensor local = norm(
          "local_norm", h + naive_attention(weights, Weights::at("local", l), to_dense(gso), h, 2));
      const Tensor global =
          norm("global_norm",
               h + naive_performer(weights, Weights::at("global", l), h, gso.graph_ptr(), 2));
      const Tensor y = local + global;
      h = norm("mlp_norm",
               y + weights.linear(Weights::at("mlp_out", l),
                                  torch::tanh(weights.linear(Weights::at("mlp_in", l), y))));
    }
    return h;
  };
  LayeredOptions options = small_layers(2);
  options.hidden_channels = 8;  // heads of width 4 have several random features
  Gps network(options, 2);
  expect_is(*network, gso, torch::randn({13, kIn}, torch::kDouble), naive, Derivative::kFormal);
}

TEST(Gps, HasTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits([] { return Gps(wide_layers(), 4).ptr(); }, large_gso(), large_x());
}

TEST(Performer, HasRandomFeaturesWhoseMeanIsTheKernelOfSoftmax) {
  // exp(q . k) is the mean over Gaussian r of exp(r . q - |q|^2 / 2) exp(r . k - |k|^2 / 2): so the
  // directions have to be as long as Gaussian vectors are, and to point everywhere.
  torch::manual_seed(7);
  const Tensor q = 0.25 * torch::randn({8});
  const Tensor k = 0.25 * torch::randn({8});
  double mean = 0.0;
  constexpr int kDraws = 400;
  for (int draw = 0; draw < kDraws; ++draw) {
    Performer performer(8, 1);
    const Tensor r = performer->named_buffers()["directions"];
    EXPECT_EQ(r.sizes(), torch::IntArrayRef({16, 8}));  // 8 ln 8
    const Tensor exponents = r.mv(q + k) - (q.dot(q) + k.dot(k)) / 2.0;
    mean += torch::exp(exponents).mean().item<double>() / kDraws;
  }
  EXPECT_NEAR(mean, std::exp(q.dot(k).item<double>()), 0.05 * mean);
}

LayeredOptions series_layers(std::int64_t num_layers) {
  LayeredOptions options = small_layers(num_layers);
  options.forecasts = true;
  return options;
}

TEST(Ggrnn, IsItsEquation) {
  torch::manual_seed(8);
  const graph::Gso gso = graph::make_gso(small_graph());
  const Tensor a = to_dense(gso);
  for (const int hops : {0, 2}) {
    const Naive naive = [&](const Weights& weights, Tensor h) {
      for (int l = 0; l < 2; ++l) {
        const Tensor b = weights.of[Weights::at("input", l) + ".weight"];
        const Tensor w = weights.of[Weights::at("state", l) + ".weight"];
        std::vector<Tensor> batch;
        for (std::int64_t k = 0; k < h.size(0); ++k) {
          Tensor x = torch::zeros({9, kHidden}, torch::kDouble);
          std::vector<Tensor> steps;
          for (std::int64_t t = 0; t < h.size(1); ++t) {
            Tensor sum = weights.of[Weights::at("input", l) + ".bias"].expand({9, kHidden});
            Tensor power = torch::eye(9, torch::kDouble);
            const Tensor u = weights.norm(Weights::at("norm", l), h[k][t]);
            for (int j = 0; j <= hops; ++j) {
              const auto part = [&](const Tensor& all) {
                return all.slice(1, j * kHidden, (j + 1) * kHidden).t();
              };
              sum = sum + power.mm(x).mm(part(w)) + power.mm(u).mm(part(b));
              power = power.mm(a);
            }
            x = torch::tanh(sum);
            steps.push_back(h[k][t] + x);
          }
          batch.push_back(torch::stack(steps));
        }
        h = torch::stack(batch);
      }
      return h;
    };
    Ggrnn network(series_layers(2), hops);
    expect_is(*network, gso, torch::randn({2, 4, 9, kIn}, torch::kDouble), naive);
  }
}

TEST(GraphSsm, IsItsEquationStepByStep) {
  torch::manual_seed(9);
  const graph::Gso gso = graph::make_gso(small_graph());
  const Tensor a = to_dense(gso);
  // The state-space model as a recurrence with complex states, where the network has a convolution.
  const Naive naive = [&](const Weights& weights, Tensor h) {
    for (int l = 0; l < 2; ++l) {
      const auto number = [&](const char* name) { return weights.of[Weights::at(name, l)]; };
      const Tensor rate = torch::complex(-torch::exp(number("log_decay")), number("frequency"));
      const Tensor held = torch::exp(torch::exp(number("log_step")).unsqueeze(1) * rate);
      const Tensor entry = (held - 1.0) / rate;
      const Tensor gain = torch::view_as_complex(number("gain"));
      const Tensor m = torch::sigmoid(number("mix"));
      std::vector<Tensor> batch;
      for (std::int64_t k = 0; k < h.size(0); ++k) {
        Tensor before = torch::zeros({9, kHidden}, torch::kDouble);
        Tensor z = torch::zeros({9, kHidden, 3}, torch::kComplexDouble);
        std::vector<Tensor> steps;
        for (std::int64_t t = 0; t < h.size(1); ++t) {
          const Tensor u = weights.norm(Weights::at("norm", l), h[k][t]);
          const Tensor g = torch::tanh(weights.linear(Weights::at("graph", l), a.mm(u)));
          const Tensor mixed = (1.0 - m) * g + m * before;
          before = g;
          z = held * z + entry * mixed.unsqueeze(-1);
          const Tensor s = 2.0 * torch::real((gain * z).sum(-1)) + number("direct") * mixed;
          steps.push_back(h[k][t] + weights.linear(Weights::at("out", l), torch::tanh(s)));
        }
        batch.push_back(torch::stack(steps));
      }
      h = torch::stack(batch);
    }
    return h;
  };
  GraphSsm network(series_layers(2), 3);
  expect_is(*network, gso, torch::randn({2, 5, 9, kIn}, torch::kDouble), naive);
}

TEST(SeriesNetworks, HaveTheSameBitsForAnyNumberOfThreads) {
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(300, 500, 2));
  torch::manual_seed(1);
  const Tensor x = torch::randn({12, 9, 300, kIn});
  LayeredOptions options = wide_layers();
  options.forecasts = true;
  expect_same_bits([&] { return Ggrnn(options, 2).ptr(); }, gso, x);
  expect_same_bits([&] { return GraphSsm(options, 64).ptr(); }, gso, x);
}

TEST(Adgn, IsItsEquation) {
  torch::manual_seed(2);
  const graph::Gso gso = graph::make_gso(small_graph());
  const Tensor a = to_dense(gso);
  const AdgnOptions options{
      .layers = small_layers(2), .steps = 3, .step_size = 0.2, .damping = 0.05};
  const Naive naive = [&](const Weights& weights, Tensor h) {
    for (int l = 0; l < 2; ++l) {
      const Tensor w = weights.of[Weights::at("free", l)];
      const Tensor anti = w - w.t() - 0.05 * torch::eye(kHidden, torch::kDouble);
      h = weights.norm(Weights::at("norm", l), h);
      for (int step = 0; step < 3; ++step) {
        const Tensor moved = weights.linear(Weights::at("layer", l), a.mm(h));
        h = h + 0.2 * torch::tanh(h.mm(anti) + moved);
      }
    }
    return h;
  };
  Adgn network(options);
  expect_is(*network, gso, torch::randn({9, kIn}, torch::kDouble), naive);
}

TEST(Adgn, HasImaginaryEigenvaluesButForTheDamping) {
  Adgn network(AdgnOptions{.layers = small_layers(1)});
  const Tensor w = network->named_parameters()["free_0"].detach().to(torch::kDouble);
  const Tensor anti = w - w.t() - 0.1 * torch::eye(kHidden, torch::kDouble);
  EXPECT_TRUE(close(torch::real(torch::linalg_eigvals(anti)),
                    torch::full({kHidden}, -0.1, torch::kDouble), 1e-12));
}

TEST(Adgn, HasTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits([] { return Adgn(AdgnOptions{.layers = wide_layers(), .steps = 2}).ptr(); },
                   large_gso(), large_x());
}

TEST(Drew, IsItsEquation) {
  torch::manual_seed(3);
  const graph::Graph graph = graph::make_path(7);
  const graph::Gso gso = graph::make_gso(graph);
  // Pairs at exactly d hops, and how many each node has.
  std::vector<Tensor> at_distance;
  for (int d = 1; d <= 4; ++d) {
    Tensor pairs = torch::zeros({7, 7}, torch::kDouble);
    for (int j = 0; j < 7; ++j) {
      const std::vector<std::int32_t> hops = graph::distances_from(graph, j);
      for (int i = 0; i < 7; ++i) pairs[i][j] = hops[i] == d ? 1.0 : 0.0;
    }
    const Tensor root = pairs.sum(1).clamp_min(1.0).rsqrt();
    at_distance.push_back(root.unsqueeze(1) * pairs * root.unsqueeze(0));
  }
  for (const int delay : {1, 2, 9}) {
    const Naive naive = [&](const Weights& weights, Tensor h) {
      std::vector<Tensor> u;
      for (int s = 0; s < 4; ++s) {
        u.push_back(weights.norm(Weights::at("norm", s), h));
        const Tensor all = weights.of[Weights::at("layer", s) + ".weight"];
        Tensor sum = weights.of[Weights::at("layer", s) + ".bias"].expand({7, kHidden});
        for (int i = 1; i <= s + 1; ++i) {
          const Tensor w = all.slice(1, (i - 1) * kHidden, i * kHidden).t();
          sum = sum + at_distance[i - 1].mm(u[s - std::max(0, i - delay)]).mm(w);
        }
        h = h + torch::tanh(sum);
      }
      return h;
    };
    Drew network(small_layers(4), delay);
    expect_is(*network, gso, torch::randn({7, kIn}, torch::kDouble), naive);
  }
}

TEST(Drew, ForgetsAnOperatorWhenAnotherComes) {
  Drew network(small_layers(3), 1);
  network->eval();
  const Tensor x = torch::randn({8, kIn});
  const graph::Gso ring = graph::make_gso(graph::make_ring(8));
  const Tensor first = network->forward(x, ring);
  EXPECT_FALSE(torch::equal(network->forward(x, graph::make_gso(graph::make_path(8))), first));
  EXPECT_TRUE(torch::equal(network->forward(x, ring), first));
}

TEST(Drew, HasTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits([] { return Drew(wide_layers(), 1).ptr(); }, large_gso(), large_x());
}

}  // namespace
}  // namespace mpssm::nn
