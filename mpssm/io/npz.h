// SPDX-License-Identifier: MIT
// NumPy's .npz: a zip of .npy arrays. Files are read as hostile input; pickles are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/io/file.h"

namespace mpssm::io {

enum class DType {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat32,
  kFloat64
};
std::size_t size_of(DType dtype);
std::string_view to_string(DType dtype);  ///< "bool", "int8", ..., "float64"

/// Dense array, C order, native (little-endian) bytes.
struct Array {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::byte> bytes = {};

  std::int64_t num_elements() const;
};

/// Array from typed values; T is one of the C++ types of DType. Throws std::invalid_argument if the
/// shape does not hold as many values.
template <typename T>
Array make_array(std::span<const T> values, std::vector<std::int64_t> shape);

struct ZipEntry;

/// What the front of an array says.
struct ArrayHeader {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape = {};
};

/// A small file can become a lot: compressed bytes give a thousand times as many, a byte becomes an
/// 8-byte number, an edge an entry of several tables. What is made of one file may take this much
/// memory, and this many times the size of the file on top: more than uncompressed arrays need.
inline constexpr std::int64_t kFreeBytes = std::int64_t{512} << 20;
inline constexpr std::int64_t kMaxExpansion = 150;

/// An opened .npz: the directory of the zip, checked; arrays are read one by one, from the file,
/// which stays open. Copies share it and the count of memory; they are for one thread.
class Npz {
 public:
  /// Throws base::Error if this is no readable zip (truncated, overlapping or lying entries, names
  /// that repeat, zip64 sizes beyond limits, encryption, methods other than stored and deflate).
  static Npz open(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  std::vector<std::string> names() const;  ///< without ".npy", in the order of the file
  bool has(std::string_view name) const;
  std::vector<std::string> unread_names() const;  ///< those that nobody asked for by name

  /// Counts memory that a reader is about to take for what it makes of an array, beside the arrays
  /// that the functions below count themselves. Nothing is ever taken off: what is read twice
  /// counts twice. Throws base::Error if all of it together is more than a file of this size may
  /// become.
  void count_memory(std::string_view name, std::uint64_t bytes) const;

  /// Dtype and shape, without the numbers.
  ArrayHeader header(std::string_view name) const;

  /// Inflates and checks one array: header well-formed, shape x dtype without overflow and equal to
  /// the bytes present, CRC right, Fortran order and big-endian converted, declared size checked
  /// before allocation (at most `max_bytes`). Throws base::Error "FILE: array 'NAME': ...".
  Array read(std::string_view name, std::int64_t max_bytes = std::int64_t{4} << 30) const;

  // Typed access: `shape` has -1 for a free axis ({-1, 2}: any number of pairs). Throw base::Error
  // naming array, expected and found shape or dtype.
  /// From any float or integer or bool dtype; non-finite values are refused unless `allow_nan`.
  std::vector<float> floats(std::string_view name, std::span<const std::int64_t> shape,
                            std::vector<std::int64_t>* found_shape = nullptr,
                            bool allow_nan = false) const;
  /// From integer or bool dtypes, or floats that are whole numbers.
  std::vector<std::int64_t> integers(std::string_view name, std::span<const std::int64_t> shape,
                                     std::vector<std::int64_t>* found_shape = nullptr) const;
  /// float64 as it is, whatever it holds; all else as floats() gives it.
  std::vector<double> doubles(std::string_view name, std::span<const std::int64_t> shape) const;
  /// integers() piece by piece, for who keeps them in another form: `begin` is told the shape, then
  /// `take` the integers in C order and the position of the first. What they throw comes through,
  /// unless the rest of the array turns out to be damaged.
  void scan_integers(
      std::string_view name, std::span<const std::int64_t> shape,
      const std::function<void(std::span<const std::int64_t> shape)>& begin,
      const std::function<void(std::size_t first, std::span<const std::int64_t>)>& take) const;

 private:
  struct Data;
  explicit Npz(std::shared_ptr<Data> data);
  const ZipEntry& find(std::string_view name) const;
  struct Opened;
  Opened open_array(std::string_view name, std::int64_t max_bytes) const;
  Opened open_as(std::string_view name, std::span<const std::int64_t> shape,
                 std::size_t item_bytes) const;

  std::shared_ptr<Data> data_;
};

/// What write_npz() leaves as the comment of the archive.
inline constexpr FileMark kNpzMark = {
    .bytes = "written by mpssm", .kind = "arrays written by mpssm", .at_end = true};

/// Deflated, arrays in name order, dates fixed: the same arrays give the same bytes. Atomic. Each
/// array and the whole file stay below 4 GiB (base::Error); an array whose bytes do not fit its
/// shape is the caller's mistake (std::invalid_argument).
void write_npz(const std::filesystem::path& path, const std::map<std::string, Array>& arrays);

}  // namespace mpssm::io
