// SPDX-License-Identifier: MIT
// What a dataset is once read: one of three shapes, with its task and protocol. No torch here.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mpssm/base/enum_table.h"
#include "mpssm/graph/graph.h"

namespace mpssm::data {

enum class Task {
  kNodeBinary,       ///< two classes, one logit per node
  kNodeClasses,      ///< more classes
  kNodeRegression,   ///< one number per node
  kGraphBinary,      ///< two classes, one logit per graph
  kGraphClasses,     ///< more classes
  kGraphRegression,  ///< numbers per graph
  kGraphLabels,      ///< independent yes/no labels per graph
  kForecast,         ///< the next steps of every node's series
  kLinks,            ///< which pairs of nodes have an edge
};
inline constexpr base::EnumRow<Task> kTasks[] = {
    {Task::kNodeBinary, "node_binary"},
    {Task::kNodeClasses, "node_classes"},
    {Task::kNodeRegression, "node_regression"},
    {Task::kGraphBinary, "graph_binary"},
    {Task::kGraphClasses, "graph_classes"},
    {Task::kGraphRegression, "graph_regression"},
    {Task::kGraphLabels, "graph_labels"},
    {Task::kForecast, "forecast"},
    {Task::kLinks, "links"},
};
constexpr base::EnumTable<Task> table_of(Task) { return kTasks; }
constexpr std::string_view to_string(Task task) { return table_of(task).name(task); }
/// A prediction for each graph.
constexpr bool is_of_graphs(Task task) {
  return task == Task::kGraphBinary || task == Task::kGraphClasses ||
         task == Task::kGraphRegression || task == Task::kGraphLabels;
}
/// One of two or more classes.
constexpr bool is_of_classes(Task task) {
  return task == Task::kNodeBinary || task == Task::kNodeClasses || task == Task::kGraphBinary ||
         task == Task::kGraphClasses;
}
constexpr bool is_binary(Task task) {
  return task == Task::kNodeBinary || task == Task::kGraphBinary;
}
/// Throws base::Error listing the names.
Task task_from_name(std::string_view name);

/// The part of a split that a sample (node, graph or window) belongs to. Files use these numbers.
enum class Part : std::uint8_t { kTrain = 0, kVal = 1, kTest = 2, kNone = 3 };
std::string_view to_string(Part part);  ///< "train", "val", "test", "none"

/// Row-major.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<float> values = {};
};

enum class ColumnKind {
  kNumber,      ///< (x - mean) / scale
  kCategories,  ///< one feature per value, 1 where the cell has it
  kBoolean,     ///< 1 for yes, true, ...; 0 for no, false, ...
  kDate,        ///< (day - mean) / scale; place in the year, in the week, if told in the day
  kText,        ///< how often groups of three characters come, each group in one of some features
};
inline constexpr base::EnumRow<ColumnKind> kColumnKinds[] = {
    {ColumnKind::kNumber, "number"},  {ColumnKind::kCategories, "categories"},
    {ColumnKind::kBoolean, "yes/no"}, {ColumnKind::kDate, "date"},
    {ColumnKind::kText, "text"},
};
constexpr base::EnumTable<ColumnKind> table_of(ColumnKind) { return kColumnKinds; }

/// Of the parts of a date that does not begin with its year.
enum class DateOrder { kDayFirst, kMonthFirst };
inline constexpr base::EnumRow<DateOrder> kDateOrders[] = {
    {DateOrder::kDayFirst, "day first"},
    {DateOrder::kMonthFirst, "month first"},
};
constexpr base::EnumTable<DateOrder> table_of(DateOrder) { return kDateOrders; }

