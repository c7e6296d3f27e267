// SPDX-License-Identifier: MIT
// Texts that are compressed with gzip.
#pragma once

#include <filesystem>
#include <string>

namespace mpssm::io {

/// read_file(), inflated if the name ends in ".gz". The text may take 512 MiB and 150 times the
/// size of the file on top; beyond, and for a damaged file, throws base::Error.
std::string read_text(const std::filesystem::path& path);

}  // namespace mpssm::io
