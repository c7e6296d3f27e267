// SPDX-License-Identifier: MIT
// Plan doubling: constant input, dense W, last output. Over the bits of T, from the highest down,
//   double:    S(2m)  = S(m) + (A^m S(m)) W^m,   W^(2m)  = W^m W^m
//   increment: S(m+1) = C + (A S(m)) W,          W^(m+1) = W^m W
// so that S(T) costs T - 1 products with A, which run m at a time in cache, and O(log T) with W.
// Both are S' = base + (A^h S) V with V a power of W. Backward, with H = (A')^h G:
//   grad S = H V' (+ G when the base is S),   grad V = S' H,   grad C += G when the base is C,
// so only the S before each move are kept. X(0) adds (A^T X(0)) W^T, whose power ends the chain.
//
// A^m and W^m are formed apart. Where one is huge and the other tiny, as with the plain adjacency
// matrix and a small W, they leave the range of their type though their product does not: such a
// call goes to plan stepwise.
//
// In bfloat16 everything that has a row for each node lives in slices of bfloat16 (S below); sums,
// the powers of W and gradients of W are floats (T). S is rounded once a move and hop, so that the
// errors of a sum grow with log T and those of A^m with the hops.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "mpssm/engine/linear.h"
#include "mpssm/engine/plans.h"
#include "mpssm/engine/power_chain.h"
#include "mpssm/engine/slice_operator.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/matmul_bf16.h"
#include "mpssm/kernels/recurrence.h"
#include "mpssm/kernels/recurrence_bf16.h"

namespace mpssm::engine {
namespace {

using kernels::Bf16;

template <typename S>
inline constexpr bool kIsBf16 = std::is_same_v<S, Bf16>;

/// Inside a pass everything lives in slices of channels, [B, S, N, L] with S L >= C: the hops want
/// it that way, and the dense products do not mind (kernels/matmul.h).
struct Slices {
  std::int64_t batch = 1;
  std::int64_t count = 1;
  std::int64_t nodes = 0;
  std::int64_t lanes = 1;
  std::int64_t channels = 0;

