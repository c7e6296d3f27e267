// SPDX-License-Identifier: MIT
// The datasets known by name, and whether their files are here.
#pragma once

#include <string>

#include "mpssm/data/load.h"

namespace mpssm::report {

/// A table; with those that are built in.
std::string dataset_list(const data::LoadOptions& options);
/// Those with files, as JSON.
std::string dataset_list_json(const data::LoadOptions& options);

}  // namespace mpssm::report
