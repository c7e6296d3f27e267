// SPDX-License-Identifier: MIT
// Memory grows with the entries, never with entries times channels: a score is a sum of two numbers
// at nodes.
#include "mpssm/engine/edge_softmax.h"

#include <algorithm>

#include "mpssm/engine/neighbour_softmax.h"
#include "mpssm/engine/tasks.h"

namespace mpssm::engine {
namespace {

/// body(row) for every row, with about 16 multiply-adds for an entry.
template <typename Body>
void for_rows(const graph::Gso& gso, const Executor& executor, const Body& body) {
  constexpr std::int64_t kTaskRows = 256;
  const std::int64_t rows = gso.num_nodes();
  run_tasks(executor, (rows + kTaskRows - 1) / kTaskRows, 16 * gso.num_nonzeros(),
            [&](std::int64_t task) {
              const std::int64_t end = std::min(rows, (task + 1) * kTaskRows);
              for (std::int64_t row = task * kTaskRows; row < end; ++row) body(row);
            });
}

template <typename T>
NeighbourSoftmax<T> softmax_of(const EdgeSoftmax<T>& args) {
  return {
      args.gso.row_ptr().data(), args.gso.col().data(), args.target, args.source, 1, args.slope};
}

}  // namespace

template <typename T>
void edge_softmax(const EdgeSoftmax<T>& args, T* entries, const Executor& executor) {
  const NeighbourSoftmax<T> softmax = softmax_of(args);
  for_rows(args.gso, executor, [&](std::int64_t i) { softmax.weigh(i, entries); });
}

template <typename T>
void edge_softmax_adjoint(const EdgeSoftmax<T>& args, const T* entries, const T* grad,
                          T* grad_target, T* grad_source, T* scratch, const Executor& executor) {
  const NeighbourSoftmax<T> softmax = softmax_of(args);
  const auto sum_grad = [&](std::int64_t i, std::int64_t j, std::int64_t e) {
    return softmax.sum_grad(i, j, entries[e], grad[e], scratch[i]);
  };
  for_rows(args.gso, executor, [&](std::int64_t i) {
    scratch[i] = softmax.mean(i, entries, grad);
    grad_target[i] = T{0};
    for (std::int64_t e = softmax.row_ptr[i]; e < softmax.row_ptr[i + 1]; ++e) {
      grad_target[i] += sum_grad(i, softmax.col[e], e);
    }
  });
  const kernels::CsrView<T> columns = args.gso.template transpose_view<T>();
  const auto entry = args.gso.transposed_entries();
  for_rows(args.gso, executor, [&](std::int64_t j) {
    grad_source[j] = T{0};
    for (std::int64_t k = columns.row_ptr[j]; k < columns.row_ptr[j + 1]; ++k) {
      grad_source[j] += sum_grad(columns.col[k], j, entry[k]);
    }
  });
}

#define MPSSM_INSTANTIATE(T)                                                                   \
  template void edge_softmax<T>(const EdgeSoftmax<T>&, T*, const Executor&);                   \
  template void edge_softmax_adjoint<T>(const EdgeSoftmax<T>&, const T*, const T*, T*, T*, T*, \
                                        const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
