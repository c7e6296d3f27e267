// SPDX-License-Identifier: MIT
// The card of a dataset for people, and for programs.
#pragma once

#include <string>

#include "mpssm/data/data_card.h"

namespace mpssm::report {

/// A few lines, each "what: value", and a table of the columns; ends with a line end.
std::string text_of(const data::DataCard& card);

/// One JSON object, indented unless `indent` is negative.
std::string to_json(const data::DataCard& card, int indent = -1);

}  // namespace mpssm::report
