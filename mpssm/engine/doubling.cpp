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
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "mpssm/engine/linear.h"
#include "mpssm/engine/plans.h"
#include "mpssm/engine/power_chain.h"
#include "mpssm/engine/slice_operator.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {
namespace {

/// Inside a pass everything lives in slices of channels, [B, S, N, L] with S L >= C: the hops want
/// it that way, and the dense products do not mind (kernels/matmul.h).
struct Slices {
  std::int64_t batch = 1;
  std::int64_t count = 1;
  std::int64_t nodes = 0;
  std::int64_t lanes = 1;
  std::int64_t channels = 0;

  template <typename T>
  static Slices make(const RecurrenceShape& shape) {
    // At least a panel of the dense product, no more than the channels need.
    const std::int64_t lanes = shape.channels <= kernels::kPanelColumns
                                   ? kernels::kPanelColumns
                                   : kernels::kMaxSliceLanes<T>;
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

template <typename T>
void to_slices(const Slices& slices, const SliceOperator<T>& op, const T* x, T* out,
               const Executor& executor) {
  run_tasks(executor, slices.batch * slices.count, slices.batch * slices.nodes * slices.channels,
            [&](std::int64_t task) {
              const std::int64_t begin = task % slices.count * slices.lanes;
              kernels::pack_slice(kernels::SliceLayout::kReal,
                                  x + task / slices.count * slices.nodes * slices.channels + begin,
                                  slices.channels, slices.nodes,
                                  std::min(slices.lanes, slices.channels - begin), slices.lanes,
                                  out + task * slices.slice(), op.node);
            });
}

template <typename T>
void from_slices(const Slices& slices, const SliceOperator<T>& op, const T* sliced, T* out,
                 const Executor& executor) {
  run_tasks(executor, slices.batch * slices.count, slices.size(), [&](std::int64_t task) {
    const std::int64_t begin = task % slices.count * slices.lanes;
    kernels::unpack_slice(kernels::SliceLayout::kReal, sliced + task * slices.slice(), slices.nodes,
                          std::min(slices.lanes, slices.channels - begin), slices.lanes,
                          out + task / slices.count * slices.nodes * slices.channels + begin,
                          slices.channels, op.place);
  });
}

/// out = A^hops x, each slice by itself; out is not x. `scratch` holds a slice per worker.
template <typename T>
void power_into(const Slices& slices, const kernels::CsrView<T>& matrix, const T* x,
                std::int64_t hops, T* out, T* scratch, const Executor& executor) {
  const std::int64_t work =
      hops * slices.batch * slices.width() * (matrix.row_ptr[matrix.num_rows] + matrix.num_rows);
  run_tasks(
      executor, slices.batch * slices.count, work, [&](std::int64_t task, std::int64_t worker) {
        kernels::SliceStep<T> step;
        step.a = matrix;
        step.lanes = slices.lanes;
        step.x = x + task * slices.slice();
        for (std::int64_t left = hops; left > 0; --left) {
          // Targets take turns so that the last one is `out`.
          step.y = left % 2 == 1 ? out + task * slices.slice() : scratch + worker * slices.slice();
          kernels::slice_step(step);
          step.x = step.y;
        }
      });
}

/// y = x W (+ add); y may be add. w is padded to whole slices.
template <typename T>
void times_w(const Slices& slices, const T* x, const T* w, Transpose transpose, const T* add, T* y,
             T* packed, const Executor& executor) {
  kernels::MatmulArgs<T> args;
  args.inner = args.columns = slices.width();
  args.x_layout = args.y_layout = {slices.lanes, slices.slice()};
  kernels::pack_matrix(transpose, w, args.inner, args.columns, packed);
  args.packed = packed;
  constexpr std::int64_t kRows = 192;
  const std::int64_t tasks = (slices.nodes + kRows - 1) / kRows;
  run_tasks(executor, slices.batch * tasks, slices.size() * slices.width() / 8,
            [&](std::int64_t task) {
              kernels::MatmulArgs<T> mine = args;
              const std::int64_t batch = task / tasks * slices.block();
              mine.x = x + batch;
              mine.y = y + batch;
              if (add != nullptr) mine.add = add + batch;
              kernels::matmul(mine, task % tasks * kRows,
                              std::min(slices.nodes, (task % tasks + 1) * kRows));
            });
}

/// out = x' g, summed over nodes and batch: [S L, S L]. The sum is cut into parts that do not
/// depend on the workers, and the parts are added in order.
template <typename T>
void gram(const Slices& slices, const T* x, const T* g, T* out, T* sums, const Executor& executor) {
  const std::int64_t width = slices.width();
  const RowParts parts(slices.nodes);
  const std::int64_t count = slices.batch * parts.count;
  std::fill(sums, sums + count * slices.matrix(), T{0});
  run_tasks(executor, count, slices.size() * width / 8, [&](std::int64_t task) {
    const std::int64_t batch = task / parts.count * slices.block();
    const std::int64_t part = task % parts.count;
    kernels::MatmulTransposedArgs<T> args;
    args.left = args.right = width;
    args.x_layout = args.g_layout = {slices.lanes, slices.slice()};
    args.x = x + batch;
    args.g = g + batch;
    args.sum = sums + task * slices.matrix();
    kernels::matmul_transposed(args, parts.begin(part), parts.end(part));
  });
  sum_of_parts(sums, count, slices.matrix(), out, executor);
}

/// True if no |number| passes the square root of the largest one of its type: what is multiplied
/// with it cannot have lost its digits to underflow then.
template <typename T>
bool in_range(const T* data, std::int64_t count, const Executor& executor) {
  const T limit = std::sqrt(std::numeric_limits<T>::max());
  std::atomic<bool> inside{true};
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    int outside = 0;
    for (std::int64_t i = begin; i < end; ++i) outside |= std::abs(data[i]) <= limit ? 0 : 1;
    if (outside != 0) inside = false;
  });
  return inside;
}

/// S before each move, then A^T X(0), in slices: kept for the gradient of W alone.
template <typename T>
std::int64_t saved_numbers(const RecurrenceCall& call) {
  if (!call.wanted.w_state) return 0;
  const std::int64_t moves = num_moves(recipe_for(call.shape.num_steps));
  return (moves + (call.has_initial ? 1 : 0)) * Slices::make<T>(call.shape).size();
}

template <typename T>
struct ForwardBuffers {
  Slices slices;
  PowerChain<T> chain;
  T* packed;
  T* hops;  // a slice per worker
  T* c;     // not if states are kept: then it is the first of them
  T* s;
  T* moved;  // not if the output can hold it until the end

  ForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : slices(Slices::make<T>(call.shape)),
        chain(call.shape.num_steps, call.has_initial, slices.width(), workers, workspace) {
    packed = workspace.take<T>(matmul_scratch(slices.width(), slices.width()));
    hops = workspace.take<T>(workers * slices.slice());
    c = workspace.take<T>(call.wanted.w_state ? 0 : slices.size());
    s = workspace.take<T>(slices.size());
    moved = workspace.take<T>(slices.is_padded() ? slices.size() : 0);
  }
};

template <typename T>
bool run_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output, T* saved,
                 Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const ForwardBuffers<T> buffers(call, executor.workers(), workspace);
  const Slices& slices = buffers.slices;
  const PowerChain<T>& chain = buffers.chain;
  if (chain.count == 0) {  // one step from zero
    copy_numbers(in.input, shape.state(), output, executor);
    return true;
  }
  chain.compute(in.w_state, shape.channels, executor);
  if (!in_range(chain.powers, chain.count * slices.matrix(), executor)) return false;
  const SliceOperator<T> op(shape);
  T* const moved = slices.is_padded() ? buffers.moved : output;
  const bool keeps = call.wanted.w_state;
  const std::int64_t num_kept = num_moves(chain.recipe);
  std::int64_t move = 0;
  // S before move i, where it stays if it is kept.
  const auto slot = [&](std::int64_t i) {
    return keeps && i < num_kept ? saved + i * slices.size() : buffers.s;
  };
  T* const c = num_kept == 0 ? buffers.s : keeps ? saved : buffers.c;
  to_slices(slices, op, in.input, c, executor);
  const T* s = c;
  const auto advance = [&](std::int64_t hops, const T* power, bool doubles) {
    power_into(slices, op.a, s, hops, moved, buffers.hops, executor);
    if (!in_range(moved, slices.size(), executor)) return false;
    T* const next = slot(++move);
    times_w(slices, moved, power, Transpose::kNo, doubles ? s : c, next, buffers.packed, executor);
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
    T* const carried = keeps ? saved + num_kept * slices.size() : buffers.c;
    to_slices(slices, op, in.initial, moved, executor);
    power_into(slices, op.a, moved, shape.num_steps, carried, buffers.hops, executor);
    if (!in_range(carried, slices.size(), executor)) return false;
    times_w(slices, carried, chain.power(chain.count - 1), Transpose::kNo, s, buffers.s,
            buffers.packed, executor);
    s = buffers.s;
  }
  from_slices(slices, op, s, output, executor);
  return true;
}

template <typename T>
struct BackwardBuffers {
  Slices slices;
  PowerChain<T> chain;
  T* packed;
  T* hops;
  T* g;
  T* h;        // not if the gradient of the input can hold it until the end
  T* grad_c;   // of C through the increments
  T* carried;  // on the way to X(0)
  T* sums;     // parts of a Gram product
  T* grads;    // of the powers
  T* grad_w;   // padded
  T* spare;

  BackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : slices(Slices::make<T>(call.shape)),
        chain(call.shape.num_steps, call.has_initial, slices.width(), workers, workspace) {
    const bool wants_w = call.wanted.w_state;
    const auto size = slices.size();
    packed = workspace.take<T>(matmul_scratch(slices.width(), slices.width()));
    hops = workspace.take<T>(workers * slices.slice());
    g = workspace.take<T>(size);
    h = workspace.take<T>(slices.is_padded() || !call.wanted.input ? size : 0);
    const bool increments =
        num_moves(chain.recipe) > static_cast<std::int64_t>(chain.recipe.size());
    grad_c = workspace.take<T>(increments ? size : 0);
    carried = workspace.take<T>(call.has_initial ? size : 0);
    const std::int64_t parts = slices.batch * RowParts(slices.nodes).count;
    sums = workspace.take<T>(wants_w ? parts * slices.matrix() : 0);
    grads = workspace.take<T>(wants_w ? chain.count * slices.matrix() : 0);
    grad_w = workspace.take<T>(wants_w ? slices.matrix() : 0);
    spare = workspace.take<T>(wants_w ? slices.matrix() : 0);
  }
};

template <typename T>
void run_backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                  const RecurrenceGradients<T>& out, Workspace& workspace,
                  const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const BackwardBuffers<T> buffers(call, executor.workers(), workspace);
  const Slices& slices = buffers.slices;
  const PowerChain<T>& chain = buffers.chain;
  const bool wants_w = out.w_state != nullptr;
  const std::int64_t matrix = slices.matrix();
  chain.compute(kept.inputs.w_state, shape.channels, executor);
  if (wants_w) std::fill(buffers.grad_w, buffers.grad_w + matrix, T{0});
  const SliceOperator<T> op(shape);
  T* const g = buffers.g;
  T* const h = slices.is_padded() || out.input == nullptr ? buffers.h : out.input;
  to_slices(slices, op, grad, g, executor);
  std::int64_t move = num_moves(chain.recipe);

  if (call.has_initial) {
    const std::int64_t last = chain.count - 1;
    if (wants_w) {
      gram(slices, kept.saved + move * slices.size(), g, buffers.grads + last * matrix,
           buffers.sums, executor);
    }
    if (out.initial != nullptr) {
      times_w<T>(slices, g, chain.power(last), Transpose::kYes, nullptr, h, buffers.packed,
                 executor);
      power_into(slices, op.a_transposed, h, shape.num_steps, buffers.carried, buffers.hops,
                 executor);
      from_slices(slices, op, buffers.carried, out.initial, executor);
    }
  }

  bool has_grad_c = false;
  const auto retreat = [&](std::int64_t hops, const T* power, bool doubles, T* grad_power) {
    --move;
    power_into(slices, op.a_transposed, g, hops, h, buffers.hops, executor);
    if (wants_w) {
      gram(slices, kept.saved + move * slices.size(), h, grad_power, buffers.sums, executor);
      if (!doubles) add_numbers(grad_power, matrix, buffers.grad_w, executor);
    }
    if (!doubles) {
      if (has_grad_c) {
        add_numbers(g, slices.size(), buffers.grad_c, executor);
      } else {
        copy_numbers(g, slices.size(), buffers.grad_c, executor);
      }
      has_grad_c = true;
    }
    times_w(slices, h, power, Transpose::kYes, doubles ? g : nullptr, g, buffers.packed, executor);
  };
  for (std::size_t j = chain.recipe.size(); j-- > 0;) {
    const auto index = static_cast<std::int64_t>(j);
    if (chain.recipe[j].then_increment) retreat(1, chain.powers, false, buffers.spare);
    retreat(chain.recipe[j].hops, chain.power(index), true, buffers.grads + index * matrix);
  }
  if (out.input != nullptr) {  // S(1) = C
    if (has_grad_c) add_numbers(g, slices.size(), buffers.grad_c, executor);
    from_slices(slices, op, has_grad_c ? buffers.grad_c : g, out.input, executor);
  }
  if (!wants_w) return;
  chain.descend(buffers.grads, buffers.grad_w, buffers.spare, executor);
  for (std::int64_t i = 0; i < shape.channels; ++i) {
    const T* row = buffers.grad_w + i * slices.width();
    std::copy(row, row + shape.channels, out.w_state + i * shape.channels);
  }
}

}  // namespace

template <typename T>
PlanFunctions<T> doubling_plan() {
  return {
      nothing_read,   saved_numbers<T>, bytes_of<ForwardBuffers<T>>, bytes_of<BackwardBuffers<T>>,
      run_forward<T>, run_backward<T>};
}
template PlanFunctions<float> doubling_plan();
template PlanFunctions<double> doubling_plan();

}  // namespace mpssm::engine
