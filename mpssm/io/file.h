// SPDX-License-Identifier: MIT
// Whole files: read with a limit, written so that a crash leaves the old or the new one, never
// half.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace mpssm::io {

inline constexpr std::int64_t kMaxFileBytes = std::int64_t{8} << 30;

/// Throws InputError ("PATH: cannot open: No such file or directory", too large, is a folder, ...).
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = kMaxFileBytes);

/// Writes a hidden temporary file beside `path`, syncs it, renames it over `path`, syncs the
/// folder. On any failure (disk full, no permission) removes the temporary file, leaves `path` as
/// it was and throws InputError with the reason.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for content made piece by piece: `produce` is handed a sink to call with each piece.
using Sink = std::function<void(std::string_view)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& produce);

/// Hands a file to `take` piece by piece, without ever holding the whole of it.
void read_pieces(const std::filesystem::path& path, const Sink& take);

}  // namespace mpssm::io
