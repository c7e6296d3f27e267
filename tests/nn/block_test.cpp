// SPDX-License-Identifier: MIT
#include "mpssm/nn/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/nn/diagonalise.h"

#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

graph::Gso small_operator() { return graph::make_gso(graph::make_random_connected(12, 25, 4)); }

// T9: one hop, B = I and an MLP that is the activation alone give a GCN layer with a skip.
TEST(Block, WithOneHopIsAGraphConvolutionWithSkip) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  Block block(BlockOptions{.in_channels = 5,
                           .state_channels = 5,
                           .out_channels = 5,
                           .hops = 1,
                           .state = {.kind = StateKind::kDense},
                           .activation = Activation::kTanh,
                           .state_norm = NormKind::kNone});
  block->to(torch::kDouble);
  block->w_in.copy_(torch::eye(5));
  for (auto& layer : {block->mlp_in, block->mlp_out}) {
    layer->weight.copy_(torch::eye(5));
    layer->bias.zero_();
  }
  const auto gso = small_operator();
  const auto u = torch::randn({12, 5}, torch::kDouble);
  const auto expected =
      torch::tanh(mpssm::testing::to_dense(gso).matmul(u).matmul(block->w_state->weight) + u);
  EXPECT_TRUE(close(block->forward(u, gso), expected, 1e-12));
}

TEST(Block, TemporalOutputsAreTheMlpOfEachState) {
  torch::manual_seed(2);
  Block block(BlockOptions{.in_channels = 3, .state_channels = 8, .out_channels = 2});
  const auto gso = small_operator();
  const auto u = torch::randn({4, 6, 12, 3});
  const auto all = block->forward(u, gso, Mode::kTemporal, engine::Outputs::kAll);
  EXPECT_EQ(all.sizes(), torch::IntArrayRef({4, 6, 12, 2}));
  const auto last = block->forward(u, gso, Mode::kTemporal, engine::Outputs::kLast);
  EXPECT_TRUE(close(last, all.select(1, 5), 1e-5));
  const auto states = block->recur(u, gso, Mode::kTemporal, engine::Outputs::kAll);
  EXPECT_TRUE(close(block->decode(states.select(1, 2)), all.select(1, 2), 1e-5));
}

TEST(StateMatrix, StartsWhereItsOptionsSay) {
  torch::manual_seed(3);
  const auto w =
      StateMatrix(StateMatrixOptions{.channels = 64, .kind = StateKind::kDense})->forward();
  EXPECT_TRUE(close(w.matmul(w.t()), torch::eye(64), 1e-5));
  const auto scaled =
      StateMatrix(StateMatrixOptions{.channels = 64, .kind = StateKind::kDense, .dense_scale = 0.5})
          ->forward();
  EXPECT_TRUE(close(scaled.matmul(scaled.t()), 0.25 * torch::eye(64), 1e-5));
  const auto uniform =
      StateMatrix(StateMatrixOptions{
                      .channels = 64, .kind = StateKind::kDense, .dense_init = DenseInit::kUniform})
          ->forward();
  EXPECT_LE(uniform.abs().max().item<float>(), 0.125f);
  EXPECT_GE(uniform.abs().max().item<float>(), 0.12f);
  for (const StateKind kind : {StateKind::kDiagonal, StateKind::kStable}) {
    const auto sigma =
        StateMatrix(StateMatrixOptions{
                        .channels = 2000, .kind = kind, .min_modulus = 0.8, .max_modulus = 0.9})
            ->forward();
    EXPECT_EQ(sigma.numel(), 1000);
    EXPECT_GE(sigma.abs().min().item<float>(), 0.7999f);
    EXPECT_LE(sigma.abs().max().item<float>(), 0.9001f);
  }
}

TEST(StateMatrix, OrthogonalStartIsTheQOfARandomMatrixForAnyNumberOfThreads) {
  for (const std::int64_t channels : {1, 2, 24, 65, 200}) {
    SCOPED_TRACE(channels);
    const StateMatrixOptions options{.channels = channels, .kind = StateKind::kDense};
    mpssm::testing::expect_same_bits([&]() -> std::vector<torch::Tensor> {
      return {StateMatrix(options)->forward().detach().clone()};
    });
    torch::manual_seed(4);
    const auto q = StateMatrix(options)->forward().detach().to(torch::kDouble);
    EXPECT_TRUE(close(q.matmul(q.t()), torch::eye(channels, torch::kDouble), 1e-6));
    // Q' M is upper triangular with a positive diagonal for the M that was drawn.
    torch::manual_seed(4);
    const auto r = q.t().matmul(torch::randn({channels, channels}).to(torch::kDouble));
    EXPECT_LE(torch::tril(r, -1).abs().max().item<double>(), 1e-4);
    EXPECT_GE(torch::diag(r).min().item<double>(), 0.0);
  }
}

