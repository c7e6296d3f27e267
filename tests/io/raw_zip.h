// SPDX-License-Identifier: MIT
// For the tests of io/: .npz files made by hand, whose headers may lie.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <zlib.h>

#include "mpssm/io/bytes.h"
#include "mpssm/io/npz.h"

#include "tests/support/scratch.h"

namespace mpssm::testing {

using namespace mpssm::io;

// One member of a zip archive whose headers may lie.
struct Member {
  std::string name;
  std::string data;  // as it stands in the file
  std::uint32_t size = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::string local_name = {};  // empty: as in the directory
  std::string extra = {};       // in the directory
  std::optional<std::uint32_t> compressed_size = {};
  std::optional<std::uint32_t> offset = {};
};

inline std::uint32_t crc_of(std::string_view data) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

inline std::string deflated(std::string_view data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline Member stored_member(std::string name, const std::string& data) {
  return {.name = std::move(name),
          .data = data,
          .size = static_cast<std::uint32_t>(data.size()),
          .crc = crc_of(data)};
}

inline Member deflated_member(std::string name, const std::string& data) {
  Member member = stored_member(std::move(name), data);
  member.data = deflated(data);
  member.method = 8;
  return member;
}

// Sizes in the local headers stay unset, as when the archive was streamed.
inline std::string make_zip(const std::vector<Member>& members, std::string_view comment = "") {
  std::string file;
  std::string directory;
  for (const Member& member : members) {
    const auto offset = static_cast<std::uint32_t>(file.size());
    const std::string& local_name = member.local_name.empty() ? member.name : member.local_name;
    file += "PK\3\4";
    append(file, std::uint16_t{20});
    append(file, member.flags);
    append(file, member.method);
    file.append(16, '\0');
    append(file, static_cast<std::uint16_t>(local_name.size()));
    append(file, std::uint16_t{0});
    file += local_name + member.data;
    directory += "PK\1\2";
    append(directory, std::uint32_t{20 << 16 | 20});
    append(directory, member.flags);
    append(directory, member.method);
    append(directory, std::uint32_t{0});
    append(directory, member.crc);
    append(directory,
           member.compressed_size.value_or(static_cast<std::uint32_t>(member.data.size())));
    append(directory, member.size);
    append(directory, static_cast<std::uint16_t>(member.name.size()));
    append(directory, static_cast<std::uint16_t>(member.extra.size()));
    directory.append(10, '\0');
    append(directory, member.offset.value_or(offset));
    directory += member.name + member.extra;
  }
  std::string end = "PK\5\6" + std::string(4, '\0');
  append(end, static_cast<std::uint16_t>(members.size()));
  append(end, static_cast<std::uint16_t>(members.size()));
  append(end, static_cast<std::uint32_t>(directory.size()));
  append(end, static_cast<std::uint32_t>(file.size()));
  append(end, static_cast<std::uint16_t>(comment.size()));
  return file + directory + end + std::string(comment);
}

inline std::string npy(std::string_view dict, std::string_view data, char version = 1) {
  std::string file = "\x93NUMPY" + std::string(1, version) + std::string(1, '\0');
  if (version == 1) {
    append(file, static_cast<std::uint16_t>(dict.size()));
  } else {
    append(file, static_cast<std::uint32_t>(dict.size()));
  }
  return file.append(dict).append(data);
}

inline std::string dict(std::string_view descr, std::string_view shape,
                        std::string_view fortran = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran) +
         ", 'shape': " + std::string(shape) + ", }   \n";
}

inline const std::string kGoodNpy = npy(dict("<i4", "(2,)"), std::string("\1\0\0\0\2\0\0\0", 8));

inline Npz open_bytes(const std::string& file) {
  const Scratch scratch;
  return Npz::open(scratch.put("t.npz", file));
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

}  // namespace mpssm::testing
