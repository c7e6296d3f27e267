// SPDX-License-Identifier: MIT
#include "mpssm/io/npz.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <limits>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/file.h"
#include "mpssm/io/npy.h"
#include "mpssm/io/shape.h"
#include "mpssm/io/zip.h"

namespace mpssm::io {

using base::Error;
using base::printable;

struct Npz::Data {
  std::filesystem::path path;
  FileBytes file;
  std::vector<ZipEntry> entries;
  std::set<std::string, std::less<>> read_names = {};
  std::uint64_t counted_bytes = 0;
};

namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::int64_t kMaxArrayBytes = std::int64_t{4} << 30;

std::string place_of(const std::filesystem::path& path, std::string_view name) {
  return fmt::format("{}: array '{}'", path.string(), printable(name));
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {" bytes", " kB", " MB", " GB", " TB"};
  std::size_t unit = 0;
  for (; bytes >= 10'000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

// Calls `function` with a value of the C++ type of `dtype`.
template <typename Function>
auto with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kBool:
      return function(bool{});
    case DType::kInt8:
      return function(std::int8_t{});
    case DType::kInt16:
      return function(std::int16_t{});
    case DType::kInt32:
      return function(std::int32_t{});
    case DType::kInt64:
      return function(std::int64_t{});
    case DType::kUInt8:
      return function(std::uint8_t{});
    case DType::kUInt16:
      return function(std::uint16_t{});
    case DType::kUInt32:
      return function(std::uint32_t{});
    case DType::kUInt64:
      return function(std::uint64_t{});
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
  }
  throw std::invalid_argument(fmt::format("DType: unknown value {}", static_cast<int>(dtype)));
}

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DType::kUInt64;
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
}

void check_shape(const std::string& where, std::span<const std::int64_t> expected,
                 std::span<const std::int64_t> found) {
  const bool matches = std::equal(
      expected.begin(), expected.end(), found.begin(), found.end(),
      [](std::int64_t wanted, std::int64_t size) { return wanted == -1 || wanted == size; });
  if (matches) return;
  throw Error(where,
              fmt::format("expected shape {}, got {}", shape_text(expected), shape_text(found)));
}

// Index along each axis of the item at `position`.
std::string index_text(const std::vector<std::int64_t>& shape, std::size_t position) {
  std::vector<std::int64_t> index(shape.size());
  auto rest = static_cast<std::int64_t>(position);
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return shape_text(index);
}

// Positions in C order of items that come in Fortran order, the first axis fastest.
class FortranPositions {
 public:
  explicit FortranPositions(const std::vector<std::int64_t>& shape)
      : shape_(shape), index_(shape.size(), 0), stride_(shape.size(), 1) {
    for (std::size_t axis = shape.size(); axis-- > 1;) {
      stride_[axis - 1] = stride_[axis] * static_cast<std::size_t>(shape[axis]);
    }
  }

  std::size_t next() {
    const std::size_t position = position_;
    for (std::size_t axis = 0; axis < index_.size(); ++axis) {
      position_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) break;
      position_ -= stride_[axis] * static_cast<std::size_t>(shape_[axis]);
      index_[axis] = 0;
    }
    return position;
  }

 private:
  const std::vector<std::int64_t>& shape_;
  std::vector<std::int64_t> index_;
  std::vector<std::size_t> stride_;
  std::size_t position_ = 0;
};

bool is_in_c_order(const NpyHeader& header) {
  return !header.is_fortran_order || header.shape.size() < 2;
}

template <typename From>
std::int64_t to_int64(From value, bool& fits) {
  if constexpr (std::is_floating_point_v<From>) {
    constexpr From kLimit = 9223372036854775808.0;  // 2^63
    fits = value >= -kLimit && value < kLimit && std::trunc(value) == value;
    return fits ? static_cast<std::int64_t>(value) : 0;
  } else {
    fits = std::is_signed_v<From> ||
           static_cast<std::uint64_t>(value) <= std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(value);
  }
}

