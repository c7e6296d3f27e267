// SPDX-License-Identifier: MIT
// One graph as arrays, in the layout of the heterophilous-graphs benchmark or by PyTorch
// Geometric's names.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <span>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/links.h"
#include "mpssm/data/names.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

using Shape = std::vector<std::int64_t>;

// What the arrays are called.
struct Names {
  const char* features = "node_features";
  const char* labels = "node_labels";
};
Names names_in(const io::Npz& npz) {
  return npz.has("node_features") ? Names{} : Names{.features = "x", .labels = "y"};
}

// [N], or [N, 1] as Open Graph Benchmark stores them.
Shape label_shape(const io::Npz& npz, const std::string& labels, std::int64_t num_nodes) {
  const bool is_column = npz.header(labels).shape.size() == 2;
  return is_column ? Shape{num_nodes, 1} : Shape{num_nodes};
}

std::string place(const io::Npz& npz, const std::string& array, std::size_t position) {
  return fmt::format("{}: array '{}': [{}]", shown(npz.path()), array, position);
}

void read_values(const io::Npz& npz, const std::string& name, NodeData& data) {
  data.target = npz.floats(name, label_shape(npz, name, data.features.rows), nullptr, true);
  for (std::size_t i = 0; i < data.target.size(); ++i) {
    if (std::isinf(data.target[i])) {
      throw base::Error(place(npz, name, i) +
                        ": expected a number (or nan: no label), got an infinite one");
    }
  }
}

void read_classes(const io::Npz& npz, const std::string& name, const LoadOptions& options,
                  NodeData& data, std::vector<std::string>& notes) {
  const std::vector<std::int64_t> labels =
      npz.integers(name, label_shape(npz, name, data.features.rows));
  const bool known = options.class_names != nullptr;
  // More classes than nodes cannot all be there, which also bounds what is allocated.
  const std::int64_t limit = known ? std::ssize(*options.class_names) : data.features.rows;
  std::int64_t num_classes = known ? limit : 0;
  std::int64_t skipped = 0;
  std::int64_t example = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (known && options.skip_new_classes && labels[i] >= limit) {
      ++skipped;
      example = labels[i];
      data.target.push_back(kNoLabel);
      continue;
    }
    if (labels[i] < -1 || labels[i] >= limit) {
      throw base::Error(
          place(npz, name, i),
          fmt::format("expected a class in [0, {}) or -1 (no label), got {}", limit, labels[i]));
    }
    num_classes = std::max(num_classes, labels[i] + 1);
    data.target.push_back(labels[i] < 0 ? kNoLabel : static_cast<float>(labels[i]));
  }
  if (skipped > 0) {
    notes.push_back(note_of_new_classes(shown(npz.path()), skipped, std::to_string(example)));
  }
  if (num_classes < 2) {
    throw base::Error(
        shown(npz.path()),
        fmt::format("array '{}': expected at least two classes, got {}", name, num_classes));
  }
  if (known) {
    data.class_names = *options.class_names;
  } else if (npz.has("class_names")) {
    data.class_names = read_names(npz, "class_names", -1);
    if (std::ssize(data.class_names) < num_classes) {
      throw base::Error(shown(npz.path()),
                        fmt::format("array 'class_names': expected at least {} names, got {}",
                                    num_classes, data.class_names.size()));
    }
  } else {
    for (std::int64_t c = 0; c < num_classes; ++c) data.class_names.push_back(std::to_string(c));
  }
}

bool has_values(const io::Npz& npz, const std::string& name, std::optional<Task> task) {
  if (task) return *task == Task::kNodeRegression;
  const io::DType dtype = npz.header(name).dtype;
  return dtype == io::DType::kFloat32 || dtype == io::DType::kFloat64;
}

Task read_array_targets(const io::Npz& npz, const std::string& name, const LoadOptions& options,
                        NodeData& data, Dataset& dataset) {
  std::optional<Task> task = options.task;
  if (!task && npz.has("task")) task = task_from_name(read_names(npz, "task", 1)[0]);
  if (npz.has("target_name")) data.target_name = read_names(npz, "target_name", 1)[0];
  if (npz.has(name)) {
    const bool are_values = has_values(npz, name, task);
    if (are_values) {
      read_values(npz, name, data);
    } else {
      read_classes(npz, name, options, data, dataset.notes);
    }
    dataset.why =
        fmt::format("array '{}' holds {}{}", name, are_values ? "numbers" : "whole numbers",
                    options.task && options.columns == nullptr ? ", and data.task says so" : "");
  } else if (options.columns != nullptr) {
    data.target.assign(static_cast<std::size_t>(data.features.rows), kNoLabel);
    if (options.class_names != nullptr) data.class_names = *options.class_names;
  } else {
    throw base::Error(shown(npz.path()), fmt::format("expected an array '{}', got none", name));
  }
  return choose_node_task(shown(npz.path()), data.class_names.size(), task);
}

using MaskNames = std::array<const char*, 3>;
constexpr MaskNames kMasks = {"train_masks", "val_masks", "test_masks"};  // [S, N]
constexpr MaskNames kOneMask = {"train_mask", "val_mask", "test_mask"};   // [N]

bool has_one_of(const io::Npz& npz, const MaskNames& names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return npz.has(name); });
}

