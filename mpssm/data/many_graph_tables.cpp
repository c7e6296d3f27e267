// SPDX-License-Identifier: MIT
// Many graphs as tables: nodes.csv and edges.csv with a column 'graph', graphs.csv with what is to
// be learned of each graph.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>
#include <optional>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/cells.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

constexpr const char* kGraph = "graph";

std::optional<std::size_t> graph_column(const io::CsvHeader& table) {
  for (const char* name : {kGraph, "graph_id"}) {
    if (const auto column = table.column(name)) return column;
  }
  return std::nullopt;
}

std::size_t need_graph_column(const io::CsvHeader& table) {
  if (const auto column = graph_column(table)) return *column;
  return need_column(table, kGraph, "; it says which graph a row belongs to");
}

class ManyGraphs {
 public:
  ManyGraphs(const GraphTables& tables, const LoadOptions& options)
      : options_(options), nodes_(io::read_csv(tables.nodes)), edges_(io::read_csv(tables.edges)) {
    if (!tables.graphs.empty()) graphs_ = io::read_csv(tables.graphs);
    dataset_.source = shown(tables.nodes) + ", " + shown(tables.edges);
    if (graphs_) dataset_.source += ", " + shown(tables.graphs);
  }

  Dataset read() {
    const std::size_t graph_of_node = need_graph_column(nodes_);
    graph_name_ = nodes_.header[graph_of_node];
    const auto ids = id_column_of(nodes_, graph_of_node);
    collect_graphs(graph_of_node);
    place_nodes(graph_of_node, ids);
    read_graph_edges();
    const std::vector<std::size_t> used = read_targets(graph_of_node, ids);
    read_split();
    read_node_columns(used);
    dataset_.content = std::move(data_);
    return std::move(dataset_);
  }

 private:
  // In tables of graphs the nodes may go without ids: then they are numbered as they come.
  std::optional<std::size_t> id_column_of(const io::CsvHeader& table, std::size_t graph) const {
    if (!options_.id.empty()) return id_column(table, options_);
    for (const char* name : {"id", "node_id", "node"}) {
      const auto column = table.column(name);
      if (column && *column != graph) return column;
    }
    return std::nullopt;
  }

  // Order of graphs.csv, else of first appearance.
  void collect_graphs(std::size_t graph_of_node) {
    if (nodes_.rows.empty()) {
      throw base::Error(shown(nodes_.path) + ": expected at least one node, got the header only");
    }
    if (graphs_) {
      const auto named = graph_column(*graphs_);
      graph_ids_at_ = named ? *named : id_column(*graphs_, options_);
      index_ = index_ids(*graphs_, graph_ids_at_);
      for (const io::CsvRow row : graphs_->rows) data_.graph_ids.emplace_back(row[graph_ids_at_]);
      return;
    }
    index_ = NodeIndex(nodes_.rows.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      const std::string_view id = nodes_.rows[row][graph_of_node];
      if (id.empty()) fail(nodes_, row, graph_of_node, "the graph that the node belongs to");
      if (index_.add(id).second) data_.graph_ids.emplace_back(id);
    }
  }