TEST(StateMatrix, ReadsAnyParametersAndOnMetaGivesAMetaResult) {
  for (const StateKind kind : {StateKind::kStable, StateKind::kDiagonal, StateKind::kDense}) {
    SCOPED_TRACE(std::string(to_string(kind)));
    StateMatrix matrix(StateMatrixOptions{.channels = 8, .kind = kind});
    const auto expected = matrix->forward().detach().clone();
    // Every second number of something longer, and a sign that is not carried out.
    const auto disguised = [](const torch::Tensor& x) {
      return torch::_neg_view(torch::stack({-x.detach(), 0 * x.detach() + 9}, -1)).select(-1, 0);
    };
    for (torch::Tensor* parameter :
         {&matrix->weight, &matrix->sigma, &matrix->nu, &matrix->theta}) {
      if (parameter->defined()) *parameter = disguised(*parameter).requires_grad_();
    }
    EXPECT_TRUE(close(matrix->forward().resolve_neg(), expected, 1e-6));
    StateMatrix on_meta(StateMatrixOptions{.channels = 8, .kind = kind});
    // Not by to(): torch's modules refuse to move to meta.
    for (torch::Tensor* parameter :
         {&on_meta->weight, &on_meta->sigma, &on_meta->nu, &on_meta->theta}) {
      if (parameter->defined()) *parameter = parameter->detach().to(torch::kMeta);
    }
    EXPECT_TRUE(on_meta->forward().is_meta());
    EXPECT_EQ(on_meta->forward().sizes(), expected.sizes());
  }
}

TEST(StateMatrix, StableOneStaysInsideTheUnitCircleWhateverIsLearned) {
  StateMatrix matrix(StateMatrixOptions{.channels = 8, .kind = StateKind::kStable});
  const torch::NoGradGuard no_grad;
  for (const double nu : {-15.0, -5.0, 0.0, 3.0, 50.0}) {
    matrix->nu.fill_(nu);
    matrix->theta.uniform_(-10, 10);
    const auto modulus = matrix->forward().abs();
    EXPECT_LE(modulus.max().item<float>(), 1.0f) << nu;
    EXPECT_TRUE(torch::isfinite(modulus).all().item<bool>()) << nu;
  }
}

TEST(StateMatrix, GradientsOfTheStableOneAreThoseOfItsFormula) {
  torch::manual_seed(6);
  StateMatrix matrix(StateMatrixOptions{.channels = 10, .kind = StateKind::kStable});
  matrix->to(torch::kDouble);
  const auto weights = torch::randn({5}, torch::kComplexDouble);
  const auto loss_of = [&](const torch::Tensor& sigma) {
    return torch::real(sigma * sigma * weights).sum();
  };
  const auto formula = torch::polar((-matrix->nu.exp()).exp(), matrix->theta);
  EXPECT_TRUE(torch::allclose(matrix->forward(), formula));
  const auto expected = torch::autograd::grad({loss_of(formula)}, {matrix->nu, matrix->theta});
  const auto actual =
      torch::autograd::grad({loss_of(matrix->forward())}, {matrix->nu, matrix->theta});
  EXPECT_TRUE(torch::allclose(actual[0], expected[0]));
  EXPECT_TRUE(torch::allclose(actual[1], expected[1]));
}

TEST(StateMatrix, EveryKindLearns) {
  torch::manual_seed(4);
  const auto gso = small_operator();
  const auto u = torch::randn({12, 8});
  for (const StateKind kind : {StateKind::kDense, StateKind::kDiagonal, StateKind::kStable}) {
    Block block(BlockOptions{
        .in_channels = 8, .state_channels = 8, .out_channels = 8, .state = {.kind = kind}});
    block->forward(u, gso).square().sum().backward();
    for (const auto& item : block->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0.0f) << item.key();
    }
  }
}

class DiagonaliseByNorm : public ::testing::TestWithParam<NormKind> {};
INSTANTIATE_TEST_SUITE_P(Norms, DiagonaliseByNorm,
                         ::testing::Values(NormKind::kNone, NormKind::kLayer, NormKind::kBatch));