// How numbers of any dtype become those of one; `fits` stays true if they can.
struct ToInt64 {
  static constexpr const char* kExpected = "whole numbers in the range of int64";
  template <typename From>
  std::int64_t operator()(From value, bool& fits) const {
    return to_int64(value, fits);
  }
};
struct ToFloat {
  static constexpr const char* kExpected = "finite numbers in the range of float32";
  bool allow_nan = false;

  template <typename From>
  float operator()(From value, bool& fits) const {
    const auto result = static_cast<float>(value);
    fits = allow_nan || std::isfinite(result);
    return result;
  }
};
struct ToDouble {
  static constexpr const char* kExpected = ToFloat::kExpected;

  template <typename From>
  double operator()(From value, bool& fits) const {
    if constexpr (std::is_same_v<From, double>) {
      return value;
    } else {
      return ToFloat()(value, fits);
    }
  }
};

}  // namespace

std::size_t size_of(DType dtype) {
  return with_type(dtype, [](auto type) { return sizeof(type); });
}

std::string_view to_string(DType dtype) {
  constexpr std::array<std::string_view, 11> kNames = {"bool",   "int8",    "int16",  "int32",
                                                       "int64",  "uint8",   "uint16", "uint32",
                                                       "uint64", "float32", "float64"};
  return kNames.at(static_cast<std::size_t>(dtype));
}

std::int64_t Array::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

template <typename T>
Array make_array(std::span<const T> values, std::vector<std::int64_t> shape) {
  if (bytes_of(shape, sizeof(T)) != values.size_bytes()) {
    throw std::invalid_argument(
        fmt::format("make_array: expected as many values as shape {} holds, got {}",
                    shape_text(shape), values.size()));
  }
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return {.dtype = dtype_of<T>(), .shape = std::move(shape), .bytes = {bytes.begin(), bytes.end()}};
}

template Array make_array(std::span<const bool>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::int8_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::int16_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::int32_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::int64_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::uint8_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::uint16_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::uint32_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const std::uint64_t>, std::vector<std::int64_t>);
template Array make_array(std::span<const float>, std::vector<std::int64_t>);
template Array make_array(std::span<const double>, std::vector<std::int64_t>);

// An array whose header is read and fits the bytes that follow.
struct Npz::Opened {
  std::string where;
  NpyHeader header;
  std::unique_ptr<ZipStream> stream;

  std::size_t num_items() const {
    return static_cast<std::size_t>(stream->remaining() / size_of(header.dtype));
  }

  // Hands on the items as they come in the file, as native bytes, a piece at a time. A complaint
  // about them counts only if the array is whole: else that is what is wrong with it.
  template <typename Take>
  void scan(const Take& take) {
    constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 18;  // stays in cache
    std::vector<std::byte> memory(std::min(stream->remaining(), kPieceBytes));
    const auto next_piece = [&] {
      const std::span piece =
          std::span(memory).first(std::min<std::uint64_t>(memory.size(), stream->remaining()));
      stream->read(piece);
      return piece;
    };
    while (stream->remaining() > 0) {
      const std::span piece = next_piece();
      make_items_native(header, piece);
      try {
        take(piece);
      } catch (...) {
        while (stream->remaining() > 0) next_piece();
        stream->finish();
        throw;
      }
    }
    stream->finish();
  }

  // The same converted: take(position in C order, number). Positions follow each other unless the
  // array is in Fortran order.
  template <typename Convert, typename Take>
  void scan_as(const Convert& convert, const Take& take) {
    const bool in_order = is_in_c_order(header);
    FortranPositions positions(header.shape);
    std::size_t count = 0;
    with_type(header.dtype, [&](auto type) {
      using From = decltype(type);
      scan([&](std::span<const std::byte> piece) {
        for (std::size_t at = 0; at < piece.size(); at += sizeof(From), ++count) {
          const From value = load<From>(&piece[at]);
          const std::size_t position = in_order ? count : positions.next();
          bool fits = true;
          const auto converted = convert(value, fits);
          if (!fits) {
            throw Error(where, fmt::format("expected {}, got {} at {}", Convert::kExpected, value,
                                           index_text(header.shape, position)));
          }
          take(position, converted);
        }
      });
    });
  }

