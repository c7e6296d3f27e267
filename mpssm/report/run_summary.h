// SPDX-License-Identifier: MIT
// A record of a run for people.
#pragma once

#include <span>
#include <string>

#include "mpssm/report/run_record.h"

namespace mpssm::report {

/// Its metrics as tables: the one that counts first, references below.
std::string summary_of(const RunRecord& record);

/// Below each other what the model and its references give on test; empty if there are none.
std::string references_of(const RunRecord& record);

/// Metrics of one part as a table; those that are not defined there as "-", with the reason.
std::string metrics_of(const std::string& part, const Metrics& metrics);

/// Several runs: a line each, then mean and sample deviation of the test metric.
std::string summary_of(std::span<const RunRecord> records);
/// The same for programs, with the records in it.
std::string summary_json(const std::string& folder, std::span<const RunRecord> records,
                         int indent = -1);

}  // namespace mpssm::report
