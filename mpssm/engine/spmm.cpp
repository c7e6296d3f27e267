// SPDX-License-Identifier: MIT
#include "mpssm/engine/spmm.h"

#include <algorithm>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/recurrence.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::engine {
namespace {

/// Several, so that a worker that falls behind is helped out.
constexpr std::int64_t kPartsPerWorker = 4;

/// A result of more bytes does not outlive itself in a shared cache: written past it, it neither
/// drives x out nor is read from memory first. Two products in a row, the second reading the
/// first's result at once, gain above this and lose below.
constexpr std::int64_t kStreamBytes = std::int64_t{8} << 20;

/// Packing reads and writes x once; a row fetched this many times pays for it.
constexpr std::int64_t kPackedEntries = 8;
/// Bytes of x from which on a shared cache does not hold it beside the rest, and of a slice that
/// stays there.
constexpr std::int64_t kLeastPacked = std::int64_t{16} << 20;
constexpr std::int64_t kMostSlice = std::int64_t{16} << 20;

/// First row of part `part` of `parts` with equal shares of nonzeros plus rows.
template <typename T>
std::int64_t balanced_row(const kernels::CsrView<T>& a, std::int64_t part, std::int64_t parts) {
  const std::int64_t target = (a.row_ptr[a.num_rows] + a.num_rows) * part / parts;
  std::int64_t low = 0;
  std::int64_t high = a.num_rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (a.row_ptr[middle] + middle < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Columns [begin, begin + width) of all of the batch, `x` being rows of x_stride numbers.
template <typename T>
void multiply(const SpmmBatch<T>& args, std::int64_t begin, std::int64_t width,
              std::int64_t x_stride, const Executor& executor) {
  const kernels::CsrView<T>& a = args.a;
  const bool stream =
      a.num_rows * args.width * static_cast<std::int64_t>(sizeof(T)) >= kStreamBytes;
  const std::int64_t work = args.batch * (a.row_ptr[a.num_rows] + a.num_rows) * width;
  const std::int64_t wanted = kPartsPerWorker * executor.workers();
  const std::int64_t parts =
      std::max<std::int64_t>(1, wanted / std::max<std::int64_t>(args.batch, 1));
  run_tasks(executor, args.batch * parts, work, [&](std::int64_t task) {
    const std::int64_t b = task / parts;
    const std::int64_t part = task % parts;
    kernels::SpmmArgs<T> block;
    block.a = a;
    block.stream = stream;
    block.width = width;
    block.y_stride = block.add_stride = args.width;
    block.x_stride = x_stride;
    block.x = args.x + b * args.x_stride;
    block.y = args.y + b * args.y_stride + begin;
    if (args.add != nullptr) block.add = args.add + b * args.add_stride + begin;
    kernels::spmm(block, balanced_row(a, part, parts), balanced_row(a, part + 1, parts));
  });
}

}  // namespace

template <typename T>
std::int64_t spmm_scratch(const SpmmBatch<T>& args) {
  constexpr std::int64_t kLanes = kernels::kMaxSliceLanes<T>;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t rows = args.a.num_rows;
  const bool pays = args.width > kLanes && rows * args.width * kSize >= kLeastPacked &&
                    rows * kLanes * kSize <= kMostSlice &&
                    args.a.row_ptr[rows] >= kPackedEntries * rows;
  return pays ? rows * kLanes : 0;
}

template <typename T>
void spmm(const SpmmBatch<T>& args, const Executor& executor) {
  if (args.scratch == nullptr || spmm_scratch(args) == 0) {
    return multiply(args, 0, args.width, args.width, executor);
  }
  constexpr std::int64_t kLanes = kernels::kMaxSliceLanes<T>;
  SpmmBatch<T> one = args;
  one.batch = 1;
  for (std::int64_t b = 0; b < args.batch; ++b) {
    one.y = args.y + b * args.y_stride;
    if (args.add != nullptr) one.add = args.add + b * args.add_stride;
    for (std::int64_t begin = 0; begin < args.width; begin += kLanes) {
      const std::int64_t width = std::min(kLanes, args.width - begin);
      const T* x = args.x + b * args.x_stride + begin;
      const RowParts parts(args.a.num_rows);
      run_tasks(executor, parts.count, args.a.num_rows * width, [&](std::int64_t part) {
        const std::int64_t first = parts.begin(part);
        kernels::pack_slice(x + first * args.width, args.width, parts.end(part) - first, width,
                            kLanes, args.scratch + first * kLanes);
      });
      one.x = args.scratch;
      multiply(one, begin, width, kLanes, executor);
    }
  }
}

template <typename T>
void spmm(const kernels::CsrView<T>& a, const T* x, std::int64_t width, T* y,
          const Executor& executor) {
  SpmmBatch<T> args;
  args.a = a;
  args.width = width;
  args.x = x;
  args.y = y;
  spmm(args, executor);
}

template std::int64_t spmm_scratch<float>(const SpmmBatch<float>&);
template std::int64_t spmm_scratch<double>(const SpmmBatch<double>&);
template void spmm<float>(const SpmmBatch<float>&, const Executor&);
template void spmm<double>(const SpmmBatch<double>&, const Executor&);
template void spmm<float>(const kernels::CsrView<float>&, const float*, std::int64_t, float*,
                          const Executor&);
template void spmm<double>(const kernels::CsrView<double>&, const double*, std::int64_t, double*,
                           const Executor&);

}  // namespace mpssm::engine
