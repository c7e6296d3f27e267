// SPDX-License-Identifier: MIT
// Operators per group of channels for the plans that take one: each group is a problem of its own,
// with a W of its own, on a copy of its channels. Its bits are those of the group alone.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "mpssm/engine/plans.h"
#include "mpssm/engine/tasks.h"

namespace mpssm::engine {
namespace {

struct ChannelGroup {
  RecurrenceCall call;
  std::int64_t begin = 0;    ///< its first channel
  std::int64_t w_begin = 0;  ///< where its W begins

  std::int64_t width() const { return call.shape.channels; }
};

std::vector<ChannelGroup> groups_of(const RecurrenceCall& call) {
  const std::vector<std::int64_t> begins = call.shape.gso.channel_begins(call.shape.channels);
  std::vector<ChannelGroup> groups;
  std::int64_t w_begin = 0;
  for (std::int64_t g = 0; g < call.shape.gso.num_groups(); ++g) {
    ChannelGroup group{.call = call, .begin = begins[g], .w_begin = w_begin};
    group.call.shape.gso = call.shape.gso.alone(g);
    group.call.shape.channels = begins[g + 1] - begins[g];
    group.call.wanted.gso_values = call.wanted.gso_values && g == call.shape.gso.factor_group();
    w_begin += call.shape.diagonal ? group.width() : group.width() * group.width();
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Numbers that the group keeps, up to where those of the next may begin.
template <typename T>
std::int64_t saved_by(const ChannelGroup& group) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  return round_up(saved_size<T>(group.call), kLine);
}

template <typename T>
std::int64_t saved_by_groups(const RecurrenceCall& call) {
  std::int64_t sum = 0;
  for (const ChannelGroup& group : groups_of(call)) sum += saved_by<T>(group);
  return sum;
}

RecurrenceReads read_by_groups(const RecurrenceCall& call) {
  RecurrenceReads all;
  for (const ChannelGroup& group : groups_of(call)) {
    const RecurrenceReads reads = backward_reads(group.call);
    all.input = all.input || reads.input;
    all.initial = all.initial || reads.initial;
    all.output = all.output || reads.output;
  }
  return all;
}

/// [B, N, C] has so many rows, [B, T, N, C] so many.
std::int64_t state_rows(const RecurrenceShape& shape) { return shape.batch * shape.num_nodes(); }
std::int64_t input_rows(const RecurrenceShape& shape) {
  return (shape.temporal ? shape.num_steps : 1) * state_rows(shape);
}
std::int64_t output_rows(const RecurrenceShape& shape) {
  return (shape.all_outputs() ? shape.num_steps : 1) * state_rows(shape);
}

/// Some numbers of each row, to rows of another length.
template <typename T>
void copy_columns(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                  std::int64_t width, std::int64_t rows, const Executor& executor) {
  constexpr std::int64_t kRows = 256;
  run_tasks(executor, (rows + kRows - 1) / kRows, 16 * rows * width, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kRows);
    for (std::int64_t row = task * kRows; row < end; ++row) {
      std::copy_n(from + row * from_stride, width, to + row * to_stride);
    }
  });
}

/// A group's part of arrays with all channels.
template <typename T>
class GroupColumns {
 public:
  GroupColumns(const ChannelGroup& group, std::int64_t channels, const Executor& executor)
      : group_(group), channels_(channels), executor_(executor) {}

  /// Into `room`, if there are any.
  const T* take(const T* all, std::int64_t rows, T* room) const {
    if (all == nullptr) return nullptr;
    copy_columns(all + group_.begin, channels_, room, group_.width(), group_.width(), rows,
                 executor_);
    return room;
  }
  void put(const T* part, std::int64_t rows, T* all) const {
    if (all == nullptr) return;
    copy_columns(part, group_.width(), all + group_.begin, channels_, group_.width(), rows,
                 executor_);
  }

 private:
  const ChannelGroup& group_;
  std::int64_t channels_;
  const Executor& executor_;
};

/// Copies of the widest group's channels, and what its plan needs.
template <typename T>
struct GroupBuffers {
  std::vector<ChannelGroup> groups;
  T* input = nullptr;
  T* initial = nullptr;
  T* output = nullptr;
  std::byte* inner = nullptr;
  std::int64_t inner_bytes = 0;

