// SPDX-License-Identifier: MIT
// Tensors as torch can make them, at every operator and every argument: what comes out must be what
// a plain copy gives, or an error.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/feed_forward.h"
#include "mpssm/ops/gelu.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/layer_norm.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/pool.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/spmm.h"

#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tensors = std::vector<torch::Tensor>;

struct Op {
  std::string name;
  std::vector<std::string> arguments;
  std::function<Tensors(torch::Dtype)> make;
  std::function<torch::Tensor(const Tensors&)> run;
};

const graph::Gso& batch_of_graphs() {
  static const graph::Gso gso = graph::make_gso(graph::make_batch(std::vector<graph::Graph>{
      graph::make_random_connected(9, 14, 1), graph::make_ring(4), graph::make_star(5)}));
  return gso;
}

constexpr std::int64_t kSteps = 3;
constexpr std::int64_t kChannels = 6;

/// u, W, B and X(0) with gradients for all.
Op recurrence_op(Plan plan, bool temporal, bool diagonal, Outputs outputs) {
  const auto make = [=](torch::Dtype type) -> Tensors {
    const std::int64_t n = batch_of_graphs().num_nodes();
    const auto u = temporal ? torch::randn({2, kSteps, n, 5}, type) : torch::randn({2, n, 5}, type);
    const auto w = diagonal ? mpssm::testing::random_sigma(kChannels / 2, type)
                            : mpssm::testing::random_dense_w(kChannels, type);
    return {u, w, torch::randn({5, kChannels}, type), torch::randn({2, n, kChannels}, type)};
  };
  const auto run = [=](const Tensors& x) {
    const RecurrenceOptions options{.plan = plan, .outputs = outputs, .initial = x[3]};
    const RecurrenceWeights weights{x[1], x[2]};
    return temporal ? recurrence_temporal(batch_of_graphs(), x[0], weights, options).output
                    : recurrence_static(batch_of_graphs(), x[0], weights, kSteps, options).output;
  };
  return {std::string("recurrence ") + std::string(to_string(plan)) +
              (temporal ? " temporal" : " static") + (diagonal ? " diagonal" : " dense") +
              (outputs == Outputs::kAll ? " all" : " last"),
          {"u", "w_state", "w_in", "initial"},
          make,
          run};
}

