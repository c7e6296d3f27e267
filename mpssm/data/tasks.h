// SPDX-License-Identifier: MIT
// Private to data/: what follows from the labels of files that no registry describes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

std::string_view default_metric(Task task);

/// Task of nodes with this many classes (0: numbers). Throws base::Error if `wanted` is another
/// one; two classes may also be learnt as kNodeClasses.
Task choose_node_task(const std::string& where, std::size_t num_classes,
                      std::optional<Task> wanted);
/// The same for nodes or graphs.
Task choose_task(const std::string& where, bool of_graphs, std::size_t num_classes,
                 std::optional<Task> wanted);

}  // namespace mpssm::data
