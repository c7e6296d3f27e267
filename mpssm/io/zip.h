// SPDX-License-Identifier: MIT
// Private to io/: zip archives, read as hostile input. What a file declares is checked against the
// bytes that are there before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/io/file.h"

struct z_stream_s;

namespace mpssm::io {

struct ZipEntry {
  std::string name;
  std::uint64_t data_offset = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
};

/// All entries, in the order of the directory: inside the file, apart from each other, each name
/// once. `where` starts the messages of base::Error.
std::vector<ZipEntry> read_zip_directory(const std::string& where, const FileBytes& file);

/// Throws base::Error if the entry is encrypted, not stored or deflated, or declares more bytes
/// than its data can give.
void check_zip_entry(const std::string& where, const ZipEntry& entry);

/// Bytes of a checked entry from first to last, inflated into the caller's memory. `file` and
/// `entry` have to outlive it.
class ZipStream {
 public:
  ZipStream(std::string where, const FileBytes& file, const ZipEntry& entry);

  std::uint64_t remaining() const { return remaining_; }  ///< as declared
  /// Fills `out`; throws base::Error if the data ends before.
  void read(std::span<std::byte> out);
  /// Throws base::Error unless the data ends here and its CRC is right.
  void finish();

 private:
  struct Close {
    void operator()(z_stream_s* stream) const;
  };
  void take_compressed(std::span<std::byte> out);
  void inflate_all(std::span<std::byte> out);
  int inflate_some(std::byte* out, std::uint32_t& free_bytes);

  std::string where_;
  const ZipEntry& entry_;
  const FileBytes& file_;
  std::uint64_t position_;             // in the file, of what is not yet read
  std::uint64_t compressed_;           // bytes of that
  std::vector<std::byte> piece_ = {};  // of it, handed to zlib
  std::uint64_t remaining_;
  std::uint32_t crc_ = 0;
  std::unique_ptr<z_stream_s, Close> inflater_;  // null if stored
};

/// Builds an archive piece by piece, dates fixed. Each function returns the bytes to write next.
class ZipWriter {
 public:
  /// Deflates one entry, whose content comes in `pieces`. Throws base::Error beyond the limits of
  /// plain zip: 4 GiB for entry and archive, 65534 entries, names of 65535 bytes.
  std::string add(const std::string& where, const std::string& name,
                  std::span<const std::string_view> pieces);
  /// The directory, with a comment on the whole archive (less than 64 KiB).
  std::string finish(std::string_view comment = {}) const;

 private:
  std::string directory_;
  std::uint64_t written_ = 0;
  std::uint16_t count_ = 0;
};

}  // namespace mpssm::io