  template <typename S>
  static Slices make(const RecurrenceShape& shape) {
    // At least a panel of the dense product, no more than the channels need; of bfloat16 narrower
    // ones where few of them would leave workers idle.
    const std::int64_t widest =
        kIsBf16<S> && shape.channels <= 128 ? 32 : kernels::kMaxSliceLanes<S>;
    const std::int64_t lanes =
        shape.channels <= kernels::kPanelColumns ? kernels::kPanelColumns : widest;
    return {shape.batch, (shape.channels + lanes - 1) / lanes, shape.num_nodes(), lanes,
            shape.channels};
  }
  std::int64_t width() const { return count * lanes; }
  std::int64_t matrix() const { return width() * width(); }
  std::int64_t slice() const { return nodes * lanes; }
  std::int64_t block() const { return count * slice(); }
  std::int64_t size() const { return batch * block(); }
  bool is_padded() const { return width() != channels; }
};

template <typename T, typename S>
void to_slices(const Slices& slices, const SliceOperator<T>& op, const T* x, S* out,
               const Executor& executor) {
  run_tasks(
      executor, slices.batch * slices.count, slices.batch * slices.nodes * slices.channels,
      [&](std::int64_t task) {
        const std::int64_t begin = task % slices.count * slices.lanes;
        const T* const from = x + task / slices.count * slices.nodes * slices.channels + begin;
        const std::int64_t width = std::min(slices.lanes, slices.channels - begin);
        S* const to = out + task * slices.slice();
        kernels::pack_slice(from, slices.channels, slices.nodes, width, slices.lanes, to, op.node);
      });
}

template <typename T, typename S>
void from_slices(const Slices& slices, const SliceOperator<T>& op, const S* sliced, T* out,
                 const Executor& executor) {
  run_tasks(executor, slices.batch * slices.count, slices.size(), [&](std::int64_t task) {
    const std::int64_t begin = task % slices.count * slices.lanes;
    const S* const from = sliced + task * slices.slice();
    const std::int64_t width = std::min(slices.lanes, slices.channels - begin);
    T* const to = out + task / slices.count * slices.nodes * slices.channels + begin;
    kernels::unpack_slice(from, slices.nodes, width, slices.lanes, to, slices.channels, op.place);
  });
}

/// out = A^hops x, each slice by itself; out is not x. `scratch` holds a slice per worker.
template <typename T, typename S>
void power_into(const Slices& slices, const HopWaves& waves, const kernels::CsrView<T>& matrix,
                const S* x, std::int64_t hops, S* out, S* scratch, const Executor& executor) {
  using Step = std::conditional_t<kIsBf16<S>, kernels::Bf16SliceStep, kernels::SliceStep<T>>;
  const std::int64_t work =
      hops * slices.batch * slices.width() * (matrix.row_ptr[matrix.num_rows] + matrix.num_rows);
  run_tasks(
      executor, slices.batch * slices.count, work, [&](std::int64_t task, std::int64_t worker) {
        Step step;
        step.a = matrix;
        step.lanes = slices.lanes;
        // They take turns, and the last one is `out`.
        S* const targets[2] = {scratch + worker * slices.slice(), out + task * slices.slice()};
        waves(hops, [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
          const std::int64_t left = hops - hop;
          step.x = hop == 0 ? x + task * slices.slice() : targets[(left + 1) % 2];
          step.y = targets[left % 2];
          kernels::slice_step(rows_of(step, first, count));
        });
      });
}

/// y = x W (+ add); y may be add. w is padded to whole slices.
template <typename T, typename S>
void times_w(const Slices& slices, const S* x, const T* w, Transpose transpose, const S* add, S* y,
             S* packed, const Executor& executor) {
  using Args =
      std::conditional_t<kIsBf16<S>, kernels::Bf16MatmulArgs<Bf16>, kernels::MatmulArgs<T>>;
  Args args;
  args.inner = args.columns = slices.width();
  args.x_layout = args.y_layout = {slices.lanes, slices.slice()};
  kernels::pack_matrix(transpose, w, args.inner, args.columns, packed);
  args.packed = packed;
  constexpr std::int64_t kRows = 192;
  const std::int64_t tasks = (slices.nodes + kRows - 1) / kRows;
  run_tasks(executor, slices.batch * tasks, slices.size() * slices.width() / 8,
            [&](std::int64_t task) {
              Args mine = args;
              const std::int64_t batch = task / tasks * slices.block();
              mine.x = x + batch;
              mine.y = y + batch;
              if (add != nullptr) mine.add = add + batch;
              kernels::matmul(mine, task % tasks * kRows,
                              std::min(slices.nodes, (task % tasks + 1) * kRows));
            });
}

/// Memory of gram().
template <typename T>
struct GramBuffers {
  static constexpr std::int64_t kPairedRows = 96;  // that share the second-level cache
  T* sums;                                         // parts of the sum
  Bf16* pairs;                                     // of rows, for every worker; of bfloat16 only

