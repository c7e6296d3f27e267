// SPDX-License-Identifier: MIT
#include "mpssm/nn/node_ranks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "mpssm/engine/call_memory.h"
#include "mpssm/ops/canonical.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

/// Rows outlive the gradient: the context keeps where they are.
void save(AutogradContext* context, const NodeRows& rows) {
  context->saved_data["rows"] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&rows));
}
const NodeRows& saved_rows(AutogradContext* context) {
  return *reinterpret_cast<const NodeRows*>(
      static_cast<std::intptr_t>(context->saved_data["rows"].toInt()));
}

torch::Tensor product(const engine::HaloRows<float>& rows, const torch::Tensor& x) {
  const std::int64_t width = x.size(1);
  const engine::CallMemory memory((rows.own() + rows.halo) * width * kFloatBytes);
  auto* const with_halo = memory.data<float>();
  std::copy_n(x.data_ptr<float>(), x.numel(), with_halo);
  torch::Tensor y = torch::empty({rows.own(), width}, x.options());
  engine::halo_spmm(rows, with_halo, width, y.data_ptr<float>(), ops::Threads());
  return y;
}

struct HaloSpmm : torch::autograd::Function<HaloSpmm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const NodeRows& rows) {
    save(context, rows);
    return product(rows.a(), x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {product(saved_rows(context).transposed(), ops::canonical(grads[0])), {}};
  }
};

engine::HaloRecurrence<float> recurrence_of(const NodeRows& rows, std::int64_t channels,
                                            std::int64_t num_steps) {
  return {.rows = &rows.a(),
          .transposed = &rows.transposed(),
          .channels = channels,
          .num_steps = num_steps,
          .parts = rows.bounds()};
}

/// sigma [own parts, C / 2] complex: the same numbers for each part, gradients of their own.
struct HaloDiagonal : torch::autograd::Function<HaloDiagonal> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& c, const at::Tensor& sigma,
                            const NodeRows& rows, std::int64_t num_steps) {
    save(context, rows);
    context->saved_data["num_steps"] = num_steps;
    context->save_for_backward({c, sigma});
    const auto call = recurrence_of(rows, c.size(1), num_steps);
    const engine::CallMemory memory(engine::forward_scratch(call) * kFloatBytes);
    torch::Tensor x = torch::empty_like(c);
    engine::forward(call, c.data_ptr<float>(), static_cast<const float*>(sigma.data_ptr()),
                    x.data_ptr<float>(), memory.data<float>(), ops::Threads());
    return x;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor grad = ops::canonical(grads[0]);
    const auto call =
        recurrence_of(saved_rows(context), grad.size(1), context->saved_data["num_steps"].toInt());
    const engine::CallMemory memory(engine::backward_scratch(call) * kFloatBytes);
    torch::Tensor grad_c = torch::empty_like(grad);
    const torch::Tensor grad_sigma = torch::empty(saved[1].sizes(), torch::kComplexDouble);
    engine::backward(call, saved[0].data_ptr<float>(),
                     static_cast<const float*>(saved[1].data_ptr()), grad.data_ptr<float>(),
                     grad_c.data_ptr<float>(), static_cast<double*>(grad_sigma.data_ptr()),
                     memory.data<float>(), ops::Threads());
    return {grad_c, grad_sigma.to(torch::kComplexFloat), {}, {}};
  }
};

