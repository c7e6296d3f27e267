// SPDX-License-Identifier: MIT
// Whole numbers as people list them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpssm::io {

/// "1:100", "0:1000:50", "11,12,100" or a mix; ascending, each once. Throws base::Error, which
/// starts with `where`, for other text, numbers beyond 0 to `max_value`, and too many of them.
std::vector<std::int64_t> parse_number_list(const std::string& where, const std::string& list,
                                            std::int64_t max_value, std::int64_t max_count);

}  // namespace mpssm::io
