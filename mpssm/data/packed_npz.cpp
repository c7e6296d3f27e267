// SPDX-License-Identifier: MIT
// Many graphs packed into arrays: pointers and local ids checked before they are used.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/names.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

using Shape = std::vector<std::int64_t>;

std::string array_of(const io::Npz& npz, std::string_view array) {
  return fmt::format("{}: array '{}'", shown(npz.path()), base::printable(array));
}

std::vector<std::int64_t> read_pointers(const io::Npz& npz, const char* name) {
  std::vector<std::int64_t> pointers = npz.integers(name, Shape{-1});
  if (pointers.size() < 2) {
    throw base::Error(
        array_of(npz, name),
        fmt::format("expected 0 and the end of each graph, got {} number(s)", pointers.size()));
  }
  if (pointers[0] != 0) {
    throw base::Error(array_of(npz, name), fmt::format("[0]: expected 0, got {}", pointers[0]));
  }
  const auto fall = std::is_sorted_until(pointers.begin(), pointers.end());
  if (fall != pointers.end()) {
    throw base::Error(array_of(npz, name),
                      fmt::format("[{}]: expected at least {} as before it, got {}",
                                  fall - pointers.begin(), *(fall - 1), *fall));
  }
  return pointers;
}

std::vector<std::int32_t> read_ends(const io::Npz& npz, const char* name, const GraphsData& data) {
  std::vector<std::int32_t> result;
  std::size_t graph = 0;  // of the next end
  npz.scan_integers(
      name, Shape{data.edge_ptr.back()},
      [&](std::span<const std::int64_t> shape) {
        result.resize(static_cast<std::size_t>(shape[0]));
      },
      [&](std::size_t first, std::span<const std::int64_t> ends) {
        for (std::size_t i = 0; i < ends.size(); ++i) {
          const std::size_t e = first + i;
          while (std::cmp_greater_equal(e, data.edge_ptr[graph + 1])) ++graph;
          const std::int64_t size = data.node_ptr[graph + 1] - data.node_ptr[graph];
          if (ends[i] < 0 || ends[i] >= size) {
            check_node(fmt::format("{}: [{}] in graph {}", array_of(npz, name), e, graph), ends[i],
                       size);
          }
          result[e] = static_cast<std::int32_t>(ends[i]);
        }
      });
  return result;
}

void read_graphs(const io::Npz& npz, GraphsData& data) {
  data.node_ptr = read_pointers(npz, "node_ptr");
  data.edge_ptr = read_pointers(npz, "edge_ptr");
  if (data.edge_ptr.size() != data.node_ptr.size()) {
    throw base::Error(array_of(npz, "edge_ptr"),
                      fmt::format("expected {} numbers as in 'node_ptr', got {}",
                                  data.node_ptr.size(), data.edge_ptr.size()));
  }
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    const std::int64_t size = data.node_ptr[g + 1] - data.node_ptr[g];
    if (size >= 1 && size <= std::numeric_limits<std::int32_t>::max()) continue;
    throw base::Error(array_of(npz, "node_ptr"),
                      fmt::format("expected at least one node in graph {}, got {}", g, size));
  }
  constexpr std::uint64_t kBytesPerGraph = 500;  // a graph of its own, before they are batched
  npz.count_memory("node_ptr", kBytesPerGraph * static_cast<std::uint64_t>(data.num_graphs()));
  data.edge_src = read_ends(npz, "edge_src", data);
  data.edge_dst = read_ends(npz, "edge_dst", data);
  if (npz.has("edge_weight")) {
    data.edge_weight = npz.floats("edge_weight", Shape{data.edge_ptr.back()});
  }
  if (npz.has("graph_ids")) data.graph_ids = read_names(npz, "graph_ids", data.num_graphs());
  if (npz.has("node_ids")) data.node_ids = read_names(npz, "node_ids", data.node_ptr.back());
}

// Ends are counted through all graphs.
void read_edge_features(const io::Npz& npz, GraphsData& data) {
  std::vector<std::int32_t> src;
  std::vector<std::int32_t> dst;
  for (std::int64_t g = 0; g < data.num_graphs() && npz.has("edge_attr"); ++g) {
    const auto first = static_cast<std::int32_t>(data.node_ptr[g]);
    for (std::int64_t e = data.edge_ptr[g]; e < data.edge_ptr[g + 1]; ++e) {
      src.push_back(first + data.edge_src[e]);
      dst.push_back(first + data.edge_dst[e]);
    }
  }
  data.edge_table = read_edge_attributes(npz, data.node_ptr.back(), src, dst);
}