void read_masks(const io::Npz& npz, NodeData& data) {
  const bool is_one = !has_one_of(npz, kMasks);
  const auto num_nodes = static_cast<std::size_t>(data.features.rows);
  // PyTorch Geometric puts several splits beside each other: [N, S].
  const bool is_across =
      is_one && npz.has(kOneMask[0]) && npz.header(kOneMask[0]).shape.size() == 2;
  Shape shape = is_across ? Shape{data.features.rows, -1}
                : is_one  ? Shape{data.features.rows}
                          : Shape{-1, data.features.rows};
  for (std::size_t part = 0; part < kMasks.size(); ++part) {
    const std::string name = is_one ? kOneMask[part] : kMasks[part];
    // The first array says how many splits there are.
    const auto begin = [&](std::span<const std::int64_t> found) {
      shape.assign(found.begin(), found.end());
      const std::size_t num_splits = is_across ? static_cast<std::size_t>(found[1])
                                               : (is_one ? 1 : static_cast<std::size_t>(found[0]));
      if (num_splits < 1) {
        throw base::Error(shown(npz.path()),
                          fmt::format("array '{}': expected at least one split, got none", name));
      }
      constexpr std::uint64_t kBytesPerSplit = 64;
      npz.count_memory(name, kBytesPerSplit * num_splits + num_splits * num_nodes);
      data.splits.resize(num_splits, std::vector<Part>(num_nodes, Part::kNone));
    };
    const auto take = [&](std::size_t first, std::span<const std::int64_t> mask) {
      for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] == 0) continue;
        const std::size_t at_mask = first + i;
        const std::size_t split = is_across ? at_mask % data.splits.size() : at_mask / num_nodes;
        const std::size_t node = is_across ? at_mask / data.splits.size() : at_mask % num_nodes;
        Part& at = data.splits[split][node];
        if (mask[i] != 1 || at != Part::kNone) {
          throw base::Error(
              shown(npz.path()),
              fmt::format("array '{}': [{}{}]: expected {}", name,
                          is_one ? "" : fmt::format("{}, ", split), node,
                          mask[i] != 1
                              ? fmt::format("0 or 1, got {}", mask[i])
                              : fmt::format("each node in one part of a split, got it in {} too",
                                            to_string(at))));
        }
        at = static_cast<Part>(part);
      }
    };
    npz.scan_integers(name, Shape(shape), begin, take);
  }
}

void read_splits(const io::Npz& npz, const LoadOptions& options, Dataset& dataset, NodeData& data) {
  const std::string where = shown(npz.path());
  const bool predicting = options.columns != nullptr;
  // One of them alone is an incomplete split, but no matter where nothing is trained.
  const bool has_masks = predicting ? npz.has(kMasks[0]) || npz.has(kOneMask[0])
                                    : has_one_of(npz, kMasks) || has_one_of(npz, kOneMask);
  if (has_masks) {
    read_masks(npz, data);
    dataset.protocol = fmt::format("{} stored split(s)", data.splits.size());
    note_unused_seed(where, options, dataset.notes);
  } else if (predicting) {
    data.splits = {all_labelled_in_test(data.target)};
  } else {
    data.splits = {random_split(where, classes_of(data), options.split_seed)};
    dataset.protocol =
        fmt::format("random 50/25/25 split of the labelled nodes, seed {}", options.split_seed);
  }
  if (!predicting) check_splits(where, data, dataset.notes);
}

bool is_directed(const io::Npz& npz, const LoadOptions& options) {
  if (options.directed) return *options.directed != EdgeUse::kBoth;
  return npz.has("directed") && npz.integers("directed", Shape{1})[0] != 0;
}

}  // namespace

Dataset read_node_npz(const io::Npz& npz, const LoadOptions& options) {
  Dataset dataset{.source = shown(npz.path())};
  NodeData data;
  Shape shape;
  const Names names = names_in(npz);
  data.features.values = npz.floats(names.features, Shape{-1, -1}, &shape);
  data.features.rows = shape[0];
  data.features.columns = shape[1];
  if (shape[0] < 1 || shape[1] < 1) {
    throw base::Error(
        shown(npz.path()),
        fmt::format("array '{}': expected at least one node and one feature, got shape [{}, {}]",
                    names.features, shape[0], shape[1]));
  }
  graph::CompactEdgeList edges = read_edges(npz, shape[0]);
  data.edge_table = read_edge_attributes(npz, shape[0], edges.src, edges.dst);
  note_kept(shown(npz.path()), data.edge_table, dataset.notes);
  if (options.directed == EdgeUse::kBackward) {
    edges.src.swap(edges.dst);
    data.edge_table.src.swap(data.edge_table.dst);
  }
  const bool directed = is_directed(npz, options);
  const auto listed = std::ssize(edges.src);
  data.graph = make_graph(shown(npz.path()), std::move(edges),
                          directed ? graph::Direction::kDirected : graph::Direction::kUndirected);
  // There an edge that is listed one way runs one way.
  const bool is_pyg = npz.has("edge_index") && !npz.has("node_features");
  if (is_pyg && !directed && !options.directed && listed < data.graph.num_entries()) {
    dataset.notes.push_back(shown(npz.path()) +
                            ": some edges are listed one way only and taken both ways; "
                            "data.directed=forward takes them as they are listed");
  }
  if (npz.has("node_ids")) data.node_ids = read_names(npz, "node_ids", shape[0]);
  if (options.task == Task::kLinks) {
    hold_out_links(shown(npz.path()), options, dataset, data);
  } else {
    dataset.task = read_array_targets(npz, names.labels, options, data, dataset);
    dataset.metric = read_metric(npz, dataset.task);
    read_splits(npz, options, dataset, data);
  }
  dataset.content = std::move(data);
  return dataset;
}

}  // namespace mpssm::data