std::vector<Op> every_op() {
  const std::int64_t n = batch_of_graphs().num_nodes();
  const auto features = [n](torch::Dtype type) -> Tensors { return {torch::randn({n, 6}, type)}; };
  std::vector<Op> all;
  all.push_back(
      {"spmm", {"x"}, features, [](const Tensors& x) { return spmm(batch_of_graphs(), x[0]); }});
  all.push_back({"spmm_transposed", {"x"}, features, [](const Tensors& x) {
                   return spmm_transposed(batch_of_graphs(), x[0]);
                 }});
  all.push_back({"linear",
                 {"x", "weight", "bias"},
                 [](torch::Dtype type) -> Tensors {
                   return {torch::randn({2, 7, 5}, type), torch::randn({4, 5}, type),
                           torch::randn({4}, type)};
                 },
                 [](const Tensors& x) { return ops::linear(x[0], x[1], x[2]); }});
  all.push_back({"matmul",
                 {"x", "w"},
                 [](torch::Dtype type) -> Tensors {
                   return {torch::randn({2, 7, 5}, type), torch::randn({5, 4}, type)};
                 },
                 [](const Tensors& x) { return ops::matmul(x[0], x[1]); }});
  all.push_back(
      {"layer_norm",
       {"x", "scale", "shift"},
       [](torch::Dtype type) -> Tensors {
         return {torch::randn({2, 7, 6}, type), torch::randn({6}, type), torch::randn({6}, type)};
       },
       [](const Tensors& x) { return ops::layer_norm(x[0], x[1], x[2]); }});
  all.push_back({"norm_linear",
                 {"x", "scale", "shift", "w"},
                 [](torch::Dtype type) -> Tensors {
                   return {torch::randn({2, 7, 6}, type), torch::randn({6}, type),
                           torch::randn({6}, type), torch::randn({6, 4}, type)};
                 },
                 [](const Tensors& x) {
                   return norm_linear(x[0], {x[1], x[2]}, x[3]);
                 }});
  all.push_back(
      {"feed_forward",
       {"x", "scale", "shift", "w1", "b1", "w2", "b2", "residual"},
       [](torch::Dtype type) -> Tensors {
         return {torch::randn({2, 7, 6}, type), torch::randn({6}, type),
                 torch::randn({6}, type),       torch::randn({5, 6}, type),
                 torch::randn({5}, type),       torch::randn({4, 5}, type),
                 torch::randn({4}, type),       torch::randn({2, 7, 4}, type)};
       },
       [](const Tensors& x) {
         return feed_forward(x[0], {{x[1], x[2]}, x[3], x[4], x[5], x[6]}, {.residual = x[7]});
       }});
  all.push_back({"gelu", {"x"}, features, [](const Tensors& x) { return ops::gelu(x[0]); }});
  all.push_back({"dropout", {"x"}, features, [](const Tensors& x) {
                   return ops::dropout(x[0], 0.4, make_generator(5));
                 }});
  for (const Pooling pooling :
       {Pooling::kSum, Pooling::kMean, Pooling::kMax, Pooling::kSumMaxMean}) {
    all.push_back(
        {"pool " + std::string(to_string(pooling)), {"x"}, features, [=](const Tensors& x) {
           return pool(batch_of_graphs(), x[0], pooling);
         }});
  }
  for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
    for (const bool temporal : {false, true}) {
      for (const Plan plan :
           {Plan::kAuto, Plan::kDiagonal, Plan::kSpectral, Plan::kStepwise, Plan::kReference}) {
        all.push_back(recurrence_op(plan, temporal, true, outputs));
      }
      for (const Plan plan : {Plan::kAuto, Plan::kStepwise, Plan::kReference}) {
        all.push_back(recurrence_op(plan, temporal, false, outputs));
      }
    }
  }
  all.push_back(recurrence_op(Plan::kDoubling, false, false, Outputs::kLast));
  all.push_back({"recurrence with entries",
                 {"u", "w_state", "gso_values"},
                 [](torch::Dtype type) -> Tensors {
                   return {torch::randn({batch_of_graphs().num_nodes(), kChannels}, type),
                           mpssm::testing::random_dense_w(kChannels, type),
                           torch::rand({batch_of_graphs().num_nonzeros()}, type)};
                 },
                 [](const Tensors& x) {
                   return recurrence_static(batch_of_graphs(), x[0], {x[1]}, kSteps,
                                            {.gso_values = x[2]})
                       .output;
                 }});
  return all;
}

/// A tensor that is hard to read right, made of x by differentiable operations. Undefined: does not
/// apply.
struct Disguise {
  std::string name;
  std::function<torch::Tensor(const torch::Tensor&)> wear;
};

std::vector<Disguise> every_disguise() {
  return {
      {"negated", [](const torch::Tensor& x) { return torch::_neg_view(-x); }},
      {"conjugated",
       [](const torch::Tensor& x) {
         return x.is_complex() ? torch::conj(torch::conj_physical(x)) : torch::Tensor();
       }},
      {"imaginary part of a conjugate",
       [](const torch::Tensor& x) {
         if (x.is_complex()) return torch::Tensor();
         return torch::imag(torch::complex(torch::ones_like(x), -x).conj());
       }},
      {"every other number",
       [](const torch::Tensor& x) {
         return torch::stack({x, torch::full_like(x, 99.0)}, -1).select(-1, 0);
       }},
      {"transposed",
       [](const torch::Tensor& x) {
         if (x.dim() < 2) return torch::Tensor();
         return x.transpose(-1, -2).contiguous().transpose(-1, -2);
       }},
      {"a part of something wider",
       [](const torch::Tensor& x) {
         const auto junk = torch::full_like(x, 99.0);
         return torch::cat({junk, x, junk}, -1).narrow(-1, x.size(-1), x.size(-1));
       }},
      {"expanded over the last axis",
       [](const torch::Tensor& x) { return x.narrow(-1, 0, 1).expand(x.sizes()); }},
      {"expanded over the first axis",
       [](const torch::Tensor& x) { return x.narrow(0, 0, 1).expand(x.sizes()); }},
      {"sparse",  // which torch does not differentiate for complex numbers
       [](const torch::Tensor& x) { return x.is_complex() ? torch::Tensor() : x.to_sparse(); }},
  };
}

