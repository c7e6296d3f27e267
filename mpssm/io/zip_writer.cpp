// SPDX-License-Identifier: MIT
#include <algorithm>
#include <fmt/core.h>
#include <new>

#define ZLIB_CONST  // input as const pointer
#include <zlib.h>

#include "mpssm/base/error.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/zip.h"
#include "mpssm/io/zip_format.h"

namespace mpssm::io {
namespace {

using base::Error;

constexpr std::uint16_t kVersion = 20;               // deflate
constexpr std::uint16_t kUnixVersion = 3 << 8 | 20;  // permissions as in Unix
constexpr std::uint32_t kReadableFile = 0100644u << 16;
constexpr std::uint32_t kFixedDate = 0x0021u << 16;  // 1 January 1980, 0:00

class Deflater {
 public:
  Deflater() {
    constexpr int kRawDeflate = -15;
    constexpr int kMemory = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  // The piece has less than 4 GiB.
  void add(std::string_view piece, std::string& out, int flush) {
    char buffer[1 << 15];
    stream_.next_in = reinterpret_cast<const Bytef*>(piece.data());
    stream_.avail_in = static_cast<uInt>(piece.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof(buffer);
      deflate(&stream_, flush);
      out.append(buffer, sizeof(buffer) - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_ = {};
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// What the local header and the directory have in common.
std::string common_header(const ZipEntry& entry) {
  std::string header;
  append(header, kVersion);
  append(header, entry.flags);
  append(header, entry.method);
  append(header, kFixedDate);
  append(header, entry.crc);
  append(header, static_cast<std::uint32_t>(entry.compressed_size));
  append(header, static_cast<std::uint32_t>(entry.size));
  append(header, static_cast<std::uint16_t>(entry.name.size()));
  append(header, std::uint16_t{0});  // no extra fields
  return header;
}

void append_directory_entry(std::string& directory, const ZipEntry& entry, std::uint64_t offset) {
  append(directory, kCentralSignature);
  append(directory, kUnixVersion);
  directory += common_header(entry);
  append(directory, std::uint16_t{0});  // no comment
  append(directory, std::uint16_t{0});  // first disk
  append(directory, std::uint16_t{0});  // binary
  append(directory, kReadableFile);
  append(directory, static_cast<std::uint32_t>(offset));
  directory += entry.name;
}

}  // namespace

std::string ZipWriter::add(const std::string& where, const std::string& name,
                           std::span<const std::string_view> pieces) {
  ZipEntry entry = {.name = name, .method = kDeflated};
  if (!is_ascii(name)) entry.flags = kUtf8Flag;
  for (const std::string_view piece : pieces) entry.size += piece.size();
  if (entry.size >= kIn64) {
    throw Error(where, fmt::format("expected less than 4 GiB, got {} bytes", entry.size));
  }
  if (count_ + 1 >= kIn64Short) throw Error(where, "expected less than 65535 arrays in one file");
  if (name.size() > kIn64Short) throw Error(where, "expected a name of at most 65535 bytes");
  Deflater deflater;
  std::string data;
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;  // zlib takes a null pointer as the start of a new checksum
    entry.crc = static_cast<std::uint32_t>(
        crc32_z(entry.crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
    deflater.add(piece, data, Z_NO_FLUSH);
  }
  deflater.add({}, data, Z_FINISH);
  entry.compressed_size = data.size();
  std::string bytes;
  append(bytes, kLocalSignature);
  bytes += common_header(entry) + name + data;
  append_directory_entry(directory_, entry, written_);
  written_ += bytes.size();
  ++count_;
  if (written_ + directory_.size() >= kIn64) throw Error(where, "makes the file reach 4 GiB");
  return bytes;
}

std::string ZipWriter::finish(std::string_view comment) const {
  std::string end = directory_;
  append(end, kEndSignature);
  append(end, std::uint32_t{0});  // one disk
  append(end, count_);
  append(end, count_);
  append(end, static_cast<std::uint32_t>(directory_.size()));
  append(end, static_cast<std::uint32_t>(written_));
  append(end, static_cast<std::uint16_t>(comment.size()));
  end += comment;
  return end;
}

}  // namespace mpssm::io
