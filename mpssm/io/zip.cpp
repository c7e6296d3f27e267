// SPDX-License-Identifier: MIT
#include "mpssm/io/zip.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <new>
#include <unordered_set>
#include <utility>

#define ZLIB_CONST  // input as const pointer
#include <zlib.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/zip_format.h"

namespace mpssm::io {
namespace {

using base::Error;
using base::printable;

constexpr std::uint64_t kMaxDeflateRatio = 1032;               // 258 bytes from two bits
constexpr std::uint64_t kMaxOutput = std::uint64_t{1} << 30;   // of one call of zlib
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 18;  // of a file that are read at once

[[noreturn]] void fail_damaged(const std::string& where, const std::string& what) {
  throw Error(where, "damaged zip archive: " + what + "; copy or download the file again");
}

// View of [offset, offset + size), or an error if that is not inside.
std::string_view slice(const std::string& where, std::string_view bytes, std::uint64_t offset,
                       std::uint64_t size, const std::string& what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    fail_damaged(where, what + " lies outside the file");
  }
  return bytes.substr(offset, size);
}

// The same of a file, read.
std::string slice(const std::string& where, const FileBytes& file, std::uint64_t offset,
                  std::uint64_t size, const std::string& what) {
  if (offset > file.size() || size > file.size() - offset) {
    fail_damaged(where, what + " lies outside the file");
  }
  return file.read(offset, size);
}

template <typename T>
T field(std::string_view record, std::size_t offset) {
  return load<T>(record.data() + offset);
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  std::uint64_t end = 0;  // where the record that tells this begins
};

// The record at the end of the file may be followed by a comment, which may look like a record.
std::uint64_t find_end_record(const std::string& where, const FileBytes& file) {
  constexpr std::uint64_t kLongest = kEndBytes + std::numeric_limits<std::uint16_t>::max();
  const std::uint64_t size = std::min(kLongest, file.size());
  const std::string end = file.read(file.size() - size, size);
  for (std::size_t tail = kEndBytes; tail <= end.size(); ++tail) {
    const std::string_view record = std::string_view(end).substr(end.size() - tail);
    if (field<std::uint32_t>(record, 0) == kEndSignature &&
        field<std::uint16_t>(record, 20) == tail - kEndBytes) {
      return file.size() - tail;
    }
  }
  if (file.size() >= 4 && field<std::uint32_t>(file.read(0, 4), 0) == kLocalSignature) {
    fail_damaged(where, "it is cut off, its directory is missing");
  }
  throw Error(where, "expected a zip archive (.npz), got something else");
}

Directory read_end64(const std::string& where, const FileBytes& file, std::uint64_t end) {
  if (end < kEnd64LocatorBytes) fail_damaged(where, "expected zip64 records before its end");
  const std::string locator = file.read(end - kEnd64LocatorBytes, kEnd64LocatorBytes);
  if (field<std::uint32_t>(locator, 0) != kEnd64LocatorSignature) {
    fail_damaged(where, "expected a zip64 locator before its end");
  }
  const auto offset = field<std::uint64_t>(locator, 8);
  const std::string record = slice(where, file, offset, kEnd64Bytes, "zip64 record");
  if (field<std::uint32_t>(record, 0) != kEnd64Signature) {
    fail_damaged(where, fmt::format("expected a zip64 record at byte {}", offset));
  }
  return {.offset = field<std::uint64_t>(record, 48),
          .size = field<std::uint64_t>(record, 40),
          .count = field<std::uint64_t>(record, 32),
          .end = offset};
}

Directory find_directory(const std::string& where, const FileBytes& file) {
  const std::uint64_t end = find_end_record(where, file);
  const std::string record = file.read(end, kEndBytes);
  Directory directory = {.offset = field<std::uint32_t>(record, 16),
                         .size = field<std::uint32_t>(record, 12),
                         .count = field<std::uint16_t>(record, 10),
                         .end = end};
  if (directory.offset == kIn64 || directory.size == kIn64 || directory.count == kIn64Short) {
    directory = read_end64(where, file, end);
  } else if (field<std::uint16_t>(record, 4) != 0 || field<std::uint16_t>(record, 6) != 0) {
    throw Error(where, "expected a zip archive of one part, got part of a split one");
  }
  if (directory.offset > directory.end || directory.size != directory.end - directory.offset) {
    fail_damaged(where, "its directory is not where its end says");
  }
  return directory;
}

// Body of the zip64 field among the extra fields; empty if there is none.
std::string_view find_zip64(const std::string& where, std::string_view extra) {
  while (extra.size() >= 4) {
    const auto id = field<std::uint16_t>(extra, 0);
    const std::string_view body =
        slice(where, extra, 4, field<std::uint16_t>(extra, 2), "an extra field");
    if (id == kZip64Field) return body;
    extra.remove_prefix(4 + body.size());
  }
  return {};
}

// Each value that did not fit its 32 bits comes next in the zip64 field.
void take_from_zip64(const std::string& where, std::uint64_t& value, std::string_view& zip64) {
  if (value != kIn64) return;
  value = field<std::uint64_t>(slice(where, zip64, 0, 8, "a zip64 size"), 0);
  zip64.remove_prefix(8);
}

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Data begins behind the local header, whose own sizes are not used: they may be unset.
Extent locate_data(const std::string& where, const FileBytes& file, std::uint64_t header_offset,
                   ZipEntry& entry) {
  const std::string name = "entry '" + printable(entry.name) + "'";
  const std::string header = slice(where, file, header_offset, kLocalBytes, name);
  const auto name_bytes = field<std::uint16_t>(header, 26);
  if (field<std::uint32_t>(header, 0) != kLocalSignature ||
      field<std::uint16_t>(header, 8) != entry.method ||
      slice(where, file, header_offset + kLocalBytes, name_bytes, name) != entry.name) {
    fail_damaged(where, name + " is not where the directory says");
  }
  entry.data_offset = header_offset + kLocalBytes + name_bytes + field<std::uint16_t>(header, 28);
  if (entry.data_offset > file.size() || entry.compressed_size > file.size() - entry.data_offset) {
    fail_damaged(where, name + " lies outside the file");
  }
  return {.begin = header_offset, .end = entry.data_offset + entry.compressed_size};
}

void check_apart(const std::string& where, std::vector<Extent> extents, std::uint64_t limit) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  extents.push_back({.begin = limit, .end = limit});
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i - 1].end > extents[i].begin) fail_damaged(where, "its entries overlap");
  }
}

