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

/// "0,2,5" or "0-9" or a mix, in the order given. Throws base::Error, which starts with `where`.
std::vector<std::int64_t> parse_ranges(const std::string& where, const std::string& list);

}  // namespace mpssm::io
