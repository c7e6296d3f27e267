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
std::string metrics_table(const std::string& part, const Metrics& metrics);
/// One run, judged on some part of some data.
struct Evaluation {
  std::string run = {};  ///< folder
  std::string dataset = {};
  std::string protocol = {};
  std::string part = {};  ///< "test", or "labelled" of other data
  std::string metric = {};
  Metrics metrics = {};
  std::string references = {};  ///< see references_of()
};
/// One: its metrics and references. Several: a line each, then mean, deviation and 95 % interval of
/// every metric that all of them have.
std::string summary_of(std::span<const Evaluation> evaluations);
std::string summary_json(std::span<const Evaluation> evaluations);

/// Several runs: a line each, then mean and sample deviation of the test metric.
std::string summary_of(std::span<const RunRecord> records);
/// The same for programs, with the records in it.
std::string summary_json(const std::string& folder, std::span<const RunRecord> records,
                         int indent = -1);

}  // namespace mpssm::report
