// SPDX-License-Identifier: MIT
// The commit that the program was built from; cmake/code_stamp.cmake writes the definitions.
#pragma once

namespace mpssm::cli::code_stamp {

extern const char* const kCommit;  ///< 40 digits; empty: not built in a checkout
extern const bool kDirty;          ///< sources differed from the commit

}  // namespace mpssm::cli::code_stamp
