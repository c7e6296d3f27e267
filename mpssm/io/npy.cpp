// SPDX-License-Identifier: MIT
#include "mpssm/io/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/core.h>
#include <iterator>
#include <span>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/shape.h"

namespace mpssm::io {
namespace {

using base::Error;
using base::printable;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint32_t kMaxHeaderBytes = 1 << 16;

struct TypeCode {
  DType dtype;
  std::string_view code;
};
constexpr TypeCode kTypeCodes[] = {
    {DType::kBool, "b1"},   {DType::kInt8, "i1"},    {DType::kInt16, "i2"},  {DType::kInt32, "i4"},
    {DType::kInt64, "i8"},  {DType::kUInt8, "u1"},   {DType::kUInt16, "u2"}, {DType::kUInt32, "u4"},
    {DType::kUInt64, "u8"}, {DType::kFloat32, "f4"}, {DType::kFloat64, "f8"}};

// The Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }, nothing else.
class Description {
 public:
  Description(const std::string& where, std::string_view text) : where_(where), rest_(text) {}

  NpyHeader parse() {
    take("{");
    while (!next_is("}")) {
      take_key(take_string());
      if (!next_is("}")) take(",");
    }
    take("}");
    skip_blanks();
    if (!rest_.empty()) fail_unexpected("the end of the header");
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) throw Error(where_, fmt::format("NumPy header lacks '{}'", kKeys[i]));
    }
    return std::move(header_);
  }

 private:
  static constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};

  [[noreturn]] void fail_unexpected(const std::string& expected) const {
    throw Error(where_, fmt::format("bad NumPy header: expected {}, got '{}'", expected,
                                    printable(rest_, 20)));
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }

  bool next_is(std::string_view token) {
    skip_blanks();
    return rest_.starts_with(token);
  }

  void take(std::string_view token) {
    if (!next_is(token)) fail_unexpected(fmt::format("'{}'", token));
    rest_.remove_prefix(token.size());
  }

  // No escapes: they do not occur in the types we know.
  std::string_view take_string() {
    const std::string_view quote = next_is("\"") ? "\"" : "'";
    take(quote);
    const std::size_t size = rest_.find_first_of("'\"\\\n");
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
    if (!rest_.starts_with(quote)) fail_unexpected("the end of a string");
    rest_.remove_prefix(1);
    return text;
  }

  void take_key(std::string_view key) {
    const auto index =
        static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), key) - kKeys.begin());
    if (index == kKeys.size() || std::exchange(seen_[index], true)) {
      throw Error(where_, "bad NumPy header: unknown or repeated key '" + printable(key) + "'");
    }
    take(":");
    if (index == 0) {
      take_type();
    } else if (index == 1) {
      header_.is_fortran_order = take_truth();
    } else {
      header_.shape = take_shape();
    }
  }

  bool take_truth() {
    const bool truth = next_is("True");
    take(truth ? "True" : "False");
    return truth;
  }

  void take_type() {
    if (next_is("[")) {
      throw Error(where_,
                  "expected a plain dtype, got a structured one; save each field as an array");
    }
    const std::string_view text = take_string();
    if (text.find('O') != std::string_view::npos) {
      throw Error(where_,
                  "holds Python objects (pickle), which are never loaded; save it as numbers");
    }
    const char order = text.empty() ? '\0' : text.front();
    for (const TypeCode& type : kTypeCodes) {
      const bool has_order =
          order == '<' || order == '>' || (order == '|' && size_of(type.dtype) == 1);
      if (!has_order || text.substr(1) != type.code) continue;
      header_.dtype = type.dtype;
      header_.is_big_endian = order == '>';
      return;
    }
    throw Error(where_, "expected a bool, integer, float32 or float64 array, got dtype '" +
                            printable(text) + "'; convert it with astype");
  }

  std::vector<std::int64_t> take_shape() {
    std::vector<std::int64_t> shape;
    take("(");
    while (!next_is(")")) {
      shape.push_back(take_size());
      if (shape.size() > kMaxRank) throw Error(where_, "has more than 64 axes");
      if (!next_is(")")) take(",");
    }
    take(")");
    return shape;
  }

  std::int64_t take_size() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail_unexpected("a size");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.starts_with("L")) rest_.remove_prefix(1);  // written by Python 2
    return value;
  }

  const std::string& where_;
  std::string_view rest_;
  NpyHeader header_;
  std::array<bool, kKeys.size()> seen_ = {};
};

void reverse_items(std::span<std::byte> bytes, std::size_t item_bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(item_bytes)) {
    std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(item_bytes));
  }
}

// Walks the result in C order, the source by its strides.
std::vector<std::byte> from_fortran_order(const std::vector<std::byte>& source,
                                          const std::vector<std::int64_t>& shape,
                                          std::size_t item_bytes) {
  const std::size_t rank = shape.size();
  std::vector<std::size_t> stride(rank, item_bytes);
  for (std::size_t i = 1; i < rank; ++i) {
    stride[i] = stride[i - 1] * static_cast<std::size_t>(shape[i - 1]);
  }
  std::vector<std::int64_t> index(rank, 0);
  std::vector<std::byte> result(source.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += item_bytes) {
    std::memcpy(&result[to], &source[from], item_bytes);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

NpyHeader read_npy_header(const std::string& where, ZipStream& stream) {
  std::array<char, 8> magic;
  stream.read(std::as_writable_bytes(std::span(magic)));
  if (std::string_view(magic.data(), kMagic.size()) != kMagic) {
    throw Error(where, "expected an array in NumPy's format, got something else");
  }
  const int version = magic[6];
  if (version < 1 || version > 3 || magic[7] != 0) {
    throw Error(where, fmt::format("expected version 1.0, 2.0 or 3.0 of NumPy's format, got {}.{}",
                                   version, int{magic[7]}));
  }
  std::array<char, 4> raw = {};
  stream.read(std::as_writable_bytes(std::span(raw).first(version == 1 ? 2 : 4)));
  const auto size = load<std::uint32_t>(raw.data());
  if (size > kMaxHeaderBytes) throw Error(where, "NumPy header is too long");
  std::string text(size, '\0');
  stream.read(std::as_writable_bytes(std::span(text)));
  return Description(where, text).parse();
}

std::string write_npy_header(DType dtype, const std::vector<std::int64_t>& shape) {
  const auto type = std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                                 [&](const TypeCode& t) { return t.dtype == dtype; });
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.pop_back();
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_of(dtype) == 1 ? "|" : "<", type->code, sizes);
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kPrefixBytes = 10;
  while ((kPrefixBytes + text.size() + 1) % kAlignment != 0) text += ' ';
  text += '\n';
  std::string header(kMagic);
  header += '\1';
  header += '\0';
  append(header, static_cast<std::uint16_t>(text.size()));
  return header + text;
}

void make_items_native(const NpyHeader& header, std::span<std::byte> items) {
  if (header.is_big_endian) reverse_items(items, size_of(header.dtype));
  if (header.dtype == DType::kBool) {
    for (std::byte& value : items) value = std::byte{value != std::byte{0}};
  }
}

void make_native(const NpyHeader& header, std::vector<std::byte>& bytes) {
  make_items_native(header, bytes);
  if (header.is_fortran_order && header.shape.size() > 1) {
    bytes = from_fortran_order(bytes, header.shape, size_of(header.dtype));
  }
}

}  // namespace mpssm::io