  void place_nodes(std::size_t graph_of_node, std::optional<std::size_t> ids) {
    std::vector<std::int64_t> size(data_.graph_ids.size(), 0);
    graph_of_.resize(nodes_.rows.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      const std::int64_t g = index_.find(nodes_.rows[row][graph_of_node]);
      if (g < 0) fail(nodes_, row, graph_of_node, "a graph of graphs.csv");
      graph_of_[row] = g;
      ++size[g];
    }
    for (std::size_t g = 0; g < size.size(); ++g) {
      if (size[g] > 0) continue;
      throw base::Error(shown(nodes_.path),
                        fmt::format("expected at least one node of graph '{}', got none",
                                    base::printable(data_.graph_ids[g])));
    }
    data_.node_ptr.assign(1, 0);
    std::partial_sum(size.begin(), size.end(), std::back_inserter(data_.node_ptr));
    // Nodes of a graph stay in the order of the table.
    std::vector<std::int64_t> next(data_.node_ptr.begin(), data_.node_ptr.end() - 1);
    place_of_.resize(nodes_.rows.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      place_of_[row] = next[graph_of_[row]]++;
    }
    node_names_.resize(nodes_.rows.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      const std::int64_t g = graph_of_[row];
      node_names_[row] = ids ? std::string(nodes_.rows[row][*ids])
                             : std::to_string(place_of_[row] - data_.node_ptr[g]);
    }
    if (ids) data_.node_ids.resize(nodes_.rows.size());
    key_index_ = NodeIndex(nodes_.rows.size());
    keys_.reserve(nodes_.rows.size());  // the index keeps views of them
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      if (ids) data_.node_ids[place_of_[row]] = node_names_[row];
      keys_.push_back(key_of(graph_of_[row], node_names_[row]));
      if (!key_index_.add(keys_.back()).second) {
        fail(nodes_, row, ids.value_or(0), "each id once in its graph");
      }
    }
  }

  static std::string key_of(std::int64_t graph, std::string_view id) {
    return fmt::format("{}\n{}", graph, id);
  }

  // Without a column 'graph', the ids of the nodes must tell.
  void read_graph_edges() {
    const auto graph_of_edge = graph_column(edges_);
    std::optional<NodeIndex> rows_by_id;
    if (!graph_of_edge) {
      rows_by_id.emplace(node_names_.size());
      for (std::size_t row = 0; row < node_names_.size(); ++row) {
        if (rows_by_id->add(node_names_[row]).second) continue;
        throw base::Error(shown(edges_.path),
                          fmt::format("expected a column 'graph', since the id '{}' is there in "
                                      "several graphs, got none",
                                      base::printable(node_names_[row])));
      }
    }
    const auto [src, dst] = end_columns(edges_);
    const auto weight = edges_.column("weight");
    std::vector<std::vector<Edge>> of_graph(data_.graph_ids.size());
    EdgeColumns others(edges_, {src, dst, weight.value_or(src), graph_of_edge.value_or(src)});
    for (std::size_t row = 0; row < edges_.rows.size(); ++row) {
      const std::int64_t a = node_at(row, src, graph_of_edge, rows_by_id);
      const std::int64_t b = node_at(row, dst, graph_of_edge, rows_by_id);
      if (graph_of_[a] != graph_of_[b]) {
        throw base::Error(
            {.where = edges_.place(row, dst),
             .expected =
                 fmt::format("a node of graph '{}' as in '{}'",
                             base::printable(data_.graph_ids[graph_of_[a]]), edges_.header[src]),
             .got = fmt::format("'{}' of graph '{}'", base::printable(edges_.rows[row][dst]),
                                base::printable(data_.graph_ids[graph_of_[b]])),
             .hint = fmt::format("if '{}' is a feature of one graph, give the column another name",
                                 graph_name_)});
      }
      const std::int64_t g = graph_of_[a];
      const std::int64_t first = data_.node_ptr[g];
      of_graph[g].push_back({static_cast<std::int32_t>(place_of_[a] - first),
                             static_cast<std::int32_t>(place_of_[b] - first),
                             weight ? weight_at(row, *weight) : 1.0f});
      if (others.empty()) continue;
      data_.edge_table.src.push_back(static_cast<std::int32_t>(place_of_[a]));
      data_.edge_table.dst.push_back(static_cast<std::int32_t>(place_of_[b]));
      others.add(edges_.rows[row]);
    }
    data_.edge_table.columns = others.take();
    note_kept(shown(edges_.path), data_.edge_table, dataset_.notes);
    pack(of_graph, weight.has_value());
  }

  struct Edge {
    std::int32_t src;
    std::int32_t dst;
    float weight;
    auto operator<=>(const Edge&) const = default;
  };

  std::int64_t node_at(std::size_t row, std::size_t column, std::optional<std::size_t> graph,
                       const std::optional<NodeIndex>& rows_by_id) const {
    const std::string_view id = edges_.rows[row][column];
    std::int64_t node = -1;
    if (graph) {
      const std::int64_t g = index_.find(edges_.rows[row][*graph]);
      if (g < 0) fail(edges_, row, *graph, "a graph that has nodes");
      node = key_index_.find(key_of(g, id));
    } else {
      node = rows_by_id->find(id);
    }
    if (node < 0) fail(edges_, row, column, "an id of the table of nodes");
    return node;
  }

  float weight_at(std::size_t row, std::size_t column) const {
    const auto number = parse_number(edges_.rows[row][column], edges_.separator != ',');
    if (!number || !std::isfinite(static_cast<float>(*number))) {
      fail(edges_, row, column, "a finite number");
    }
    return static_cast<float>(*number);
  }

  // Each edge both ways, unless messages are to run one way.
  void pack(std::vector<std::vector<Edge>>& of_graph, bool has_weights) {
    const EdgeUse use = options_.directed.value_or(EdgeUse::kBoth);
    data_.edge_ptr.assign(1, 0);
    for (std::vector<Edge>& edges : of_graph) {
      const std::size_t listed = edges.size();
      for (std::size_t e = 0; e < listed; ++e) {
        if (use == EdgeUse::kBackward) std::swap(edges[e].src, edges[e].dst);
        if (use == EdgeUse::kBoth) edges.push_back({edges[e].dst, edges[e].src, edges[e].weight});
      }
      std::sort(edges.begin(), edges.end());
      const auto same_ends = [](const Edge& a, const Edge& b) {
        return a.src == b.src && a.dst == b.dst;
      };
      edges.erase(std::unique(edges.begin(), edges.end(), same_ends), edges.end());
      for (const Edge& edge : edges) {
        data_.edge_src.push_back(edge.src);
        data_.edge_dst.push_back(edge.dst);
        if (has_weights) data_.edge_weight.push_back(edge.weight);
      }
      data_.edge_ptr.push_back(std::ssize(data_.edge_src));
    }
  }

  // What is to be learned: of graphs if graphs.csv says it, else of nodes. The columns of the nodes
  // that are no features.
  std::vector<std::size_t> read_targets(std::size_t graph_of_node, std::optional<std::size_t> ids) {
    std::vector<std::size_t> used = {graph_of_node};
    if (ids) used.push_back(*ids);
    const std::vector<std::size_t> of_graphs =
        graphs_ ? graph_targets() : std::vector<std::size_t>();
    if (!of_graphs.empty()) {
      note_graph_columns(of_graphs);
      read_graph_labels(of_graphs);
      return used;
    }
    const bool predicts_graphs =
        options_.columns != nullptr && options_.task && is_of_graphs(*options_.task);
    const auto column = predicts_graphs ? std::nullopt : label_column(nodes_, options_);
    if (column) used.push_back(*column);
    read_missing_or_node_labels(column);
    return used;
  }

  // data.target may name several; else 'label' and the like, or all that begin with "label".
  std::vector<std::size_t> graph_targets() const {
    std::vector<std::size_t> columns;
    if (!options_.target.empty()) {
      // The target may be one of the nodes instead.
      if (options_.target.find(',') == std::string::npos && !graphs_->column(options_.target)) {
        return columns;
      }
      for (const std::string& name : columns_named(*graphs_, "data.target", options_.target)) {
        columns.push_back(*graphs_->column(name));
      }
      return columns;
    }
    for (const char* name : {"label", "target", "class", "y"}) {
      if (const auto column = graphs_->column(name)) return {*column};
    }
    for (std::size_t column = 0; column < graphs_->header.size(); ++column) {
      if (graphs_->header[column].starts_with("label")) columns.push_back(column);
    }
    return columns;
  }

  void note_graph_columns(const std::vector<std::size_t>& targets) {
    std::vector<std::string> others;
    for (std::size_t column = 0; column < graphs_->header.size(); ++column) {
      const bool is_used = column == graph_ids_at_ || graphs_->header[column] == "split" ||
                           std::find(targets.begin(), targets.end(), column) != targets.end();
      if (!is_used) others.push_back(graphs_->header[column]);
    }
    if (others.empty()) return;
    dataset_.notes.push_back(fmt::format("{}: not used: {}; features belong to nodes",
                                         shown(graphs_->path), listed("column", others)));
  }

  void read_graph_labels(const std::vector<std::size_t>& columns) {
    const std::int64_t count = std::ssize(data_.graph_ids);
    const auto num_columns = static_cast<std::int64_t>(columns.size());
    data_.target = {.rows = count, .columns = num_columns};
    data_.target.values.assign(static_cast<std::size_t>(count * num_columns), kNoLabel);
    if (columns.size() == 1) {
      Labels labels = read_labels(*graphs_, columns[0], options_, dataset_.notes);
      data_.target.values = std::move(labels.target);
      data_.class_names = std::move(labels.class_names);
      dataset_.task = choose_task(shown(graphs_->path), /*of_graphs=*/true,
                                  data_.class_names.size(), options_.task);
      dataset_.why = std::move(labels.why);
      data_.target_names = {graphs_->header[columns[0]]};
      return;
    }
    bool are_yes_no = true;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      data_.target_names.push_back(graphs_->header[columns[k]]);
      for (std::size_t row = 0; row < graphs_->rows.size(); ++row) {
        const std::string_view cell = graphs_->rows[row][columns[k]];
        if (is_missing(cell)) continue;
        std::optional<double> value = parse_number(cell, graphs_->separator != ',');
        if (const auto word = parse_yes_no(cell)) value = word->value ? 1.0 : 0.0;
        if (!value || !std::isfinite(static_cast<float>(*value))) {
          fail(*graphs_, row, columns[k], "a number, yes or no, or an empty cell");
        }
        are_yes_no = are_yes_no && (*value == 0.0 || *value == 1.0);
        data_.target.values[row * columns.size() + k] = static_cast<float>(*value);
      }
    }
    const Task natural = are_yes_no ? Task::kGraphLabels : Task::kGraphRegression;
    dataset_.task = options_.task.value_or(natural);
    const bool fits = dataset_.task == Task::kGraphRegression || dataset_.task == natural;
    if (!fits) {
      throw base::Error(shown(graphs_->path),
                        fmt::format("expected labels for task {}, got those of {}",
                                    to_string(dataset_.task), to_string(natural)));
    }
    dataset_.why =
        fmt::format("{} columns hold {}", columns.size(), are_yes_no ? "yes and no" : "numbers");
  }

  void read_missing_or_node_labels(std::optional<std::size_t> column) {
    Labels labels;
    if (column) {
      labels = read_labels(nodes_, *column, options_, dataset_.notes);
      data_.target_names = {nodes_.header[*column]};
      dataset_.task = choose_task(shown(nodes_.path), /*of_graphs=*/false,
                                  labels.class_names.size(), options_.task);
    } else {
      dataset_.task = options_.task.value_or(Task::kGraphRegression);
      if (options_.class_names != nullptr) labels.class_names = *options_.class_names;
      const bool of_graphs = is_of_graphs(dataset_.task);
      data_.target.columns = is_of_classes(dataset_.task) ? 1 : options_.num_targets;
      data_.target.rows = of_graphs ? std::ssize(data_.graph_ids) : std::ssize(nodes_.rows);
      data_.target.values.assign(static_cast<std::size_t>(data_.target.rows * data_.target.columns),
                                 kNoLabel);
      for (std::int64_t k = 0; k < data_.target.columns; ++k) {
        data_.target_names.push_back(data_.target.columns == 1 ? "label"
                                                               : fmt::format("label{}", k));
      }
    }
    data_.class_names = std::move(labels.class_names);
    dataset_.why = std::move(labels.why);
    if (!column) return;
    data_.target = {.rows = std::ssize(nodes_.rows), .columns = 1};
    data_.target.values.resize(nodes_.rows.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      data_.target.values[place_of_[row]] = labels.target[row];
    }
  }

  void read_split() {
    dataset_.metric = default_metric(dataset_.task);
    const std::string where = shown(graphs_ ? graphs_->path : nodes_.path);
    const auto column = graphs_ ? graphs_->column("split") : std::nullopt;
    if (column) {
      data_.part = read_parts(*graphs_, *column);
      dataset_.protocol = "split by column 'split'";
      note_unused_seed(where, options_, dataset_.notes);
    } else if (options_.columns != nullptr) {
      data_.part.assign(data_.graph_ids.size(), Part::kTest);
    } else {
      data_.part = random_split(where, classes_of(data_, dataset_.task), options_.split_seed);
      dataset_.protocol =
          fmt::format("random 50/25/25 split of the graphs, seed {}", options_.split_seed);
    }
    if (options_.columns != nullptr) return;
    check_graph_split(where, dataset_.task, data_);
    const bool is_regression = !is_of_classes(dataset_.task) && dataset_.task != Task::kGraphLabels;
    data_.label_scale = is_regression ? largest_training_label(data_) : 1.0;
  }

  void read_node_columns(const std::vector<std::size_t>& used) {
    const auto ignored = columns_named(nodes_, "data.ignore", options_.ignore);
    std::vector<std::size_t> candidates;
    for (std::size_t column = 0; column < nodes_.header.size(); ++column) {
      const std::string& name = nodes_.header[column];
      if (std::find(used.begin(), used.end(), column) != used.end() || name == "split") continue;
      if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) {
        dataset_.columns.push_back({.name = name, .type = "", .unused = "data.ignore"});
      } else {
        candidates.push_back(column);
      }
    }
    const std::vector<bool> graphs = rows_to_learn_from(data_.part);
    std::vector<bool> learn;
    for (const std::int64_t g : graph_of_) learn.push_back(graphs[g]);
    if (is_degree(options_) && !nodes_.column(kDegree)) {
      return use_degree(learn, &options_.columns->front());
    }
    Features features =
        read_table_features(nodes_, candidates, learn, options_, dataset_.columns, dataset_.notes);
    const std::int64_t width = features.values.columns;
    data_.features = {.rows = std::ssize(nodes_.rows), .columns = width};
    if (features.fitted.empty()) {
      dataset_.notes.push_back(shown(nodes_.path) +
                               ": no feature column; the only feature is each node's degree");
      return use_degree(learn, nullptr);
    }
    data_.columns = std::move(features.fitted);
    data_.features.values.resize(features.values.values.size());
    for (std::size_t row = 0; row < nodes_.rows.size(); ++row) {
      const auto from = features.values.values.begin() + static_cast<std::int64_t>(row) * width;
      std::copy(from, from + width, data_.features.values.begin() + place_of_[row] * width);
    }
  }

  // `learn` is for the rows of the table, the rest for the nodes as they are packed.
  void use_degree(const std::vector<bool>& learn, const Column* stored) {
    std::vector<double> degree(nodes_.rows.size(), 0.0);
    for (std::int64_t g = 0; g < data_.num_graphs(); ++g) {
      for (std::int64_t e = data_.edge_ptr[g]; e < data_.edge_ptr[g + 1]; ++e) {
        degree[data_.node_ptr[g] + data_.edge_dst[e]] += 1.0;
      }
    }
    std::vector<double> learned;
    for (std::size_t row = 0; row < learn.size(); ++row) {
      if (learn[row]) learned.push_back(degree[place_of_[row]]);
    }
    const Column column = stored != nullptr ? *stored : fit_number(std::string(kDegree), learned);
    data_.columns = {column};
    data_.features = {.rows = std::ssize(degree), .columns = 1};
    for (const double value : degree) {
      data_.features.values.push_back(static_cast<float>((value - column.mean) / column.scale));
    }
  }

  [[noreturn]] static void fail(const io::CsvTable& table, std::size_t row, std::size_t column,
                                const std::string& expected) {
    const std::string_view cell = table.rows[row][column];
    throw base::Error(
        table.place(row, column),
        fmt::format("expected {}, got {}", expected,
                    cell.empty() ? "an empty cell" : "'" + base::printable(cell) + "'"));
  }

  const LoadOptions& options_;
  io::CsvTable nodes_;
  io::CsvTable edges_;
  std::optional<io::CsvTable> graphs_;
  std::size_t graph_ids_at_ = 0;  // in graphs_
  std::string graph_name_;        // of the column that says it
  Dataset dataset_;
  GraphsData data_;
  NodeIndex index_{0};      // number of a graph by its id
  NodeIndex key_index_{0};  // row of a node by graph and id
  std::vector<std::string> keys_;
  std::vector<std::string> node_names_;  // of each row
  std::vector<std::int64_t> graph_of_;   // number of the graph of each row
  std::vector<std::int64_t> place_of_;   // where the node of each row is packed
};

}  // namespace

bool has_graph_column(const std::filesystem::path& path) {
  return graph_column(io::CsvReader(path).head()).has_value();
}

Dataset read_many_graph_tables(const GraphTables& tables, const LoadOptions& options) {
  if (options.task == Task::kLinks) {
    throw base::Error("data.task", shown(tables.nodes) +
                                       " holds many graphs, and links are predicted in one; take "
                                       "one of them, or another task");
  }
  return ManyGraphs(tables, options).read();
}

}  // namespace mpssm::data
