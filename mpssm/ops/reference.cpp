// SPDX-License-Identifier: MIT
#include "mpssm/ops/reference.h"

#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "mpssm/ops/canonical.h"

namespace mpssm::ops {
namespace {

template <typename T>
at::Tensor to_tensor(std::span<const T> values, at::ScalarType type, const at::Device& device) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions(type));
  std::copy(values.begin(), values.end(), out.data_ptr<T>());
  return out.to(device);
}

RecurrenceResult finish(std::vector<at::Tensor> states, Outputs outputs) {
  at::Tensor last = states.back();
  if (outputs == Outputs::kLast) return {last, last};
  return {at::stack(states, -3), last};
}

/// A(t) x, copy by copy if they differ.
at::Tensor hop_at(const graph::Operators& gso, const at::Tensor& x, std::int64_t t,
                  const at::Tensor& values) {
  if (gso.num_copies() == 1) return reference_spmm(gso.at(0, t), x, values);
  std::vector<at::Tensor> copies;
  const at::Tensor rows = x.flatten(0, -3);
  for (std::int64_t b = 0; b < rows.size(0); ++b) {
    copies.push_back(reference_spmm(gso.at(b, t), rows[b], values));
  }
  return at::stack(copies).view(x.sizes());
}

/// P (Q' x), with the factors of each graph in columns of their own; those given, or A's own.
at::Tensor hop_by_factors(const graph::LowRankOperator& a, const at::Tensor& x,
                          const at::Tensor& factors) {
  at::Tensor is_in = at::zeros({a.num_nodes(), a.num_graphs(), 1}, at::kDouble);
  for (std::int64_t g = 0; g < a.num_graphs(); ++g) {
    is_in.slice(0, a.graph_ptr()[g], a.graph_ptr()[g + 1]).select(1, g).fill_(1.0);
  }
  is_in = is_in.to(x.options());
  const auto spread = [&](const at::Tensor& factor) {
    return (is_in * factor.unsqueeze(1)).flatten(1);
  };
  const auto own = [&](std::span<const double> factor) {
    return to_tensor(factor, at::kDouble, x.device()).to(x.dtype()).view({-1, a.rank()});
  };
  const bool given = factors.defined();
  const at::Tensor p = spread(given ? factors.select(0, 0) : own(a.p()));
  const at::Tensor q = spread(given ? factors.select(0, 1) : own(a.q()));
  return at::matmul(p, at::matmul(q.t(), x));
}

/// A x W, each group of channels by itself.
at::Tensor hop_of_groups(const graph::Operators& gso, const at::Tensor& x, const at::Tensor& w,
                         const at::Tensor& values, std::int64_t t) {
  if (gso.num_groups() == 1 && !gso.has_low_rank()) {
    return reference_times_w(hop_at(gso, x, t, values), w);
  }
  const std::vector<std::int64_t> begins = gso.channel_begins(x.size(-1));
  std::vector<at::Tensor> parts;
  std::int64_t w_begin = 0;
  for (std::int64_t g = 0; g < gso.num_groups(); ++g) {
    const std::int64_t width = begins[g + 1] - begins[g];
    const std::int64_t numbers = w.is_complex() ? width / 2 : width * width;
    const at::Tensor of_group = w.flatten().narrow(0, w_begin, numbers);
    const at::Tensor own = x.narrow(-1, begins[g], width).contiguous();
    const at::Tensor moved =
        gso.is_low_rank(g)
            ? hop_by_factors(gso.low_rank(g), own, g == gso.factor_group() ? values : at::Tensor())
            : hop_at(gso.alone(g), own, t, {});
    parts.push_back(
        reference_times_w(moved, w.is_complex() ? of_group : of_group.view({width, width})));
    w_begin += numbers;
  }
  return at::cat(parts, -1);
}

template <typename InputAt>
RecurrenceResult loop(const graph::Operators& gso, const RecurrenceWeights& weights,
                      const RecurrenceOptions& options, std::int64_t num_steps,
                      const InputAt& input_at) {
  std::vector<at::Tensor> states;
  at::Tensor x = options.initial;
  for (std::int64_t t = 0; t < num_steps; ++t) {
    at::Tensor input = input_at(t);
    if (weights.w_in.defined()) input = at::matmul(input, weights.w_in);
    for (std::int64_t hop = 0; x.defined() && hop < options.hops_per_step; ++hop) {
      x = hop_of_groups(gso, x, weights.w_state, options.gso_values, t);
    }
    x = x.defined() ? x + input : input;
    if (options.outputs == Outputs::kAll || t + 1 == num_steps) states.push_back(x);
  }
  return finish(std::move(states), options.outputs);
}

}  // namespace

at::Tensor reference_spmm(const graph::Gso& gso, const at::Tensor& given,
                          const at::Tensor& values) {
  const at::Tensor x = canonical(given);
  if (x.is_meta()) return at::empty_like(x);  // not all of the operators below know it
  // COO form of A, then gather, scale and add up: E x C numbers, but any dtype, device and
  // gradient.
  at::Tensor rows = at::empty({gso.num_nonzeros()}, at::kLong);
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      rows.data_ptr<std::int64_t>()[e] = i;
    }
  }
  const at::Tensor columns = to_tensor(gso.col(), at::kInt, x.device()).to(at::kLong);
  const at::Tensor entries =
      values.defined() ? values
                       : to_tensor(gso.values<double>(), at::kDouble, x.device()).to(x.dtype());
  const at::Tensor messages = x.index_select(-2, columns) * entries.unsqueeze(-1);
  return at::zeros_like(x).index_add(-2, rows.to(x.device()), messages);
}

at::Tensor reference_times_w(const at::Tensor& x, const at::Tensor& w_state) {
  if (!w_state.is_complex()) return at::matmul(x, w_state);
  const at::Tensor pairs = canonical(x.unflatten(-1, {w_state.numel(), 2}));
  return at::view_as_real(at::view_as_complex(pairs) * w_state).flatten(-2);
}

RecurrenceResult reference_recurrence_static(const graph::Operators& gso, const at::Tensor& u,
                                             const RecurrenceWeights& weights,
                                             std::int64_t num_steps,
                                             const RecurrenceOptions& options) {
  return loop(gso, weights, options, num_steps, [&](std::int64_t) { return u; });
}

RecurrenceResult reference_recurrence_temporal(const graph::Operators& gso, const at::Tensor& u,
                                               const RecurrenceWeights& weights,
                                               const RecurrenceOptions& options) {
  return loop(gso, weights, options, u.size(-3), [&](std::int64_t t) { return u.select(-3, t); });
}

}  // namespace mpssm::ops
