// SPDX-License-Identifier: MIT
#include "mpssm/data/partition.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/io/safetensors.h"

namespace mpssm::data {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kPartitionFormat = "mpssm-partition-1";

fs::path piece_path(const fs::path& folder, std::int64_t piece) {
  return folder / fmt::format("part-{}.safetensors", piece);
}

template <typename T>
constexpr const char* dtype_of() {
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "I64";
  if constexpr (std::is_same_v<T, std::int32_t>) return "I32";
  return "U8";
}

template <typename T>
io::RawTensor raw(const std::vector<T>& values) {
  io::RawTensor tensor{.dtype = dtype_of<T>(), .shape = {std::ssize(values)}, .bytes = {}};
  const auto bytes = std::as_bytes(std::span(values));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

/// A tensor of a part, appended to `values` and freed.
template <typename T>
void take(io::SafeTensors& file, const std::string& name, std::int64_t count,
          const std::string& origin, std::vector<T>& values) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.dtype != dtype_of<T>() ||
      std::ssize(found->second.bytes) != count * static_cast<std::int64_t>(sizeof(T))) {
    throw base::Error({.where = origin + ": " + name,
                       .expected = fmt::format("{} numbers of type {}", count, dtype_of<T>()),
                       .got = found == file.tensors.end() ? "none" : "others"});
  }
  const std::size_t before = values.size();
  values.resize(before + static_cast<std::size_t>(count));
  std::memcpy(values.data() + before, found->second.bytes.data(), found->second.bytes.size());
  file.tensors.erase(found);
}

/// Numbers of nodes, part by part.
struct Renumbered {
  std::vector<std::int64_t> node;    // at each new number
  std::vector<std::int32_t> number;  // of each node
  std::vector<std::int64_t> bounds;
};

Renumbered renumber(const std::vector<std::int32_t>& part, std::int64_t parts) {
  Renumbered result;
  result.bounds.assign(parts + 1, 0);
  for (const std::int32_t p : part) ++result.bounds[p + 1];
  for (std::int64_t p = 0; p < parts; ++p) result.bounds[p + 1] += result.bounds[p];
  std::vector<std::int64_t> next(result.bounds.begin(), result.bounds.end() - 1);
  result.node.resize(part.size());
  result.number.resize(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::int64_t number = next[part[i]]++;
    result.node[number] = static_cast<std::int64_t>(i);
    result.number[i] = static_cast<std::int32_t>(number);
  }
  return result;
}

PartitionRows rows_of(const kernels::CsrView<float>& a, const Renumbered& order,
                      std::int64_t piece) {
  PartitionRows rows;
  for (std::int64_t n = order.bounds[piece]; n < order.bounds[piece + 1]; ++n) {
    const std::int64_t i = order.node[n];
    for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
      rows.col.push_back(order.number[a.col[e]]);
      rows.value.push_back(a.value[e]);
    }
    rows.row_ptr.push_back(std::ssize(rows.col));
  }
  return rows;
}

std::int64_t halo_of(const PartitionRows& rows, std::int64_t first, std::int64_t last) {
  std::vector<std::int32_t> others;
  for (const std::int32_t column : rows.col) {
    if (column < first || column >= last) others.push_back(column);
  }
  std::sort(others.begin(), others.end());
  return std::unique(others.begin(), others.end()) - others.begin();
}

void put_rows(const std::string& name, const PartitionRows& rows, io::SafeTensors& file) {
  file.tensors[name + ".row_ptr"] = raw(rows.row_ptr);
  file.tensors[name + ".col"] = raw(rows.col);
  file.tensors[name + ".value"] = raw(rows.value);
}

/// Rows of `nodes` nodes behind those that are there; columns are numbers of one of `all` nodes.
void take_rows(io::SafeTensors& file, const std::string& name, std::int64_t nodes, std::int64_t all,
               const std::string& origin, PartitionRows& rows) {
  std::vector<std::int64_t> row_ptr;
  take(file, name + ".row_ptr", nodes + 1, origin, row_ptr);
  const std::int64_t before = rows.row_ptr.back();
  const auto first_column = static_cast<std::ptrdiff_t>(rows.col.size());
  const bool is_sorted = row_ptr[0] == 0 && std::is_sorted(row_ptr.begin(), row_ptr.end());
  if (is_sorted) {
    take(file, name + ".col", row_ptr.back(), origin, rows.col);
    take(file, name + ".value", row_ptr.back(), origin, rows.value);
  }
  const bool is_inside =
      is_sorted && std::all_of(rows.col.begin() + first_column, rows.col.end(),
                               [&](std::int32_t c) { return c >= 0 && c < all; });
  if (!is_inside) throw base::Error(origin, name + ": these are not the rows of an operator");
  for (std::int64_t i = 1; i <= nodes; ++i) rows.row_ptr.push_back(before + row_ptr[i]);
}

