// SPDX-License-Identifier: MIT
// JSON as text that is always there: a name in other bytes than UTF-8 must not cost a finished run.
#pragma once

#include <string>

namespace mpssm::io {

/// `json` (of nlohmann's) on one line, or indented; bytes that are not UTF-8 become U+FFFD, where
/// dump() alone would throw.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mpssm::io
