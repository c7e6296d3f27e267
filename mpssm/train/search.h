// SPDX-License-Identifier: MIT
// The points of a search over settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpssm::train {

/// `axes`: "KEY=A,B,C" each. All combinations, the last axis fastest; or, if `random` > 0 and there
/// are more, that many different ones drawn at random (always the same ones). Each point is a list
/// of "KEY=VALUE". Throws base::Error: no '=', an empty value, a key given twice, more than
/// 100,000 combinations.
std::vector<std::vector<std::string>> search_points(const std::vector<std::string>& axes,
                                                    std::int64_t random);

/// Name of a folder for a point, made of its settings.
std::string folder_name(const std::vector<std::string>& settings);

}  // namespace mpssm::train
