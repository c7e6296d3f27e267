// SPDX-License-Identifier: MIT
#include "mpssm/nn/exchange.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "mpssm/ops/canonical.h"

namespace mpssm::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using DealtPointer = std::shared_ptr<const Dealt>;

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

struct SavedDealt : torch::CustomClassHolder {
  explicit SavedDealt(DealtPointer dealt_in) : dealt(std::move(dealt_in)) {}
  DealtPointer dealt;
};

void save(AutogradContext* context, const DealtPointer& dealt) {
  context->saved_data["dealt"] = c10::IValue::make_capsule(c10::make_intrusive<SavedDealt>(dealt));
}
DealtPointer saved(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<SavedDealt>(context->saved_data["dealt"].toCapsule())
      ->dealt;
}

std::int64_t size_of(const std::vector<std::int64_t>& bounds, std::int64_t rank) {
  return bounds[rank + 1] - bounds[rank];
}

/// Bytes of the block that holds rows of one rank and columns of another, for all ranks as the one
/// or the other.
std::vector<std::int64_t> sizes(const std::vector<std::int64_t>& bounds, std::int64_t others) {
  std::vector<std::int64_t> result;
  for (std::size_t p = 0; p + 1 < bounds.size(); ++p) {
    result.push_back(size_of(bounds, static_cast<std::int64_t>(p)) * others * kFloat);
  }
  return result;
}

/// Blocks of columns, rank by rank, out of or into own rows of all columns. Rows of a block are the
/// rows that the other rank has, so that on its side nothing has to be moved.
template <typename Copy>
void for_blocks(const Dealt& dealt, const Copy& copy) {
  const std::int64_t own_rows = size_of(dealt.rows, dealt.ranks->rank());
  const std::int64_t columns = dealt.columns.back();
  std::int64_t at = 0;
  for (std::int64_t p = 0; p < dealt.ranks->size(); ++p) {
    const std::int64_t width = size_of(dealt.columns, p);
    for (std::int64_t row = 0; row < own_rows; ++row, at += width) {
      copy(row * columns + dealt.columns[p], at, width);
    }
  }
}

at::Tensor move_to_columns(const at::Tensor& x, const Dealt& dealt) {
  const std::int64_t rank = dealt.ranks->rank();
  const std::int64_t own_rows = size_of(dealt.rows, rank);
  const std::int64_t own_columns = size_of(dealt.columns, rank);
  const at::Tensor packed = at::empty_like(x);
  const float* const from = x.data_ptr<float>();
  float* const to = packed.data_ptr<float>();
  for_blocks(dealt, [&](std::int64_t place, std::int64_t block, std::int64_t width) {
    std::copy_n(from + place, width, to + block);
  });
  at::Tensor y = at::empty({dealt.rows.back(), own_columns}, x.options());
  dealt.ranks->exchange(to, sizes(dealt.columns, own_rows), y.data_ptr<float>(),
                        sizes(dealt.rows, own_columns));
  return y;
}

at::Tensor move_to_rows(const at::Tensor& x, const Dealt& dealt) {
  const std::int64_t rank = dealt.ranks->rank();
  const std::int64_t own_rows = size_of(dealt.rows, rank);
  const at::Tensor packed = at::empty({own_rows, dealt.columns.back()}, x.options());
  dealt.ranks->exchange(x.data_ptr<float>(), sizes(dealt.rows, size_of(dealt.columns, rank)),
                        packed.data_ptr<float>(), sizes(dealt.columns, own_rows));
  at::Tensor y = at::empty_like(packed);
  const float* const from = packed.data_ptr<float>();
  float* const to = y.data_ptr<float>();
  for_blocks(dealt, [&](std::int64_t place, std::int64_t block, std::int64_t width) {
    std::copy_n(from + block, width, to + place);
  });
  return y;
}

struct ToColumns : torch::autograd::Function<ToColumns> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const DealtPointer& dealt) {
    save(context, dealt);
    return move_to_columns(x, *dealt);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {move_to_rows(ops::canonical(grads[0]), *saved(context)), {}};
  }
};

struct ToRows : torch::autograd::Function<ToRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const DealtPointer& dealt) {
    save(context, dealt);
    return move_to_rows(x, *dealt);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return {move_to_columns(ops::canonical(grads[0]), *saved(context)), {}};
  }
};

struct GatherRows : torch::autograd::Function<GatherRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const DealtPointer& dealt) {
    save(context, dealt);
    const std::int64_t width = x.size(1);
    const at::Tensor copies = x.repeat({dealt->ranks->size(), 1});
    at::Tensor y = at::empty({dealt->rows.back(), width}, x.options());
    dealt->ranks->exchange(copies.data_ptr<float>(),
                           std::vector<std::int64_t>(dealt->ranks->size(), x.numel() * kFloat),
                           y.data_ptr<float>(), sizes(dealt->rows, width));
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const DealtPointer dealt = saved(context);
    const std::int64_t rank = dealt->ranks->rank();
    return {grads[0].slice(0, dealt->rows[rank], dealt->rows[rank + 1]).contiguous(), {}};
  }
};

}  // namespace

at::Tensor to_columns(const at::Tensor& x, const DealtPointer& dealt) {
  return ToColumns::apply(ops::canonical(x), dealt);
}
at::Tensor to_rows(const at::Tensor& x, const DealtPointer& dealt) {
  return ToRows::apply(ops::canonical(x), dealt);
}
at::Tensor gather_rows(const at::Tensor& x, const DealtPointer& dealt) {
  return GatherRows::apply(ops::canonical(x), dealt);
}

}  // namespace mpssm::nn