// Takes one record off the front of `records`.
ZipEntry take_entry(const std::string& where, std::string_view& records,
                    std::uint64_t& header_offset) {
  const std::string_view record = slice(where, records, 0, kCentralBytes, "a directory entry");
  if (field<std::uint32_t>(record, 0) != kCentralSignature) {
    fail_damaged(where, "expected another directory entry");
  }
  const auto name_bytes = field<std::uint16_t>(record, 28);
  const auto extra_bytes = field<std::uint16_t>(record, 30);
  const auto comment_bytes = field<std::uint16_t>(record, 32);
  const std::size_t total = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  slice(where, records, 0, total, "a directory entry");
  ZipEntry entry = {.name = std::string(records.substr(kCentralBytes, name_bytes)),
                    .data_offset = 0,
                    .compressed_size = field<std::uint32_t>(record, 20),
                    .size = field<std::uint32_t>(record, 24),
                    .crc = field<std::uint32_t>(record, 16),
                    .method = field<std::uint16_t>(record, 10),
                    .flags = field<std::uint16_t>(record, 8)};
  header_offset = field<std::uint32_t>(record, 42);
  std::string_view zip64 =
      find_zip64(where, records.substr(kCentralBytes + name_bytes, extra_bytes));
  take_from_zip64(where, entry.size, zip64);
  take_from_zip64(where, entry.compressed_size, zip64);
  take_from_zip64(where, header_offset, zip64);
  records.remove_prefix(total);
  return entry;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const std::string& where, const FileBytes& file) {
  const Directory directory = find_directory(where, file);
  const std::string content = file.read(directory.offset, directory.size);
  std::string_view records = content;
  std::vector<ZipEntry> entries;
  std::vector<Extent> extents;
  std::unordered_set<std::string> names;
  // The declared count may be huge: it ends this loop, it reserves no memory.
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    std::uint64_t header_offset = 0;
    ZipEntry& entry = entries.emplace_back(take_entry(where, records, header_offset));
    if (!names.insert(entry.name).second) {
      throw Error(where, "expected each name once, got '" + printable(entry.name) + "' twice");
    }
    extents.push_back(locate_data(where, file, header_offset, entry));
  }
  if (!records.empty()) fail_damaged(where, "its directory holds more than its end says");
  check_apart(where, std::move(extents), directory.offset);
  return entries;
}