/// How one column of a table became numbers. Kept with a trained model, so that a new table is read
/// in the same way.
struct Column {
  std::string name;
  double mean = 0.0;  ///< numbers and dates, over the rows that training may look at
  double scale = 1.0;
  std::vector<std::string> categories = {};
  ColumnKind kind = ColumnKind::kNumber;
  bool has_other = false;    ///< categories: one more feature for all values that are none of them
  bool has_missing = false;  ///< one more feature: 1 where there is no value
  /// Stands for a missing value: the median of numbers and dates, the more frequent of yes and no.
  double fill = 0.0;
  std::string fill_category = {};  ///< the same for categories: the most frequent one
  bool decimal_comma = false;      ///< 1.234,5 and not 1,234.5
  DateOrder date_order = DateOrder::kDayFirst;
  bool has_time = false;     ///< dates: with a time of day
  std::int64_t buckets = 0;  ///< text: features that groups of characters are dealt to
};

/// What was made of a column, for people.
struct ColumnReport {
  std::string name;
  std::string type;           ///< "number", "free text", ...
  std::string encoding = {};  ///< how it became features; empty: not used
  std::string unused = {};    ///< why it is not used
  std::int64_t features = 0;  ///< that it became
  std::int64_t missing = 0;   ///< cells without a value
};

/// What a file says of edges beside their ends and weights.
struct EdgeColumn {
  std::string name;
  std::vector<double> values = {};      ///< a number, or which of the words; NaN: none
  std::vector<std::string> words = {};  ///< empty: numbers
};

/// These columns row by row, as edges are listed. Read, kept and converted; see incident_edges.h.
struct EdgeTable {
  std::vector<std::int32_t> src = {};  ///< of many graphs: counted through all of them
  std::vector<std::int32_t> dst = {};
  std::vector<EdgeColumn> columns = {};  ///< empty: there is nothing to keep, src and dst neither
};

/// Stands where a node has no label.
inline constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

/// Two nodes of a graph; of an undirected one src < dst. Ordered as the entries of a graph are.
struct NodePair {
  std::int32_t src = 0;
  std::int32_t dst = 0;

  bool operator==(const NodePair&) const = default;
  bool operator<(const NodePair& other) const {
    return dst != other.dst ? dst < other.dst : src < other.src;
  }
};

/// What link prediction asks: which of these pairs have an edge. Each list is sorted.
struct Links {
  graph::Graph whole = {};  ///< with every edge; NodeData::graph has those of train alone
  std::array<std::vector<NodePair>, 3> edges = {};  ///< of train, val and test, without loops
  /// Pairs without an edge, for val and test as many; each step of a training draws its own.
  std::array<std::vector<NodePair>, 3> others = {};
};

/// One graph; its nodes are the samples.
struct NodeData {
  graph::Graph graph = {};
  Matrix features = {};                        ///< [N, F]
  std::vector<Column> columns = {};            ///< how `features` came about; empty: used as stored
  std::vector<float> target = {};              ///< [N] class number or value, or kNoLabel
  std::vector<std::string> class_names = {};   ///< [classes]; empty for regression
  std::vector<std::string> node_ids = {};      ///< [N]; empty: 0, 1, 2, ...
  std::vector<std::vector<Part>> splits = {};  ///< each [N]
  std::string target_name = "label";
  std::optional<Links> links = {};  ///< edges are the samples
  EdgeTable edge_table = {};
};

/// Many graphs, packed one after the other. Edges are directed entries with node ids local to their
/// graph; an undirected edge is there twice.
struct GraphsData {
  std::vector<std::int64_t> node_ptr = {0};  ///< [G + 1]
  std::vector<std::int64_t> edge_ptr = {0};  ///< [G + 1]
  std::vector<std::int32_t> edge_src = {};
  std::vector<std::int32_t> edge_dst = {};
  std::vector<float> edge_weight = {};  ///< empty: all 1
  Matrix features = {};                 ///< [nodes, F]; empty if the features are categories
  /// [nodes, vocabulary.size()], row-major: category of each column, below vocabulary[column]; in
  /// new data for a trained model perhaps beyond it: none that the model knows.
  std::vector<std::uint8_t> codes = {};
  std::vector<std::int32_t> vocabulary = {};
  std::vector<Column> columns = {};  ///< how `features` came about; empty: used as stored
  /// [G, K], or [nodes, 1] for tasks of nodes: values, class numbers, or yes and no as 1 and 0.
  Matrix target = {};
  std::vector<std::string> target_names = {};
  std::vector<std::string> class_names = {};  ///< [classes]; empty for all but classes
  std::vector<std::string> graph_ids = {};    ///< [G]; empty: 0, 1, 2, ...
  std::vector<std::string> node_ids = {};     ///< [nodes]; empty: 0, 1, 2, ... in each graph
  std::vector<Part> part = {};                ///< [G]
  EdgeTable edge_table = {};
  /// Training divides labels by this (1: raw labels).
  double label_scale = 1.0;

