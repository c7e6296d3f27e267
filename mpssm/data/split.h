// SPDX-License-Identifier: MIT
// Private to data/: making and checking the train, val and test parts of nodes and graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"

namespace mpssm::data {

/// Class of each node; 0 for every labelled node of a regression, -1 where there is no label.
std::vector<std::int32_t> classes_of(const NodeData& data);

/// The same for the graphs of many: 0 unless each graph has a class; -1 if nothing of it is
/// labelled.
std::vector<std::int32_t> classes_of(const GraphsData& data, Task task);

/// Random 50/25/25 split of the samples whose class is not -1, stratified: every class is in train,
/// no part is empty. Throws base::Error, starting with `where`, if there are too few samples.
std::vector<Part> random_split(const std::string& where, std::span<const std::int32_t> class_of,
                               std::uint64_t seed);

/// Adds a note if `options` has a seed for a split that is not random.
void note_unused_seed(const std::string& where, const LoadOptions& options,
                      std::vector<std::string>& notes);

/// For data that a trained model is applied to: every sample with a label counts as test.
std::vector<Part> all_labelled_in_test(std::span<const float> target);

/// Takes nodes without a label out of their parts, then throws base::Error if a part is empty or
/// a class is missing in train. Adds a note where val or test of two classes has one only.
void check_splits(const std::string& where, NodeData& data, std::vector<std::string>& notes);

/// The same for graphs.
void check_graph_split(const std::string& where, Task task, GraphsData& data);

/// Throws base::Error if train, val or test has none of the `samples`.
void check_parts(const std::string& where, std::span<const Part> part, const char* samples);

}  // namespace mpssm::data
