// SPDX-License-Identifier: MIT
// A record of a run for people.
#pragma once

#include <string>

#include "mpssm/report/run_record.h"

namespace mpssm::report {

/// Its metrics as tables: the one that counts first, references below.
std::string summary_of(const RunRecord& record);

}  // namespace mpssm::report
