// SPDX-License-Identifier: MIT
// Private to data/: what a path is, and what a dataset read from it is called.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "mpssm/base/printable.h"

namespace mpssm::data {

inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}
inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// The last part of the path that is a name: "data/people/" is people.
inline std::string name_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  const std::filesystem::path last = (error ? path : whole).filename();
  const std::filesystem::path name = is_folder(path) ? last : last.stem();
  // Of the current folder, say, whose name nobody has checked.
  return base::printable(name.empty() ? path.string() : name.string(), 200);
}

}  // namespace mpssm::data
