// SPDX-License-Identifier: MIT
#include "mpssm/train/shared_batch.h"

#include <algorithm>
#include <vector>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ranks/collectives.h"

namespace mpssm::train {
namespace {

std::int64_t num_weights(Adam& adam) {
  std::int64_t count = 0;
  for (const Adam::Slot& slot : adam.slots()) count += slot.parameter.numel();
  return count;
}

/// All gradients in one row; one that is not there counts as zero.
void copy_gradients(Adam& adam, float* row) {
  for (const Adam::Slot& slot : adam.slots()) {
    const std::int64_t count = slot.parameter.numel();
    if (slot.parameter.grad().defined()) {
      const torch::Tensor grad = slot.parameter.grad().contiguous();
      std::copy_n(grad.data_ptr<float>(), count, row);
    }
    row += count;
  }
}

void set_gradients(Adam& adam, const float* row) {
  for (Adam::Slot& slot : adam.slots()) {
    torch::Tensor grad = torch::empty_like(slot.parameter);
    std::copy_n(row, grad.numel(), grad.data_ptr<float>());
    row += grad.numel();
    slot.parameter.mutable_grad() = grad;
  }
}

}  // namespace

double SharedBatch::gradient(std::span<const std::int64_t> samples) const {
  const ranks::Shares cut{std::ssize(samples), pieces};
  const ranks::Shares dealt{pieces, ranks.size()};
  const std::int64_t row = num_weights(adam) + 1;  // the loss comes last
  std::vector<float> mine(dealt.size(ranks.rank()) * row, 0.0F);
  const double whole = problem.weight(samples);
  float* place = mine.data();
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::uint64_t seed = ops::draw_dropout_seed(generator);  // by all, for all
    if (piece < dealt.begin(ranks.rank()) || piece >= dealt.end(ranks.rank())) continue;
    const auto some = samples.subspan(cut.begin(piece), cut.size(piece));
    const double weight = some.empty() ? 0.0 : problem.weight(some);
    if (weight > 0.0) {
      const ops::GeneratorScope own_numbers(ops::make_generator(seed));
      adam.zero_grad();
      const torch::Tensor loss = problem.loss(model, some) * (weight / whole);
      loss.backward();
      copy_gradients(adam, place);
      place[row - 1] = loss.item<float>();
    }
    place += row;
  }
  std::vector<float> total(row);
  ranks::sum_in_order(ranks, mine, pieces, total);
  set_gradients(adam, total.data());
  return total.back();
}

}  // namespace mpssm::train