  std::int64_t num_graphs() const { return static_cast<std::int64_t>(node_ptr.size()) - 1; }
};

/// How windows are cut into train, val and test, always in time order.
enum class WindowRule {
  /// DCRNN's: train = the first round(train_ratio n), test = the last round(test_ratio n), val
  /// between.
  kFractions,
  /// PyTorch Geometric Temporal's: test = all after the first int(train_ratio n); val = the last
  /// ninth (rounded down, at least 1) of those first ones.
  kTrainThenTest,
};

/// Graphs on the same nodes that take turns: edges appear, vanish, change their weight.
struct ChangingGraph {
  std::vector<graph::Graph> graphs = {};
  std::vector<std::int32_t> of_step = {};  ///< [T] which of them is there; empty: nothing changes
};

/// A series of measurements at every node of one graph.
struct SeriesData {
  graph::Graph graph = {};  ///< of one that changes: all edges that are there at any time
  ChangingGraph changing = {};
  std::int64_t num_steps = 0;
  std::int64_t num_nodes = 0;
  std::int64_t num_features = 1;           ///< feature 0 is what is forecast
  std::vector<float> values = {};          ///< [T, N, F]; NaN in feature 0: missing
  std::vector<float> time_of_day = {};     ///< [T] in [0, 1), or empty
  std::vector<std::string> node_ids = {};  ///< [N]; empty: 0, 1, 2, ...
  EdgeTable edge_table = {};
  /// Windows, split and scale.
  std::int64_t lags = 4;     ///< steps a forecast sees
  std::int64_t horizon = 1;  ///< steps it predicts
  WindowRule rule = WindowRule::kFractions;
  double train_ratio = 0.7;
  double test_ratio = 0.2;               ///< kFractions only
  bool standardise = false;              ///< with one mean and deviation of the training inputs
  std::optional<float> null_value = {};  ///< readings of this value are missing
  double period = 0.0;  ///< steps after which it repeats, a week or a year; 0: not known
  /// Steps since a fixed day, by its dates: two series have the same place in the period at the
  /// same date. 0: no dates.
  std::int64_t first_step = 0;
};

/// First window of val and of test, and their end: train is [0, val), val [val, test), test
/// [test, end). Window i sees steps [i, i + lags) and predicts [i + lags, i + lags + horizon).
struct WindowSplit {
  std::int64_t val = 0;
  std::int64_t test = 0;
  std::int64_t end = 0;
};
/// There are T - lags - horizon + 1 windows. Throws base::Error if a part would be empty.
WindowSplit window_split(const SeriesData& series);

/// A file that a dataset was read from, and what it held.
struct InputFile {
  std::string path = {};
  std::string sha256 = {};
};

struct Dataset {
  std::string name = {};
  Task task = Task::kNodeBinary;
  std::string metric = {};    ///< the one that models are selected by: see train/metrics.h
  std::string protocol = {};  ///< split, label scale, mask, selection, in one line for people
  std::string source = {};    ///< file(s) read, or how it was made
  std::vector<InputFile> files = {};       ///< none for built-in data
  bool is_new = false;                     ///< read for a trained model: labels may be absent
  std::vector<std::string> notes = {};     ///< what a user should know, one line each
  std::string why = {};                    ///< why it is this task, for people
  std::vector<ColumnReport> columns = {};  ///< of a table
  std::variant<NodeData, GraphsData, SeriesData> content = {};
};

}  // namespace mpssm::data