// The mix depends on the order of an edge's ends, its sum not on the order of edges: equal sums
// both ways mean that every edge has its reverse, but for a chance of 2^-64.
bool has_both_directions(const GraphsData& data) {
  const auto mix = [](std::uint64_t graph, std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = graph * 0x9e3779b97f4a7c15u + (a << 32 | b);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  std::uint64_t difference = 0;
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    for (std::int64_t e = data.edge_ptr[g]; e < data.edge_ptr[g + 1]; ++e) {
      const auto src = static_cast<std::uint64_t>(data.edge_src[e]);
      const auto dst = static_cast<std::uint64_t>(data.edge_dst[e]);
      difference += mix(g, src, dst) - mix(g, dst, src);
    }
  }
  return difference == 0;
}

std::vector<std::int32_t> largest_codes(const std::vector<std::uint8_t>& codes,
                                        std::size_t columns) {
  std::vector<std::int32_t> largest(columns, 0);
  for (std::size_t i = 0; i < codes.size(); i += columns) {
    for (std::size_t c = 0; c < columns; ++c) {
      largest[c] = std::max<std::int32_t>(largest[c], codes[i + c]);
    }
  }
  return largest;
}

// Stored with the file, known for it, or as large as the codes need.
std::vector<std::int32_t> choose_vocabulary(const io::Npz& npz, const PackedLayout& layout,
                                            const std::vector<std::int32_t>& largest) {
  std::vector<std::int32_t> vocabulary = layout.vocabulary;
  if (npz.has("vocabulary")) {
    vocabulary.clear();
    // A code is one byte: no vocabulary needs more than 256.
    for (const std::int64_t size : npz.integers("vocabulary", Shape{std::ssize(largest)})) {
      vocabulary.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(size, 0, 256)));
    }
  }
  if (vocabulary.empty()) {
    for (const std::int32_t code : largest) vocabulary.push_back(code + 1);
  }
  if (vocabulary.size() != largest.size()) {
    throw base::Error(array_of(npz, "atom_feat"), fmt::format("expected {} columns, got {}",
                                                              vocabulary.size(), largest.size()));
  }
  for (std::size_t c = 0; c < largest.size(); ++c) {
    if (largest[c] < vocabulary[c]) continue;
    throw base::Error(
        array_of(npz, "atom_feat"),
        fmt::format("column {}: expected codes below {}, got {}", c, vocabulary[c], largest[c]));
  }
  return vocabulary;
}

// Codes that training has not seen stay as they are: a model has no column for them.
void note_unknown_codes(const io::Npz& npz, const GraphsData& data,
                        std::vector<std::string>& notes) {
  const std::size_t columns = data.vocabulary.size();
  for (std::size_t c = 0; c < columns; ++c) {
    std::int64_t cells = 0;
    for (std::size_t i = c; i < data.codes.size(); i += columns) {
      cells += data.codes[i] >= data.vocabulary[c] ? 1 : 0;
    }
    if (cells == 0) continue;
    notes.push_back(
        fmt::format("{}: column {}: {} code(s) of {} and more, which training has not seen: read "
                    "as \"other\"",
                    array_of(npz, "atom_feat"), c, cells, data.vocabulary[c]));
  }
}

