// SPDX-License-Identifier: MIT
// The contenders of a race over one recurrence: ours by its plans, and plain libtorch's, on the
// same arguments and with results in one layout.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "mpssm/engine/plan.h"
#include "mpssm/graph/gso.h"
#include "mpssm/kernels/recurrence.h"
#include "mpssm/ops/recurrence.h"

#include "bench/plain_torch.h"
#include "bench/report.h"

namespace mpssm::bench {

using engine::Plan;
using engine::Precision;
using graph::Gso;

inline std::string name_of(Plan plan) { return fmt::format("mpssm {}", to_string(plan)); }

/// Bytes of `hops` products with A of c floats a node: a float for every entry of A, channel and
/// hop. What else is read and written is not counted.
inline double gathered_bytes(const Gso& gso, std::int64_t c, std::int64_t hops) {
  return 4.0 * static_cast<double>(gso.num_nonzeros() * c * hops);
}

/// The same, under the roof of rows of `row_bytes` gathered from as many rows as there are nodes.
inline Work gathering(const Gso& gso, std::int64_t c, std::int64_t hops, std::int64_t row_bytes) {
  // No cache holds as much, and a larger array would take memory from the contenders.
  constexpr std::int64_t kLargest = 512 << 20;
  return {.gathered_bytes = gathered_bytes(gso, c, hops),
          .from = {std::min(gso.num_nodes(), kLargest / row_bytes), row_bytes}};
}

struct Product {
  const char* name;
  Multiply (*make)(const Gso&);
};
constexpr Product kCsr = {"torch csr", csr_product};
constexpr Product kBag = {"torch bag", bag_product};
constexpr Product kBf16Bag = {"torch bag, bf16", bf16_bag_product};
constexpr Product kMatrix = {"torch matrix", matrix_product};

/// A static recurrence with W and B = I.
struct Recurrence {
  Gso gso;
  std::int64_t channels;
  std::int64_t hops;
  bool diagonal;
  bool training;
  std::int64_t operator_calls = 1;  ///< that share the eigenvectors, for plan auto
};

struct Arguments {
  torch::Tensor u;         ///< [N, C]; [batch, T, N, C] for a sequence
  torch::Tensor w;         ///< [C, C], or sigma [C/2]
  torch::Tensor gradient;  ///< of the output; undefined: forward only
};

inline torch::Tensor random_sigma(std::int64_t count) {
  return torch::polar(0.8 + 0.19 * torch::rand({count}), 3.14 * torch::rand({count}));
}

/// The same for every contender, and made by each for itself: what it does not keep must not count
/// as its memory.
inline Arguments make_arguments(const Recurrence& job) {
  torch::manual_seed(0);
  const std::int64_t c = job.channels;
  Arguments arguments;
  arguments.u = torch::randn({job.gso.num_nodes(), c});
  arguments.w =
      job.diagonal ? random_sigma(c / 2) : torch::nn::init::orthogonal_(torch::empty({c, c}));
  if (job.training) arguments.gradient = torch::randn({job.gso.num_nodes(), c});
  return arguments;
}

/// Results of a call: the output, and the gradients if they are wanted.
template <typename Run>
inline Tensors with_gradients(const Tensors& gradients, const Tensors& leaves, const Run& run) {
  const torch::AutoGradMode grad(!gradients.empty());
  Tensors results = run();
  if (gradients.empty()) return results;
  const Tensors more = torch::autograd::grad(results, leaves, gradients);
  for (torch::Tensor& result : results) result = result.detach();
  results.insert(results.end(), more.begin(), more.end());
  return results;
}

/// A job on u and w as they are, the output being a function of both.
template <typename Output>
Job plain_job(Arguments arguments, const Output& output) {
  Tensors gradients;
  if (arguments.gradient.defined()) {
    arguments.u.requires_grad_();
    arguments.w.requires_grad_();
    gradients = {arguments.gradient};
  }
  Job job;
  job.run = [=] {
    return with_gradients(gradients, {arguments.u, arguments.w},
                          [&]() -> Tensors { return {output(arguments.u, arguments.w)}; });
  };
  job.in_our_layout = [](Tensors results) {
    for (torch::Tensor& result : results) {
      if (result.is_complex()) result = torch::view_as_real(result);
    }
    return results;
  };
  return job;
}

inline Entry ours(const Recurrence& job, Plan plan, Precision precision = Precision::kFloat32) {
  const std::string name = precision == Precision::kBf16 ? "mpssm bf16" : name_of(plan);
  return {
      name, [=] {
        return plain_job(make_arguments(job), [=](const auto& u, const auto& w) {
          return ops::recurrence_static(
                     job.gso, u, {w}, job.hops + 1,
                     {.plan = plan, .operator_calls = job.operator_calls, .precision = precision})
              .output;
        });
      }};
}

/// What a plan has to do in a call: hops, of training twice, and products with W or its powers, of
/// training three times (output, gradient of the state, gradient of W). Not counted: packing, sums,
/// products of two C x C matrices.
inline Work work_of(const Recurrence& job, Plan plan) {
  const std::int64_t steps = job.hops + 1;
  if (plan == Plan::kAuto) {
    plan = engine::choose_plan(job.gso, {.num_steps = steps,
                                         .channels = job.channels,
                                         .diagonal = job.diagonal,
                                         .training = job.training,
                                         .operator_calls = job.operator_calls});
  }
  constexpr std::int64_t kSlice = 4 * kernels::kMaxSliceLanes<float>;
  const bool in_slices = plan == Plan::kDoubling || plan == Plan::kDiagonal;
  if (!in_slices && (plan != Plan::kStepwise || job.diagonal)) return {};
  Work work = gathering(job.gso, job.channels, (job.training ? 2 : 1) * job.hops,
                        in_slices ? kSlice : 4 * job.channels);
  if (job.diagonal) return work;
  // Doubling: one move for each bit of T below the highest, and one more for each that is set.
  const auto bits = static_cast<std::uint64_t>(steps);
  const int moves = std::bit_width(bits) - 1 + std::popcount(bits) - 1;
  const double products = plan == Plan::kDoubling ? moves : static_cast<double>(job.hops);
  work.flops = (job.training ? 3.0 : 1.0) * products * 2.0 *
               static_cast<double>(job.gso.num_nodes() * job.channels * job.channels);
  return work;
}

inline Entry ours_under_roofs(const Recurrence& job, Plan plan) {
  Entry entry = ours(job, plan);
  entry.work = work_of(job, plan);
  return entry;
}

inline Entry torch_dense(const Recurrence& job, const Product& product) {
  return {product.name, [=] {
            return plain_job(
                make_arguments(job),
                [hops = job.hops, multiply = product.make(job.gso)](const auto& u, const auto& w) {
                  return torch_dense(multiply, u, w, hops);
                });
          }};
}

/// torch with states, W and A in bfloat16.
inline Entry torch_dense_bf16(const Recurrence& job) {
  return {kBf16Bag.name, [=] {
            Arguments arguments = make_arguments(job);
            for (torch::Tensor* each : {&arguments.u, &arguments.w, &arguments.gradient}) {
              if (each->defined()) *each = each->to(torch::kBFloat16);
            }
            return plain_job(arguments, [hops = job.hops, multiply = kBf16Bag.make(job.gso)](
                                            const auto& u, const auto& w) {
              return torch_dense(multiply, u, w, hops);
            });
          }};
}

/// [..., C] with channels in pairs -> real and imaginary parts, [..., C/2] each.
inline Halves split_pairs(const torch::Tensor& x) {
  const auto pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  return {pairs.select(-1, 0).contiguous(), pairs.select(-1, 1).contiguous()};
}

inline torch::Tensor join_pairs(const torch::Tensor& re, const torch::Tensor& im) {
  return torch::stack({re, im}, -1).flatten(-2);
}

/// Some channels of torch's diagonal recurrence, with gradients of the output if training.
struct Slice {
  Halves u;
  Halves sigma;
  Tensors gradients;

