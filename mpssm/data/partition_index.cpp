// SPDX-License-Identifier: MIT
// partition.json: what a folder of parts says of itself.
#include <limits>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/data/partition.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"

namespace mpssm::data {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

ordered_json json_of(const PartitionIndex& index) {
  ordered_json files = ordered_json::array();
  for (const InputFile& file : index.files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  ordered_json pieces = ordered_json::array();
  for (const PartitionIndex::Piece& piece : index.pieces) {
    pieces.push_back({{"sha256", piece.sha256},
                      {"operator_sha256", piece.operator_sha256},
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
                            .operator_sha256 = piece.at("operator_sha256"),
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

std::string to_json(const PartitionIndex& index) { return io::json_text(json_of(index), 1) + "\n"; }

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

}  // namespace mpssm::data
