// SPDX-License-Identifier: MIT
#include "mpssm/io/safetensors.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/file.h"
#include "mpssm/io/shape.h"

namespace mpssm::io {
namespace {

using base::Error;
using base::printable;

constexpr std::uint64_t kMaxJsonBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

// 0 for an unknown dtype.
std::size_t item_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::size_t> kTypes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

struct Declared {
  std::string dtype = {};
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> offsets = {};
};

// Takes the header event by event and refuses what does not belong at the first sight of it:
// neither deep nesting nor wide values reach memory.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::filesystem::path& path) : path_(path) {}

  std::map<std::string, std::string> metadata;
  std::map<std::string, Declared> tensors;

  bool start_object(std::size_t) override {
    if (level_ > kTop) refuse("an object");
    level_ = level_ == kNothing ? kTop : name_ == kMetadata ? kInMetadata : kInTensor;
    return true;
  }

  bool end_object() override {
    if (level_ == kInTensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) refuse("none", fmt::format("'{}'", field));
      }
    }
    fields_.clear();
    level_ = level_ == kTop ? kNothing : kTop;
    return true;
  }

  bool key(std::string& text) override {
    if (level_ == kTop) {
      name_ = text;
      const bool is_new = text == kMetadata ? !std::exchange(has_metadata_, true)
                                            : tensors.try_emplace(text).second;
      if (!is_new) refuse("it twice", "each name once");
      return true;
    }
    field_ = text;
    if (!fields_.insert(text).second) refuse("'" + printable(text) + "' twice", "each key once");
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == kInMetadata) {
      metadata[field_] = text;
    } else if (level_ == kInTensor && field_ == "dtype") {
      if (item_bytes(text) == 0) refuse("dtype '" + printable(text) + "'", "a known dtype");
      tensors[name_].dtype = text;
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != kInTensor || (field_ != "shape" && field_ != "data_offsets")) refuse("an array");
    level_ = kInArray;
    return true;
  }

  bool end_array() override {
    level_ = kInTensor;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (level_ != kInArray) refuse("a number");
    const bool is_shape = field_ == "shape";
    std::vector<std::int64_t>& list = is_shape ? tensors[name_].shape : tensors[name_].offsets;
    if (value > std::numeric_limits<std::int64_t>::max()) refuse("a huge number");
    if (list.size() == (is_shape ? kMaxRank : 2))
      refuse("more", is_shape ? "64 axes" : "2 offsets");
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(std::int64_t) override { refuse("a negative number"); }
  bool number_float(double, const std::string&) override { refuse("a broken or huge number"); }
  bool binary(nlohmann::json::binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    throw Error(
        path_,
        fmt::format("damaged safetensors header: expected JSON, got something else at byte {}",
                    position));
  }

 private:
  enum Level { kNothing, kTop, kInMetadata, kInTensor, kInArray };

  [[noreturn]] void refuse(const std::string& found, const std::string& expected = {}) const {
    static constexpr std::array<const char*, 5> kExpected = {
        "an object", "an object", "a string", "'dtype', 'shape' and 'data_offsets'",
        "numbers that are whole and not negative"};
    throw Error(
        fmt::format("{}: '{}'", path_.string(), printable(name_)),
        fmt::format("expected {}, got {}", expected.empty() ? kExpected[level_] : expected, found));
  }

  const std::filesystem::path& path_;
  Level level_ = kNothing;
  std::string name_;   // at the top level
  std::string field_;  // inside of that
  std::set<std::string> fields_;
  bool has_metadata_ = false;
};

std::string place_of(const std::filesystem::path& path, const std::string& name) {
  return fmt::format("{}: tensor '{}'", path.string(), printable(name));
}

void check_size(const std::filesystem::path& path, const std::string& name,
                const Declared& declared) {
  const std::string where = place_of(path, name);
  if (declared.offsets.size() != 2 || declared.offsets[0] > declared.offsets[1]) {
    throw Error(where, "expected two rising data_offsets, got " + shape_text(declared.offsets));
  }
  const std::int64_t size = declared.offsets[1] - declared.offsets[0];
  if (bytes_of(declared.shape, item_bytes(declared.dtype)) != static_cast<std::uint64_t>(size)) {
    throw Error(where, fmt::format("expected the bytes of {} of shape {}, got {}", declared.dtype,
                                   shape_text(declared.shape), size));
  }
}