void check_zip_entry(const std::string& where, const ZipEntry& entry) {
  if ((entry.flags & kEncryptionFlags) != 0)
    throw Error(where, "is encrypted; save it without password");
  if (entry.method != kStored && entry.method != kDeflated) {
    throw Error(where, fmt::format("expected stored or deflated data, got compression method {}; "
                                   "save it with numpy.savez_compressed",
                                   entry.method));
  }
  const bool fits = entry.method == kStored
                        ? entry.size == entry.compressed_size
                        : entry.size / kMaxDeflateRatio <= entry.compressed_size;
  if (!fits) {
    throw Error(where, fmt::format("declares {} bytes, which its {} bytes of data cannot hold",
                                   entry.size, entry.compressed_size));
  }
}

void ZipStream::Close::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

ZipStream::ZipStream(std::string where, const FileBytes& file, const ZipEntry& entry)
    : where_(std::move(where)),
      entry_(entry),
      file_(file),
      position_(entry.data_offset),
      compressed_(entry.compressed_size),
      remaining_(entry.size) {
  if (entry.method == kStored) return;
  inflater_.reset(new z_stream{});
  constexpr int kRawDeflate = -15;
  if (inflateInit2(inflater_.get(), kRawDeflate) != Z_OK) throw std::bad_alloc();
}

void ZipStream::read(std::span<std::byte> out) {
  if (out.size() > remaining_) throw Error(where_, "ends too early");
  if (out.empty()) return;  // zlib takes a null pointer as the start of a new checksum
  if (inflater_) {
    inflate_all(out);
  } else {
    take_compressed(out);
  }
  remaining_ -= out.size();
  crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), out.size());
}

void ZipStream::take_compressed(std::span<std::byte> out) {
  file_.read(position_, out);
  position_ += out.size();
  compressed_ -= out.size();
}

void ZipStream::inflate_all(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto chunk = static_cast<std::uint32_t>(std::min<std::uint64_t>(out.size(), kMaxOutput));
    std::uint32_t free_bytes = chunk;
    const int status = inflate_some(out.data(), free_bytes);
    out = out.subspan(chunk - free_bytes);
    const bool goes_on = status == Z_OK || (status == Z_STREAM_END && out.empty());
    if (!goes_on) fail_damaged(where_, "compressed data is broken or ends too early");
  }
}

int ZipStream::inflate_some(std::byte* out, std::uint32_t& free_bytes) {
  if (inflater_->avail_in == 0) {
    piece_.resize(std::min(compressed_, kPieceBytes));
    take_compressed(piece_);
    inflater_->next_in = reinterpret_cast<const Bytef*>(piece_.data());
    inflater_->avail_in = static_cast<uInt>(piece_.size());
  }
  inflater_->next_out = reinterpret_cast<Bytef*>(out);
  inflater_->avail_out = free_bytes;
  const int status = inflate(inflater_.get(), Z_NO_FLUSH);
  free_bytes = inflater_->avail_out;
  return status;
}

void ZipStream::finish() {
  bool at_end = remaining_ == 0;
  if (at_end && inflater_) {
    std::byte beyond = {};
    std::uint32_t free_bytes = 1;
    int status = Z_OK;
    do status = inflate_some(&beyond, free_bytes);
    while (status == Z_OK && free_bytes == 1);
    at_end = status == Z_STREAM_END && free_bytes == 1 && inflater_->avail_in == 0;
  }
  if (!at_end || compressed_ != 0) fail_damaged(where_, "data is longer than declared");
  if (crc_ != entry_.crc) fail_damaged(where_, "data does not match its checksum");
}

}  // namespace mpssm::io