  template <typename S>
  static GramBuffers take(const Slices& slices, bool wanted, std::int64_t workers,
                          Workspace& workspace) {
    const std::int64_t parts = slices.batch * RowParts(slices.nodes).count;
    GramBuffers buffers;
    buffers.sums = workspace.take<T>(wanted ? parts * slices.matrix() : 0);
    buffers.pairs =
        workspace.take<Bf16>(wanted && kIsBf16<S> ? 2 * workers * kPairedRows * slices.width() : 0);
    return buffers;
  }
};

/// out = x' g, summed over nodes and batch: [S L, S L]. The sum is cut into parts that do not
/// depend on the workers, and the parts are added in order.
template <typename T, typename S>
void gram(const Slices& slices, const S* x, const S* g, T* out, const GramBuffers<T>& buffers,
          const Executor& executor) {
  const std::int64_t width = slices.width();
  const RowParts parts(slices.nodes);
  const std::int64_t count = slices.batch * parts.count;
  const kernels::Layout layout{slices.lanes, slices.slice()};
  std::fill(buffers.sums, buffers.sums + count * slices.matrix(), T{0});
  run_tasks(executor, count, slices.size() * width / 8,
            [&](std::int64_t task, std::int64_t worker) {
              const std::int64_t batch = task / parts.count * slices.block();
              const std::int64_t part = task % parts.count;
              T* const sum = buffers.sums + task * slices.matrix();
              if constexpr (kIsBf16<S>) {
                constexpr std::int64_t kRows = GramBuffers<T>::kPairedRows;
                Bf16* const x_pairs = buffers.pairs + 2 * worker * kRows * width;
                Bf16* const g_pairs = x_pairs + kRows * width;
                for (std::int64_t row = parts.begin(part); row < parts.end(part); row += kRows) {
                  const std::int64_t rows = std::min(kRows, parts.end(part) - row);
                  kernels::pack_row_pairs(x + batch, layout, row, rows, width, x_pairs);
                  kernels::pack_row_pairs(g + batch, layout, row, rows, width, g_pairs);
                  kernels::matmul_transposed({width, width, rows, x_pairs, g_pairs, sum});
                }
              } else {
                kernels::MatmulTransposedArgs<T> args;
                args.left = args.right = width;
                args.x_layout = args.g_layout = layout;
                args.x = x + batch;
                args.g = g + batch;
                args.sum = sum;
                kernels::matmul_transposed(args, parts.begin(part), parts.end(part));
              }
            });
  sum_of_parts(buffers.sums, count, slices.matrix(), out, executor);
}

/// True if no |number| passes the square root of the largest one of its type: what is multiplied
/// with it cannot have lost its digits to underflow then.
template <typename S>
bool in_range(const S* data, std::int64_t count, const Executor& executor) {
  std::atomic<bool> inside{true};
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    int outside = 0;
    if constexpr (kIsBf16<S>) {
      const std::uint16_t limit =
          kernels::to_bf16(std::sqrt(std::numeric_limits<float>::max())).bits;
      for (std::int64_t i = begin; i < end; ++i) {
        outside |= (data[i].bits & 0x7fff) <= limit ? 0 : 1;
      }
    } else {
      const S limit = std::sqrt(std::numeric_limits<S>::max());
      for (std::int64_t i = begin; i < end; ++i) outside |= std::abs(data[i]) <= limit ? 0 : 1;
    }
    if (outside != 0) inside = false;
  });
  return inside;
}

/// y += x.
template <typename S>
void add_slices(const S* x, std::int64_t count, S* y, const Executor& executor) {
  if constexpr (kIsBf16<S>) {
    for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        y[i] = kernels::to_bf16(kernels::to_float(y[i]) + kernels::to_float(x[i]));
      }
    });
  } else {
    add_numbers(x, count, y, executor);
  }
}

/// S before each move, then A^T X(0), in slices: kept for the gradient of W alone.
template <typename T, typename S>
std::int64_t saved_numbers(const RecurrenceCall& call) {
  if (!call.wanted.w_state) return 0;
  const std::int64_t moves = num_moves(recipe_for(call.shape.num_steps));
  const std::int64_t numbers =
      (moves + (call.has_initial ? 1 : 0)) * Slices::make<S>(call.shape).size();
  constexpr auto kEach = static_cast<std::int64_t>(sizeof(T) / sizeof(S));
  return (numbers + kEach - 1) / kEach;
}

template <typename T, typename S>
struct ForwardBuffers {
  Slices slices;
  PowerChain<T> chain;
  S* packed;
  S* hops;  // a slice per worker
  S* c;     // not if states are kept: then it is the first of them
  S* s;
  S* moved;  // not if the output can hold it until the end

  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : slices(Slices::make<S>(call.shape)),
        chain(call.shape.num_steps, call.has_initial, slices.width(), workers, workspace) {
    packed = workspace.take<S>(matmul_scratch(slices.width(), slices.width()));
    hops = workspace.take<S>(workers * slices.slice());
    c = workspace.take<S>(call.wanted.w_state ? 0 : slices.size());
    s = workspace.take<S>(slices.size());
    moved = workspace.take<S>(slices.is_padded() ? slices.size() : 0);
  }
};