TEST_P(DiagonaliseByNorm, GivesTheSameFunction) {
  torch::manual_seed(5);
  const auto gso = small_operator();
  for (const torch::Dtype type : {torch::kDouble, torch::kFloat}) {
    for (const std::int64_t width : {1, 2, 7, 16}) {
      Block dense(BlockOptions{.in_channels = 3,
                               .state_channels = width,
                               .out_channels = 4,
                               .hops = 20,
                               .state = {.kind = StateKind::kDense},
                               .state_norm = GetParam()});
      dense->to(type);
      const auto u = torch::randn({12, 3}, type);
      if (GetParam() == NormKind::kBatch) dense->forward(u, gso);  // fills the running statistics
      dense->eval();
      auto [diagonal, condition] = diagonalise(dense);
      EXPECT_EQ(diagonal->options().state.kind, StateKind::kDiagonal);
      EXPECT_GE(condition, 1.0 - 1e-9);
      EXPECT_TRUE(close(diagonal->forward(u, gso), dense->forward(u, gso),
                        type == torch::kDouble ? 1e-10 : 1e-3))
          << "width " << width;
      const auto sequence = torch::randn({9, 12, 3}, type);
      EXPECT_TRUE(close(diagonal->forward(sequence, gso, Mode::kTemporal, engine::Outputs::kAll),
                        dense->forward(sequence, gso, Mode::kTemporal, engine::Outputs::kAll),
                        type == torch::kDouble ? 1e-10 : 1e-3));
    }
  }
}

TEST(Diagonalise, KeepsLearnedEntries) {
  torch::manual_seed(6);
  const graph::Gso gso = small_operator();
  for (const EntriesKind kind : {EntriesKind::kFree, EntriesKind::kGin, EntriesKind::kAttention}) {
    Block dense(BlockOptions{.in_channels = 3,
                             .state_channels = 7,
                             .out_channels = 4,
                             .state = {.kind = StateKind::kDense},
                             .entries = kind,
                             .num_entries = gso.num_nonzeros()});
    dense->to(torch::kDouble);
    {
      const torch::NoGradGuard no_grad;
      for (torch::Tensor& entry : dense->entries->parameters()) entry.normal_(0.0, 0.1);
    }
    const auto u = torch::randn({12, 3}, torch::kDouble);
    EXPECT_TRUE(close(diagonalise(dense).block->forward(u, gso), dense->forward(u, gso), 1e-10))
        << to_string(kind);
  }
}

TEST(Diagonalise, RefusesWhatItWouldSpoilAndSaysTheNumber) {
  Block block(BlockOptions{.state_channels = 4, .state = {.kind = StateKind::kDense}});
  {
    const torch::NoGradGuard no_grad;
    block->w_state->weight.copy_(torch::eye(4) + torch::ones({4, 4}).triu(1));  // one Jordan block
  }
  EXPECT_THAT([&] { diagonalise(block); },
              ThrowsMessage<c10::Error>(HasSubstr("the eigenvectors of W have condition number")));
  Block stable(BlockOptions{});
  EXPECT_THAT([&] { diagonalise(stable); },
              ThrowsMessage<c10::Error>(HasSubstr("expected a block with a dense W, got stable")));
}

TEST(Block, SaysWhatIsWrongWithItsOptions) {
  EXPECT_THAT([] { Block(BlockOptions{.state_channels = 3}); },
              ThrowsMessage<c10::Error>(HasSubstr("expected an even number of channels")));
  EXPECT_THAT([] { Block(BlockOptions{.hops = -1}); },
              ThrowsMessage<c10::Error>(HasSubstr("Block: expected hops >= 0, got -1")));
  EXPECT_THAT(
      [] { Block(BlockOptions{.in_channels = 0}); },
      ThrowsMessage<c10::Error>(HasSubstr("expected in, state and out channels >= 1, got 0")));
  EXPECT_THAT([] { Block(BlockOptions{.dropout = 1.0}); },
              ThrowsMessage<c10::Error>(HasSubstr("expected dropout in [0, 1), got 1")));
  EXPECT_THAT([] { Block(BlockOptions{.state = {.max_modulus = 1.5}}); },
              ThrowsMessage<c10::Error>(HasSubstr("0 < min_modulus <= max_modulus < 1")));
}

TEST(Options, NamesGoBothWays) {
  for (const StateKind kind : {StateKind::kDense, StateKind::kDiagonal, StateKind::kStable}) {
    EXPECT_EQ(state_kind_from_name(to_string(kind)), kind);
  }
  for (const NormKind kind : {NormKind::kNone, NormKind::kLayer, NormKind::kBatch}) {
    EXPECT_EQ(norm_kind_from_name(to_string(kind)), kind);
  }
  for (const Activation each : {Activation::kGelu, Activation::kRelu, Activation::kTanh,
                                Activation::kLeakyRelu, Activation::kIdentity}) {
    EXPECT_EQ(engine::activation_from_name(to_string(each)), each);
  }
  EXPECT_THAT([] { state_kind_from_name("x"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("'x'")));
  EXPECT_THAT([] { norm_kind_from_name("x"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("'x'")));
  EXPECT_THAT([] { engine::activation_from_name("x"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("'x'")));
}

}  // namespace
}  // namespace mpssm::nn
