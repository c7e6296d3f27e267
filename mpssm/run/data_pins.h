// SPDX-License-Identifier: MIT
// What a run keeps of its data: fingerprints of the files, how columns and classes were read, who
// was in which part. A trained model is never applied to data that were read in another way.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/analysis/graph_edit.h"
#include "mpssm/data/dataset.h"
#include "mpssm/task/preprocessing.h"

namespace mpssm::run {

struct DataPins {
  std::vector<data::InputFile> files = {};
  task::Preprocessing learned = {};
  /// Nodes or graphs: one of '0' (train), '1' (val), '2' (test), '3' (none) each.
  std::string parts = {};
  data::WindowSplit windows = {};  ///< series
  /// Link prediction: what is held out, in place of parts; the rest is train.
  std::optional<data::Links> links = {};
  std::string protocol = {};      ///< how they came about, for people
  analysis::GraphEdit edit = {};  ///< of the graph, before anything was learned on it
};

/// `split`: which of the node splits the run is trained on.
DataPins pin(const data::Dataset& dataset, std::int64_t split, const task::Preprocessing& learned);

/// Puts the parts, the scales and the changed edges of the run into data that were read again from
/// the same files. Throws base::Error if they have another size.
void apply_pins(const DataPins& pins, std::int64_t split, data::Dataset& dataset);

/// Empty if the files are what they were, else one phrase that names the first that is not.
std::string what_changed(const std::vector<data::InputFile>& then,
                         const std::vector<data::InputFile>& now);

std::string to_json(const DataPins& pins);
/// Throws base::Error, `origin` first.
DataPins pins_from_json(const std::string& text, const std::string& origin);

/// data.json of a run folder.
std::filesystem::path pins_path(const std::filesystem::path& folder);

}  // namespace mpssm::run
