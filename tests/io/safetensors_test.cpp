// SPDX-License-Identifier: MIT
#include "mpssm/io/safetensors.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/bytes.h"
#include "mpssm/io/file.h"

#include "tests/support/scratch.h"

namespace mpssm::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::Scratch;
using ::testing::SizeIs;

RawTensor make_tensor(std::string dtype, std::vector<std::int64_t> shape, std::size_t bytes) {
  RawTensor tensor = {.dtype = std::move(dtype), .shape = std::move(shape), .bytes = {}};
  for (std::size_t i = 0; i < bytes; ++i) tensor.bytes.push_back(static_cast<std::byte>(7 * i + 1));
  return tensor;
}

SafeTensors make_content() {
  return {.metadata = {{"format", "mpssm"}, {"note", "gr\xC3\xBC\xC3\x9F \"quoted\"\n"}},
          .tensors = {{"a.weight", make_tensor("F32", {2, 3}, 24)},
                      {"b", make_tensor("BOOL", {3}, 3)},
                      {"empty", make_tensor("I64", {0, 4}, 0)},
                      {"scalar", make_tensor("BF16", {}, 2)}}};
}

std::string frame(std::string_view header, std::string_view data = "") {
  std::string file;
  append(file, static_cast<std::uint64_t>(header.size()));
  return file.append(header).append(data);
}

std::string safetensors_error(std::string_view file) {
  const Scratch scratch;
  const std::string message =
      message_of([&] { read_safetensors(scratch.put("t.safetensors", file)); });
  EXPECT_THAT(message, HasSubstr("t.safetensors: "));
  return message;
}

std::string tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}";
}

TEST(SafeTensors, ComeBackAsWritten) {
  const Scratch scratch;
  const SafeTensors content = make_content();
  write_safetensors(scratch / "t", content);
  const SafeTensors back = read_safetensors(scratch / "t");
  EXPECT_EQ(back.metadata, content.metadata);
  ASSERT_THAT(back.tensors, SizeIs(content.tensors.size()));
  for (const auto& [name, expected] : content.tensors) {
    EXPECT_EQ(back.tensors.at(name).dtype, expected.dtype) << name;
    EXPECT_EQ(back.tensors.at(name).shape, expected.shape) << name;
    EXPECT_EQ(back.tensors.at(name).bytes, expected.bytes) << name;
  }
}

TEST(SafeTensors, EmptyFileComesBack) {
  const Scratch scratch;
  write_safetensors(scratch / "t", {});
  EXPECT_THAT(read_safetensors(scratch / "t").tensors, IsEmpty());
}

TEST(SafeTensors, SameContentGivesSameAlignedBytes) {
  const Scratch scratch;
  write_safetensors(scratch / "a", make_content());
  write_safetensors(scratch / "b", make_content());
  const std::string bytes = read_file(scratch / "a");
  EXPECT_EQ(bytes, read_file(scratch / "b"));
  EXPECT_EQ(load<std::uint64_t>(bytes.data()) % 8, 0u);
}

TEST(SafeTensors, KnowsTheDtypesOfTheFormat) {
  const std::map<std::string, std::size_t> sizes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  SafeTensors content;
  for (const auto& [dtype, bytes] : sizes)
    content.tensors[dtype] = make_tensor(dtype, {3}, 3 * bytes);
  const Scratch scratch;
  write_safetensors(scratch / "t", content);
  EXPECT_THAT(read_safetensors(scratch / "t").tensors, SizeIs(sizes.size()));
}

TEST(SafeTensors, ReadsAnyOrderAndPadding) {
  const Scratch scratch;
  const std::string header =
      "{\"x\":{\"data_offsets\":[1,3],\"shape\":[2],\"dtype\":\"U8\"}, \"y\":" +
      tensor("I8", "[]", "[0,1]") + "}   ";
  const SafeTensors content = read_safetensors(scratch.put("t", frame(header, "abc")));
  EXPECT_THAT(content.tensors.at("x").bytes, ElementsAre(std::byte{'b'}, std::byte{'c'}));
  EXPECT_THAT(content.tensors.at("y").bytes, ElementsAre(std::byte{'a'}));
}