template <typename T, typename S>
bool run_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output,
                 T* saved_memory, Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const ForwardBuffers<T, S> buffers(call, executor.workers(), workspace);
  S* const saved = reinterpret_cast<S*>(saved_memory);
  const Slices& slices = buffers.slices;
  const PowerChain<T>& chain = buffers.chain;
  if (chain.count == 0) {  // one step from zero
    copy_numbers(in.input, shape.state(), output, executor);
    return true;
  }
  chain.compute(in.w_state, shape.channels, executor);
  if (!in_range<T>(chain.powers, chain.count * slices.matrix(), executor)) return false;
  const SliceOperator<T> op(shape);
  S* const moved = slices.is_padded() ? buffers.moved : reinterpret_cast<S*>(output);
  const bool keeps = call.wanted.w_state;
  const std::int64_t num_kept = num_moves(chain.recipe);
  std::int64_t move = 0;
  // S before move i, where it stays if it is kept.
  const auto slot = [&](std::int64_t i) {
    return keeps && i < num_kept ? saved + i * slices.size() : buffers.s;
  };
  S* const c = num_kept == 0 ? buffers.s : keeps ? saved : buffers.c;
  to_slices<T, S>(slices, op, in.input, c, executor);
  const S* s = c;
  const auto advance = [&](std::int64_t hops, const T* power, bool doubles) {
    power_into<T, S>(slices, op.waves, op.a, s, hops, moved, buffers.hops, executor);
    if (!in_range<S>(moved, slices.size(), executor)) return false;
    S* const next = slot(++move);
    times_w<T, S>(slices, moved, power, Transpose::kNo, doubles ? s : c, next, buffers.packed,
                  executor);
    s = next;
    return true;
  };
  for (std::size_t j = 0; j < chain.recipe.size(); ++j) {
    const Doubling& doubling = chain.recipe[j];
    const auto index = static_cast<std::int64_t>(j);
    if (!advance(doubling.hops, chain.power(index), true)) return false;
    if (doubling.then_increment && !advance(1, chain.powers, false)) return false;
  }
  if (call.has_initial) {
    S* const carried = keeps ? saved + num_kept * slices.size() : buffers.c;
    to_slices<T, S>(slices, op, in.initial, moved, executor);
    power_into<T, S>(slices, op.waves, op.a, moved, shape.num_steps, carried, buffers.hops,
                     executor);
    if (!in_range<S>(carried, slices.size(), executor)) return false;
    times_w<T, S>(slices, carried, chain.power(chain.count - 1), Transpose::kNo, s, buffers.s,
                  buffers.packed, executor);
    s = buffers.s;
  }
  from_slices<T, S>(slices, op, s, output, executor);
  return true;
}

template <typename T, typename S>
struct BackwardBuffers {
  Slices slices;
  PowerChain<T> chain;
  S* packed;
  S* hops;
  S* g;
  S* h;        // not if the gradient of the input can hold it until the end
  S* grad_c;   // of C through the increments
  S* carried;  // on the way to X(0)
  GramBuffers<T> of_gram;
  T* grads;   // of the powers
  T* grad_w;  // padded
  T* spare;

  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : slices(Slices::make<S>(call.shape)),
        chain(call.shape.num_steps, call.has_initial, slices.width(), workers, workspace) {
    const bool wants_w = call.wanted.w_state;
    const auto size = slices.size();
    packed = workspace.take<S>(matmul_scratch(slices.width(), slices.width()));
    hops = workspace.take<S>(workers * slices.slice());
    g = workspace.take<S>(size);
    h = workspace.take<S>(slices.is_padded() || !call.wanted.input ? size : 0);
    const bool increments =
        num_moves(chain.recipe) > static_cast<std::int64_t>(chain.recipe.size());
    grad_c = workspace.take<S>(increments ? size : 0);
    carried = workspace.take<S>(call.has_initial ? size : 0);
    of_gram = GramBuffers<T>::template take<S>(slices, wants_w, workers, workspace);
    grads = workspace.take<T>(wants_w ? chain.count * slices.matrix() : 0);
    grad_w = workspace.take<T>(wants_w ? slices.matrix() : 0);
    spare = workspace.take<T>(wants_w ? slices.matrix() : 0);
  }
};