  Tensors leaves() const { return {u.re, u.im, sigma.re, sigma.im}; }
};

inline std::vector<Slice> make_slices(const Recurrence& job, std::int64_t width,
                                      at::ScalarType type) {
  const Arguments arguments = make_arguments(job);
  const Halves u = split_pairs(arguments.u);
  const Halves sigma = split_pairs(torch::view_as_real(arguments.w).flatten(-2));
  const Halves gradient = job.training ? split_pairs(arguments.gradient) : Halves{};
  std::vector<Slice> slices;
  for (std::int64_t start = 0; start < job.channels / 2; start += width / 2) {
    const auto part = [&](const Halves& x) {
      const auto half = [&](const torch::Tensor& numbers) {
        return numbers.narrow(-1, start, width / 2).clone(at::MemoryFormat::Contiguous).to(type);
      };
      return Halves{half(x.re), half(x.im)};
    };
    Slice slice = {part(u), part(sigma), {}};
    if (job.training) {
      const Halves wanted = part(gradient);
      slice.gradients = {wanted.re, wanted.im};
      for (torch::Tensor& leaf : slice.leaves()) leaf.requires_grad_();
    }
    slices.push_back(slice);
  }
  return slices;
}

/// Of the results of each slice (output, and gradients of u and sigma) the whole.
inline Tensors join_slices(const Tensors& results, std::size_t slices) {
  const std::size_t each = results.size() / slices;
  const auto gather = [&](std::size_t which) {
    Tensors parts;
    for (std::size_t i = 0; i < slices; ++i) parts.push_back(results[i * each + which]);
    return torch::cat(parts, -1);
  };
  Tensors joined = {join_pairs(gather(0), gather(1))};
  if (each > 2) {
    joined.push_back(join_pairs(gather(2), gather(3)));
    joined.push_back(torch::stack({gather(4), gather(5)}, -1));
  }
  return joined;
}

/// With `width`, so many channels at a time go through all hops, to stay in cache.
inline Entry torch_diagonal(const Recurrence& job, const Product& product, std::int64_t width = 0) {
  const auto prepare = [=] {
    const bool rounded = product.make == kBf16Bag.make;
    const std::vector<Slice> slices = make_slices(job, width > 0 ? width : job.channels,
                                                  rounded ? torch::kBFloat16 : torch::kFloat);
    Job done;
    done.run = [hops = job.hops, slices, multiply = product.make(job.gso)] {
      Tensors results;
      for (const Slice& slice : slices) {
        const Tensors more = with_gradients(slice.gradients, slice.leaves(), [&]() -> Tensors {
          const Halves x = torch_diagonal(multiply, {slice.u}, slice.sigma, hops);
          return {x.re, x.im};
        });
        results.insert(results.end(), more.begin(), more.end());
      }
      return results;
    };
    done.in_our_layout = [count = slices.size()](const Tensors& results) {
      return join_slices(results, count);
    };
    return done;
  };
  return {product.name + (width > 0 ? fmt::format(", slices of {}", width) : std::string()),
          prepare};
}

/// A sequence of T inputs, diagonal W, the state after the last.
struct Sequence {
  Gso gso;
  std::int64_t batch;
  std::int64_t steps;
  std::int64_t channels;
  bool training;
};

inline Arguments make_arguments(const Sequence& job) {
  torch::manual_seed(0);
  const std::int64_t n = job.gso.num_nodes();
  Arguments arguments;
  arguments.u = torch::randn({job.batch, job.steps, n, job.channels});
  arguments.w = random_sigma(job.channels / 2);
  if (job.training) arguments.gradient = torch::randn({job.batch, n, job.channels});
  return arguments;
}

inline Entry ours(const Sequence& job, Plan plan) {
  return {name_of(plan), [=] {
            return plain_job(make_arguments(job), [=](const auto& u, const auto& w) {
              return ops::recurrence_temporal(job.gso, u, {w}, {.plan = plan}).output;
            });
          }};
}

/// torch's products take nodes first: [N, batch, C/2] for each step and half.
inline Entry torch_diagonal(const Sequence& job, const Product& product) {
  const auto prepare = [=] {
    const Arguments arguments = make_arguments(job);
    const auto nodes_first = [](const torch::Tensor& x) {
      const Halves halves = split_pairs(x.transpose(0, 1));
      return Halves{halves.re.contiguous(), halves.im.contiguous()};
    };
    std::vector<Halves> inputs;
    Tensors leaves;
    for (std::int64_t t = 0; t < job.steps; ++t) {
      inputs.push_back(nodes_first(arguments.u.select(1, t)));
      leaves.insert(leaves.end(), {inputs.back().re, inputs.back().im});
    }
    const Halves sigma = split_pairs(torch::view_as_real(arguments.w).flatten(-2));
    leaves.insert(leaves.end(), {sigma.re, sigma.im});
    Tensors gradients;
    if (job.training) {
      for (torch::Tensor& leaf : leaves) leaf.requires_grad_();
      const Halves wanted = nodes_first(arguments.gradient);
      gradients = {wanted.re, wanted.im};
    }
    Job done;
    done.run = [=, hops = job.steps - 1, multiply = product.make(job.gso)] {
      return with_gradients(gradients, leaves, [&]() -> Tensors {
        const Halves x = torch_diagonal(multiply, inputs, sigma, hops);
        return {x.re, x.im};
      });
    };
    done.in_our_layout = [steps = job.steps](const Tensors& results) {
      const auto joined = [&](std::size_t first) {
        return join_pairs(results[first], results[first + 1]).transpose(0, 1);
      };
      Tensors ours = {joined(0)};
      if (results.size() == 2) return ours;
      Tensors inputs_gradient;
      for (std::int64_t t = 0; t < steps; ++t) inputs_gradient.push_back(joined(2 + 2 * t));
      ours.push_back(torch::stack(inputs_gradient, 1));
      ours.push_back(torch::stack({results[2 + 2 * steps], results[3 + 2 * steps]}, -1));
      return ours;
    };
    return done;
  };
  return {product.name, prepare};
}

}  // namespace mpssm::bench