TEST(SafeTensors, RefusesHeadersThatDoNotFit) {
  EXPECT_THAT(safetensors_error("short"), HasSubstr("got only 5 bytes"));
  EXPECT_THAT(safetensors_error(std::string(8, '\xFF') + "{}"),
              HasSubstr("at most 2 bytes, got 18446744"));
  EXPECT_THAT(safetensors_error(frame("{}").substr(0, 9)), HasSubstr("at most 1 bytes, got 2"));
  EXPECT_THAT(safetensors_error(frame("")), HasSubstr("begins with '{'"));
  EXPECT_THAT(safetensors_error(frame("[]")), HasSubstr("begins with '{'"));
}

TEST(SafeTensors, RefusesBrokenJson) {
  for (const char* header : {"{", "{\"x\"", "{}{}", "{'x':1}", "{\"\xFF\":{}}", "{} \\"}) {
    EXPECT_THAT(safetensors_error(frame(header)), HasSubstr("expected JSON")) << header;
  }
}

TEST(SafeTensors, RefusesNestingBeforeItGrows) {
  std::string deep = "{\"x\":";
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"x\":";
  EXPECT_THAT(safetensors_error(frame(deep)), HasSubstr("'x': expected 'dtype', 'shape' and"));
  const std::string arrays = "{\"x\":{\"shape\":" + std::string(1'000'000, '[');
  EXPECT_THAT(safetensors_error(frame(arrays)), HasSubstr("got an array"));
  std::string wide = "{\"x\":{\"shape\":[0";
  for (int i = 0; i < 1'000'000; ++i) wide += ",0";
  EXPECT_THAT(safetensors_error(frame(wide)), HasSubstr("expected 64 axes, got more"));
}

TEST(SafeTensors, RefusesNamesThatRepeat) {
  const std::string x = "\"x\":" + tensor("U8", "[0]", "[0,0]");
  EXPECT_THAT(safetensors_error(frame("{" + x + "," + x + "}")),
              HasSubstr("'x': expected each name once"));
  EXPECT_THAT(safetensors_error(frame("{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}")),
              HasSubstr("each key once, got 'dtype' twice"));
  EXPECT_THAT(safetensors_error(frame("{\"__metadata__\":{},\"__metadata__\":{}}")),
              HasSubstr("each name"));
  EXPECT_THAT(safetensors_error(frame("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}")),
              HasSubstr("'a' twice"));
}

TEST(SafeTensors, RefusesMetadataOtherThanStrings) {
  for (const char* value : {"\"x\"", "[]", "1", "null", "{\"a\":1}", "{\"a\":{}}",
                            "{\"a\":[\"b\"]}", "{\"a\":null}", "{\"a\":true}"}) {
    EXPECT_THAT(safetensors_error(frame("{\"__metadata__\":" + std::string(value) + "}")),
                HasSubstr("'__metadata__': expected"))
        << value;
  }
}

TEST(SafeTensors, RefusesTensorsOfWrongType) {
  const auto error = [](const std::string& value) {
    return safetensors_error(frame("{\"x\":" + value + "}"));
  };
  EXPECT_THAT(error("5"), HasSubstr("'x': expected an object, got a number"));
  EXPECT_THAT(error("{}"), HasSubstr("'x': expected 'dtype', got none"));
  EXPECT_THAT(error("{\"dtype\":\"U8\",\"shape\":[]}"),
              HasSubstr("expected 'data_offsets', got none"));
  EXPECT_THAT(error("{\"other\":\"U8\"}"), HasSubstr("got a string"));
  EXPECT_THAT(error(tensor("F8", "[]", "[0,1]")), HasSubstr("a known dtype, got dtype 'F8'"));
  EXPECT_THAT(error(tensor("U8", "\"1\"", "[0,1]")), HasSubstr("got a string"));
  EXPECT_THAT(error(tensor("U8", "[-1]", "[0,1]")), HasSubstr("got a negative number"));
  EXPECT_THAT(error(tensor("U8", "[1.0]", "[0,1]")), HasSubstr("got a broken or huge number"));
  EXPECT_THAT(error(tensor("U8", "[99999999999999999999]", "[0,1]")), HasSubstr("huge number"));
  EXPECT_THAT(error(tensor("U8", "[18446744073709551615]", "[0,1]")), HasSubstr("huge number"));
  EXPECT_THAT(error(tensor("U8", "[true]", "[0,1]")), HasSubstr("got true or false"));
}

