// SPDX-License-Identifier: MIT
// The card of a dataset for people, and for programs.
#pragma once

#include <string>
#include <vector>

#include "mpssm/data/data_card.h"
#include "mpssm/report/text.h"

namespace mpssm::report {

struct CardLine {
  std::string what = {};
  std::string value = {};
};

/// What is known of the graph, the task and the split.
std::vector<CardLine> lines_of(const data::DataCard& card);

/// What each column became, below a row of titles; empty if there are no columns.
Rows column_rows(const data::DataCard& card);

/// A few lines, each "what: value", and a table of the columns; ends with a line end.
std::string text_of(const data::DataCard& card);

/// One JSON object, indented unless `indent` is negative.
std::string to_json(const data::DataCard& card, int indent = -1);

}  // namespace mpssm::report
