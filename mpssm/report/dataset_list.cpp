// SPDX-License-Identifier: MIT
#include "mpssm/report/dataset_list.h"

#include <nlohmann/json.hpp>

#include "mpssm/data/registry.h"
#include "mpssm/io/json_text.h"
#include "mpssm/report/text.h"

namespace mpssm::report {

std::string dataset_list(const data::LoadOptions& options) {
  Rows rows = {{"name", "task", "metric", "here", ""}};
  for (const data::DatasetInfo& info : data::registry()) {
    rows.push_back({info.name, std::string(data::to_string(info.task)), info.metric,
                    data::is_present(info, options) ? "yes" : "no", info.summary});
  }
  rows.push_back({"board[:RxC]", "node_binary", "roc_auc", "yes", "Minesweeper board, built in"});
  rows.push_back({"properties:TASK[:N]", "", "log10_mse", "yes",
                  "graphs and their diameter, sssp, eccentricity or laplacian, built in"});
  return table(rows);
}

std::string dataset_list_json(const data::LoadOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::DatasetInfo& info : data::registry()) {
    json.push_back({{"name", info.name},
                    {"task", data::to_string(info.task)},
                    {"metric", info.metric},
                    {"present", data::is_present(info, options)},
                    {"summary", info.summary}});
  }
  return io::json_text(json);
}

}  // namespace mpssm::report