/// W dense, rows of others once for all hops: X(h + 1) = A X(h) W + C for own nodes and, one ring
/// less at each hop, for those of others. w [own parts, C, C], the same numbers for each part. The
/// gradient of X(h), with A' and W', goes the same way; that of W is summed over own nodes.
struct RingsDense : torch::autograd::Function<RingsDense> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& c, const at::Tensor& w,
                            const NodeRows& rows, std::int64_t hops) {
    save(context, rows);
    context->saved_data["hops"] = hops;
    const engine::HaloRows<float>& a = rows.a();
    const at::Tensor add = filled(a, c);
    variable_list kept = {w};
    at::Tensor x = add;
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      const at::Tensor ax = product(a, x, a.rows_at(hop, hops));
      kept.push_back(ax.size(0) == rows.own() ? ax : ax.slice(0, 0, rows.own()).clone());
      x = ops::matmul(ax, w[0]).add_(add.slice(0, 0, ax.size(0)));
    }
    context->save_for_backward(kept);
    return x;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const NodeRows& rows = saved_rows(context);
    const std::int64_t hops = context->saved_data["hops"].toInt();
    const auto saved = context->get_saved_variables();
    const at::Tensor& w = saved[0];
    const engine::HaloRows<float>& a = rows.transposed();
    at::Tensor g = filled(a, ops::canonical(grads[0]));
    at::Tensor grad_c = g.slice(0, 0, rows.own()).clone();
    at::Tensor grad_w = torch::zeros_like(w);
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      for (std::int64_t part = 0; part < w.size(0); ++part) {
        const auto own = [&](const at::Tensor& x) {
          return x.slice(0, rows.bounds()[part], rows.bounds()[part + 1]);
        };
        grad_w[part] += ops::transposed_matmul(
            own(saved[hops - hop]), own(g), engine::Precision::kFloat32, {.all = rows.num_nodes()});
      }
      g = product(a, ops::linear(g, w[0], {}), a.rows_at(hop, hops));
      grad_c += g.slice(0, 0, rows.own());
    }
    return {grad_c, grad_w, {}, {}};
  }

 private:
  /// Rows of own nodes with those of the rings behind them.
  static at::Tensor filled(const engine::HaloRows<float>& rows, const at::Tensor& own) {
    at::Tensor x = torch::empty({rows.own() + rows.halo, own.size(1)}, own.options());
    x.slice(0, 0, rows.own()).copy_(own);
    rows.fill(x.data_ptr<float>(), x.size(1));
    return x;
  }
  static at::Tensor product(const engine::HaloRows<float>& rows, const at::Tensor& x,
                            std::int64_t count) {
    at::Tensor y = torch::empty({count, x.size(1)}, x.options());
    engine::ring_spmm(rows, x.data_ptr<float>(), x.size(1), count, y.data_ptr<float>(),
                      ops::Threads());
    return y;
  }
};

}  // namespace

NodeRows::NodeRows(Given given)
    : ranks_(given.ranks),
      num_nodes_(given.all_bounds.back()),
      num_parts_(std::ssize(given.all_bounds) - 1),
      number_(std::move(given.number)),
      is_symmetric_(given.transposed.row_ptr.size() < 2),
      rows_(std::move(given.rows)),
      transposed_rows_(std::move(given.transposed)) {
  const ranks::Shares parts{num_parts_, ranks_.size()};
  std::vector<std::int64_t> rank_bounds;
  for (std::int64_t p = 0; p <= ranks_.size(); ++p) {
    rank_bounds.push_back(given.all_bounds[parts.begin(p)]);
  }
  const std::int64_t first = rank_bounds[ranks_.rank()];
  for (std::int64_t i = parts.begin(ranks_.rank()); i <= parts.end(ranks_.rank()); ++i) {
    bounds_.push_back(given.all_bounds[i] - first);
  }
  TORCH_CHECK_VALUE(std::ssize(number_) == own() && std::ssize(rows_.row_ptr) == own() + 1,
                    "NodeRows: expected ", own(), " nodes and their rows, got ", number_.size(),
                    " and ", rows_.row_ptr.size() - 1);
  halos_.reserve(2);  // fill() refers to them
  if (take_rings(rank_bounds, given.hops, given.way)) return;
  a_ = local(rows_, rank_bounds);
  if (!is_symmetric_) transposed_ = local(transposed_rows_, rank_bounds);
}

