// SPDX-License-Identifier: MIT
// Where the datasets of the paper are, for tests that read real files.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace mpssm::testing {

/// $MPSSM_DATA, else shared/data beside the source tree; may be absent.
inline std::filesystem::path real_data() {
  const char* folder = std::getenv("MPSSM_DATA");
  return folder != nullptr ? std::filesystem::path(folder)
                           : std::filesystem::path(MPSSM_SOURCE_DIR) / "../shared/data";
}

}  // namespace mpssm::testing
