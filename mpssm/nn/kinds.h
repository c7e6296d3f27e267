// SPDX-License-Identifier: MIT
// The choices that a model's settings have, without torch: whoever only names them need not read
// it.
#pragma once

#include <string_view>

#include "mpssm/base/enum_table.h"

namespace mpssm::nn {

/// W of the recurrence.
enum class StateKind {
  kDense,     ///< W real [C, C], the paper's model
  kDiagonal,  ///< complex sigma, free: |sigma| may pass 1
  kStable,    ///< complex sigma = exp(-exp(nu) + i theta): |sigma| < 1 whatever is learned
};
inline constexpr base::EnumRow<StateKind> kStateKinds[] = {
    {StateKind::kDense, "dense"},
    {StateKind::kDiagonal, "diagonal"},
    {StateKind::kStable, "stable"},
};
constexpr base::EnumTable<StateKind> table_of(StateKind) { return kStateKinds; }
constexpr std::string_view to_string(StateKind kind) { return table_of(kind).name(kind); }
/// Throws std::invalid_argument listing the names.
inline StateKind state_kind_from_name(std::string_view name) {
  return table_of(StateKind{}).from_name("state_kind_from_name", name);
}

/// Where the entries of a block's operator come from (nn/entries.h).
enum class EntriesKind {
  kFixed,      ///< the operator's own
  kFree,       ///< its own and a learned change of each; binds the model to one graph
  kAttention,  ///< softmax over neighbours of scores of the block's input, as in GAT
  kGin,        ///< A + (1 + eps) I with a learned eps
};
inline constexpr base::EnumRow<EntriesKind> kEntriesKinds[] = {
    {EntriesKind::kFixed, "fixed"},
    {EntriesKind::kFree, "free"},
    {EntriesKind::kAttention, "attention"},
    {EntriesKind::kGin, "gin"},
};
constexpr base::EnumTable<EntriesKind> table_of(EntriesKind) { return kEntriesKinds; }
constexpr std::string_view to_string(EntriesKind kind) { return table_of(kind).name(kind); }

/// Over the channels of node features.
enum class NormKind { kNone, kLayer, kBatch };
inline constexpr base::EnumRow<NormKind> kNormKinds[] = {
    {NormKind::kLayer, "layer"},
    {NormKind::kBatch, "batch"},
    {NormKind::kNone, "none"},
};
constexpr base::EnumTable<NormKind> table_of(NormKind) { return kNormKinds; }
constexpr std::string_view to_string(NormKind kind) { return table_of(kind).name(kind); }
/// Throws std::invalid_argument listing the names.
inline NormKind norm_kind_from_name(std::string_view name) {
  return table_of(NormKind{}).from_name("norm_kind_from_name", name);
}

/// Widths of the layers of a readout before the last.
enum class ReadoutShape {
  kHalving,   ///< half of the one before
  kConstant,  ///< that of what comes in
};
inline constexpr base::EnumRow<ReadoutShape> kReadoutShapes[] = {
    {ReadoutShape::kHalving, "halving"},
    {ReadoutShape::kConstant, "constant"},
};
constexpr base::EnumTable<ReadoutShape> table_of(ReadoutShape) { return kReadoutShapes; }

}  // namespace mpssm::nn
