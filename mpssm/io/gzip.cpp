// SPDX-License-Identifier: MIT
#include "mpssm/io/gzip.h"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <limits>
#include <memory>

#define ZLIB_CONST  // input is const
#include <zlib.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"

namespace mpssm::io {
namespace {

std::string inflate_all(const std::filesystem::path& path, const std::string& packed) {
  constexpr int kGzipOnly = 16;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closed(&stream, inflateEnd);
  const std::uint64_t limit = (std::uint64_t{512} << 20) + 150 * std::uint64_t{packed.size()};
  std::string text;
  std::string piece(std::size_t{1} << 18, '\0');
  std::size_t given = 0;
  bool is_complete = false;  // at the end of a member; files may be several, one behind the other
  while (given < packed.size() || stream.avail_in > 0) {
    if (stream.avail_in == 0) {
      const std::size_t count =
          std::min<std::size_t>(packed.size() - given, std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<const Bytef*>(packed.data() + given);
      stream.avail_in = static_cast<uInt>(count);
      given += count;
    }
    if (is_complete) inflateReset(&stream);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) {
      throw base::Error(path, "expected a file compressed with gzip, got a damaged or other one");
    }
    is_complete = code == Z_STREAM_END;
    text.append(piece, 0, piece.size() - stream.avail_out);
    if (text.size() > limit) {
      throw base::Error(path, fmt::format("expected at most {} MiB of text, got more; unpack it if "
                                          "it is meant to be that large",
                                          limit >> 20));
    }
  }
  if (!is_complete) throw base::Error(path, "expected a whole gzip file, got one that is cut off");
  return text;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::string content = read_file(path);
  return path.extension() == ".gz" ? inflate_all(path, content) : content;
}

}  // namespace mpssm::io
