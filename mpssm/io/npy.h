// SPDX-License-Identifier: MIT
// Private to io/: the header of NumPy's .npy format and the layouts it can announce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/io/npz.h"
#include "mpssm/io/zip.h"

namespace mpssm::io {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  bool is_big_endian = false;
  bool is_fortran_order = false;
  std::vector<std::int64_t> shape = {};
};

/// Reads magic, version and description off the front of the stream. Throws base::Error, beginning
/// with `where`.
NpyHeader read_npy_header(const std::string& where, ZipStream& stream);

/// Magic, version and description for an array in C order.
std::string write_npy_header(DType dtype, const std::vector<std::int64_t>& shape);

/// Some items as announced by `header` brought to native values.
void make_items_native(const NpyHeader& header, std::span<std::byte> items);

/// Bytes as announced by `header` brought to C order and native values.
void make_native(const NpyHeader& header, std::vector<std::byte>& bytes);

}  // namespace mpssm::io
