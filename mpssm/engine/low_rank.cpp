// SPDX-License-Identifier: MIT
// The recurrence by an operator of low rank, A = P Q'. What the virtual nodes hear, V(t) = Q' X(t),
// obeys the same recurrence with M = Q' P,
//
//   V(t+1) = M V(t) W + Q' C(t+1),   X(t+1) = C(t+1) + P V(t) W,
//
// so that N nodes are read once and written once, whatever the number of steps, and the steps are
// those of a few nodes, by a plan for sparse operators.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "mpssm/engine/linear.h"
#include "mpssm/engine/plans.h"
#include "mpssm/engine/spmm.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/spmm.h"

namespace mpssm::engine {
namespace {

/// The recurrence among the virtual nodes. One step of it is one hop: with r hops per step, C(t)
/// comes in at step r t, X(0) at step 0, and X(t) takes what V was at step r t - 1. It has then r T
/// steps. Constant input with nothing but its last output is constant input here, too, T - 1 steps.
struct AmongVirtual {
  const graph::LowRankOperator& a;
  RecurrenceCall call;
  std::int64_t hops = 1;  ///< per step
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  bool constant = false;

  explicit AmongVirtual(const RecurrenceCall& whole)
      : a(whole.shape.gso.low_rank(0)), call(whole), hops(whole.shape.hops_per_step) {
    const std::int64_t steps = whole.shape.num_steps;
    inputs = whole.shape.temporal ? steps : 1;
    outputs = whole.shape.all_outputs() ? steps : 1;
    constant =
        !whole.shape.temporal && outputs == 1 && !whole.has_initial && hops == 1 && steps > 1;
    call.plan = whole.shape.diagonal ? Plan::kDiagonal : Plan::kStepwise;
    call.has_initial = false;
    call.shape.gso = a.among_virtual();
    call.shape.ordering = Ordering::kNever;
    call.shape.precision = Precision::kFloat32;
    call.shape.hops_per_step = 1;
    call.shape.temporal = !constant;
    call.shape.num_steps = constant ? steps - 1 : steps * hops;
    call.shape.outputs = outputs > 1 ? Outputs::kAll : Outputs::kLast;
    // What comes in depends on all but W.
    call.wanted = {.input = whole.wanted.input || whole.wanted.initial || whole.wanted.gso_values,
                   .w_state = whole.wanted.w_state,
                   .gso_values = whole.wanted.gso_values};
  }

  std::int64_t batch() const { return call.shape.batch; }
  std::int64_t width() const { return call.shape.channels; }
  std::int64_t block() const { return call.shape.block(); }  ///< numbers in V(t) of one copy
  std::int64_t node_block() const { return a.num_nodes() * width(); }
  std::int64_t in_size() const { return batch() * (constant ? 1 : call.shape.num_steps) * block(); }
  std::int64_t out_size() const {
    return batch() * (outputs > 1 ? call.shape.num_steps : 1) * block();
  }
  std::int64_t taken_size() const { return batch() * outputs * block(); }
  std::int64_t w_size() const { return call.shape.diagonal ? width() : width() * width(); }
  /// Where output t of copy b has its V, in what the recurrence gives.
  std::int64_t taken_at(std::int64_t b, std::int64_t t) const {
    return (outputs == 1 ? b : b * call.shape.num_steps + (t + 1) * hops - 1) * block();
  }
  /// Where input t of copy b comes in; X(0) has t = -1.
  std::int64_t enters_at(std::int64_t b, std::int64_t t) const {
    return (b * call.shape.num_steps + (t + 1) * hops) * block();
  }
  /// Steps whose C(t) reaches an output by way of the virtual nodes: all but the last.
  std::int64_t entering() const { return call.shape.num_steps / hops - 1; }
};

/// What forward() leaves: what came in, what came out, and what the plan keeps.
template <typename T>
struct Kept {
  T* in = nullptr;
  T* out = nullptr;
  T* inner = nullptr;
  std::int64_t size = 0;