void read_codes(const io::Npz& npz, const PackedLayout& layout, const LoadOptions& options,
                GraphsData& data, std::vector<std::string>& notes) {
  const io::Array array = npz.read("atom_feat");
  const std::int64_t num_nodes = data.node_ptr.back();
  if (array.dtype != io::DType::kUInt8 || array.shape.size() != 2 || array.shape[0] != num_nodes ||
      array.shape[1] < 1) {
    throw base::Error(
        array_of(npz, "atom_feat"),
        fmt::format(
            "expected uint8 codes of shape [{}, columns], got {} with {} axes and {} numbers",
            num_nodes, to_string(array.dtype), array.shape.size(), array.num_elements()));
  }
  npz.count_memory("atom_feat", array.bytes.size());
  data.codes.resize(array.bytes.size());
  std::memcpy(data.codes.data(), array.bytes.data(), array.bytes.size());
  const auto columns = static_cast<std::size_t>(array.shape[1]);
  if (options.vocabulary != nullptr) {
    data.vocabulary = *options.vocabulary;
    if (data.vocabulary.size() != columns) {
      throw base::Error(array_of(npz, "atom_feat"),
                        fmt::format("expected the {} columns of the training graphs, got {}",
                                    data.vocabulary.size(), columns));
    }
    note_unknown_codes(npz, data, notes);
  } else {
    data.vocabulary = choose_vocabulary(npz, layout, largest_codes(data.codes, columns));
  }
  // One row of an embedding for each code.
  constexpr std::uint64_t kBytesPerCode = 256;
  const auto num_codes =
      std::accumulate(data.vocabulary.begin(), data.vocabulary.end(), std::uint64_t{0});
  npz.count_memory("atom_feat", kBytesPerCode * num_codes);
}

void read_features(const io::Npz& npz, const PackedLayout& layout, const LoadOptions& options,
                   GraphsData& data, std::vector<std::string>& notes) {
  if (options.vocabulary != nullptr && !npz.has("atom_feat")) {
    throw base::Error(shown(npz.path()) +
                      ": expected codes in an array 'atom_feat' as in training, got none");
  }
  if (npz.has("atom_feat")) return read_codes(npz, layout, options, data, notes);
  if (!npz.has("node_features")) {
    throw base::Error(shown(npz.path()) +
                      ": expected an array 'node_features' or 'atom_feat', got neither");
  }
  Shape shape;
  data.features.values = npz.floats("node_features", Shape{data.node_ptr.back(), -1}, &shape);
  data.features.rows = shape[0];
  data.features.columns = shape[1];
  if (shape[1] < 1) {
    throw base::Error(array_of(npz, "node_features") + ": expected at least one column, got 0");
  }
}

struct Target {
  bool of_nodes = false;
  bool stored_as_float = false;
  bool yes_or_no = false;  // 0 and 1 only
  // One column of 0, 1, ... and -1 for none, each class there; 0: other numbers.
  std::int64_t num_classes = 0;
};

std::int64_t count_classes(const Matrix& target) {
  constexpr float kMaxClasses = 1000.0f;
  if (target.columns != 1) return 0;
  std::vector<bool> has_class;
  for (const float value : target.values) {
    if (value != std::floor(value) || value < -1.0f || value >= kMaxClasses) return 0;
    if (value < 0.0f) continue;
    const auto at = static_cast<std::size_t>(value);
    if (at >= has_class.size()) has_class.resize(at + 1);
    has_class[at] = true;
  }
  const bool are_all_there =
      std::find(has_class.begin(), has_class.end(), false) == has_class.end();
  return are_all_there && has_class.size() >= 2 ? std::ssize(has_class) : 0;
}

// [G], [G, K], [nodes] or [nodes, 1].
Target read_target(const io::Npz& npz, const std::string& name, GraphsData& data) {
  const io::ArrayHeader header = npz.header(name);
  const Shape& shape = header.shape;
  const std::int64_t rows = shape.empty() ? -1 : shape[0];
  const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
  const bool of_graphs = rows == data.num_graphs();
  Target target;
  target.of_nodes = !of_graphs && rows == data.node_ptr.back() && columns == 1;
  if (shape.size() > 2 || columns < 1 || !(of_graphs || target.of_nodes)) {
    throw base::Error(
        array_of(npz, name),
        fmt::format("expected one row for each of {} graphs or one number for each of {} nodes, "
                    "got {} in {} axes",
                    data.num_graphs(), data.node_ptr.back(),
                    shape.empty() ? "one number" : fmt::format("{} rows", rows), shape.size()));
  }
  data.target = {.rows = rows, .columns = columns, .values = npz.floats(name, shape)};
  target.stored_as_float =
      header.dtype == io::DType::kFloat32 || header.dtype == io::DType::kFloat64;
  target.yes_or_no = std::all_of(data.target.values.begin(), data.target.values.end(),
                                 [](float value) { return value == 0.0f || value == 1.0f; });
  target.num_classes = count_classes(data.target);
  return target;
}

// More whole numbers than these are values, unless a user says otherwise.
constexpr std::int64_t kMaxGuessedClasses = 50;