  template <typename To, typename Convert>
  std::vector<To> read_as(const Convert& convert) {
    std::vector<To> result(num_items());
    scan_as(convert, [&](std::size_t position, To value) { result[position] = value; });
    return result;
  }
};

Npz::Npz(std::shared_ptr<Data> data) : data_(std::move(data)) {}

Npz Npz::open(const std::filesystem::path& path) {
  auto data = std::make_shared<Data>(Data{.path = path, .file = FileBytes(path), .entries = {}});
  data->entries = read_zip_directory(path, data->file);
  std::erase_if(data->entries,
                [](const ZipEntry& entry) { return !entry.name.ends_with(kSuffix); });
  for (ZipEntry& entry : data->entries) {
    entry.name.resize(entry.name.size() - kSuffix.size());
    check_zip_entry(place_of(path, entry.name), entry);
  }
  return Npz(std::move(data));
}

const std::filesystem::path& Npz::path() const { return data_->path; }

std::vector<std::string> Npz::names() const {
  std::vector<std::string> names;
  for (const ZipEntry& entry : data_->entries) names.push_back(entry.name);
  return names;
}

bool Npz::has(std::string_view name) const {
  return std::any_of(data_->entries.begin(), data_->entries.end(),
                     [&](const ZipEntry& entry) { return entry.name == name; });
}

std::vector<std::string> Npz::unread_names() const {
  std::vector<std::string> names;
  for (const ZipEntry& entry : data_->entries) {
    if (!data_->read_names.contains(entry.name)) names.push_back(entry.name);
  }
  return names;
}

void Npz::count_memory(std::string_view name, std::uint64_t bytes) const {
  const std::uint64_t file_bytes = data_->file.size();
  const std::uint64_t allowed = kFreeBytes + kMaxExpansion * file_bytes;
  if (__builtin_add_overflow(data_->counted_bytes, bytes, &data_->counted_bytes)) {
    data_->counted_bytes = std::numeric_limits<std::uint64_t>::max();
  }
  if (data_->counted_bytes <= allowed) return;
  throw Error(
      place_of(path(), name),
      fmt::format("expected a file of {} to become at most {} in memory, got {}; if that is meant, "
                  "save it uncompressed (numpy.savez)",
                  size_text(file_bytes), size_text(allowed), size_text(data_->counted_bytes)));
}

ArrayHeader Npz::header(std::string_view name) const {
  const ZipEntry& entry = find(name);
  const std::string where = place_of(path(), name);
  ZipStream stream(where, data_->file, entry);
  NpyHeader found = read_npy_header(where, stream);
  return {.dtype = found.dtype, .shape = std::move(found.shape)};
}

const ZipEntry& Npz::find(std::string_view name) const {
  data_->read_names.emplace(name);
  const auto entry = std::find_if(data_->entries.begin(), data_->entries.end(),
                                  [&](const ZipEntry& e) { return e.name == name; });
  if (entry != data_->entries.end()) return *entry;
  std::string found;
  for (const ZipEntry& e : data_->entries) found += (found.empty() ? "only " : ", ") + e.name;
  throw Error(path(), fmt::format("expected an array '{}', got {}", printable(name),
                                  found.empty() ? "none" : printable(found, 200)));
}

Npz::Opened Npz::open_array(std::string_view name, std::int64_t max_bytes) const {
  const ZipEntry& entry = find(name);
  Opened opened{.where = place_of(path(), name), .header = {}, .stream = {}};
  if (entry.size > static_cast<std::uint64_t>(std::max<std::int64_t>(max_bytes, 0))) {
    throw Error(opened.where,
                fmt::format("expected at most {} bytes, got {}", max_bytes, entry.size));
  }
  opened.stream = std::make_unique<ZipStream>(opened.where, data_->file, entry);
  opened.header = read_npy_header(opened.where, *opened.stream);
  const NpyHeader& header = opened.header;
  if (bytes_of(header.shape, size_of(header.dtype)) != opened.stream->remaining()) {
    throw Error(opened.where,
                fmt::format("expected the bytes of {} of shape {}, got {}", to_string(header.dtype),
                            shape_text(header.shape), opened.stream->remaining()));
  }
  // Another order of the axes may be made in a copy.
  count_memory(name, opened.stream->remaining() * (header.is_fortran_order ? 2 : 1));
  return opened;
}

