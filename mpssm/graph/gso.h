// SPDX-License-Identifier: MIT
// Graph shift operator (GSO): the matrix A of the recurrence X(t+1) = A X(t) W + U(t+1) B.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mpssm/base/enum_table.h"
#include "mpssm/graph/graph.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::graph {

struct EigenCache;  // gso_data.h
struct OrderCache;
struct ReachCache;

enum class GsoKind {
  kSymNormalized,         ///< D^-1/2 (M + loops) D^-1/2, the paper's operator
  kSymNormalizedNoLoops,  ///< D^-1/2 M D^-1/2
  kRandomWalk,            ///< D^-1 (M + loops): each row averages
  kRandomWalkReversed,    ///< the same of M': each row averages over those it points to
  kAdjacency,             ///< M as given
  kTranspose,             ///< M', messages against the direction of the edges
  kLaplacian,             ///< D - M
  kIdentity,              ///< I: the model is then an ordinary MIMO state-space model
  kCustom,                ///< values handed in by the caller
  kVirtualNode,           ///< the mean over the graph, of rank 1 (graph/low_rank.h)
  kAdaptive,              ///< of low rank with factors that are learned
};
/// The kinds that have a recipe, by their names in configs and messages.
inline constexpr base::EnumRow<GsoKind> kGsoKinds[] = {
    {GsoKind::kSymNormalized, "sym_normalized"},
    {GsoKind::kSymNormalizedNoLoops, "sym_normalized_no_loops"},
    {GsoKind::kRandomWalk, "random_walk"},
    {GsoKind::kRandomWalkReversed, "random_walk_reversed"},
    {GsoKind::kAdjacency, "adjacency"},
    {GsoKind::kTranspose, "transpose"},
    {GsoKind::kLaplacian, "laplacian"},
    {GsoKind::kIdentity, "identity"},
};
constexpr base::EnumTable<GsoKind> table_of(GsoKind) { return kGsoKinds; }
/// The kinds of low rank, which stand beside one of those as a group of channels.
inline constexpr base::EnumRow<GsoKind> kLowRankKinds[] = {
    {GsoKind::kVirtualNode, "virtual_node"},
    {GsoKind::kAdaptive, "adaptive"},
};
constexpr base::EnumTable<GsoKind> low_rank_kinds() { return kLowRankKinds; }
constexpr bool is_low_rank(GsoKind kind) { return kind > GsoKind::kCustom; }
constexpr std::string_view to_string(GsoKind kind) {
  if (kind == GsoKind::kCustom) return "custom";
  return is_low_rank(kind) ? low_rank_kinds().name(kind) : table_of(kind).name(kind);
}
/// Throws std::invalid_argument listing the names.
inline GsoKind gso_kind_from_name(std::string_view name) {
  return table_of(GsoKind{}).from_name("gso_kind_from_name", name);
}

/// What happens to the diagonal in the kinds that add self-loops.
enum class SelfLoops {
  kAddMissing,  ///< weight 1 where a node has none; existing loops keep their weight
  kAddAll,      ///< add 1 to every diagonal entry
  kKeep,        ///< leave the diagonal alone
};

struct GsoOptions {
  GsoKind kind = GsoKind::kSymNormalized;
  SelfLoops self_loops = SelfLoops::kAddMissing;
};

/// The arrays of an operator, as spans. Of the transpose only what differs: no pattern if that is
/// symmetric, no values if they are as well. Values of a precision nobody asks for may be missing.
struct GsoArrays {
  std::span<const std::int64_t> row_ptr = {};
  std::span<const std::int32_t> col = {};
  std::span<const double> value = {};
  std::span<const float> value_float = {};
  std::span<const std::int64_t> transposed_row_ptr = {};
  std::span<const std::int32_t> transposed_col = {};
  std::span<const double> transposed_value = {};
  std::span<const float> transposed_value_float = {};
  std::span<const std::int64_t> graph_ptr = {};
  bool has_symmetric_pattern = true;
  bool is_symmetric = true;
};

enum class ValueCheck { kFinite, kNone };

/// Sparse square operator with its transpose, immutable and cheap to copy. Values are kept in
/// double and float; the transpose shares memory with the operator when it is symmetric.
class Gso {
 public:
  /// The operator on zero nodes.
  Gso();

  /// From compressed rows; `graph_ptr` as in Graph (empty: one graph). Columns must be sorted in
  /// each row and without repeats, and stay inside the row's graph; values must be finite. Throws
  /// std::invalid_argument otherwise.
  static Gso from_csr(std::vector<std::int64_t> row_ptr, std::vector<std::int32_t> col,
                      std::vector<double> values, std::vector<std::int64_t> graph_ptr = {},
                      GsoKind kind = GsoKind::kCustom);

  /// An operator on memory that the caller keeps as long as any copy lives. Costs no more than an
  /// allocation: nothing is copied and nothing is checked, so the arrays must be an operator's own.
  static Gso borrow(const GsoArrays& arrays);

  /// The same pattern, shared, with other values, in the order of col(); its kind is kCustom.
  /// Throws std::invalid_argument unless there is one finite value per column; learned ones may
  /// leave the range, and so will what is computed with them.
  Gso with_values(std::span<const double> values, ValueCheck check = ValueCheck::kFinite) const;

  GsoKind kind() const;
  const GsoArrays& arrays() const;  ///< all that is kept
  std::int64_t num_nodes() const;
  std::int64_t num_nonzeros() const;
  bool is_symmetric() const;  ///< exactly, entry by entry

  std::span<const std::int64_t> row_ptr() const;
  std::span<const std::int32_t> col() const;
  template <typename T>
  std::span<const T> values() const;  ///< T = float or double
  std::span<const std::int64_t> graph_ptr() const;
  std::int64_t num_graphs() const;
  /// For each entry of the transpose, in its order, which of the entries of A it is. Kept with the
  /// pattern.
  std::span<const std::int64_t> transposed_entries() const;

  template <typename T>
  kernels::CsrView<T> view() const;  ///< A
  template <typename T>
  kernels::CsrView<T> transpose_view() const;  ///< A'

 private:
  struct Data;
  explicit Gso(std::shared_ptr<const Data> data);
  friend EigenCache& eigen_cache(const Gso& gso);
  friend OrderCache& order_cache(const Gso& gso);
  friend ReachCache& reach_cache(const Gso& gso);
  std::shared_ptr<const Data> data_;
};

/// Builds the operator of `graph`. Degrees are row sums of |weight| after loops are added; a node
/// of degree zero gets a zero row. Throws std::invalid_argument for kCustom (use Gso::from_csr).
Gso make_gso(const Graph& graph, const GsoOptions& options = {});

/// The same operator with an entry at every (i, i), zero where there was none; itself if there is
/// one everywhere.
Gso with_whole_diagonal(const Gso& gso);

/// The operator of some graphs of a batch, in the order given (a graph may come twice). Throws
/// std::out_of_range if the batch has no such graph.
Gso select_graphs(const Gso& batch, std::span<const std::int64_t> graphs);

}  // namespace mpssm::graph