Task packed_task(const std::string& where, const Target& target, bool is_own,
                 std::optional<Task> wanted) {
  const bool of_graphs = !target.of_nodes;
  const bool are_classes = is_own && !target.stored_as_float && target.num_classes > 0 &&
                           target.num_classes <= kMaxGuessedClasses;
  const bool are_labels = of_graphs && target.yes_or_no && !target.stored_as_float;
  const auto num_classes = static_cast<std::size_t>(target.num_classes);
  const Task natural = are_classes  ? choose_task(where, of_graphs, num_classes, std::nullopt)
                       : are_labels ? Task::kGraphLabels
                       : of_graphs  ? Task::kGraphRegression
                                    : Task::kNodeRegression;
  if (!wanted || *wanted == natural) return natural;
  const bool fits = is_of_graphs(*wanted) == of_graphs && *wanted != Task::kForecast;
  const bool is_possible =
      fits && (*wanted == Task::kGraphLabels ? target.yes_or_no
               : is_of_classes(*wanted)
                   ? target.num_classes == 2 || (target.num_classes > 2 && !is_binary(*wanted))
                   : true);
  if (is_possible) return *wanted;
  throw base::Error(where, fmt::format("expected labels for task {}, got those of {}",
                                       to_string(*wanted), to_string(natural)));
}

void name_classes(const io::Npz& npz, std::int64_t count, const LoadOptions& options,
                  GraphsData& data) {
  if (options.class_names != nullptr && !options.class_names->empty()) {
    data.class_names = *options.class_names;
  } else if (npz.has("class_names")) {
    data.class_names = read_names(npz, "class_names", -1);
  } else {
    for (std::int64_t c = 0; c < count; ++c) data.class_names.push_back(std::to_string(c));
  }
}

// Numbers that are classes: -1 is none, and so are classes that a trained model does not know, if
// they may be there.
void check_class_labels(const std::string& where, const LoadOptions& options, GraphsData& data) {
  for (std::size_t i = 0; i < data.target.values.size(); ++i) {
    float& value = data.target.values[i];
    const bool is_new = value >= static_cast<float>(data.class_names.size());
    if (is_new && !options.skip_new_classes) {
      throw base::Error(where, fmt::format("[{}]: expected a class in [0, {}) or -1 (none), got {}",
                                           i, data.class_names.size(), value));
    }
    if (value < 0.0f || is_new) value = kNoLabel;
  }
}

std::vector<std::string> name_targets(const io::Npz& npz, const PackedLayout& layout,
                                      std::int64_t count) {
  if (npz.has("target_names")) return read_names(npz, "target_names", count);
  if (std::ssize(layout.target_names) == count) return layout.target_names;
  if (count == 1) return {layout.target};
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < count; ++k) names.push_back(fmt::format("{}{}", layout.target, k));
  return names;
}

Task read_targets(const io::Npz& npz, const PackedLayout& layout, const LoadOptions& options,
                  GraphsData& data) {
  const std::string& name = layout.target;
  if (!npz.has(name) && options.columns != nullptr) {
    const Task task = options.task.value_or(Task::kGraphRegression);
    const bool are_classes = is_of_classes(task);
    data.target.rows = is_of_graphs(task) ? data.num_graphs() : data.node_ptr.back();
    data.target.columns = are_classes ? 1 : options.num_targets;
    data.target.values.assign(static_cast<std::size_t>(data.target.rows * data.target.columns),
                              kNoLabel);
    data.target_names = name_targets(npz, layout, data.target.columns);
    if (are_classes) name_classes(npz, 0, options, data);
    return task;
  }
  if (!npz.has(name)) {
    std::string found;
    for (const std::string& array : npz.names()) found += (found.empty() ? "" : ", ") + array;
    throw base::Error(
        shown(npz.path()),
        fmt::format("expected labels in an array '{}', got {}; data.target names the array",
                    base::printable(name), base::printable(found, 200)));
  }
  const Target target = read_target(npz, name, data);
  std::optional<Task> wanted = options.task;
  if (!wanted && npz.has("task")) wanted = task_from_name(read_names(npz, "task", 1)[0]);
  data.target_names = name_targets(npz, layout, data.target.columns);
  // New data need not have all classes.
  const bool is_known = options.columns != nullptr && wanted && is_of_classes(*wanted);
  const Task task =
      is_known ? *wanted : packed_task(array_of(npz, name), target, layout.is_own, wanted);
  if (is_of_classes(task)) {
    name_classes(npz, target.num_classes, options, data);
    check_class_labels(array_of(npz, name), options, data);
  }
  return task;
}

