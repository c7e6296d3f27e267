// SPDX-License-Identifier: MIT
// The recurrence as a user of libtorch would write it, as fast as libtorch lets him: what the
// engine is measured against.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "mpssm/graph/gso.h"

namespace mpssm::bench {

/// y = A x for x [N, C], without autograd.
using Multiply = std::function<torch::Tensor(const torch::Tensor&)>;

namespace detail {

inline torch::Tensor row_ptr_of(const graph::Gso& gso) {
  const auto row_ptr = torch::empty({gso.num_nodes() + 1}, torch::kLong);
  std::copy(gso.row_ptr().begin(), gso.row_ptr().end(), row_ptr.data_ptr<std::int64_t>());
  return row_ptr;
}

inline torch::Tensor col_of(const graph::Gso& gso) {
  const auto col = torch::empty({gso.num_nonzeros()}, torch::kLong);
  std::copy(gso.col().begin(), gso.col().end(), col.data_ptr<std::int64_t>());
  return col;
}

inline torch::Tensor values_of(const graph::Gso& gso) {
  const auto values = torch::empty({gso.num_nonzeros()});
  std::copy(gso.values<float>().begin(), gso.values<float>().end(), values.data_ptr<float>());
  return values;
}

/// A x whose gradient is A' g by the same product, A being symmetric: torch's own backward passes
/// of its sparse products take several times as long.
class Product : public torch::autograd::Function<Product> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const Multiply* multiply) {
    context->saved_data["multiply"] = reinterpret_cast<std::int64_t>(multiply);
    return (*multiply)(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto* multiply =
        reinterpret_cast<const Multiply*>(context->saved_data["multiply"].toInt());
    return {(*multiply)(gradients[0].contiguous()), torch::Tensor()};
  }
};

}  // namespace detail

/// torch's sparse matrix in compressed rows: MKL's product, where torch is built with it.
inline Multiply csr_product(const graph::Gso& gso) {
  const std::int64_t n = gso.num_nodes();
  const auto a = torch::sparse_csr_tensor(
      detail::row_ptr_of(gso), detail::col_of(gso), detail::values_of(gso), {n, n},
      torch::TensorOptions(torch::kFloat).layout(torch::kSparseCsr));
  return [a](const torch::Tensor& x) { return torch::mm(a, x); };
}

/// Weighted sums of rows by torch's embedding_bag: its fastest sparse product on a CPU.
inline Multiply bag_product(const graph::Gso& gso) {
  const auto row_ptr = detail::row_ptr_of(gso);
  const auto col = detail::col_of(gso);
  const auto values = detail::values_of(gso);
  return [=](const torch::Tensor& x) {
    constexpr std::int64_t kSum = 0;
    return std::get<0>(torch::embedding_bag(x, col, row_ptr, /*scale_grad_by_freq=*/false, kSum,
                                            /*sparse=*/false, values,
                                            /*include_last_offset=*/true));
  };
}

/// The same on numbers in bfloat16, where torch has it.
inline Multiply bf16_bag_product(const graph::Gso& gso) {
  const auto row_ptr = detail::row_ptr_of(gso);
  const auto col = detail::col_of(gso);
  const auto values = detail::values_of(gso).to(torch::kBFloat16);
  return [=](const torch::Tensor& x) {
    constexpr std::int64_t kSum = 0;
    return std::get<0>(torch::embedding_bag(x, col, row_ptr, /*scale_grad_by_freq=*/false, kSum,
                                            /*sparse=*/false, values,
                                            /*include_last_offset=*/true));
  };
}

/// Dense matrices, one for each graph of a batch of graphs of one size.
inline Multiply matrix_product(const graph::Gso& gso) {
  const std::int64_t graphs = gso.num_graphs();
  const std::int64_t n = gso.num_nodes() / graphs;
  const auto a = torch::zeros({graphs, n, n});
  auto entry = a.accessor<float, 3>();
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      entry[i / n][i % n][gso.col()[e] % n] = gso.values<float>()[e];
    }
  }
  return [=](const torch::Tensor& x) {
    return torch::bmm(a, x.view({graphs, n, -1})).view(x.sizes());
  };
}

/// Dense W, `hops` hops, U B = c [N, C].
inline torch::Tensor torch_dense(const Multiply& multiply, const torch::Tensor& c,
                                 const torch::Tensor& w, std::int64_t hops) {
  torch::Tensor x = c;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    x = torch::addmm(c, detail::Product::apply(x, &multiply), w);
  }
  return x;
}

/// Real parts and imaginary parts, each [N, ...]: no complex dtype, whose operations are slow.
struct Halves {
  torch::Tensor re;
  torch::Tensor im;
};

/// Diagonal W. inputs: one for each step, or the one of all steps.
inline Halves torch_diagonal(const Multiply& multiply, const std::vector<Halves>& inputs,
                             const Halves& sigma, std::int64_t hops) {
  const auto product = [&](const torch::Tensor& x) {
    return detail::Product::apply(x.flatten(1), &multiply).view(x.sizes());
  };
  const torch::Tensor minus_im = -sigma.im;
  Halves x = inputs.front();
  for (std::int64_t hop = 1; hop <= hops; ++hop) {
    const Halves& u = inputs.size() == 1 ? inputs.front() : inputs[hop];
    const Halves y = {product(x.re), product(x.im)};
    x.re = torch::addcmul(torch::addcmul(u.re, y.re, sigma.re), y.im, minus_im);
    x.im = torch::addcmul(torch::addcmul(u.im, y.im, sigma.re), y.re, sigma.im);
  }
  return x;
}

}  // namespace mpssm::bench