// Sorted by offset, each tensor begins where the one before ends, and the last ends the file.
void check_cover(const std::filesystem::path& path, const std::map<std::string, Declared>& tensors,
                 std::uint64_t data_bytes) {
  std::vector<std::pair<const std::vector<std::int64_t>*, const std::string*>> order;
  for (const auto& [name, declared] : tensors) order.emplace_back(&declared.offsets, &name);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return *a.first < *b.first; });
  std::int64_t end = 0;
  for (const auto& [offsets, name] : order) {
    if (offsets->front() != end) {
      throw Error(place_of(path, *name),
                  fmt::format("expected data from byte {} on (no holes, no overlap), got {}", end,
                              offsets->front()));
    }
    end = offsets->back();
  }
  if (static_cast<std::uint64_t>(end) != data_bytes) {
    throw Error(path, fmt::format("expected {} bytes of tensors as in the header, got {}; copy or "
                                  "download the file again",
                                  end, data_bytes));
  }
}

std::string_view take_header(const std::filesystem::path& path, std::string_view& content) {
  if (content.size() < kLengthBytes) {
    throw Error(path,
                fmt::format("expected a safetensors file, got only {} bytes", content.size()));
  }
  const auto size = load<std::uint64_t>(content.data());
  content.remove_prefix(kLengthBytes);
  if (size > kMaxJsonBytes || size > content.size()) {
    throw Error(path, fmt::format("expected a safetensors header of at most {} bytes, got {}; the "
                                  "file is cut off or in another format",
                                  std::min<std::uint64_t>(kMaxJsonBytes, content.size()), size));
  }
  const std::string_view header = content.substr(0, size);
  content.remove_prefix(size);
  if (!header.starts_with('{'))
    throw Error(path, "expected a safetensors header that begins with '{'");
  return header;
}

void check_tensor(const std::string& name, const RawTensor& tensor) {
  const std::size_t bytes = item_bytes(tensor.dtype);
  const std::string prefix = "write_safetensors: tensor '" + printable(name) + "': ";
  if (name == kMetadata) throw std::invalid_argument(prefix + "expected another name");
  if (bytes == 0) {
    throw std::invalid_argument(prefix + "expected a known dtype, got " + printable(tensor.dtype));
  }
  if (bytes_of(tensor.shape, bytes) != tensor.bytes.size()) {
    throw std::invalid_argument(fmt::format("{}expected the bytes of {} of shape {}, got {}",
                                            prefix, tensor.dtype, shape_text(tensor.shape),
                                            tensor.bytes.size()));
  }
}

std::string make_header(const SafeTensors& content) {
  nlohmann::json header = nlohmann::json::object();
  if (!content.metadata.empty()) header[std::string(kMetadata)] = content.metadata;
  std::size_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    check_tensor(name, tensor);
    const std::size_t end = offset + tensor.bytes.size();
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
    return text;
  } catch (const nlohmann::json::type_error&) {
    throw std::invalid_argument("write_safetensors: expected names and metadata in UTF-8");
  }
}

}  // namespace

SafeTensors read_safetensors(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::string_view data = file;
  HeaderReader header(path);
  nlohmann::json::sax_parse(take_header(path, data), &header);
  for (const auto& [name, declared] : header.tensors) check_size(path, name, declared);
  check_cover(path, header.tensors, data.size());
  SafeTensors result;
  result.metadata = std::move(header.metadata);
  for (auto& [name, declared] : header.tensors) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    result.tensors[name] = {.dtype = std::move(declared.dtype),
                            .shape = std::move(declared.shape),
                            .bytes = {bytes + declared.offsets[0], bytes + declared.offsets[1]}};
  }
  return result;
}

void write_safetensors(const std::filesystem::path& path, const SafeTensors& content) {
  const std::string header = make_header(content);
  write_file(path, [&](const Sink& sink) {
    std::string length;
    append(length, static_cast<std::uint64_t>(header.size()));
    sink(length);
    sink(header);
    for (const auto& [name, tensor] : content.tensors) {
      sink({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
    }
  });
}

}  // namespace mpssm::io