  Kept(const AmongVirtual& among, T* saved) {
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t begin_out = round_up(among.in_size(), kLine);
    const std::int64_t begin_inner = begin_out + round_up(among.out_size(), kLine);
    size = begin_inner + saved_size<std::remove_const_t<T>>(among.call);
    if (saved == nullptr) return;
    in = saved;
    out = saved + begin_out;
    inner = saved + begin_inner;
  }
};

/// y[copy] = F' x[copy], the pieces of each sum added in order.
template <typename T>
void gather(const AmongVirtual& among, const kernels::CsrView<T>& pieces, std::int64_t copies,
            const T* x, T* parts, T* y, const Executor& executor) {
  const auto ptr = among.a.piece_ptr();
  const std::int64_t width = among.width();
  const std::int64_t virtual_nodes = std::ssize(ptr) - 1;
  spmm(SpmmBatch<T>{.a = pieces,
                    .batch = copies,
                    .width = width,
                    .x = x,
                    .x_stride = among.node_block(),
                    .y = parts,
                    .y_stride = pieces.num_rows * width},
       executor);
  run_tasks(executor, copies, copies * pieces.num_rows * width, [&](std::int64_t copy) {
    for (std::int64_t v = 0; v < virtual_nodes; ++v) {
      T* const sum = y + (copy * virtual_nodes + v) * width;
      std::fill_n(sum, width, T{0});
      for (std::int64_t piece = ptr[v]; piece < ptr[v + 1]; ++piece) {
        const T* const part = parts + (copy * pieces.num_rows + piece) * width;
        for (std::int64_t j = 0; j < width; ++j) sum[j] += part[j];
      }
    }
  });
}

template <typename T>
std::int64_t gather_scratch(const AmongVirtual& among, std::int64_t copies) {
  return copies * among.a.piece_ptr().back() * among.width();
}

/// y = x W, or x W' (its conjugate if W is diagonal), for `rows` rows.
template <typename T>
void times_w(const AmongVirtual& among, Transpose transpose, const T* x, std::int64_t rows,
             const T* w, T* scratch, T* y, const Executor& executor) {
  const std::int64_t width = among.width();
  if (!among.call.shape.diagonal) {
    matmul(MatmulBatch<T>{.rows = rows, .inner = width, .columns = width, .x = x, .y = y},
           transpose, w, scratch, executor);
    return;
  }
  const T sign = transpose == Transpose::kYes ? T{-1} : T{1};
  run_tasks(executor, rows, 4 * rows * width, [&](std::int64_t row) {
    for (std::int64_t j = row * width; j < (row + 1) * width; j += 2) {
      const T re = w[j - row * width];
      const T im = sign * w[j - row * width + 1];
      const T x_re = x[j];
      y[j] = x_re * re - x[j + 1] * im;
      y[j + 1] = x_re * im + x[j + 1] * re;
    }
  });
}

/// out += the gradient of W in y = x W, g being that of y.
template <typename T>
void add_w_grad(const AmongVirtual& among, const T* x, const T* g, std::int64_t rows, T* sum,
                T* scratch, T* out, const Executor& executor) {
  const std::int64_t width = among.width();
  if (!among.call.shape.diagonal) {
    transposed_matmul(x, g, rows, width, width, sum, scratch, executor);
  } else {
    std::fill_n(sum, width, T{0});
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < width; j += 2) {
        const T* const xj = x + row * width + j;
        const T* const gj = g + row * width + j;
        sum[j] += xj[0] * gj[0] + xj[1] * gj[1];
        sum[j + 1] += xj[0] * gj[1] - xj[1] * gj[0];
      }
    }
  }
  add_numbers(sum, among.w_size(), out, executor);
}

template <typename T>
struct LowRankBuffers {
  AmongVirtual among;
  T* heard = nullptr;   ///< Q' C of every input, or its gradient
  T* first = nullptr;   ///< Q' X(0), or its gradient
  T* taken = nullptr;   ///< V of every output
  T* told = nullptr;    ///< V W of every output, or its gradient
  T* parts = nullptr;   ///< of sums over nodes
  T* packed = nullptr;  ///< W
  std::byte* inner = nullptr;
  std::int64_t inner_bytes = 0;

  LowRankBuffers(const RecurrenceCall& call, Workspace& workspace) : among(call) {
    const std::int64_t copies = among.batch() * std::max(among.inputs, among.outputs);
    heard = workspace.take<T>(among.batch() * among.inputs * among.block());
    first = workspace.take<T>(call.has_initial ? among.batch() * among.block() : 0);
    taken = workspace.take<T>(among.taken_size());
    told = workspace.take<T>(among.taken_size());
    parts = workspace.take<T>(gather_scratch<T>(among, copies));
    packed =
        workspace.take<T>(call.shape.diagonal ? 0 : matmul_scratch(among.width(), among.width()));
  }
  void take_inner(Workspace& workspace, std::int64_t bytes) {
    inner_bytes = bytes;
    inner = workspace.take<std::byte>(bytes);
  }
  Workspace workspace() const { return {inner, inner_bytes}; }
};