TEST(SafeTensors, RefusesOffsetsThatLie) {
  const auto error = [](const std::string& tensors, std::string_view data) {
    return safetensors_error(frame("{" + tensors + "}", data));
  };
  const std::string x = "\"x\":";
  const std::string y = ",\"y\":";
  EXPECT_THAT(error(x + tensor("U8", "[1]", "[0]"), "a"),
              HasSubstr("two rising data_offsets, got [0]"));
  EXPECT_THAT(error(x + tensor("U8", "[1]", "[0,1,2]"), "a"), HasSubstr("2 offsets, got more"));
  EXPECT_THAT(error(x + tensor("U8", "[1]", "[1,0]"), "a"), HasSubstr("two rising"));
  EXPECT_THAT(error(x + tensor("F32", "[2]", "[0,4]"), "abcd"),
              HasSubstr("tensor 'x': expected the bytes of F32 of shape [2], got 4"));
  EXPECT_THAT(error(x + tensor("U8", "[4294967296,4294967296]", "[0,0]"), ""),
              HasSubstr("shape [4294"));
  EXPECT_THAT(error(x + tensor("U8", "[2]", "[0,2]"), "a"),
              HasSubstr("expected 2 bytes of tensors"));
  EXPECT_THAT(error(x + tensor("U8", "[1]", "[0,1]"), "ab"),
              HasSubstr("expected 1 bytes of tensors"));
  EXPECT_THAT(error(x + tensor("U8", "[1]", "[1,2]"), "ab"), HasSubstr("no holes"));
  EXPECT_THAT(error(x + tensor("U8", "[2]", "[0,2]") + y + tensor("U8", "[2]", "[1,3]"), "abc"),
              HasSubstr("tensor 'y': expected data from byte 2"));
  EXPECT_THAT(error(x + tensor("U8", "[2]", "[0,2]") + y + tensor("U8", "[2]", "[0,2]"), "ab"),
              HasSubstr("no overlap"));
}

TEST(SafeTensors, RefusesToWriteWhatCouldNotBeRead) {
  const Scratch scratch;
  const auto write = [&](const std::string& name, const RawTensor& value) {
    write_safetensors(scratch / "t", {.metadata = {}, .tensors = {{name, value}}});
  };
  EXPECT_THROW(write("x", make_tensor("F32", {2}, 4)), std::invalid_argument);
  EXPECT_THROW(write("x", make_tensor("F8", {2}, 2)), std::invalid_argument);
  EXPECT_THROW(write("__metadata__", make_tensor("U8", {2}, 2)), std::invalid_argument);
  EXPECT_THROW(write("\xFF", make_tensor("U8", {2}, 2)), std::invalid_argument);
  EXPECT_EQ(scratch.num_files(), 0u);
}

TEST(SafeTensors, SurvivesDamage) {
  const Scratch scratch;
  write_safetensors(scratch / "good", make_content());
  testing::for_each_damage(read_file(scratch / "good"), [&](const std::string& damaged) {
    const SafeTensors content = read_safetensors(scratch.put("bad", damaged));
    std::size_t bytes = 0;
    for (const auto& [name, value] : content.tensors) bytes += value.bytes.size();
    ASSERT_EQ(bytes, damaged.size() - 8 - load<std::uint64_t>(damaged.data()));
  });
}

}  // namespace
}  // namespace mpssm::io
