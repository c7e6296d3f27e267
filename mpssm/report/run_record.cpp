// SPDX-License-Identifier: MIT
#include "mpssm/report/run_record.h"

#include <nlohmann/json.hpp>

namespace mpssm::report {

std::string to_json(const RunRecord& record, int indent) {
  nlohmann::ordered_json references = nlohmann::ordered_json::object();
  for (const RunRecord::Reference& reference : record.references) {
    references[reference.name] = reference.test;
  }
  nlohmann::ordered_json json = {
      {"run", record.run},
      {"dataset", record.dataset},
      {"task", record.task},
      {"protocol", record.protocol},
      {"selected_by", record.metric},
      {"seed", record.seed},
      {"split", record.split},
      {"parameters", record.num_parameters},
      {"steps", record.steps},
      {"best_step", record.best_step},
      {"metrics", record.metrics},
      {"references", references},
      {"seconds", record.seconds},
      {"peak_mib", record.peak_mib},
      {"version", record.version},
  };
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace mpssm::report