// For an array that becomes items of so many bytes.
Npz::Opened Npz::open_as(std::string_view name, std::span<const std::int64_t> shape,
                         std::size_t item_bytes) const {
  Opened opened = open_array(name, kMaxArrayBytes);
  check_shape(opened.where, shape, opened.header.shape);
  count_memory(name, opened.num_items() * item_bytes);
  return opened;
}

Array Npz::read(std::string_view name, std::int64_t max_bytes) const {
  Opened opened = open_array(name, max_bytes);
  Array array = {.dtype = opened.header.dtype};
  array.bytes.resize(opened.stream->remaining());
  opened.stream->read(array.bytes);
  opened.stream->finish();
  make_native(opened.header, array.bytes);
  array.shape = std::move(opened.header.shape);
  return array;
}

std::vector<float> Npz::floats(std::string_view name, std::span<const std::int64_t> shape,
                               std::vector<std::int64_t>* found_shape, bool allow_nan) const {
  Opened opened = open_as(name, shape, sizeof(float));
  if (found_shape != nullptr) *found_shape = opened.header.shape;
  return opened.read_as<float>(ToFloat{.allow_nan = allow_nan});
}

std::vector<std::int64_t> Npz::integers(std::string_view name, std::span<const std::int64_t> shape,
                                        std::vector<std::int64_t>* found_shape) const {
  Opened opened = open_as(name, shape, sizeof(std::int64_t));
  if (found_shape != nullptr) *found_shape = opened.header.shape;
  return opened.read_as<std::int64_t>(ToInt64());
}

std::vector<double> Npz::doubles(std::string_view name, std::span<const std::int64_t> shape) const {
  Opened opened = open_as(name, shape, sizeof(double));
  return opened.read_as<double>(ToDouble());
}

void Npz::scan_integers(
    std::string_view name, std::span<const std::int64_t> shape,
    const std::function<void(std::span<const std::int64_t>)>& begin,
    const std::function<void(std::size_t, std::span<const std::int64_t>)>& take) const {
  Opened opened = open_as(name, shape, sizeof(std::int64_t));
  begin(opened.header.shape);
  if (!is_in_c_order(opened.header)) return take(0, opened.read_as<std::int64_t>(ToInt64()));
  constexpr std::size_t kPieceItems = 1 << 14;
  std::vector<std::int64_t> piece;
  piece.reserve(kPieceItems);
  const std::size_t count = opened.num_items();
  opened.scan_as(ToInt64(), [&](std::size_t position, std::int64_t value) {
    piece.push_back(value);
    if (piece.size() < kPieceItems && position + 1 < count) return;
    take(position + 1 - piece.size(), piece);
    piece.clear();
  });
}

void write_npz(const std::filesystem::path& path, const std::map<std::string, Array>& arrays) {
  for (const auto& [name, array] : arrays) {
    if (bytes_of(array.shape, size_of(array.dtype)) == array.bytes.size()) continue;
    throw std::invalid_argument(fmt::format(
        "write_npz: array '{}': expected the bytes of {} of shape {}, got {}", printable(name),
        to_string(array.dtype), shape_text(array.shape), array.bytes.size()));
  }
  write_file(path, [&](const Sink& sink) {
    ZipWriter zip;
    for (const auto& [name, array] : arrays) {
      const std::string header = write_npy_header(array.dtype, array.shape);
      const std::array<std::string_view, 2> pieces = {
          header, {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()}};
      sink(zip.add(place_of(path, name), name + std::string(kSuffix), pieces));
    }
    sink(zip.finish(kNpzMark.bytes));
  });
}

}  // namespace mpssm::io
