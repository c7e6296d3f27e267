// SPDX-License-Identifier: MIT
// Memory grows with the entries, never with entries times channels: a score is a sum of two numbers
// at nodes.
#include "mpssm/engine/edge_softmax.h"

#include <algorithm>
#include <cmath>

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
T leaky(const EdgeSoftmax<T>& args, T z) {
  return z > T{0} ? z : args.slope * z;
}
template <typename T>
T leaky_slope(const EdgeSoftmax<T>& args, T z) {
  return z > T{0} ? T{1} : args.slope;
}

}  // namespace

template <typename T>
void edge_softmax(const EdgeSoftmax<T>& args, T* entries, const Executor& executor) {
  const auto row_ptr = args.gso.row_ptr();
  const auto col = args.gso.col();
  for_rows(args.gso, executor, [&](std::int64_t i) {
    const std::int64_t begin = row_ptr[i];
    const std::int64_t end = row_ptr[i + 1];
    if (begin == end) return;
    for (std::int64_t e = begin; e < end; ++e) {
      entries[e] = leaky(args, args.target[i] + args.source[col[e]]);
    }
    const T largest = *std::max_element(entries + begin, entries + end);
    T sum{0};
    for (std::int64_t e = begin; e < end; ++e) sum += entries[e] = std::exp(entries[e] - largest);
    for (std::int64_t e = begin; e < end; ++e) entries[e] /= sum;
  });
}

template <typename T>
void edge_softmax_adjoint(const EdgeSoftmax<T>& args, const T* entries, const T* grad,
                          T* grad_target, T* grad_source, T* scratch, const Executor& executor) {
  const auto row_ptr = args.gso.row_ptr();
  const auto col = args.gso.col();
  // Of the score of entry e in row i, with the row's mean gradient in `scratch`.
  const auto grad_score = [&](std::int64_t i, std::int64_t j, std::int64_t e) {
    return entries[e] * (grad[e] - scratch[i]) * leaky_slope(args, args.target[i] + args.source[j]);
  };
  for_rows(args.gso, executor, [&](std::int64_t i) {
    scratch[i] = T{0};
    for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) scratch[i] += entries[e] * grad[e];
    grad_target[i] = T{0};
    for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) {
      grad_target[i] += grad_score(i, col[e], e);
    }
  });
  const kernels::CsrView<double> columns = args.gso.template transpose_view<double>();
  const auto entry = args.gso.transposed_entries();
  for_rows(args.gso, executor, [&](std::int64_t j) {
    grad_source[j] = T{0};
    for (std::int64_t k = columns.row_ptr[j]; k < columns.row_ptr[j + 1]; ++k) {
      grad_source[j] += grad_score(columns.col[k], j, entry[k]);
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
