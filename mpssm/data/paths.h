// SPDX-License-Identifier: MIT
// Private to data/: what a path is, and what a dataset read from it is called.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"

namespace mpssm::data {

/// What there is of this name. Throws base::Error if the system failed to look: a file that it
/// could not see for a moment must not pass for one that is absent.
inline std::filesystem::file_type type_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::none && error == std::errc::io_error) {
    throw base::Error(path.string(), "cannot be looked at: " + error.message());
  }
  return type;
}
inline bool is_file(const std::filesystem::path& path) {
  return type_of(path) == std::filesystem::file_type::regular;
}
inline bool is_folder(const std::filesystem::path& path) {
  return type_of(path) == std::filesystem::file_type::directory;
}

/// A table, maybe a compressed one.
inline bool is_csv(const std::filesystem::path& path) {
  const std::filesystem::path extension = path.extension();
  return extension == ".csv" || (extension == ".gz" && path.stem().extension() == ".csv");
}

/// The table of this name in a folder, "nodes" for nodes.csv or nodes.csv.gz; empty: there is none.
inline std::filesystem::path table_in(const std::filesystem::path& folder, const char* name) {
  for (const char* ending : {".csv", ".csv.gz"}) {
    const std::filesystem::path path = folder / (std::string(name) + ending);
    if (is_file(path)) return path;
  }
  return {};
}

/// "nodes" of "data/nodes.csv.gz".
inline std::string table_name(const std::filesystem::path& path) {
  const std::filesystem::path stem = path.stem();
  return path.extension() == ".gz" ? stem.stem().string() : stem.string();
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