template <typename T>
struct LowRankForwardBuffers : LowRankBuffers<T> {
  T* not_saved = nullptr;  ///< in the place of what is, if nothing is

  LowRankForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : LowRankBuffers<T>(call, workspace) {
    not_saved = workspace.take<T>(call.wanted.any() ? 0 : Kept<T>(this->among, nullptr).size);
    this->take_inner(workspace, forward_bytes<T>(this->among.call, workers));
  }
};

template <typename T>
struct LowRankBackwardBuffers : LowRankBuffers<T> {
  T* grad_out = nullptr;  ///< of what the recurrence among the virtual nodes gives
  T* grad_in = nullptr;   ///< and takes
  T* grad_among = nullptr;
  T* w_sum = nullptr;
  T* w_scratch = nullptr;

  LowRankBackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : LowRankBuffers<T>(call, workspace) {
    const AmongVirtual& sizes = this->among;
    grad_out = workspace.take<T>(sizes.out_size());
    grad_in = workspace.take<T>(sizes.in_size());
    grad_among =
        workspace.take<T>(call.wanted.gso_values ? sizes.a.among_virtual().num_nonzeros() : 0);
    w_sum = workspace.take<T>(sizes.w_size());
    const std::int64_t rows = sizes.taken_size() / sizes.width();
    w_scratch =
        workspace.take<T>(call.shape.diagonal ? 0
                                              : transposed_matmul_scratch(rows, sizes.width(),
                                                                          sizes.width(), workers));
    this->take_inner(workspace, backward_bytes<T>(sizes.call, workers));
  }
};

/// What comes in among the virtual nodes, from what they hear.
template <typename T>
void enter(const LowRankBuffers<T>& buffers, bool has_initial, T* in) {
  const AmongVirtual& among = buffers.among;
  if (among.constant) {
    std::copy_n(buffers.heard, among.in_size(), in);
    return;
  }
  std::fill_n(in, among.in_size(), T{0});
  for (std::int64_t b = 0; b < among.batch(); ++b) {
    if (has_initial) {
      std::copy_n(buffers.first + b * among.block(), among.block(), in + among.enters_at(b, -1));
    }
    for (std::int64_t t = 0; t < among.entering(); ++t) {
      const std::int64_t from = among.inputs == 1 ? b : b * among.inputs + t;
      std::copy_n(buffers.heard + from * among.block(), among.block(), in + among.enters_at(b, t));
    }
  }
}

/// The gradient of what they hear, from that of what comes in.
template <typename T>
void leave(const LowRankBackwardBuffers<T>& buffers, bool has_initial) {
  const AmongVirtual& among = buffers.among;
  const std::int64_t block = among.block();
  if (among.constant) {
    std::copy_n(buffers.grad_in, among.in_size(), buffers.heard);
    return;
  }
  std::fill_n(buffers.heard, among.batch() * among.inputs * block, T{0});
  for (std::int64_t b = 0; b < among.batch(); ++b) {
    if (has_initial) {
      std::copy_n(buffers.grad_in + among.enters_at(b, -1), block, buffers.first + b * block);
    }
    for (std::int64_t t = 0; t < among.entering(); ++t) {
      const T* const from = buffers.grad_in + among.enters_at(b, t);
      T* const to = buffers.heard + (among.inputs == 1 ? b : b * among.inputs + t) * block;
      for (std::int64_t i = 0; i < block; ++i) to[i] += from[i];
    }
  }
}

/// V of every output, one behind the other.
template <typename T>
void take(const AmongVirtual& among, const T* out, T* taken) {
  for (std::int64_t b = 0; b < among.batch(); ++b) {
    for (std::int64_t t = 0; t < among.outputs; ++t) {
      std::copy_n(out + among.taken_at(b, t), among.block(),
                  taken + (b * among.outputs + t) * among.block());
    }
  }
}

/// The gradient of C that does not go by way of the virtual nodes: X(t) = C(t) + ...
template <typename T>
void copy_straight(const AmongVirtual& among, const T* grad, T* grad_input,
                   const Executor& executor) {
  const std::int64_t block = among.node_block();
  for (std::int64_t b = 0; b < among.batch(); ++b) {
    T* const to = grad_input + b * among.inputs * block;
    if (among.inputs == 1) {
      sum_of_parts(grad + b * among.outputs * block, among.outputs, block, to, executor);
    } else {
      std::fill_n(to, (among.inputs - 1) * block, T{0});
      copy_numbers(grad + b * block, block, to + (among.inputs - 1) * block, executor);
    }
  }
}

