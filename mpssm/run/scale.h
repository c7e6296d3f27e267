// SPDX-License-Identifier: MIT
// `mpssm plan`: from data or from numbers to what a step costs on so many ranks; and the prices of
// work on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/ranks/scale_plan.h"
#include "mpssm/train/config.h"

namespace mpssm::run {

struct ScaleRequest {
  std::string data = {};                   ///< name or path; empty: `query` says it all
  std::vector<std::string> settings = {};  ///< KEY=VALUE, of the training on these data
  ranks::ScaleQuery query = {};
  std::string network = {};            ///< "25Gbit"; empty: one machine
  std::filesystem::path costs = {};    ///< prices, as kept by a measurement
  std::filesystem::path measure = {};  ///< measure them and write them here
  bool json = false;
};

/// The plan, for people or as JSON. Throws base::Error.
std::string answer(const ScaleRequest& request);

/// What the request asks: sizes of data are counted (one graph is cut into parts for that), all
/// else is taken as given. Throws base::Error.
ranks::ScaleQuery scale_query(const ScaleRequest& request);

/// Prices that are asked for: measured now, read, or the built-in ones.
ranks::ScaleCosts scale_costs(const ScaleRequest& request);

/// Processor time of training steps of small networks and of exchanges between two ranks of this
/// machine; some thirty seconds.
ranks::ScaleCosts measure_scale_costs();

}  // namespace mpssm::run
