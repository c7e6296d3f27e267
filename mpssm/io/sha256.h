// SPDX-License-Identifier: MIT
// Fingerprints of texts and files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mpssm::io {

/// Lower-case hex.
std::string sha256(std::string_view content);

/// Of a file, read piece by piece. Throws InputError if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpssm::io