/// factor[e] += <g(i, :), x(v, :)> over the copies, for every entry (i, v) of a factor.
template <typename T>
void add_factor_grad(const AmongVirtual& among, std::int64_t copies, const T* g,
                     std::int64_t g_stride, const T* x, T* factor, const Executor& executor) {
  constexpr std::int64_t kRows = 64;
  const std::int64_t nodes = among.a.num_nodes();
  run_tasks(executor, (nodes + kRows - 1) / kRows, copies * nodes * among.a.rank() * among.width(),
            [&](std::int64_t task) {
              for (std::int64_t copy = 0; copy < copies; ++copy) {
                kernels::spmm_value_grad(
                    kernels::SpmmValueGradArgs<T>{.a = among.a.p_view<T>(),
                                                  .g = g + copy * g_stride,
                                                  .g_stride = among.width(),
                                                  .x = x + copy * among.block(),
                                                  .x_stride = among.width(),
                                                  .grad = factor,
                                                  .width = among.width()},
                    task * kRows, std::min(nodes, (task + 1) * kRows));
              }
            });
}

/// M = Q' P: dP += Q dM, dQ += P dM'.
template <typename T>
void add_grad_through_m(const graph::LowRankOperator& a, const T* grad_m, T* grad_p, T* grad_q) {
  const std::int64_t rank = a.rank();
  const T* const p = a.p_view<T>().value;
  const T* const q = a.q_view<T>().value;
  for (std::int64_t g = 0; g < a.num_graphs(); ++g) {
    const T* const block = grad_m + g * rank * rank;
    for (std::int64_t i = a.graph_ptr()[g]; i < a.graph_ptr()[g + 1]; ++i) {
      for (std::int64_t k = 0; k < rank; ++k) {
        for (std::int64_t l = 0; l < rank; ++l) {
          grad_p[i * rank + l] += q[i * rank + k] * block[k * rank + l];
          grad_q[i * rank + k] += p[i * rank + l] * block[k * rank + l];
        }
      }
    }
  }
}

template <typename T>
std::int64_t low_rank_saved(const RecurrenceCall& call) {
  return call.wanted.any() ? Kept<T>(AmongVirtual(call), nullptr).size : 0;
}

RecurrenceReads low_rank_reads(const RecurrenceCall& call) {
  return {.input = call.wanted.gso_values, .initial = call.wanted.gso_values};
}

template <typename T>
bool low_rank_forward(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output,
                      T* saved, Workspace& workspace, const Executor& executor) {
  const LowRankForwardBuffers<T> buffers(call, executor.workers(), workspace);
  const AmongVirtual& among = buffers.among;
  const Kept<T> kept(among, call.wanted.any() ? saved : buffers.not_saved);
  const std::int64_t nodes = among.node_block();
  gather(among, among.a.q_pieces<T>(), among.batch() * among.inputs, in.input, buffers.parts,
         buffers.heard, executor);
  if (call.has_initial) {
    gather(among, among.a.q_pieces<T>(), among.batch(), in.initial, buffers.parts, buffers.first,
           executor);
  }
  enter(buffers, call.has_initial, kept.in);
  if (!forward<T>(among.call, {kept.in, in.w_state, nullptr}, kept.out, kept.inner,
                  buffers.workspace(), executor)) {
    return false;
  }
  take(among, kept.out, buffers.taken);
  times_w(among, Transpose::kNo, buffers.taken, among.taken_size() / among.width(), in.w_state,
          buffers.packed, buffers.told, executor);
  // X = C + P (V W); of constant input all outputs add the same C.
  const bool shares_input = among.inputs < among.outputs;
  const std::int64_t rounds = shares_input ? among.batch() : 1;
  const std::int64_t copies = among.batch() * among.outputs / rounds;
  const std::int64_t skipped = among.outputs < among.inputs ? (among.inputs - 1) * nodes : 0;
  for (std::int64_t b = 0; b < rounds; ++b) {
    spmm(SpmmBatch<T>{.a = among.a.p_view<T>(),
                      .batch = copies,
                      .width = among.width(),
                      .x = buffers.told + b * copies * among.block(),
                      .x_stride = among.block(),
                      .add = in.input + b * nodes + skipped,
                      .add_stride = shares_input ? 0 : nodes + skipped,
                      .y = output + b * copies * nodes,
                      .y_stride = nodes},
         executor);
  }
  return true;
}

