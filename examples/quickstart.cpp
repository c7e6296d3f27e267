// SPDX-License-Identifier: MIT
// A deep model learns to find the mines on a Minesweeper board: every cell knows how many of its
// eight neighbours are mines, but half of the cells keep it to themselves.
#include <cstdio>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/spmm.h"

namespace {

constexpr std::int64_t kSide = 50;
constexpr std::int64_t kSteps = 150;

struct Board {
  torch::Tensor x;     // [N, 3]: is the number shown, the number / 8, the number squared / 64
  torch::Tensor mine;  // [N]
};

Board make_board(const mpssm::graph::Graph& graph) {
  const auto neighbours =
      mpssm::graph::make_gso(graph, {.kind = mpssm::graph::GsoKind::kAdjacency});
  const auto mine = (torch::rand({graph.num_nodes()}) < 0.2).to(torch::kFloat);
  const auto count = mpssm::ops::spmm(neighbours, mine.unsqueeze(1)).squeeze(1);
  const auto shown = (torch::rand_like(mine) < 0.5).to(torch::kFloat);
  const auto number = shown * count / 8;
  return {torch::stack({shown, number, number * number}, 1), mine};
}

/// Probability that a random mine gets a higher score than a random free cell.
double roc_auc(const torch::Tensor& score, const torch::Tensor& label) {
  const auto positive = score.masked_select(label > 0.5).unsqueeze(1);
  const auto negative = score.masked_select(label < 0.5).unsqueeze(0);
  return ((positive > negative).to(torch::kDouble) +
          0.5 * (positive == negative).to(torch::kDouble))
      .mean()
      .item<double>();
}

}  // namespace

int main() {
  torch::manual_seed(0);
  const auto graph = mpssm::graph::make_board(kSide, kSide);
  const auto gso = mpssm::graph::make_gso(graph);
  const auto board = make_board(graph);
  const auto train = torch::rand({kSide * kSide}) < 0.5;
  const auto test = train.logical_not();

  mpssm::nn::Model model(mpssm::nn::ModelOptions{.in_channels = 3,
                                                 .hidden_channels = 32,
                                                 .out_channels = 1,
                                                 .num_blocks = 4,
                                                 .hops = 4,
                                                 .dropout = 0.2});
  std::printf("%lld cells, %lld edges, %lld parameters\n",
              static_cast<long long>(graph.num_nodes()), static_cast<long long>(graph.num_edges()),
              static_cast<long long>(mpssm::nn::num_parameters(*model)));

  torch::optim::AdamW optimiser(model->parameters(), torch::optim::AdamWOptions(3e-3));
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    model->train();
    optimiser.zero_grad();
    const auto logits = model->forward(board.x, gso).squeeze(-1);
    const auto loss = torch::binary_cross_entropy_with_logits(logits.masked_select(train),
                                                              board.mine.masked_select(train));
    loss.backward();
    optimiser.step();
    if (step % 25 == 0) {
      const torch::NoGradGuard no_grad;
      model->eval();
      const auto score = model->forward(board.x, gso).squeeze(-1);
      std::printf("step %3lld  loss %.3f  test ROC AUC %.3f\n", static_cast<long long>(step),
                  loss.item<double>(),
                  roc_auc(score.masked_select(test), board.mine.masked_select(test)));
    }
  }
  return 0;
}
