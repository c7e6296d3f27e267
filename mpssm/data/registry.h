// SPDX-License-Identifier: MIT
// The datasets known by name: files, checksums, where they come from, protocol.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

struct DatasetFile {
  std::string name;    ///< path below a data folder, e.g. "hetero/minesweeper.npz"; the bare file
                       ///< name works too
  std::string sha256;  ///< empty: not known
  std::string source;  ///< public place it comes from, for people
};

struct DatasetInfo {
  std::string name;
  std::string family;  ///< of datasets that share a recipe; see configs/
  Task task;
  std::string metric;
  std::string summary;             ///< one line
  std::string protocol;            ///< split, label scale, mask, selection
  std::vector<DatasetFile> files;  ///< all wanted
  std::vector<DatasetFile> alternatives =
      {};                     ///< the same data in another form, if those are absent
  std::string fallback = {};  ///< dataset to take, with a note, if the files are absent; "" = none
  std::string target = {};    ///< packed graphs: array that holds the labels
  std::int64_t lags = 0;      ///< series: steps a forecast sees; 0: those of its kind
  double period = 0.0;        ///< series: steps after which it repeats; 0: by its clock
  /// Series: its protocol standardises each node over all time, test included. No other data can be
  /// read the way its models know.
  bool over_all_time = false;
};

std::span<const DatasetInfo> registry();
const DatasetInfo* find_dataset(std::string_view name);  ///< nullptr if unknown

}  // namespace mpssm::data
