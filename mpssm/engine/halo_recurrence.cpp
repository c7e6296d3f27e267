// SPDX-License-Identifier: MIT
#include "mpssm/engine/halo_recurrence.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::engine {
namespace {

/// Rows of a task: their numbers stay in the core's cache between the product and what follows.
constexpr std::int64_t kHaloTaskRows = 512;

/// body(begin, end) over the first rows, cut by the problem.
template <typename T, typename Body>
void for_rows(const HaloRows<T>& rows, std::int64_t count, std::int64_t width,
              const Executor& executor, const Body& body) {
  const std::int64_t work = (rows.a.row_ptr[count] + count) * width;
  run_tasks(executor, (count + kHaloTaskRows - 1) / kHaloTaskRows, work, [&](std::int64_t task) {
    body(task * kHaloTaskRows, std::min(count, (task + 1) * kHaloTaskRows));
  });
}

template <typename T>
kernels::SpmmArgs<T> product(const HaloRows<T>& rows, const T* x, std::int64_t width, T* y) {
  return {.a = rows.a, .x = x, .x_stride = width, .y = y, .y_stride = width, .width = width};
}

}  // namespace

template <typename T>
void halo_spmm(const HaloRows<T>& rows, T* x, std::int64_t width, T* y, const Executor& executor) {
  rows.fill(x, width);
  ring_spmm(rows, x, width, rows.own(), y, executor);
}

template <typename T>
void ring_spmm(const HaloRows<T>& rows, const T* x, std::int64_t width, std::int64_t count, T* y,
               const Executor& executor) {
  const kernels::SpmmArgs<T> args = product(rows, x, width, y);
  for_rows(rows, count, width, executor,
           [&](std::int64_t begin, std::int64_t end) { kernels::spmm(args, begin, end); });
}

template <typename T>
std::int64_t forward_scratch(const HaloRecurrence<T>& args) {
  // Rings are given C, too, and keep it.
  const std::int64_t buffers = args.rows->hops_per_fill() > 1 ? 3 : 2;
  return buffers * (args.rows->own() + args.rows->halo) * args.channels;
}
template <typename T>
std::int64_t backward_scratch(const HaloRecurrence<T>& args) {
  return 2 * (args.transposed->own() + args.transposed->halo) * args.channels;
}

template <typename T>
void forward(const HaloRecurrence<T>& args, const T* c, const T* sigma, T* x, T* scratch,
             const Executor& executor) {
  const HaloRows<T>& rows = *args.rows;
  const std::int64_t width = args.channels;
  const std::int64_t hops = args.num_steps - 1;
  const std::int64_t size = (rows.own() + rows.halo) * width;
  std::copy_n(c, rows.own() * width, hops == 0 ? x : scratch);
  T* from = scratch;
  T* to = scratch + size;
  T* spare = rows.hops_per_fill() > 1 ? scratch + 2 * size : scratch;
  if (rows.hops_per_fill() > 1) c = scratch;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    T* const y = hop + 1 == hops ? x : to;
    if (rows.needs_fill(hop)) rows.fill(from, width);
    const kernels::SpmmArgs<T> ax = product(rows, from, width, y);
    for_rows(rows, rows.rows_at(hop, hops), width, executor,
             [&](std::int64_t begin, std::int64_t end) {
               kernels::spmm(ax, begin, end);
               for (std::int64_t i = begin; i < end; ++i) {
                 T* const row = y + i * width;
                 const T* const add = c + i * width;
                 for (std::int64_t k = 0; k < width; k += 2) {
                   const T re = sigma[k] * row[k] - sigma[k + 1] * row[k + 1] + add[k];
                   row[k + 1] = sigma[k] * row[k + 1] + sigma[k + 1] * row[k] + add[k + 1];
                   row[k] = re;
                 }
               }
             });
    from = std::exchange(to, hop == 0 ? spare : from);
  }
}

