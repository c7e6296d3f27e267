// SPDX-License-Identifier: MIT
#include "mpssm/data/partition.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <span>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/io/safetensors.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

fs::path piece_path(const fs::path& folder, std::int64_t piece) {
  return folder / fmt::format("part-{}.safetensors", piece);
}
/// Entries of its rows in double; where they are is in the file of the part. Trainings do not read
/// it.
fs::path operator_path(const fs::path& folder, std::int64_t piece) {
  return folder / fmt::format("operator-{}.safetensors", piece);
}

template <typename T>
constexpr const char* dtype_of() {
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, double>) return "F64";
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

template <typename T>
PartitionRows<T> rows_of(const kernels::CsrView<T>& a, const Renumbered& order,
                         std::int64_t piece) {
  PartitionRows<T> rows;
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

std::int64_t halo_of(const PartitionRows<float>& rows, std::int64_t first, std::int64_t last) {
  std::vector<std::int32_t> others;
  for (const std::int32_t column : rows.col) {
    if (column < first || column >= last) others.push_back(column);
  }
  std::sort(others.begin(), others.end());
  return std::unique(others.begin(), others.end()) - others.begin();
}

void put_rows(const std::string& name, const PartitionRows<float>& rows, io::SafeTensors& file) {
  file.tensors[name + ".row_ptr"] = raw(rows.row_ptr);
  file.tensors[name + ".col"] = raw(rows.col);
  file.tensors[name + ".value"] = raw(rows.value);
}

/// Rows of `nodes` nodes behind those that are there, with the entries in `values`, which may be
/// the same file; columns are numbers of one of `all` nodes.
template <typename T>
void take_rows(io::SafeTensors& file, io::SafeTensors& values, const std::string& name,
               std::int64_t nodes, std::int64_t all, const std::string& origin,
               PartitionRows<T>& rows) {
  std::vector<std::int64_t> row_ptr;
  take(file, name + ".row_ptr", nodes + 1, origin, row_ptr);
  const std::int64_t before = rows.row_ptr.back();
  const auto first_column = static_cast<std::ptrdiff_t>(rows.col.size());
  const bool is_sorted = row_ptr[0] == 0 && std::is_sorted(row_ptr.begin(), row_ptr.end());
  if (is_sorted) {
    take(file, name + ".col", row_ptr.back(), origin, rows.col);
    take(values, name + ".value", row_ptr.back(), origin, rows.value);
  }
  const bool is_inside =
      is_sorted && std::all_of(rows.col.begin() + first_column, rows.col.end(),
                               [&](std::int32_t c) { return c >= 0 && c < all; });
  if (!is_inside) throw base::Error(origin, name + ": these are not the rows of an operator");
  for (std::int64_t i = 1; i <= nodes; ++i) rows.row_ptr.push_back(before + row_ptr[i]);
}

/// What is in a file, if that is the one that was written.
io::SafeTensors read_checked(const fs::path& path, const std::string& sha256) {
  if (io::sha256_of_file(path) != sha256) {
    throw base::Error(path.string(),
                      "is not what the index says; cut the data again: mpssm data partition");
  }
  return io::read_safetensors(path);
}

io::SafeTensors operator_of(const graph::Gso& gso, const Renumbered& order, std::int64_t piece) {
  io::SafeTensors file;
  file.tensors["rows.value"] = raw(rows_of(gso.view<double>(), order, piece).value);
  if (!gso.is_symmetric()) {
    file.tensors["transposed.value"] =
        raw(rows_of(gso.transpose_view<double>(), order, piece).value);
  }
  file.metadata["format"] = kPartitionFormat;
  return file;
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

}  // namespace

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
    const PartitionRows<float> rows = rows_of(gso.view<float>(), order, p);
    put_rows("rows", rows, file);
    if (!gso.is_symmetric()) {
      put_rows("transposed", rows_of(gso.transpose_view<float>(), order, p), file);
    }
    io::write_safetensors(piece_path(folder, p), file);
    io::write_safetensors(operator_path(folder, p), operator_of(gso, order, p));
    index.pieces.push_back({.sha256 = io::sha256_of_file(piece_path(folder, p)),
                            .operator_sha256 = io::sha256_of_file(operator_path(folder, p)),
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
  io::write_file(partition_index_path(folder), to_json(index));
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
    const std::string origin = piece_path(folder, p).string();
    io::SafeTensors file = read_checked(origin, index.pieces[p].sha256);
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
    take_rows(file, file, "rows", count, all, origin, result.rows);
    if (!index.is_symmetric) {
      take_rows(file, file, "transposed", count, all, origin, result.transposed);
    }
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

PartitionOperator read_partition_operator(const fs::path& folder, const PartitionIndex& index,
                                          std::int64_t begin, std::int64_t end) {
  PartitionOperator result;
  const std::int64_t all = index.num_nodes();
  for (std::int64_t p = begin; p < end; ++p) {
    const std::string origin = piece_path(folder, p).string();
    io::SafeTensors file = read_checked(origin, index.pieces[p].sha256);
    file.tensors.erase("features");
    io::SafeTensors exact = read_checked(operator_path(folder, p), index.pieces[p].operator_sha256);
    const std::int64_t count = index.pieces[p].nodes;
    take(file, "number", count, origin, result.number);
    if (index.has_node_ids) take_names(file, count, origin, result.node_ids);
    take_rows(file, exact, "rows", count, all, origin, result.rows);
    if (!index.is_symmetric) {
      take_rows(file, exact, "transposed", count, all, origin, result.transposed);
    }
    result.bounds.push_back(result.bounds.back() + count);
  }
  return result;
}

}  // namespace mpssm::data