template <typename T>
void low_rank_backward(const RecurrenceCall& call, const RecurrenceKept<T>& given, const T* grad,
                       const RecurrenceGradients<T>& out, Workspace& workspace,
                       const Executor& executor) {
  const LowRankBackwardBuffers<T> buffers(call, executor.workers(), workspace);
  const AmongVirtual& among = buffers.among;
  const Kept<const T> kept(among, given.saved);
  const T* const w = given.inputs.w_state;
  const std::int64_t rows = among.taken_size() / among.width();
  const std::int64_t nodes = among.node_block();
  const std::int64_t rank_numbers = among.a.num_factors() / 2;
  take(among, kept.out, buffers.taken);
  if (out.gso_values != nullptr) {
    std::fill_n(out.gso_values, among.a.num_factors(), T{0});
    times_w(among, Transpose::kNo, buffers.taken, rows, w, buffers.packed, buffers.told, executor);
    add_factor_grad(among, among.batch() * among.outputs, grad, nodes, buffers.told, out.gso_values,
                    executor);
  }
  gather(among, among.a.p_pieces<T>(), among.batch() * among.outputs, grad, buffers.parts,
         buffers.told, executor);

  // V, through V W.
  T* const of_taken = buffers.grad_in;  // not yet in use, and no smaller
  times_w(among, Transpose::kYes, buffers.told, rows, w, buffers.packed, of_taken, executor);
  std::fill_n(buffers.grad_out, among.out_size(), T{0});
  for (std::int64_t b = 0; b < among.batch(); ++b) {
    for (std::int64_t t = 0; t < among.outputs; ++t) {
      std::copy_n(of_taken + (b * among.outputs + t) * among.block(), among.block(),
                  buffers.grad_out + among.taken_at(b, t));
    }
  }
  const bool needs_in = among.call.wanted.input;
  backward<T>(among.call, {{kept.in, w, nullptr}, kept.out, kept.inner}, buffers.grad_out,
              {.input = needs_in ? buffers.grad_in : nullptr,
               .w_state = out.w_state,
               .gso_values = out.gso_values == nullptr ? nullptr : buffers.grad_among},
              buffers.workspace(), executor);
  if (out.w_state != nullptr) {
    add_w_grad(among, buffers.taken, buffers.told, rows, buffers.w_sum, buffers.w_scratch,
               out.w_state, executor);
  }
  if (!needs_in) return;
  leave(buffers, call.has_initial);
  if (out.input != nullptr) {
    const bool straight = among.inputs == among.outputs;
    if (!straight) copy_straight(among, grad, out.input, executor);
    spmm(SpmmBatch<T>{.a = among.a.q_view<T>(),
                      .batch = among.batch() * among.inputs,
                      .width = among.width(),
                      .x = buffers.heard,
                      .x_stride = among.block(),
                      .add = straight ? grad : out.input,
                      .add_stride = nodes,
                      .y = out.input,
                      .y_stride = nodes},
         executor);
  }
  if (out.initial != nullptr) {
    spmm(SpmmBatch<T>{.a = among.a.q_view<T>(),
                      .batch = among.batch(),
                      .width = among.width(),
                      .x = buffers.first,
                      .x_stride = among.block(),
                      .y = out.initial,
                      .y_stride = nodes},
         executor);
  }
  if (out.gso_values == nullptr) return;
  T* const grad_q = out.gso_values + rank_numbers;
  add_factor_grad(among, among.batch() * among.inputs, given.inputs.input, nodes, buffers.heard,
                  grad_q, executor);
  if (call.has_initial) {
    add_factor_grad(among, among.batch(), given.inputs.initial, nodes, buffers.first, grad_q,
                    executor);
  }
  add_grad_through_m(among.a, buffers.grad_among, out.gso_values, grad_q);
}

}  // namespace

template <typename T>
PlanFunctions<T> low_rank_plan() {
  return {low_rank_reads,
          low_rank_saved<T>,
          bytes_of<LowRankForwardBuffers<T>>,
          bytes_of<LowRankBackwardBuffers<T>>,
          low_rank_forward<T>,
          low_rank_backward<T>};
}
template PlanFunctions<float> low_rank_plan();
template PlanFunctions<double> low_rank_plan();

}  // namespace mpssm::engine