template <typename T, typename S>
void run_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                  const RecurrenceGradients<T>& out, Workspace& workspace,
                  const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const BackwardBuffers<T, S> buffers(call, executor.workers(), workspace);
  const S* const saved = reinterpret_cast<const S*>(kept.saved);
  const Slices& slices = buffers.slices;
  const PowerChain<T>& chain = buffers.chain;
  const bool wants_w = out.w_state != nullptr;
  const std::int64_t matrix = slices.matrix();
  chain.compute(kept.inputs.w_state, shape.channels, executor);
  if (wants_w) std::fill(buffers.grad_w, buffers.grad_w + matrix, T{0});
  const SliceOperator<T> op(shape);
  S* const g = buffers.g;
  S* const h =
      slices.is_padded() || out.input == nullptr ? buffers.h : reinterpret_cast<S*>(out.input);
  to_slices<T, S>(slices, op, grad, g, executor);
  std::int64_t move = num_moves(chain.recipe);

  if (call.has_initial) {
    const std::int64_t last = chain.count - 1;
    if (wants_w) {
      gram(slices, saved + move * slices.size(), static_cast<const S*>(g),
           buffers.grads + last * matrix, buffers.of_gram, executor);
    }
    if (out.initial != nullptr) {
      times_w<T, S>(slices, g, chain.power(last), Transpose::kYes, nullptr, h, buffers.packed,
                    executor);
      power_into<T, S>(slices, op.waves, op.a_transposed, h, shape.num_steps, buffers.carried,
                       buffers.hops, executor);
      from_slices<T, S>(slices, op, buffers.carried, out.initial, executor);
    }
  }

  bool has_grad_c = false;
  const auto retreat = [&](std::int64_t hops, const T* power, bool doubles, T* grad_power) {
    --move;
    power_into<T, S>(slices, op.waves, op.a_transposed, g, hops, h, buffers.hops, executor);
    if (wants_w) {
      gram<T, S>(slices, saved + move * slices.size(), h, grad_power, buffers.of_gram, executor);
      if (!doubles) add_numbers(grad_power, matrix, buffers.grad_w, executor);
    }
    if (!doubles) {
      if (has_grad_c) {
        add_slices<S>(g, slices.size(), buffers.grad_c, executor);
      } else {
        copy_numbers<S>(g, slices.size(), buffers.grad_c, executor);
      }
      has_grad_c = true;
    }
    times_w<T, S>(slices, h, power, Transpose::kYes, doubles ? g : nullptr, g, buffers.packed,
                  executor);
  };
  for (std::size_t j = chain.recipe.size(); j-- > 0;) {
    const auto index = static_cast<std::int64_t>(j);
    if (chain.recipe[j].then_increment) retreat(1, chain.powers, false, buffers.spare);
    retreat(chain.recipe[j].hops, chain.power(index), true, buffers.grads + index * matrix);
  }
  if (out.input != nullptr) {  // S(1) = C
    if (has_grad_c) add_slices<S>(g, slices.size(), buffers.grad_c, executor);
    from_slices<T, S>(slices, op, has_grad_c ? buffers.grad_c : g, out.input, executor);
  }
  if (!wants_w) return;
  chain.descend(buffers.grads, buffers.grad_w, buffers.spare, executor);
  for (std::int64_t i = 0; i < shape.channels; ++i) {
    const T* row = buffers.grad_w + i * slices.width();
    std::copy(row, row + shape.channels, out.w_state + i * shape.channels);
  }
}

template <typename T, typename S>
PlanFunctions<T> functions() {
  return {nothing_read,
          saved_numbers<T, S>,
          bytes_of<ForwardBuffers<T, S>>,
          bytes_of<BackwardBuffers<T, S>>,
          run_forward<T, S>,
          run_backward<T, S>};
}

}  // namespace

template <>
PlanFunctions<float> doubling_plan(Precision precision) {
  return precision == Precision::kBf16 ? functions<float, Bf16>() : functions<float, float>();
}
template <>
PlanFunctions<double> doubling_plan(Precision /*precision*/) {
  return functions<double, double>();
}

}  // namespace mpssm::engine
