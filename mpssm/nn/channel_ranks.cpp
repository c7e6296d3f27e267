// SPDX-License-Identifier: MIT
#include "mpssm/nn/channel_ranks.h"

#include <algorithm>
#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/engine/row_place.h"
#include "mpssm/nn/exchange.h"
#include "mpssm/ops/generator.h"

namespace mpssm::nn {
namespace {

/// Those of W belong to channels, all others to nodes.
bool is_of_channels(const std::string& name) { return name.find("w_state.") != std::string::npos; }

}  // namespace

std::string why_not_by_channels(const ModelOptions& options, std::int64_t ranks) {
  if (options.mode != Mode::kStatic) return "a series is shared by windows";
  if (options.readout != Readout::kNode) return "many graphs are shared by graphs";
  if (options.state.kind == StateKind::kDense) return "a dense W mixes the channels of all ranks";
  if (options.group_shares.size() > 1) return "groups of channels have operators of their own";
  if (!can_recompute(options)) return "batch norm looks at all nodes at once";
  if (options.num_embedded_nodes > 0) return "nodes have embeddings";
  if (options.state_channels > 0) return "states have channels of their own";
  if (options.input_dropout > 0.0 || options.readout_dropout > 0.0) {
    return "dropout of the input or before the readout is drawn for all nodes at once";
  }
  if (options.entries != EntriesKind::kFixed) return "entries of A are learned from all channels";
  if (options.hidden_channels / 2 < ranks) {
    return fmt::format("{} channels are {} pairs, less than one for each rank",
                       options.hidden_channels, options.hidden_channels / 2);
  }
  return "";
}

ChannelRanks::ChannelRanks(std::shared_ptr<ModelImpl> model, ranks::Communicator& ranks)
    : model_(std::move(model)), ranks_(ranks) {
  const std::string reason = why_not_by_channels(model_->options(), ranks.size());
  TORCH_CHECK_VALUE(reason.empty(), "ChannelRanks: ", reason);
}

/// Parts of the sum over nodes, whole ones, to each rank.
void ChannelRanks::deal(std::int64_t num_nodes) {
  if (dealt_ != nullptr && dealt_->rows.back() == num_nodes) return;
  const engine::RowParts rows(num_nodes);
  const ranks::Shares parts{rows.count, ranks_.size()};
  const ranks::Shares pairs{model_->options().hidden_channels / 2, ranks_.size()};
  auto dealt = std::make_shared<Dealt>();
  dealt->ranks = &ranks_;
  for (std::int64_t p = 0; p <= ranks_.size(); ++p) {
    dealt->rows.push_back(std::min(num_nodes, rows.begin(parts.begin(p))));
    dealt->columns.push_back(2 * pairs.begin(p));
  }
  dealt_ = dealt;
  num_parts_ = rows.count;
  parts_.clear();
  for (std::int64_t i = parts.begin(ranks_.rank()); i < parts.end(ranks_.rank()); ++i) {
    parts_.push_back({with_own_gradients(*model_), rows.begin(i), rows.end(i)});
  }
  if (parts_.empty()) parts_.push_back({with_own_gradients(*model_), num_nodes, num_nodes});
}

torch::Tensor ChannelRanks::forward(const torch::Tensor& x, const graph::Operators& gso) {
  const std::int64_t nodes = gso.num_nodes();
  deal(nodes);
  const auto place_of = [&](const PartModel& part) { return engine::RowPlace{part.begin, nodes}; };
  std::vector<torch::Tensor> h;
  for (const PartModel& part : parts_) {
    part.model->train(model_->is_training());
    h.push_back(part.model->encode(x.slice(0, part.begin, part.end), place_of(part)));
  }
  const std::int64_t rank = ranks_.rank();
  std::vector<std::int64_t> sizes;
  for (const PartModel& part : parts_) sizes.push_back(part.end - part.begin);
  at::Generator generator = ops::current_generator();
  for (std::int64_t block = 0; block < model_->options().num_blocks; ++block) {
    std::vector<torch::Tensor> c;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      c.push_back(parts_[i].model->enter_block(block, h[i], place_of(parts_[i])));
    }
    const torch::Tensor columns = to_columns(torch::cat(c), dealt_);
    const torch::Tensor state = model_->blocks()[block].ptr()->recur_pairs(
        columns, gso, dealt_->columns[rank] / 2, dealt_->columns[rank + 1] / 2);
    // Not slice by slice: the gradient of each would be as large as all of them.
    const std::vector<torch::Tensor> rows = to_rows(state, dealt_).split_with_sizes(sizes);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      // What is dropped is one draw for all parts.
      const bool is_last = i + 1 == parts_.size();
      const ops::GeneratorScope same_numbers(is_last ? generator : generator.clone());
      h[i] = parts_[i].model->leave_block(block, rows[i], h[i], place_of(parts_[i]));
    }
  }
  std::vector<torch::Tensor> y;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    y.push_back(parts_[i].model->read_out(h[i], gso, place_of(parts_[i])));
  }
  return gather_rows(torch::cat(y), dealt_);
}

void ChannelRanks::collect_gradients() {
  const torch::NoGradGuard no_grad;
  gather_channels();
  sum_part_gradients(*model_, parts_, num_parts_, ranks_, is_of_channels);
}

/// Each rank has the gradients of its channels, and they go to all.
void ChannelRanks::gather_channels() {
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  std::vector<torch::Tensor> grads;
  for (const auto& item : model_->named_parameters()) {
    if (is_of_channels(item.key())) grads.push_back(item.value().grad());
  }
  const auto rows_of = [&](const torch::Tensor& grad, std::int64_t rank) {
    return grad.slice(0, dealt_->columns[rank] / 2, dealt_->columns[rank + 1] / 2);
  };
  std::vector<float> sent;
  std::vector<std::int64_t> from(ranks_.size());
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < ranks_.size(); ++p) {
    for (const torch::Tensor& grad : grads) {
      const torch::Tensor mine = rows_of(grad, ranks_.rank()).contiguous();
      sent.insert(sent.end(), mine.data_ptr<float>(), mine.data_ptr<float>() + mine.numel());
      from[p] += rows_of(grad, p).numel() * kFloat;
      count += rows_of(grad, p).numel();
    }
  }
  const std::vector<std::int64_t> to(ranks_.size(), from[ranks_.rank()]);
  std::vector<float> received(count);
  ranks_.exchange(sent.data(), to, received.data(), from);
  float* next = received.data();
  for (std::int64_t p = 0; p < ranks_.size(); ++p) {
    for (const torch::Tensor& grad : grads) {
      torch::Tensor rows = rows_of(grad, p);
      rows.copy_(torch::from_blob(next, rows.sizes(), torch::kFloat));
      next += rows.numel();
    }
  }
}

}  // namespace mpssm::nn
