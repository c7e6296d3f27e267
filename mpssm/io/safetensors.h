// SPDX-License-Identifier: MIT
// The safetensors format: a JSON header and raw tensors. Reading a hostile file can only give an
// error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mpssm::io {

/// One tensor; `dtype` as in the format: "F32", "F64", "I64", "I32", "U8", "BOOL", ...
struct RawTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct SafeTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, RawTensor> tensors;
};

/// Checks everything before use: header length against the file and 100 MB, JSON depth and types,
/// duplicate names, known dtypes, shapes without overflow that agree with the offsets, offsets that
/// cover the data area exactly, without holes or overlap. Throws base::Error naming file and
/// tensor.
SafeTensors read_safetensors(const std::filesystem::path& path);

/// Tensors sorted by name, data aligned to 8 bytes by padding the header with blanks. Atomic
/// (io::write_file). The same content gives the same bytes.
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);

}  // namespace mpssm::io