io::SafeTensors piece_of(const NodeData& data, const Renumbered& order, std::int64_t piece) {
  io::SafeTensors file;
  std::vector<std::int64_t> number;
  std::vector<float> features;
  std::vector<float> target;
  std::vector<std::uint8_t> splits;
  std::vector<std::uint8_t> names;
  std::vector<std::int64_t> name_ends;
  for (std::int64_t n = order.bounds[piece]; n < order.bounds[piece + 1]; ++n) {
    const std::int64_t i = order.node[n];
    number.push_back(i);
    const float* row = data.features.values.data() + i * data.features.columns;
    features.insert(features.end(), row, row + data.features.columns);
    target.push_back(data.target[i]);
    if (data.node_ids.empty()) continue;
    names.insert(names.end(), data.node_ids[i].begin(), data.node_ids[i].end());
    name_ends.push_back(std::ssize(names));
  }
  for (const std::vector<Part>& split : data.splits) {
    for (const std::int64_t i : number) splits.push_back(static_cast<std::uint8_t>(split[i]));
  }
  file.tensors["number"] = raw(number);
  file.tensors["features"] = raw(features);
  file.tensors["target"] = raw(target);
  file.tensors["splits"] = raw(splits);
  if (!data.node_ids.empty()) {
    file.tensors["names"] = raw(names);
    file.tensors["name_ends"] = raw(name_ends);
  }
  file.metadata["format"] = kPartitionFormat;
  return file;
}

void take_names(io::SafeTensors& file, std::int64_t nodes, const std::string& origin,
                std::vector<std::string>& names) {
  std::vector<std::int64_t> ends;
  take(file, "name_ends", nodes, origin, ends);
  const bool is_sorted = std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || ends[0] >= 0);
  std::vector<std::uint8_t> text;
  if (is_sorted) take(file, "names", ends.empty() ? 0 : ends.back(), origin, text);
  if (!is_sorted) throw base::Error(origin, "name_ends: expected places in order");
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    names.emplace_back(text.begin() + begin, text.begin() + end);
    begin = end;
  }
}

ordered_json to_json(const PartitionIndex& index) {
  ordered_json files = ordered_json::array();
  for (const InputFile& file : index.files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  ordered_json pieces = ordered_json::array();
  for (const PartitionIndex::Piece& piece : index.pieces) {
    pieces.push_back({{"sha256", piece.sha256},
                      {"nodes", piece.nodes},
                      {"entries", piece.entries},
                      {"halo", piece.halo}});
  }
  return {{"format", kPartitionFormat},
          {"dataset", index.dataset},
          {"task", to_string(index.task)},
          {"metric", index.metric},
          {"protocol", index.protocol},
          {"source", index.source},
          {"target_name", index.target_name},
          {"class_names", index.class_names},
          {"splits", index.num_splits},
          {"features", index.features},
          {"node_ids", index.has_node_ids},
          {"gso", graph::to_string(index.gso)},
          {"symmetric", index.is_symmetric},
          {"method", graph::to_string(index.method)},
          {"files", files},
          {"parts", pieces},
          {"more", ordered_json::parse(index.more)}};
}

PartitionIndex index_from(const ordered_json& json) {
  PartitionIndex index;
  if (json.at("format") != kPartitionFormat) throw base::Error("written by another version");
  json.at("dataset").get_to(index.dataset);
  index.task = task_from_name(json.at("task").get<std::string>());
  json.at("metric").get_to(index.metric);
  json.at("protocol").get_to(index.protocol);
  json.at("source").get_to(index.source);
  json.at("target_name").get_to(index.target_name);
  json.at("class_names").get_to(index.class_names);
  json.at("splits").get_to(index.num_splits);
  json.at("features").get_to(index.features);
  json.at("node_ids").get_to(index.has_node_ids);
  index.gso = graph::gso_kind_from_name(json.at("gso").get<std::string>());
  json.at("symmetric").get_to(index.is_symmetric);
  index.method = graph::table_of(graph::PartitionMethod{})
                     .find(json.at("method").get<std::string>())
                     .value_or(graph::PartitionMethod::kRanges);
  for (const auto& file : json.at("files")) {
    index.files.push_back({.path = file.at("path"), .sha256 = file.at("sha256")});
  }
  std::int64_t nodes = 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const auto& piece : json.at("parts")) {
    index.pieces.push_back({.sha256 = piece.at("sha256"),
                            .nodes = piece.at("nodes"),
                            .entries = piece.at("entries"),
                            .halo = piece.at("halo")});
    if (index.pieces.back().nodes < 1 || index.pieces.back().nodes > kMost - nodes) {
      throw base::Error("a part has no nodes, or too many");
    }
    nodes += index.pieces.back().nodes;
  }
  if (index.pieces.empty() || index.num_splits < 1 || index.features < 0) {
    throw base::Error("no parts, no splits or no features");
  }
  index.more = json.at("more").dump();
  return index;
}

}  // namespace

std::int64_t PartitionIndex::num_entries() const {
  std::int64_t count = 0;
  for (const Piece& piece : pieces) count += piece.entries;
  return count;
}

