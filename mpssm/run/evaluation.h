// SPDX-License-Identifier: MIT
// Trained models, one or several, judged on a part of their data or on other data.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/report/run_summary.h"

namespace mpssm::run {

struct EvaluateOptions {
  /// Run folders, files of models, folders of several runs; the last of several may be data.
  std::vector<std::string> runs = {};
  std::optional<std::string> data = {};  ///< other data than their own
  std::string part = {};                 ///< "train", "val", "test"; empty: test
  std::filesystem::path data_dir = {};
  std::function<void(const std::string&)> on_note = {};
};

/// In the order given. Throws base::Error if one cannot be opened, or if they have different
/// metrics and cannot be summed up.
std::vector<report::Evaluation> evaluate_runs(EvaluateOptions options);

}  // namespace mpssm::run
