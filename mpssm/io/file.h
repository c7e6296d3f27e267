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

/// Throws base::Error ("PATH: cannot open: No such file or directory", too large, is a folder,
/// ...).
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = kMaxFileBytes);

/// Writes a hidden temporary file beside `path`, syncs it, renames it over `path`, syncs the
/// folder. On any failure (disk full, no permission) removes the temporary file, leaves `path` as
/// it was and throws base::Error with the reason.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for content made piece by piece: `produce` is handed a sink to call with each piece.
using Sink = std::function<void(std::string_view)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& produce);

/// Before a file that a user named is written: throws base::Error if `path` is there already and
/// does not begin with `start`, what files of its kind begin with. A typing error must not cost a
/// table. `kind` is for the message: "predictions of this model".
void check_replaceable(const std::filesystem::path& path, std::string_view start,
                       std::string_view kind);

/// Hands a file to `take` piece by piece, without ever holding the whole of it.
void read_pieces(const std::filesystem::path& path, const Sink& take);

/// base::sha256 of a file, read piece by piece.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpssm::io