  explicit GroupBuffers(const RecurrenceCall& call) : groups(groups_of(call)) {}
  std::int64_t widest() const {
    std::int64_t most = 0;
    for (const ChannelGroup& group : groups) most = std::max(most, group.width());
    return most;
  }
  T* rows(Workspace& workspace, std::int64_t count) const {
    return workspace.take<T>(count * widest());
  }
  void take_inner(Workspace& workspace, std::int64_t bytes) {
    inner_bytes = bytes;
    inner = workspace.take<std::byte>(bytes);
  }
  Workspace workspace() const { return {inner, inner_bytes}; }
};

template <typename T>
struct GroupForwardBuffers : GroupBuffers<T> {
  GroupForwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : GroupBuffers<T>(call) {
    this->input = this->rows(workspace, input_rows(call.shape));
    this->initial = this->rows(workspace, call.has_initial ? state_rows(call.shape) : 0);
    this->output = this->rows(workspace, output_rows(call.shape));
    std::int64_t bytes = 0;
    for (const ChannelGroup& group : this->groups) {
      bytes = std::max(bytes, forward_bytes<T>(group.call, workers));
    }
    this->take_inner(workspace, bytes);
  }
};

template <typename T>
struct GroupBackwardBuffers : GroupBuffers<T> {
  T* grad;
  T* grad_input;
  T* grad_initial;

  GroupBackwardBuffers(const RecurrenceCall& call, std::int64_t workers, Workspace& workspace)
      : GroupBuffers<T>(call) {
    const RecurrenceReads reads = read_by_groups(call);
    const RecurrenceShape& shape = call.shape;
    this->input = this->rows(workspace, reads.input ? input_rows(shape) : 0);
    this->initial =
        this->rows(workspace, reads.initial && call.has_initial ? state_rows(shape) : 0);
    this->output = this->rows(workspace, reads.output ? output_rows(shape) : 0);
    grad = this->rows(workspace, output_rows(shape));
    grad_input = this->rows(workspace, call.wanted.input ? input_rows(shape) : 0);
    grad_initial = this->rows(workspace, call.wanted.initial ? state_rows(shape) : 0);
    std::int64_t bytes = 0;
    for (const ChannelGroup& group : this->groups) {
      bytes = std::max(bytes, backward_bytes<T>(group.call, workers));
    }
    this->take_inner(workspace, bytes);
  }
};

template <typename T>
bool forward_by_groups(const RecurrenceCall& call, const RecurrenceInputs<T>& in, T* output,
                       T* saved, Workspace& workspace, const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const GroupForwardBuffers<T> buffers(call, executor.workers(), workspace);
  for (const ChannelGroup& group : buffers.groups) {
    const GroupColumns<T> columns(group, shape.channels, executor);
    const RecurrenceInputs<T> part{columns.take(in.input, input_rows(shape), buffers.input),
                                   in.w_state + group.w_begin,
                                   columns.take(in.initial, state_rows(shape), buffers.initial)};
    if (!forward<T>(group.call, part, buffers.output, saved, buffers.workspace(), executor)) {
      return false;
    }
    columns.put(buffers.output, output_rows(shape), output);
    if (saved != nullptr) saved += saved_by<T>(group);
  }
  return true;
}

template <typename T>
void backward_by_groups(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
                        const RecurrenceGradients<T>& out, Workspace& workspace,
                        const Executor& executor) {
  const RecurrenceShape& shape = call.shape;
  const GroupBackwardBuffers<T> buffers(call, executor.workers(), workspace);
  const RecurrenceReads reads = read_by_groups(call);  // more may have been kept
  const T* const input = reads.input ? kept.inputs.input : nullptr;
  const T* const initial = reads.initial ? kept.inputs.initial : nullptr;
  const T* const output = reads.output ? kept.output : nullptr;
  const T* saved = kept.saved;
  for (const ChannelGroup& group : buffers.groups) {
    const GroupColumns<T> columns(group, shape.channels, executor);
    const RecurrenceKept<T> part{
        {columns.take(input, input_rows(shape), buffers.input), kept.inputs.w_state + group.w_begin,
         columns.take(initial, state_rows(shape), buffers.initial)},
        columns.take(output, output_rows(shape), buffers.output),
        saved};
    const RecurrenceGradients<T> grads{
        .input = out.input == nullptr ? nullptr : buffers.grad_input,
        .w_state = out.w_state == nullptr ? nullptr : out.w_state + group.w_begin,
        .initial = out.initial == nullptr ? nullptr : buffers.grad_initial,
        .gso_values = group.call.wanted.gso_values ? out.gso_values : nullptr};
    backward<T>(group.call, part, columns.take(grad, output_rows(shape), buffers.grad), grads,
                buffers.workspace(), executor);
    columns.put(buffers.grad_input, input_rows(shape), out.input);
    columns.put(buffers.grad_initial, state_rows(shape), out.initial);
    if (saved != nullptr) saved += saved_by<T>(group);
  }
}

}  // namespace

template <typename T>
PlanFunctions<T> plan_by_groups() {
  return {read_by_groups,
          saved_by_groups<T>,
          bytes_of<GroupForwardBuffers<T>>,
          bytes_of<GroupBackwardBuffers<T>>,
          forward_by_groups<T>,
          backward_by_groups<T>};
}
template PlanFunctions<float> plan_by_groups();
template PlanFunctions<double> plan_by_groups();

}  // namespace mpssm::engine