void read_split(const io::Npz& npz, const LoadOptions& options, Dataset& dataset,
                GraphsData& data) {
  if (npz.has("split")) {
    const auto parts = npz.integers("split", Shape{data.num_graphs()});
    for (std::size_t g = 0; g < parts.size(); ++g) {
      if (parts[g] < 0 || parts[g] > 3) {
        throw base::Error(
            array_of(npz, "split"),
            fmt::format("[{}]: expected 0 (train), 1 (val), 2 (test) or 3 (none), got {}", g,
                        parts[g]));
      }
      data.part.push_back(static_cast<Part>(parts[g]));
    }
    dataset.protocol = "stored split";
    note_unused_seed(shown(npz.path()), options, dataset.notes);
  } else if (options.columns != nullptr) {
    data.part.assign(static_cast<std::size_t>(data.num_graphs()), Part::kTest);
  } else {
    data.part = random_split(shown(npz.path()), classes_of(data, dataset.task), options.split_seed);
    dataset.protocol =
        fmt::format("random 50/25/25 split of the graphs, seed {}", options.split_seed);
  }
  if (options.columns == nullptr) check_graph_split(shown(npz.path()), dataset.task, data);
}

std::vector<float> training_labels(const GraphsData& data) {
  const bool of_nodes = data.target.rows != data.num_graphs();
  std::vector<float> labels;
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    if (data.part[g] != Part::kTrain) continue;
    const std::int64_t first = of_nodes ? data.node_ptr[g] : g;
    const std::int64_t end = of_nodes ? data.node_ptr[g + 1] : g + 1;
    labels.insert(labels.end(), data.target.values.begin() + first * data.target.columns,
                  data.target.values.begin() + end * data.target.columns);
  }
  return labels;
}

double read_scale(const io::Npz& npz, const PackedLayout& layout, Task task,
                  const GraphsData& data) {
  if (layout.scale_by_train_maximum) return train_maximum(data);
  if (!npz.has("label_scale")) {
    if (!layout.is_own || task == Task::kGraphLabels || is_of_classes(task)) return 1.0;
    return largest_training_label(data);
  }
  const float scale = npz.floats("label_scale", Shape{1})[0];
  if (scale > 0.0f) return scale;
  throw base::Error(array_of(npz, "label_scale"),
                    fmt::format("expected a number above 0, got {}", scale));
}

}  // namespace

// Own labels may have any size and sign; networks start near 1.
double largest_training_label(const GraphsData& data) {
  float largest = 0.0f;
  for (const float label : training_labels(data)) {
    if (!std::isnan(label)) largest = std::max(largest, std::abs(label));
  }
  return largest > 0.0f ? largest : 1.0;
}

double train_maximum(const GraphsData& data) {
  float largest = 0.0f;
  for (const float label : training_labels(data)) largest = std::max(largest, label);
  return largest > 0.0f ? largest : 1.0;
}

Dataset read_packed_npz(const io::Npz& npz, const PackedLayout& layout,
                        const LoadOptions& options) {
  Dataset dataset{.source = shown(npz.path())};
  GraphsData data;
  read_graphs(npz, data);
  read_edge_features(npz, data);
  note_kept(shown(npz.path()), data.edge_table, dataset.notes);
  read_features(npz, layout, options, data, dataset.notes);
  count_graph(npz, "node_ptr", data.node_ptr.back(), data.edge_ptr.back());
  dataset.task = read_targets(npz, layout, options, data);
  dataset.metric = read_metric(npz, dataset.task);
  dataset.why = fmt::format("array '{}' holds {}", layout.target,
                            is_of_classes(dataset.task)          ? "whole numbers from 0 on"
                            : dataset.task == Task::kGraphLabels ? "0 and 1 in several columns"
                                                                 : "numbers");
  read_split(npz, options, dataset, data);
  data.label_scale = read_scale(npz, layout, dataset.task, data);
  if (!has_both_directions(data)) {
    dataset.notes.push_back(shown(npz.path()) +
                            ": edges are not all listed in both directions: messages run one way");
  }
  dataset.content = std::move(data);
  return dataset;
}

}  // namespace mpssm::data