// X = sum_i sigma^i A^i C. With P(0) = G, Q(i) = A' P(i - 1) and P(i) = conj(sigma) Q(i), the
// gradient of C is the sum of all P, and that of sigma the sum of i Q(i) conj(C).
template <typename T>
void backward(const HaloRecurrence<T>& args, const T* c, const T* sigma, const T* grad, T* grad_c,
              double* grad_sigma, T* scratch, const Executor& executor) {
  const HaloRows<T>& rows = *args.transposed;
  const std::int64_t width = args.channels;
  const std::int64_t num_parts = std::ssize(args.parts) - 1;
  T* p = scratch;
  T* q = scratch + (rows.own() + rows.halo) * width;
  std::copy_n(grad, rows.own() * width, p);
  std::copy_n(grad, rows.own() * width, grad_c);
  std::fill_n(grad_sigma, num_parts * width, 0.0);
  // Sums of pieces of a part are added in order: the same bits for any number of threads.
  struct Piece {
    std::int64_t part, begin, end;
  };
  std::vector<Piece> pieces;
  for (std::int64_t part = 0; part < num_parts; ++part) {
    for (std::int64_t begin = args.parts[part]; begin < args.parts[part + 1];
         begin += kHaloTaskRows) {
      pieces.push_back({part, begin, std::min(begin + kHaloTaskRows, args.parts[part + 1])});
    }
  }
  std::vector<double> sums(pieces.size() * static_cast<std::size_t>(width), 0.0);
  const std::int64_t own_tasks = std::ssize(pieces);
  const std::int64_t hops = args.num_steps - 1;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    if (rows.needs_fill(hop)) rows.fill(p, width);
    const kernels::SpmmArgs<T> ap = product(rows, p, width, q);
    const auto step_back = [&](T* row) {  // P = conj(sigma) Q
      for (std::int64_t k = 0; k < width; k += 2) {
        const T re = row[k];
        const T im = row[k + 1];
        row[k] = sigma[k] * re + sigma[k + 1] * im;
        row[k + 1] = sigma[k] * im - sigma[k + 1] * re;
      }
    };
    const auto times = static_cast<double>(hop + 1);
    const std::int64_t count = rows.rows_at(hop, hops);
    const std::int64_t ring_tasks = (count - rows.own() + kHaloTaskRows - 1) / kHaloTaskRows;
    const std::int64_t work = (rows.a.row_ptr[count] + count) * width;
    run_tasks(executor, own_tasks + ring_tasks, work, [&](std::int64_t task) {
      if (task >= own_tasks) {  // of others: their gradients are theirs to sum
        const std::int64_t begin = rows.own() + (task - own_tasks) * kHaloTaskRows;
        const std::int64_t end = std::min(count, begin + kHaloTaskRows);
        kernels::spmm(ap, begin, end);
        for (std::int64_t i = begin; i < end; ++i) step_back(q + i * width);
        return;
      }
      const Piece& piece = pieces[task];
      kernels::spmm(ap, piece.begin, piece.end);
      double* const sum = sums.data() + task * width;
      for (std::int64_t i = piece.begin; i < piece.end; ++i) {
        T* const row = q + i * width;
        T* const total = grad_c + i * width;
        const T* const other = c + i * width;
        for (std::int64_t k = 0; k < width; k += 2) {
          sum[k] += times * (row[k] * other[k] + row[k + 1] * other[k + 1]);
          sum[k + 1] += times * (row[k + 1] * other[k] - row[k] * other[k + 1]);
        }
        step_back(row);
        for (std::int64_t k = 0; k < width; ++k) total[k] += row[k];
      }
    });
    std::swap(p, q);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::int64_t k = 0; k < width; ++k) {
      grad_sigma[pieces[i].part * width + k] += sums[i * static_cast<std::size_t>(width) + k];
    }
  }
}

#define MPSSM_HALO_RECURRENCE(T)                                                                   \
  template void halo_spmm<T>(const HaloRows<T>&, T*, std::int64_t, T*, const Executor&);           \
  template void ring_spmm<T>(const HaloRows<T>&, const T*, std::int64_t, std::int64_t, T*,         \
                             const Executor&);                                                     \
  template std::int64_t forward_scratch<T>(const HaloRecurrence<T>&);                              \
  template std::int64_t backward_scratch<T>(const HaloRecurrence<T>&);                             \
  template void forward<T>(const HaloRecurrence<T>&, const T*, const T*, T*, T*, const Executor&); \
  template void backward<T>(const HaloRecurrence<T>&, const T*, const T*, const T*, T*, double*,   \
                            T*, const Executor&)
MPSSM_HALO_RECURRENCE(float);
MPSSM_HALO_RECURRENCE(double);
#undef MPSSM_HALO_RECURRENCE

}  // namespace mpssm::engine