/// Rings of A and A', where they are asked for or send fewer numbers.
bool NodeRows::take_rings(const std::vector<std::int64_t>& rank_bounds, std::int64_t hops,
                          HaloWay way) {
  if (hops < 2 || ranks_.size() < 2 || way == HaloWay::kEachHop) return false;
  const bool must = way == HaloWay::kAllHops;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const auto fetch = [&](const OwnRows& rows, double too_many) {
    return fetch_rings(ranks_, rank_bounds, rows, hops, must ? kAny : too_many,
                       must ? kAny : kMostRingRows);
  };
  const auto of_each_hop = [&](const OwnRows& rows) {
    return fetch_rings(ranks_, rank_bounds, rows, 1, kAny, kMostRingRows)->rows_of_all_ranks;
  };
  const auto times = static_cast<double>(hops);
  double too_many = times * of_each_hop(rows_);
  if (!is_symmetric_) too_many += times * of_each_hop(transposed_rows_);
  std::optional<HaloRings> forward = fetch(rows_, too_many);
  if (!forward) return false;
  if (is_symmetric_) {
    a_ = with_rings(rows_, *std::move(forward), rank_bounds);
    return true;
  }
  std::optional<HaloRings> backward =
      fetch(transposed_rows_, too_many - forward->rows_of_all_ranks);
  if (!backward) return false;
  a_ = with_rings(rows_, *std::move(forward), rank_bounds);
  transposed_ = with_rings(transposed_rows_, *std::move(backward), rank_bounds);
  return true;
}

engine::HaloRows<float> NodeRows::with_rings(OwnRows& rows, HaloRings rings,
                                             const std::vector<std::int64_t>& rank_bounds) {
  append_rings(rank_bounds[ranks_.rank()], rings, rows);
  // They come in the order of their numbers, and lie ring by ring.
  std::vector<std::int64_t> place(rings.nodes.size());
  std::iota(place.begin(), place.end(), 0);
  std::sort(place.begin(), place.end(),
            [&](std::int64_t a, std::int64_t b) { return rings.nodes[a] < rings.nodes[b]; });
  std::sort(rings.nodes.begin(), rings.nodes.end());
  halos_.emplace_back(ranks_, rank_bounds, std::move(rings.nodes));
  const ranks::Halo& halo = halos_.back();
  return {.a = {.num_rows = std::ssize(rows.row_ptr) - 1,
                .row_ptr = rows.row_ptr.data(),
                .col = rows.col.data(),
                .value = rows.value.data()},
          .halo = halo.size(),
          .fill =
              [&halo, this, place = std::move(place)](float* x, std::int64_t width) {
                std::vector<float> sorted(place.size() * static_cast<std::size_t>(width));
                halo.fill(x, width * kFloatBytes, sorted.data());
                for (std::size_t i = 0; i < place.size(); ++i) {
                  std::copy_n(sorted.data() + static_cast<std::int64_t>(i) * width, width,
                              x + (own() + place[i]) * width);
                }
              },
          .within = std::move(rings.within)};
}

engine::HaloRows<float> NodeRows::local(OwnRows& rows,
                                        const std::vector<std::int64_t>& rank_bounds) {
  const std::int64_t rank = ranks_.rank();
  halos_.emplace_back(ranks_, rank_bounds,
                      ranks::localise(rank_bounds[rank], rank_bounds[rank + 1], rows.col));
  const ranks::Halo& halo = halos_.back();
  return {.a = {.num_rows = own(),
                .row_ptr = rows.row_ptr.data(),
                .col = rows.col.data(),
                .value = rows.value.data()},
          .halo = halo.size(),
          .fill = [&halo, this](float* x, std::int64_t width) {
            halo.fill(x, width * kFloatBytes, x + own() * width);
          }};
}

torch::Tensor halo_spmm(const torch::Tensor& x, const NodeRows& rows) {
  return HaloSpmm::apply(ops::canonical(x), rows);
}

std::string why_not_by_nodes(const ModelOptions& options) {
  if (options.mode != Mode::kStatic) return "a series is shared by windows";
  if (options.readout != Readout::kNode) return "many graphs are shared by graphs";
  if (!can_recompute(options)) return "batch norm looks at all nodes at once";
  if (options.num_embedded_nodes > 0) return "nodes have embeddings";
  if (options.state_channels > 0) return "states have channels of their own";
  if (options.group_shares.size() > 1) return "groups of channels have operators of their own";
  if (options.input_dropout > 0.0 || options.readout_dropout > 0.0) {
    return "dropout of the input or before the readout is drawn for all nodes at once";
  }
  if (options.precision != engine::Precision::kFloat32) return "numbers travel as float32";
  return "";
}

