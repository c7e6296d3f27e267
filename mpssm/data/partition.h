// SPDX-License-Identifier: MIT
// One graph cut into parts, in a folder: a file for each part and an index, so that each of several
// processes reads its own nodes alone. No torch here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/partition.h"

namespace mpssm::data {

inline constexpr const char* kPartitionFormat = "mpssm-partition-2";

/// What partition.json says. Nodes are numbered anew, part by part: in each they stand as in the
/// data.
struct PartitionIndex {
  struct Piece {
    std::string sha256 = {};           ///< of its file
    std::string operator_sha256 = {};  ///< of the one with its entries of A in double
    std::int64_t nodes = 0;
    std::int64_t entries = 0;  ///< of its rows of A
    std::int64_t halo = 0;     ///< nodes of others that these rows read
  };
  std::string dataset = {};
  Task task = Task::kNodeBinary;
  std::string metric = {};
  std::string protocol = {};
  std::string source = {};  ///< name or path of the whole
  std::string target_name = {};
  std::vector<std::string> class_names = {};
  std::int64_t num_splits = 0;
  std::int64_t features = 0;
  bool has_node_ids = false;
  graph::GsoKind gso = graph::GsoKind::kSymNormalized;
  bool is_symmetric = true;  ///< A; else the parts hold rows of A' as well
  graph::PartitionMethod method = graph::PartitionMethod::kMetis;
  std::vector<InputFile> files = {};  ///< that were cut
  std::vector<Piece> pieces = {};
  std::string more = {};  ///< JSON of whoever wrote it

  std::int64_t num_pieces() const { return std::ssize(pieces); }
  std::int64_t num_nodes() const { return first(num_pieces()); }
  std::int64_t num_entries() const;
  std::int64_t first(std::int64_t piece) const;  ///< new number of its first node
};

/// Rows of A by their new numbers, entries in the order of the data.
template <typename T>
struct PartitionRows {
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col = {};
  std::vector<T> value = {};
};

/// Some parts that follow each other, as one.
struct PartitionNodes {
  NodeData nodes = {};                     ///< without a graph
  std::vector<std::int64_t> number = {};   ///< [nodes]: in the data
  std::vector<std::int64_t> bounds = {0};  ///< [parts + 1]: first node of each part, from 0
  PartitionRows<float> rows = {};          ///< of A
  PartitionRows<float> transposed = {};    ///< of A'; none if A is symmetric
};

/// The operator of such parts in double, and who their nodes are: for questions about the graph.
struct PartitionOperator {
  std::vector<std::int64_t> number = {};   ///< [nodes]: in the data
  std::vector<std::string> node_ids = {};  ///< [nodes]; empty: they go by number
  std::vector<std::int64_t> bounds = {0};  ///< as above
  PartitionRows<double> rows = {};         ///< of A
  PartitionRows<double> transposed = {};   ///< of A'; none if A is symmetric
};

/// Whether a path is such a folder.
bool is_partition(const std::filesystem::path& folder);
std::filesystem::path partition_index_path(const std::filesystem::path& folder);

/// Writes the parts and then the index into a folder that is new or empty. `part`: of each node,
/// see graph::partition_nodes(). The rest of the index is taken from `index`, whose pieces are
/// found here. Throws base::Error, also if the data are not nodes of one graph.
void write_partition(const std::filesystem::path& folder, const Dataset& dataset,
                     const graph::Gso& gso, const std::vector<std::int32_t>& part,
                     PartitionIndex index);

/// partition.json.
std::string to_json(const PartitionIndex& index);

/// Throws base::Error if it is not what write_partition() writes.
PartitionIndex read_partition_index(const std::filesystem::path& folder);

/// Parts [begin, end), each checked against the index. Throws base::Error.
PartitionNodes read_partition(const std::filesystem::path& folder, const PartitionIndex& index,
                              std::int64_t begin, std::int64_t end);
PartitionOperator read_partition_operator(const std::filesystem::path& folder,
                                          const PartitionIndex& index, std::int64_t begin,
                                          std::int64_t end);

}  // namespace mpssm::data