torch::Tensor plain(const torch::Tensor& x) {
  const auto dense = x.is_sparse() ? x.to_dense() : x;
  return dense.resolve_conj().resolve_neg().clone(torch::MemoryFormat::Contiguous);
}

struct Run {
  torch::Tensor output;
  Tensors gradients;
};

/// Runs the operator with `wear` put on argument `which`, and on the gradient that comes back.
Run run_with(const Op& op, const Tensors& values, std::size_t which,
             const std::function<torch::Tensor(const torch::Tensor&)>& wear,
             const std::function<torch::Tensor(const torch::Tensor&)>& wear_gradient) {
  Tensors leaves;
  for (const auto& value : values) leaves.push_back(value.detach().clone().requires_grad_());
  Tensors arguments = leaves;
  if (which < arguments.size()) arguments[which] = wear(leaves[which]);
  Run run;
  run.output = op.run(arguments);
  torch::manual_seed(11);
  run.gradients =
      torch::autograd::grad({run.output}, leaves, {wear_gradient(torch::randn_like(run.output))});
  run.output = run.output.detach();
  return run;
}

torch::Tensor as_is(const torch::Tensor& x) { return x; }

void expect_same(const Run& actual, const Run& expected, torch::Dtype type) {
  const double tolerance = type == torch::kDouble ? 1e-13 : 1e-5;
  EXPECT_TRUE(close(actual.output, expected.output, tolerance)) << "output";
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    EXPECT_TRUE(close(actual.gradients[i], expected.gradients[i], tolerance)) << "gradient " << i;
  }
}

TEST(AnyTensor, IsReadRightInEveryArgumentOfEveryOperator) {
  for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
    for (const Op& op : every_op()) {
      torch::manual_seed(1);
      const Tensors values = op.make(type);
      for (std::size_t which = 0; which < values.size(); ++which) {
        for (const Disguise& disguise : every_disguise()) {
          if (!disguise.wear(values[which]).defined()) continue;
          SCOPED_TRACE(op.name + ": " + op.arguments[which] + " " + disguise.name + ", " +
                       c10::toString(type));
          const auto undisguised = [&](const torch::Tensor& x) { return plain(disguise.wear(x)); };
          expect_same(run_with(op, values, which, disguise.wear, as_is),
                      run_with(op, values, which, undisguised, as_is), type);
        }
      }
    }
  }
}

TEST(AnyTensor, IsReadRightAsAGradientThatComesBack) {
  for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
    for (const Op& op : every_op()) {
      torch::manual_seed(2);
      const Tensors values = op.make(type);
      for (const Disguise& disguise : every_disguise()) {
        const auto output = op.run(values);
        if (disguise.name == "sparse" || !disguise.wear(output).defined()) continue;
        SCOPED_TRACE(op.name + ": gradient " + disguise.name + ", " + c10::toString(type));
        const auto undisguised = [&](const torch::Tensor& x) { return plain(disguise.wear(x)); };
        expect_same(run_with(op, values, values.size(), as_is, disguise.wear),
                    run_with(op, values, values.size(), as_is, undisguised), type);
      }
    }
  }
}

TEST(AnyTensor, WithoutMemoryCountsAsZeros) {
  for (const Op& op : every_op()) {
    torch::manual_seed(3);
    const Tensors values = op.make(torch::kFloat);
    for (std::size_t which = 0; which < values.size(); ++which) {
      SCOPED_TRACE(op.name + ": " + op.arguments[which]);
      Tensors arguments = values;
      arguments[which] =
          torch::_efficientzerotensor(values[which].sizes(), values[which].options());
      const auto actual = op.run(arguments);
      arguments[which] = torch::zeros_like(values[which]);
      EXPECT_TRUE(close(actual, op.run(arguments), 0.0));
    }
  }
}