std::int64_t PartitionIndex::first(std::int64_t piece) const {
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < piece; ++p) count += pieces[p].nodes;
  return count;
}

fs::path partition_index_path(const fs::path& folder) { return folder / "partition.json"; }

bool is_partition(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(partition_index_path(folder), ignored);
}

void write_partition(const fs::path& folder, const Dataset& dataset, const graph::Gso& gso,
                     const std::vector<std::int32_t>& part, PartitionIndex index) {
  const auto* data = std::get_if<NodeData>(&dataset.content);
  if (data == nullptr || data->links || data->target.empty() || data->splits.empty()) {
    throw base::Error(dataset.name,
                      fmt::format("expected one graph with labels of its nodes to cut, got {}",
                                  to_string(dataset.task)));
  }
  std::error_code ignored;
  if (fs::exists(folder) && !fs::is_empty(folder, ignored)) {
    throw base::Error(folder.string(), "is there already; give a new folder with --out");
  }
  fs::create_directories(folder);
  const std::int64_t parts = *std::max_element(part.begin(), part.end()) + 1;
  const Renumbered order = renumber(part, parts);
  index.pieces.clear();
  for (std::int64_t p = 0; p < parts; ++p) {
    io::SafeTensors file = piece_of(*data, order, p);
    const PartitionRows rows = rows_of(gso.view<float>(), order, p);
    put_rows("rows", rows, file);
    if (!gso.is_symmetric()) {
      put_rows("transposed", rows_of(gso.transpose_view<float>(), order, p), file);
    }
    io::write_safetensors(piece_path(folder, p), file);
    index.pieces.push_back({.sha256 = io::sha256_of_file(piece_path(folder, p)),
                            .nodes = order.bounds[p + 1] - order.bounds[p],
                            .entries = std::ssize(rows.col),
                            .halo = halo_of(rows, order.bounds[p], order.bounds[p + 1])});
  }
  index.dataset = dataset.name;
  index.task = dataset.task;
  index.metric = dataset.metric;
  index.protocol = dataset.protocol;
  index.files = dataset.files;
  index.target_name = data->target_name;
  index.class_names = data->class_names;
  index.num_splits = std::ssize(data->splits);
  index.features = data->features.columns;
  index.has_node_ids = !data->node_ids.empty();
  index.gso = gso.kind();
  index.is_symmetric = gso.is_symmetric();
  io::write_file(partition_index_path(folder), io::json_text(to_json(index), 1) + "\n");
}

PartitionIndex read_partition_index(const fs::path& folder) {
  const fs::path path = partition_index_path(folder);
  const std::string text = io::read_file(path);
  try {
    return index_from(ordered_json::parse(text));
  } catch (const base::Error& error) {
    throw error.within(path.string());
  } catch (const std::exception&) {
    throw base::Error(path.string(),
                      "is no index of parts; cut the data again: mpssm data partition");
  }
}

PartitionNodes read_partition(const fs::path& folder, const PartitionIndex& index,
                              std::int64_t begin, std::int64_t end) {
  PartitionNodes result;
  NodeData& nodes = result.nodes;
  nodes.features.columns = index.features;
  nodes.class_names = index.class_names;
  nodes.target_name = index.target_name;
  nodes.splits.resize(static_cast<std::size_t>(index.num_splits));
  const std::int64_t all = index.num_nodes();
  for (std::int64_t p = begin; p < end; ++p) {
    const fs::path path = piece_path(folder, p);
    const std::string origin = path.string();
    if (io::sha256_of_file(path) != index.pieces[p].sha256) {
      throw base::Error(origin,
                        "is not what the index says; cut the data again: mpssm data partition");
    }
    io::SafeTensors file = io::read_safetensors(path);
    const std::int64_t count = index.pieces[p].nodes;
    take(file, "number", count, origin, result.number);
    take(file, "features", count * index.features, origin, nodes.features.values);
    take(file, "target", count, origin, nodes.target);
    std::vector<std::uint8_t> splits;
    take(file, "splits", count * index.num_splits, origin, splits);
    for (std::int64_t s = 0; s < index.num_splits; ++s) {
      for (std::int64_t i = 0; i < count; ++i) {
        nodes.splits[s].push_back(static_cast<Part>(std::min<int>(splits[s * count + i], 3)));
      }
    }
    if (index.has_node_ids) take_names(file, count, origin, nodes.node_ids);
    take_rows(file, "rows", count, all, origin, result.rows);
    if (!index.is_symmetric) take_rows(file, "transposed", count, all, origin, result.transposed);
    result.bounds.push_back(result.bounds.back() + count);
  }
  nodes.features.rows = result.bounds.back();
  const auto is_label = [&](float y) {
    return std::isnan(y) || index.class_names.empty() ||
           (y >= 0.0F && y < static_cast<float>(index.class_names.size()) && y == std::floor(y));
  };
  if (!std::all_of(nodes.target.begin(), nodes.target.end(), is_label)) {
    throw base::Error(folder.string(), "a label is none of the classes");
  }
  return result;
}

}  // namespace mpssm::data
