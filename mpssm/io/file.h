// SPDX-License-Identifier: MIT
// Whole files: read with a limit, written so that a crash leaves the old or the new one, never
// half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mpssm::io {

inline constexpr std::int64_t kMaxFileBytes = std::int64_t{8} << 30;

/// Throws base::Error ("PATH: cannot open: No such file or directory", too large, is a folder,
/// ...).
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = kMaxFileBytes);

/// An open file, read where one likes, without holding the whole of it. Copies share it.
class FileBytes {
 public:
  /// Throws base::Error as read_file() does.
  explicit FileBytes(const std::filesystem::path& path, std::int64_t max_bytes = kMaxFileBytes);

  std::uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from `offset` on, which are inside the file. Throws base::Error if
  /// the file has become shorter.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::string read(std::uint64_t offset, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  std::uint64_t size_ = 0;
};

/// Writes a hidden temporary file beside `path`, syncs it, renames it over `path`, syncs the
/// folder. On any failure (disk full, no permission) removes the temporary file, leaves `path` as
/// it was and throws base::Error with the reason.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for content made piece by piece: `produce` is handed a sink to call with each piece.
using Sink = std::function<void(std::string_view)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& produce);

/// How the files of one kind that we write are told from all others: by their first or last bytes.
struct FileMark {
  std::string_view bytes;
  std::string_view kind;  ///< for the message: "predictions of this model"
  bool at_end = false;
};

/// Before a file that a user named is written: throws base::Error if `path` is there already, holds
/// something and does not carry the mark. A typing error must not cost a table.
void check_replaceable(const std::filesystem::path& path, const FileMark& mark);

/// Hands a file to `take` piece by piece, without ever holding the whole of it.
void read_pieces(const std::filesystem::path& path, const Sink& take);

/// base::sha256 of a file, read piece by piece.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpssm::io