TEST(AnyTensor, OnMetaGivesAMetaResultOfTheRightShape) {
  for (const Op& op : every_op()) {
    if (op.name == "spmm_transposed") continue;  // has no other implementation, and says so
    SCOPED_TRACE(op.name);
    torch::manual_seed(4);
    const Tensors values = op.make(torch::kFloat);
    Tensors arguments;
    for (const auto& value : values) arguments.push_back(value.to(torch::kMeta));
    const auto result = op.run(arguments);
    EXPECT_TRUE(result.is_meta());
    EXPECT_EQ(result.sizes(), op.run(values).sizes());
  }
  EXPECT_THAT(
      [] {
        spmm_transposed(batch_of_graphs(),
                        torch::zeros({batch_of_graphs().num_nodes(), 2}, torch::kMeta));
      },
      ThrowsMessage<c10::Error>(
          HasSubstr("expected float or double on the CPU, got Float on meta")));
}

TEST(AnyTensor, OnAnotherDeviceThanTheRestIsAnError) {
  for (const Op& op : every_op()) {
    torch::manual_seed(5);
    const Tensors values = op.make(torch::kFloat);
    for (std::size_t which = 0; values.size() > 1 && which < values.size(); ++which) {
      SCOPED_TRACE(op.name + ": " + op.arguments[which]);
      Tensors arguments = values;
      arguments[which] = values[which].to(torch::kMeta);
      EXPECT_THAT([&] { op.run(arguments); },
                  ThrowsMessage<c10::Error>(HasSubstr(op.arguments[which])));
      EXPECT_THAT([&] { op.run(arguments); },
                  ThrowsMessage<c10::Error>(HasSubstr("on one device")));
    }
  }
}

/// The result, or nothing if the operator refused with an error of torch's kind.
std::optional<torch::Tensor> outcome(const Op& op, const Tensors& arguments) {
  try {
    return op.run(arguments);
  } catch (const c10::Error&) {
    return {};
  }
}

TEST(AnyTensor, OfAnotherTypeIsComputedOrRefused) {
  for (const Op& op : every_op()) {
    if (op.name == "dropout") continue;  // another type, another mask
    torch::manual_seed(6);
    const Tensors values = op.make(torch::kFloat);
    for (const torch::Dtype type : {torch::kHalf, torch::kBFloat16, torch::kLong}) {
      SCOPED_TRACE(op.name + " in " + c10::toString(type));
      Tensors arguments;
      Tensors same;  // the same numbers in float
      for (const auto& value : values) {
        const bool whole = type == torch::kLong;
        arguments.push_back(value.is_complex() ? value : (whole ? 4 * value : value).to(type));
        same.push_back(arguments.back().is_complex() ? value : arguments.back().to(torch::kFloat));
      }
      // 3e-2: eight bits of bfloat16, a few operations.
      if (const auto result = outcome(op, arguments)) {
        EXPECT_TRUE(close(result->to(torch::kFloat), op.run(same), 3e-2));
      }
    }
  }
}

TEST(AnyTensor, OfAnotherTypeThanTheRestIsComputedOrRefused) {
  for (const Op& op : every_op()) {
    torch::manual_seed(7);
    const Tensors values = op.make(torch::kFloat);
    for (std::size_t which = 0; values.size() > 1 && which < values.size(); ++which) {
      SCOPED_TRACE(op.name + ": " + op.arguments[which]);
      Tensors arguments = values;
      arguments[which] =
          values[which].to(values[which].is_complex() ? torch::kComplexDouble : torch::kDouble);
      if (const auto result = outcome(op, arguments)) {
        EXPECT_TRUE(close(result->to(torch::kFloat), op.run(values), 1e-5));
      }
    }
  }
}

TEST(AnyTensor, OfWholeNumbersIsNoInputOfASparseProduct) {
  EXPECT_THAT(
      [] {
        spmm(batch_of_graphs(), torch::ones({batch_of_graphs().num_nodes(), 2}, torch::kLong));
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected x of a floating or complex type, got Long")));
}

TEST(AnyTensor, ThatIsUndefinedIsAnError) {
  for (const Op& op : every_op()) {
    SCOPED_TRACE(op.name);
    Tensors arguments = op.make(torch::kFloat);
    arguments[0] = torch::Tensor();
    EXPECT_THAT([&] { op.run(arguments); }, ThrowsMessage<c10::Error>(HasSubstr("undefined")));
  }
}

TEST(Canonical, LeavesAPlainTensorAlone) {
  const auto x = torch::randn({3, 4});
  EXPECT_TRUE(canonical(x).is_same(x));
  EXPECT_FALSE(canonical(torch::Tensor()).defined());
}

}  // namespace
}  // namespace mpssm::ops
