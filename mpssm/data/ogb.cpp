// SPDX-License-Identifier: MIT
// Folders of the Open Graph Benchmark as they are unpacked: raw/edge.csv.gz, raw/num-node-list,
// raw/node-feat, raw/node-label or raw/graph-label, split/NAME/train, valid and test; tables of
// numbers without a header.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/links.h"
#include "mpssm/data/number_rows.h"
#include "mpssm/data/paths.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

/// The folder with train, valid and test; empty: there is none.
fs::path split_folder(const fs::path& folder, std::vector<std::string>* others) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "split", ignored)) {
    if (!table_in(entry.path(), "train").empty()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (std::size_t i = 1; i < found.size() && others != nullptr; ++i) {
    others->push_back(found[i].filename().string());
  }
  return found.empty() ? fs::path() : found[0];
}

class OgbFolder {
 public:
  OgbFolder(const fs::path& folder, const LoadOptions& options)
      : folder_(folder), options_(options) {}

  Dataset read() {
    dataset_.source = shown(folder_ / "raw");
    const auto num_nodes = counts("num-node-list");
    const auto num_edges = counts("num-edge-list");
    edges_ = read_number_rows<std::int64_t>(table("edge"));
    expect_shape(edges_, -1, 2, "the ends of each edge");
    const std::int64_t listed =
        std::accumulate(num_edges.begin(), num_edges.end(), std::int64_t{0});
    expect_shape(edges_, listed, 2, "as many as num-edge-list says");
    if (num_edges.size() != num_nodes.size()) {
      throw base::Error(
          {.where = shown(table("num-edge-list")),
           .expected = fmt::format("{} numbers as in num-node-list", num_nodes.size()),
           .got = std::to_string(num_edges.size()),
           .hint = kRowsHint});
    }
    if (num_nodes.size() == 1) {
      read_one(num_nodes[0]);
    } else {
      read_many(num_nodes, num_edges);
    }
    return std::move(dataset_);
  }

 private:
  fs::path table(const char* name) const {
    const fs::path path = table_in(folder_ / "raw", name);
    if (!path.empty()) return path;
    throw base::Error({.where = shown(folder_ / "raw"),
                       .expected = fmt::format("{}.csv.gz, as in the Open Graph Benchmark", name),
                       .got = "none",
                       .hint = kRowsHint});
  }

  std::vector<std::int64_t> counts(const char* name) const {
    const auto rows = read_number_rows<std::int64_t>(table(name));
    expect_shape(rows, -1, 1, "a count for each graph");
    for (std::size_t i = 0; i < rows.values.size(); ++i) {
      const std::int64_t least = std::string_view(name) == "num-node-list" ? 1 : 0;
      if (rows.values[i] >= least && rows.values[i] <= std::numeric_limits<std::int32_t>::max()) {
        continue;
      }
      throw base::Error({.where = rows.place(static_cast<std::int64_t>(i)),
                         .expected = fmt::format("a count of {} or more", least),
                         .got = std::to_string(rows.values[i]),
                         .hint = kRowsHint});
    }
    return rows.values;
  }

  void check_end(std::int64_t row, std::int64_t node, std::int64_t num_nodes) const {
    if (node >= 0 && node < num_nodes) return;
    throw base::Error({.where = edges_.place(row),
                       .expected = fmt::format("a node in [0, {})", num_nodes),
                       .got = std::to_string(node),
                       .hint = "nodes of each graph count from 0"});
  }

  /// Numbers of all nodes, as stored; nullopt: there are none.
  std::optional<Matrix> features(std::int64_t num_nodes) const {
    const fs::path path = table_in(folder_ / "raw", "node-feat");
    if (path.empty()) return std::nullopt;
    auto rows = read_number_rows<float>(path);
    expect_shape(rows, num_nodes, -1, "one for each node");
    for (std::size_t i = 0; i < rows.values.size(); ++i) {
      if (std::isfinite(rows.values[i])) continue;
      throw base::Error({.where = rows.place(static_cast<std::int64_t>(i) / rows.columns),
                         .expected = "finite numbers",
                         .got = fmt::format("{}", rows.values[i]),
                         .hint = "fill gaps before loading"});
    }
    return Matrix{.rows = rows.rows, .columns = rows.columns, .values = std::move(rows.values)};
  }

  void keep_edge_features(std::span<const std::int64_t> first, EdgeTable& kept) {
    const fs::path path = table_in(folder_ / "raw", "edge-feat");
    if (path.empty()) return;
    const auto rows = read_number_rows<double>(path);
    expect_shape(rows, edges_.rows, -1, "one for each edge");
    for (std::int64_t e = 0; e < edges_.rows; ++e) {
      kept.src.push_back(static_cast<std::int32_t>(first[e] + edges_.values[2 * e]));
      kept.dst.push_back(static_cast<std::int32_t>(first[e] + edges_.values[2 * e + 1]));
    }
    for (std::int64_t c = 0; c < rows.columns; ++c) {
      EdgeColumn column{.name = fmt::format("edge_feat_{}", c)};
      for (std::int64_t e = 0; e < rows.rows; ++e) {
        column.values.push_back(rows.values[e * rows.columns + c]);
      }
      kept.columns.push_back(std::move(column));
    }
    note_kept(shown(path), kept, dataset_.notes);
  }

  /// Whole numbers from 0 on are classes, named by their numbers; NaN: none.
  void read_classes(const NumberRows<float>& rows, std::size_t most, std::vector<float>& target,
                    std::vector<std::string>& names) {
    const bool wants_values =
        options_.task == Task::kNodeRegression || options_.task == Task::kGraphRegression;
    target = rows.values;
    float largest = -1.0f;
    bool are_classes = !wants_values;
    for (const float value : rows.values) {
      if (std::isnan(value)) continue;
      are_classes = are_classes && value >= 0.0f && value == std::floor(value);
      largest = std::max(largest, value);
    }
    dataset_.why = are_classes ? "labels are whole numbers" : "labels are numbers";
    if (options_.class_names != nullptr && !options_.class_names->empty()) {
      names = *options_.class_names;
      for (std::size_t i = 0; i < target.size(); ++i) {
        if (std::isnan(target[i]) || target[i] < static_cast<float>(names.size())) continue;
        if (!options_.skip_new_classes) {
          throw base::Error({.where = rows.place(static_cast<std::int64_t>(i)),
                             .expected = fmt::format("one of {} classes", names.size()),
                             .got = fmt::format("{}", target[i]),
                             .hint = "mpssm predict takes such data"});
        }
        target[i] = kNoLabel;
      }
      return;
    }
    if (!are_classes || largest < 1.0f || largest >= static_cast<float>(most)) return;
    for (std::size_t c = 0; c <= static_cast<std::size_t>(largest); ++c) {
      names.push_back(std::to_string(c));
    }
  }

  /// Which of `count` samples are in which part; empty: there is no split.
  std::vector<Part> stored_split(std::int64_t count) {
    std::vector<std::string> others;
    const fs::path folder = split_folder(folder_, &others);
    if (folder.empty()) {
      dataset_.notes.push_back(shown(folder_) +
                               ": no split/NAME/train.csv.gz is there (what is pickled is never "
                               "loaded): the split is random");
      return {};
    }
    if (!others.empty()) {
      dataset_.notes.push_back(shown(folder_ / "split") + ": not used: " + listed("split", others));
    }
    std::vector<Part> parts(static_cast<std::size_t>(count), Part::kNone);
    for (const auto& [name, part] :
         {std::pair("train", Part::kTrain), {"valid", Part::kVal}, {"test", Part::kTest}}) {
      const fs::path path = table_in(folder, name);
      if (path.empty()) {
        throw base::Error({.where = shown(folder),
                           .expected = fmt::format("{}.csv.gz beside train.csv.gz", name),
                           .got = "none",
                           .hint = kRowsHint});
      }
      const auto rows = read_number_rows<std::int64_t>(path);
      expect_shape(rows, -1, 1, "the number of a sample each");
      for (std::int64_t i = 0; i < rows.rows; ++i) {
        const std::int64_t sample = rows.values[i];
        if (sample < 0 || sample >= count) {
          throw base::Error({.where = rows.place(i),
                             .expected = fmt::format("a number in [0, {})", count),
                             .got = std::to_string(sample),
                             .hint = kRowsHint});
        }
        if (parts[sample] != Part::kNone) {
          throw base::Error({.where = rows.place(i),
                             .expected = "each sample in one part",
                             .got = fmt::format("{} again", sample),
                             .hint = "take it out of one of them"});
        }
        parts[sample] = part;
      }
    }
    dataset_.protocol = "stored split '" + folder.filename().string() + "'";
    note_unused_seed(shown(folder_), options_, dataset_.notes);
    return parts;
  }

  // ---- one graph ----

  void read_one(std::int64_t num_nodes) {
    NodeData data;
    graph::CompactEdgeList edges{.num_nodes = num_nodes};
    for (std::int64_t e = 0; e < edges_.rows; ++e) {
      check_end(e, edges_.values[2 * e], num_nodes);
      check_end(e, edges_.values[2 * e + 1], num_nodes);
      edges.src.push_back(static_cast<std::int32_t>(edges_.values[2 * e]));
      edges.dst.push_back(static_cast<std::int32_t>(edges_.values[2 * e + 1]));
    }
    keep_edge_features(std::vector<std::int64_t>(edges.src.size(), 0), data.edge_table);
    const EdgeUse use = options_.directed.value_or(EdgeUse::kBoth);
    if (use == EdgeUse::kBackward) {
      edges.src.swap(edges.dst);
      data.edge_table.src.swap(data.edge_table.dst);
    }
    data.graph = make_graph(
        shown(edges_.path), std::move(edges),
        use == EdgeUse::kBoth ? graph::Direction::kUndirected : graph::Direction::kDirected);
    if (options_.task == Task::kLinks) {
      hold_out_links(shown(folder_), options_, dataset_, data);
    } else {
      read_node_targets(num_nodes, data);
    }
    if (auto values = features(num_nodes)) {
      data.features = std::move(*values);
    } else {
      dataset_.notes.push_back(shown(folder_ / "raw") +
                               ": no node-feat; the only feature is each node's degree");
      const std::vector<bool> learn = data.links ? std::vector<bool>(data.target.size(), true)
                                                 : rows_to_learn_from(data.splits[0]);
      use_degree(learn, is_degree(options_) ? &options_.columns->front() : nullptr, data);
    }
    dataset_.content = std::move(data);
  }

  void read_node_targets(std::int64_t num_nodes, NodeData& data) {
    const fs::path path = table_in(folder_ / "raw", "node-label");
    if (path.empty() && options_.columns == nullptr) {
      throw base::Error({.where = shown(folder_ / "raw"),
                         .expected = "node-label.csv.gz, something to learn of each node",
                         .got = "none",
                         .hint = "--task links predicts edges"});
    }
    if (path.empty()) {
      data.target.assign(static_cast<std::size_t>(num_nodes), kNoLabel);
      if (options_.class_names != nullptr) data.class_names = *options_.class_names;
    } else {
      const auto rows = read_number_rows<float>(path);
      expect_shape(rows, num_nodes, 1, "one label for each node");
      constexpr std::size_t kMostClasses = 1000;
      read_classes(rows, kMostClasses, data.target, data.class_names);
    }
    dataset_.task = choose_node_task(shown(folder_), data.class_names.size(), options_.task);
    dataset_.metric = default_metric(dataset_.task);
    if (options_.columns != nullptr) {
      data.splits = {all_labelled_in_test(data.target)};
      return;
    }
    std::vector<Part> parts = stored_split(num_nodes);
    if (parts.empty()) {
      parts = random_split(shown(folder_), classes_of(data), options_.split_seed);
      dataset_.protocol =
          fmt::format("random 50/25/25 split of the labelled nodes, seed {}", options_.split_seed);
    }
    data.splits = {std::move(parts)};
    check_splits(shown(folder_), data, dataset_.notes);
  }

  // ---- many graphs ----

  void read_many(const std::vector<std::int64_t>& num_nodes,
                 const std::vector<std::int64_t>& num_edges) {
    if (options_.task == Task::kLinks) {
      throw base::Error("data.task",
                        shown(folder_) + " holds many graphs, and links are predicted in one");
    }
    GraphsData data;
    std::vector<std::int64_t> first;  // node of the graph of each edge
    const EdgeUse use = options_.directed.value_or(EdgeUse::kBoth);
    std::int64_t e = 0;
    for (std::size_t g = 0; g < num_nodes.size(); ++g) {
      std::vector<std::pair<std::int32_t, std::int32_t>> ends;
      for (std::int64_t i = 0; i < num_edges[g]; ++i, ++e) {
        check_end(e, edges_.values[2 * e], num_nodes[g]);
        check_end(e, edges_.values[2 * e + 1], num_nodes[g]);
        const auto src = static_cast<std::int32_t>(edges_.values[2 * e]);
        const auto dst = static_cast<std::int32_t>(edges_.values[2 * e + 1]);
        if (use != EdgeUse::kBackward) ends.emplace_back(src, dst);
        if (use != EdgeUse::kForward) ends.emplace_back(dst, src);
        first.push_back(data.node_ptr.back());
      }
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
      for (const auto& [src, dst] : ends) {
        data.edge_src.push_back(src);
        data.edge_dst.push_back(dst);
      }
      data.node_ptr.push_back(data.node_ptr.back() + num_nodes[g]);
      data.edge_ptr.push_back(std::ssize(data.edge_src));
    }
    if (data.node_ptr.back() > std::numeric_limits<std::int32_t>::max()) {
      throw base::Error({.where = shown(folder_),
                         .expected = "at most 2147483647 nodes",
                         .got = std::to_string(data.node_ptr.back())});
    }
    keep_edge_features(first, data.edge_table);
    read_graph_features(data);
    read_graph_targets(data);
    dataset_.content = std::move(data);
  }

  /// Whole numbers below 256 are categories, as OGB's atoms are.
  void read_graph_features(GraphsData& data) {
    auto values = features(data.node_ptr.back());
    if (!values) {
      data.features = {.rows = data.node_ptr.back(), .columns = 1};
      data.features.values.assign(static_cast<std::size_t>(data.node_ptr.back()), 1.0f);
      dataset_.notes.push_back(shown(folder_ / "raw") + ": no node-feat; the only feature is 1");
      return;
    }
    const bool are_codes = std::all_of(values->values.begin(), values->values.end(), [](float v) {
      return v >= 0.0f && v < 256.0f && v == std::floor(v);
    });
    const bool knows_codes = options_.vocabulary != nullptr;
    if (options_.columns != nullptr ? !knows_codes : !are_codes) {
      data.features = std::move(*values);
      return;
    }
    data.vocabulary.assign(static_cast<std::size_t>(values->columns), 1);
    if (knows_codes) data.vocabulary = *options_.vocabulary;
    if (std::ssize(data.vocabulary) != values->columns || !are_codes) {
      throw base::Error({.where = shown(folder_ / "raw"),
                         .expected = fmt::format("{} columns of categories as in training",
                                                 data.vocabulary.size()),
                         .got = std::to_string(values->columns),
                         .hint = "take data of the same layout"});
    }
    for (std::size_t i = 0; i < values->values.size(); ++i) {
      const auto code = static_cast<std::uint8_t>(values->values[i]);
      data.codes.push_back(code);
      std::int32_t& size = data.vocabulary[i % data.vocabulary.size()];
      if (!knows_codes) size = std::max(size, static_cast<std::int32_t>(code) + 1);
    }
  }

  void read_graph_targets(GraphsData& data) {
    const fs::path path = table_in(folder_ / "raw", "graph-label");
    const std::int64_t count = data.num_graphs();
    if (path.empty()) {
      if (options_.columns == nullptr) {
        throw base::Error({.where = shown(folder_ / "raw"),
                           .expected = "graph-label.csv.gz, something to learn of each graph",
                           .got = "none",
                           .hint = kRowsHint});
      }
      dataset_.task = options_.task.value_or(Task::kGraphRegression);
      data.target.columns = is_of_classes(dataset_.task) ? 1 : options_.num_targets;
      data.target.values.assign(static_cast<std::size_t>(count * data.target.columns), kNoLabel);
      if (options_.class_names != nullptr) data.class_names = *options_.class_names;
    } else {
      const auto rows = read_number_rows<float>(path);
      expect_shape(rows, count, -1, "one for each graph");
      data.target.columns = rows.columns;
      if (rows.columns == 1) {
        constexpr std::size_t kMostClasses = 50;
        read_classes(rows, kMostClasses, data.target.values, data.class_names);
        dataset_.task =
            choose_task(shown(folder_), /*of_graphs=*/true, data.class_names.size(), options_.task);
      } else {
        data.target.values = rows.values;
        const bool yes_no = std::all_of(rows.values.begin(), rows.values.end(), [](float v) {
          return std::isnan(v) || v == 0.0f || v == 1.0f;
        });
        dataset_.task =
            options_.task.value_or(yes_no ? Task::kGraphLabels : Task::kGraphRegression);
        const bool fits = dataset_.task == Task::kGraphRegression ||
                          (yes_no && dataset_.task == Task::kGraphLabels);
        if (!fits) {
          throw base::Error(
              {.where = shown(path),
               .expected = fmt::format("labels for task {}", to_string(dataset_.task)),
               .got = fmt::format("{} columns of {}", rows.columns, yes_no ? "0 and 1" : "numbers"),
               .hint = "leave data.task out"});
        }
        dataset_.why =
            fmt::format("{} columns of {}", rows.columns, yes_no ? "0 and 1" : "numbers");
      }
    }
    data.target.rows = count;
    for (std::int64_t k = 0; k < data.target.columns; ++k) {
      data.target_names.push_back(data.target.columns == 1 ? "label" : fmt::format("label{}", k));
    }
    dataset_.metric = default_metric(dataset_.task);
    if (options_.columns != nullptr) {
      data.part.assign(static_cast<std::size_t>(count), Part::kTest);
      return;
    }
    data.part = stored_split(count);
    if (data.part.empty()) {
      data.part =
          random_split(shown(folder_), classes_of(data, dataset_.task), options_.split_seed);
      dataset_.protocol =
          fmt::format("random 50/25/25 split of the graphs, seed {}", options_.split_seed);
    }
    check_graph_split(shown(folder_), dataset_.task, data);
    const bool is_regression = dataset_.task == Task::kGraphRegression;
    data.label_scale = is_regression ? largest_training_label(data) : 1.0;
  }

  fs::path folder_;
  const LoadOptions& options_;
  NumberRows<std::int64_t> edges_;
  Dataset dataset_;
};

}  // namespace

bool is_ogb_folder(const fs::path& path) {
  return is_folder(path) && !table_in(path / "raw", "num-node-list").empty();
}

Dataset read_ogb_folder(const fs::path& folder, const LoadOptions& options) {
  return OgbFolder(folder, options).read();
}

std::vector<fs::path> ogb_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name : {"edge", "num-node-list", "num-edge-list", "node-feat", "edge-feat",
                           "node-label", "graph-label"}) {
    if (const fs::path path = table_in(folder / "raw", name); !path.empty()) files.push_back(path);
  }
  const fs::path split = split_folder(folder, nullptr);
  for (const char* name : {"train", "valid", "test"}) {
    const fs::path path = split.empty() ? fs::path() : table_in(split, name);
    if (!path.empty()) files.push_back(path);
  }
  return files;
}

}  // namespace mpssm::data
