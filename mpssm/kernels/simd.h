// SPDX-License-Identifier: MIT
// Which instruction set the kernels run on: the best the CPU has, unless told otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpssm::kernels {

/// Names of the instruction sets built in and supported by this CPU, best first ("AVX2", "SSE4",
/// ...).
std::vector<std::string> simd_targets();

/// The one in use, as the kernels themselves report it.
std::string active_simd_target();

/// Forces one of simd_targets(); "" goes back to the best. Not for use while kernels run.
/// Throws std::invalid_argument listing the names.
void set_simd_target(std::string_view name);

}  // namespace mpssm::kernels
