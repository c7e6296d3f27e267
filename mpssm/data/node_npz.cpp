// SPDX-License-Identifier: MIT
// One graph as arrays, in the layout of the heterophilous-graphs benchmark.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <span>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/names.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

using Shape = std::vector<std::int64_t>;

std::string place(const io::Npz& npz, const std::string& array, std::size_t position) {
  return fmt::format("{}: array '{}': [{}]", shown(npz.path()), array, position);
}

void read_values(const io::Npz& npz, NodeData& data) {
  data.target = npz.floats("node_labels", Shape{data.features.rows}, nullptr, true);
  for (std::size_t i = 0; i < data.target.size(); ++i) {
    if (std::isinf(data.target[i])) {
      throw base::Error(place(npz, "node_labels", i) +
                        ": expected a number (or nan: no label), got an infinite one");
    }
  }
}

void read_classes(const io::Npz& npz, const LoadOptions& options, NodeData& data,
                  std::vector<std::string>& notes) {
  const std::vector<std::int64_t> labels = npz.integers("node_labels", Shape{data.features.rows});
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
          place(npz, "node_labels", i),
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
        fmt::format("array 'node_labels': expected at least two classes, got {}", num_classes));
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

bool has_values(const io::Npz& npz, std::optional<Task> task) {
  if (task) return *task == Task::kNodeRegression;
  const io::DType dtype = npz.header("node_labels").dtype;
  return dtype == io::DType::kFloat32 || dtype == io::DType::kFloat64;
}

Task read_targets(const io::Npz& npz, const LoadOptions& options, NodeData& data,
                  std::vector<std::string>& notes) {
  std::optional<Task> task = options.task;
  if (!task && npz.has("task")) task = task_from_name(read_names(npz, "task", 1)[0]);
  if (npz.has("target_name")) data.target_name = read_names(npz, "target_name", 1)[0];
  if (npz.has("node_labels")) {
    if (has_values(npz, task)) {
      read_values(npz, data);
    } else {
      read_classes(npz, options, data, notes);
    }
  } else if (options.columns != nullptr) {
    data.target.assign(static_cast<std::size_t>(data.features.rows), kNoLabel);
    if (options.class_names != nullptr) data.class_names = *options.class_names;
  } else {
    throw base::Error(shown(npz.path()) + ": expected an array 'node_labels', got none");
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
  Shape shape = is_one ? Shape{data.features.rows} : Shape{-1, data.features.rows};
  for (std::size_t part = 0; part < kMasks.size(); ++part) {
    const std::string name = is_one ? kOneMask[part] : kMasks[part];
    // The first array says how many splits there are.
    const auto begin = [&](std::span<const std::int64_t> found) {
      shape.assign(found.begin(), found.end());
      const std::size_t num_splits = is_one ? 1 : static_cast<std::size_t>(found[0]);
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
        const std::size_t split = (first + i) / num_nodes;
        const std::size_t node = (first + i) % num_nodes;
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
  if (options.directed) return *options.directed;
  return npz.has("directed") && npz.integers("directed", Shape{1})[0] != 0;
}

}  // namespace

Dataset read_node_npz(const io::Npz& npz, const LoadOptions& options) {
  Dataset dataset{.source = shown(npz.path())};
  NodeData data;
  Shape shape;
  data.features.values = npz.floats("node_features", Shape{-1, -1}, &shape);
  data.features.rows = shape[0];
  data.features.columns = shape[1];
  if (shape[0] < 1 || shape[1] < 1) {
    throw base::Error(
        shown(npz.path()),
        fmt::format(
            "array 'node_features': expected at least one node and one feature, got shape [{}, {}]",
            shape[0], shape[1]));
  }
  data.graph = make_graph(
      shown(npz.path()), read_edges(npz, shape[0]),
      is_directed(npz, options) ? graph::Direction::kDirected : graph::Direction::kUndirected);
  dataset.task = read_targets(npz, options, data, dataset.notes);
  dataset.metric = read_metric(npz, dataset.task);
  if (npz.has("node_ids")) data.node_ids = read_names(npz, "node_ids", shape[0]);
  read_splits(npz, options, dataset, data);
  dataset.content = std::move(data);
  return dataset;
}

}  // namespace mpssm::data
