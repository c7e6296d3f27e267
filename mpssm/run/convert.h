// SPDX-License-Identifier: MIT
// A trained run as another run that computes the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mpssm::run {

struct ConvertOptions {
  std::filesystem::path run = {};
  std::filesystem::path out = {};  ///< folder of the new run
  std::string to = "diagonal";     ///< the only form there is
  std::filesystem::path data_dir = {};
  /// How much rounding may grow: cond(V) of the eigenvectors of a W times the precision of its
  /// numbers, and the difference of the predictions on one sample over the largest of them.
  double tolerance = 1e-3;
};

struct Converted {
  std::string from = {};
  std::string to = {};
  std::vector<double> condition = {};  ///< cond(V) of each block
  std::int64_t channels = 0;
  std::int64_t state_channels = 0;  ///< real numbers of a diagonal state
  double difference = 0.0;          ///< of the predictions on the first sample, relative
};

/// Writes into options.out the run with every W = V S V^-1 diagonal (nn/diagonalise.h): the same
/// predictions up to rounding, its metrics evaluated anew. Throws base::Error if the run is no
/// MP-SSM with a dense W, or with the numbers if the tolerance is not kept; nothing is written
/// then.
Converted convert(const ConvertOptions& options);

std::string to_text(const Converted& converted);
std::string to_json(const Converted& converted);

}  // namespace mpssm::run
