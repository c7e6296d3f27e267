// SPDX-License-Identifier: MIT
// The version of the library; CMake reads it from here.
#pragma once

namespace mpssm {

inline constexpr const char* kVersion = "0.2.0";

}  // namespace mpssm
