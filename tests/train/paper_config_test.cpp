// SPDX-License-Identifier: MIT
// configs/paper.toml is the model that the paper writes down.
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/nn/model.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/built_model.h"
#include "mpssm/train/preset.h"

#include "tests/support/tensors.h"
#include "tests/train/small_data.h"

namespace mpssm::train {
namespace {

using mpssm::testing::close;
using torch::Tensor;

TEST(PaperConfig, IsTheRecurrenceAndAnMlpOfTwoLayers) {
  const data::Dataset dataset = testing::make_board_data();
  Config config = testing::small_config();
  config.model.state_norm = nn::NormKind::kBatch;  // which the file has to undo
  apply_toml(config, settings_text("paper"), "paper");
  const auto problem = task::make_problem(dataset, problem_options(config));
  const BuiltModel built = build_model(*problem, config);
  built.module->eval();
  const auto p = built.module->named_parameters();
  const auto of = [&](const std::string& name) { return p[name].detach().to(torch::kDouble); };
  const auto affine = [&](const std::string& name, const Tensor& h) {
    return torch::linear(h, of(name + ".weight"), of(name + ".bias"));
  };
  const auto norm = [&](const std::string& name, const Tensor& h) {
    return torch::layer_norm(h, {h.size(-1)}, of(name + ".scale"), of(name + ".shift"));
  };

  const auto sample = problem->sample(0);
  const graph::Gso gso = sample.gso.only();
  const Tensor a = mpssm::testing::to_dense(gso);
  Tensor h = affine("encoder", sample.x.to(torch::kDouble));
  for (int b = 0; b < config.model.blocks; ++b) {
    const std::string block = "block_" + std::to_string(b);
    const Tensor w = of(block + ".w_state.weight");
    EXPECT_TRUE(close(w.mm(w.t()), torch::eye(config.model.channels, torch::kDouble), 1e-5));
    const Tensor u = norm("norm_" + std::to_string(b), h);
    Tensor x = torch::zeros_like(h);
    for (int t = 0; t <= config.model.hops; ++t) x = a.mm(x).mm(w) + u.mm(of(block + ".w_in"));
    h = h + affine(block + ".mlp_out", torch::gelu(affine(block + ".mlp_in", x)));
    EXPECT_FALSE(p.contains(block + ".state_norm.scale"));
  }
  const Tensor expected = affine("readout_0", norm("final_norm", h));
  EXPECT_TRUE(close(built.module->forward(sample.x, gso).to(torch::kDouble), expected, 1e-4));
}

}  // namespace
}  // namespace mpssm::train
