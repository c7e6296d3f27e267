// SPDX-License-Identifier: MIT
// What a finished run was and gave, as a plain struct and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::report {

using Metrics = std::map<std::string, double>;

struct RunRecord {
  std::string version;
  std::string run;  ///< folder
  std::string dataset;
  std::string task;
  std::string metric;    ///< by which the best step was selected, on validation
  std::string protocol;  ///< split, label scale, mask
  std::int64_t seed = 0;
  std::int64_t split = 0;
  std::int64_t num_parameters = 0;
  std::int64_t steps = 0;
  std::int64_t best_step = 0;
  std::map<std::string, Metrics> metrics = {};  ///< "val", "test"
  struct Reference {
    std::string name;
    Metrics test;
  };
  std::vector<Reference> references = {};  ///< simple predictors on the same test part
  double seconds = 0.0;
  double peak_mib = 0.0;
};

/// One JSON object; numbers that are not finite become null.
std::string to_json(const RunRecord& record, int indent = -1);

/// The record back: null becomes a NaN again, all other numbers are the same to the bit. Throws
/// base::Error beginning with `origin` ("runs/a/record.json") if the text is none.
RunRecord run_record_from_json(std::string_view text, const std::string& origin);

}  // namespace mpssm::report
