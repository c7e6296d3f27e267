// SPDX-License-Identifier: MIT
// From a name or a path to a dataset.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/registry.h"

namespace mpssm::data {

/// Which way messages run along the edges of own tables, and of series.
enum class EdgeUse { kBoth, kForward, kBackward };
inline constexpr base::EnumRow<EdgeUse> kEdgeUses[] = {
    {EdgeUse::kBoth, "both"},
    {EdgeUse::kForward, "forward"},
    {EdgeUse::kBackward, "backward"},
};
constexpr base::EnumTable<EdgeUse> table_of(EdgeUse) { return kEdgeUses; }

struct LoadOptions {
  std::filesystem::path data_dir = {};  ///< looked into before $MPSSM_DATA and the others
  std::optional<Task> task = {};  ///< own files: what to learn; by default guessed from labels
  /// Own tables: name of the label column; "" = "label". Own packed graphs: name of the array.
  std::string target = {};
  /// Own tables: not said, edges count both ways, unless a pair has two weights. Series: not said,
  /// both ways, with one weight made of the two.
  std::optional<EdgeUse> directed = {};
  std::string id = {};                   ///< own tables: name of the column of ids; "" = "id"
  std::string ignore = {};               ///< own tables: columns to leave out, "a,b"
  std::string categorical = {};          ///< own tables: columns to read as categories
  std::string numeric = {};              ///< own tables: columns to read as numbers
  std::string text = {};                 ///< own tables: columns to read as free text
  std::optional<bool> standardise = {};  ///< own tables and series; default: yes
  std::optional<std::int64_t> lags = {};
  std::optional<std::int64_t> horizon = {};
  /// Series: share of the training windows. Of a three-way split, val then gets one third of the
  /// rest and test two.
  std::optional<double> train_ratio = {};
  std::optional<double> period = {};  ///< series: steps after which it repeats
  std::uint64_t split_seed = 0;       ///< of the random 50/25/25 split of data that has none
  std::uint64_t make_seed = 0;        ///< of built-in data
  /// Link prediction: what a run has held out of this graph; else it is drawn.
  const Links* links = nullptr;
  /// Given: read a new table the way a trained model's was read. Labels and split may then be
  /// absent (NaN and kNone).
  const std::vector<Column>* columns = nullptr;
  const std::vector<std::string>* class_names = nullptr;
  /// With `columns`: the codes that each column of the training graphs could hold.
  const std::vector<std::int32_t>* vocabulary = nullptr;
  /// With `class_names`: a label of another class is no error but no label.
  bool skip_new_classes = false;
  std::int64_t num_targets = 1;  ///< with `columns`: numbers per graph or node, if not in the file
};

/// A registered name ("minesweeper"), a built-in one with its size ("board:100x100",
/// "properties:diameter"), or the path of a file or folder. Throws base::Error: unknown name
/// (with the nearest known one), file absent (which, from where, where to put it), sha256 that
/// differs, malformed.
Dataset load(const std::string& name_or_path, const LoadOptions& options = {});

/// Folders that are looked into for registered files, in order: options.data_dir, $MPSSM_DATA,
/// ./data, $XDG_CACHE_HOME/mpssm (or ~/.cache/mpssm).
std::vector<std::filesystem::path> data_folders(const LoadOptions& options = {});

/// The files that load() reads for this name or path, in the same order, each with its sha256;
/// none for built-in data. Those that are absent are left out: load() says so.
std::vector<InputFile> input_files(const std::string& name_or_path,
                                   const LoadOptions& options = {});

/// Whether a path holds a series, told by names and arrays alone; false if it cannot be read.
bool holds_series(const std::string& path);

/// A registered or built-in name, not a path.
bool is_name(const std::string& name_or_path);

/// Whether the files of a registered dataset are in one of these folders; a fallback does not
/// count.
bool is_present(const DatasetInfo& info, const LoadOptions& options = {});

/// Writes a dataset as one .npz that load() reads back to the same (node data and packed graphs;
/// features as they are, without the columns they came from). Throws base::Error for series.
void save_npz(const std::filesystem::path& path, const Dataset& dataset);

}  // namespace mpssm::data