NodeRanks::NodeRanks(std::shared_ptr<ModelImpl> model, std::shared_ptr<const NodeRows> rows)
    : model_(std::move(model)), rows_(std::move(rows)) {
  const std::string reason = why_not_by_nodes(model_->options());
  TORCH_CHECK_VALUE(reason.empty(), "NodeRanks: ", reason);
  const std::int64_t rings = rows_->a().hops_per_fill();
  TORCH_CHECK_VALUE(rings == 1 || rings == model_->options().hops, "NodeRanks: expected rings for ",
                    model_->options().hops, " hops, got ", rings);
  for (std::size_t i = 0; i + 1 < rows_->bounds().size(); ++i) {
    parts_.push_back({with_own_gradients(*model_), rows_->bounds()[i], rows_->bounds()[i + 1]});
  }
}

engine::RowPlace NodeRanks::place_of(std::size_t part) const {
  return {0, rows_->num_nodes(), rows_->number().data() + parts_[part].begin};
}

torch::Tensor NodeRanks::recur(std::int64_t block, const torch::Tensor& c) {
  const std::int64_t hops = model_->options().hops;
  std::vector<torch::Tensor> w;
  for (const PartModel& part : parts_) {
    w.push_back(part.model->blocks()[block].ptr()->w_state->forward());
  }
  if (model_->options().state.kind != StateKind::kDense) {
    return HaloDiagonal::apply(ops::canonical(c), torch::stack(w), *rows_, hops + 1);
  }
  std::vector<std::int64_t> sizes;
  for (const PartModel& part : parts_) sizes.push_back(part.end - part.begin);
  if (rows_->by_rings()) return RingsDense::apply(ops::canonical(c), torch::stack(w), *rows_, hops);
  torch::Tensor x = c;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    std::vector<torch::Tensor> rows = halo_spmm(x, *rows_).split_with_sizes(sizes);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      rows[i] = ops::matmul(rows[i], w[i], engine::Precision::kFloat32, place_of(i));
    }
    x = (parts_.size() == 1 ? rows[0] : torch::cat(rows)) + c;
  }
  return x;
}

torch::Tensor NodeRanks::forward(const torch::Tensor& x, const graph::Operators& gso) {
  TORCH_CHECK_VALUE(x.dim() == 2 && x.size(0) == rows_->own(), "NodeRanks: expected x of ",
                    rows_->own(), " nodes, got ", x.sizes());
  std::vector<torch::Tensor> h;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PartModel& part = parts_[i];
    part.model->train(model_->is_training());
    h.push_back(part.model->encode(x.slice(0, part.begin, part.end), place_of(i)));
    sizes.push_back(part.end - part.begin);
  }
  const auto together = [](const std::vector<torch::Tensor>& rows) {
    return rows.size() == 1 ? rows[0] : torch::cat(rows);
  };
  at::Generator generator = ops::current_generator();
  for (std::int64_t block = 0; block < model_->options().num_blocks; ++block) {
    std::vector<torch::Tensor> c;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      c.push_back(parts_[i].model->enter_block(block, h[i], place_of(i)));
    }
    const std::vector<torch::Tensor> state = recur(block, together(c)).split_with_sizes(sizes);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      // What is dropped is one draw for all parts.
      const bool is_last = i + 1 == parts_.size();
      const ops::GeneratorScope same_numbers(is_last ? generator : generator.clone());
      h[i] = parts_[i].model->leave_block(block, state[i], h[i], place_of(i));
    }
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    h[i] = parts_[i].model->read_out(h[i], gso, place_of(i));
  }
  return together(h);
}

void NodeRanks::collect_gradients() {
  const torch::NoGradGuard no_grad;
  sum_part_gradients(*model_, parts_, rows_->num_parts(), rows_->ranks(),
                     [](const std::string&) { return false; });
}

}  // namespace mpssm::nn
