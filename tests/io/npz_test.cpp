// SPDX-License-Identifier: MIT
// Arrays in .npz files: round trips, conversions, the .npy format.
#include "mpssm/io/npz.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"

#include "tests/io/raw_zip.h"
#include "tests/support/real_data.h"
#include "tests/support/scratch.h"

namespace mpssm::io {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::dict;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGoodNpy;
using testing::make_zip;
using testing::message_of;
using testing::npy;
using testing::open_bytes;
using testing::Scratch;
using testing::stored_member;
using testing::values_of;

using Shape = std::vector<std::int64_t>;

Array read_npy(const std::string& content) {
  return open_bytes(make_zip({stored_member("x.npy", content)})).read("x");
}

std::string npy_error(const std::string& content) {
  const std::string message = message_of([&] { read_npy(content); });
  EXPECT_THAT(message, HasSubstr("t.npz: array 'x': "));
  return message;
}

template <typename T>
Array array_of(const std::vector<T>& values, Shape shape) {
  return make_array(std::span<const T>(values), std::move(shape));
}

std::map<std::string, Array> sample_arrays() {
  return {{"f", array_of<float>({1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3})},
          {"folder/i", array_of<std::int64_t>({-1, 2}, {2})},
          {"none", array_of<double>({}, {0, 3})},
          {"scalar", array_of<std::uint8_t>({7}, {})}};
}

TEST(Npz, ComesBackAsWritten) {
  const Scratch scratch;
  const std::map<std::string, Array> arrays = sample_arrays();
  write_npz(scratch / "t.npz", arrays);
  const Npz npz = Npz::open(scratch / "t.npz");
  EXPECT_THAT(npz.names(), ElementsAre("f", "folder/i", "none", "scalar"));
  EXPECT_TRUE(npz.has("f"));
  EXPECT_FALSE(npz.has("f.npy"));
  for (const auto& [name, expected] : arrays) {
    const Array array = npz.read(name);
    EXPECT_EQ(array.dtype, expected.dtype) << name;
    EXPECT_EQ(array.shape, expected.shape) << name;
    EXPECT_EQ(array.bytes, expected.bytes) << name;
    EXPECT_EQ(array.num_elements() * size_of(array.dtype), array.bytes.size()) << name;
  }
}

TEST(Npz, EveryDtypeComesBack) {
  const Scratch scratch;
  std::map<std::string, Array> arrays;
  for (int i = 0; i <= static_cast<int>(DType::kFloat64); ++i) {
    const auto dtype = static_cast<DType>(i);
    arrays[std::string(to_string(dtype))] = {
        .dtype = dtype, .shape = {3}, .bytes = std::vector(3 * size_of(dtype), std::byte{1})};
  }
  write_npz(scratch / "t.npz", arrays);
  const Npz npz = Npz::open(scratch / "t.npz");
  EXPECT_EQ(npz.names().size(), 11u);
  for (const auto& [name, expected] : arrays) {
    EXPECT_EQ(npz.read(name).dtype, expected.dtype);
    EXPECT_EQ(npz.read(name).bytes, expected.bytes);
  }
}

TEST(Npz, LargeArraysAreDeflatedAndComeBack) {
  const Scratch scratch;
  std::vector<std::int32_t> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i % 1000);
  write_npz(scratch / "t.npz", {{"x", array_of(values, {300, 1000})}});
  EXPECT_LT(fs::file_size(scratch / "t.npz"), 300'000u);
  EXPECT_EQ(values_of<std::int32_t>(Npz::open(scratch / "t.npz").read("x")), values);
}

// A file of `megabytes` zeros is a thousand times smaller.
Npz open_zeros(const Scratch& scratch, std::size_t megabytes) {
  const std::vector<std::uint8_t> zeros(megabytes << 20);
  write_npz(scratch / "zeros.npz", {{"x", array_of(zeros, {std::ssize(zeros)})}});
  return Npz::open(scratch / "zeros.npz");
}

TEST(Npz, SmallFilesMayNotBecomeLargeOnes) {
  const Scratch scratch;
  const Shape any = {-1};
  const Npz npz = open_zeros(scratch, 70);
  // Eight bytes of each, and the one that it was.
  EXPECT_THAT(message_of([&] { npz.integers("x", any); }),
              AllOf(HasSubstr("array 'x'"), HasSubstr("71 kB to become at most 547 MB"),
                    HasSubstr("got 660 MB"), HasSubstr("numpy.savez")));
}

TEST(Npz, CountsEverythingMadeOfOneFile) {
  const Scratch scratch;
  const Npz npz = open_zeros(scratch, 1);
  npz.count_memory("x", 400'000'000);
  EXPECT_THAT(message_of([&] { Npz(npz).count_memory("y", 200'000'000); }),
              AllOf(HasSubstr("array 'y'"), HasSubstr("got 600 MB")));
  EXPECT_THAT(message_of([&] { npz.count_memory("y", ~std::uint64_t{0}); }), HasSubstr("TB"));
}

TEST(Npz, UncompressedFilesAreNeverTooLargeForThemselves) {
  const std::string zeros(80 << 20, '\0');
  const Npz npz = open_bytes(make_zip({stored_member(
      "x.npy", npy(dict("|u1", "(" + std::to_string(zeros.size()) + ",)"), zeros))}));
  EXPECT_EQ(npz.integers("x", Shape{-1}).size(), zeros.size());
}

// Numbers 0, 1, 2, ... by their place in C order, written in either order of axes and bytes.
std::string counting_npy(const Shape& shape, bool is_fortran, bool is_big_endian) {
  std::int64_t count = 1;
  std::string sizes;
  for (const std::int64_t size : shape) {
    count *= size;
    sizes += std::to_string(size) + ",";
  }
  std::string data(static_cast<std::size_t>(4 * count), '\0');
  for (std::int64_t position = 0; position < count; ++position) {
    std::int64_t place = 0;
    std::int64_t stride = 1;
    std::int64_t rest = position;
    std::vector<std::int64_t> index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      index[axis] = rest % shape[axis];
    for (std::size_t axis = 0; axis < shape.size(); stride *= shape[axis++])
      place += index[axis] * stride;
    if (!is_fortran) place = position;
    for (std::int64_t byte = 0; byte < 4; ++byte) {
      data[4 * place + (is_big_endian ? 3 - byte : byte)] = static_cast<char>(position >> 8 * byte);
    }
  }
  return npy(dict(is_big_endian ? ">i4" : "<i4", "(" + sizes + ")", is_fortran ? "True" : "False"),
             data);
}

TEST(Npz, PiecesOfAnyLayoutComeInOrder) {
  for (const Shape& shape :
       {Shape{5}, Shape{3, 4, 5}, Shape{2, 200'000}, Shape{200'000, 2}, Shape{0, 3}}) {
    for (const bool is_fortran : {false, true}) {
      for (const bool is_big_endian : {false, true}) {
        const std::string content = counting_npy(shape, is_fortran, is_big_endian);
        const Npz npz = open_bytes(make_zip({stored_member("stored.npy", content),
                                             testing::deflated_member("deflated.npy", content)}));
        for (const char* name : {"stored", "deflated"}) {
          Shape found;
          std::vector<std::int64_t> scanned;
          npz.scan_integers(
              name, Shape(shape.size(), -1),
              [&](std::span<const std::int64_t> size) { found.assign(size.begin(), size.end()); },
              [&](std::size_t first, std::span<const std::int64_t> piece) {
                EXPECT_EQ(first, scanned.size());
                scanned.insert(scanned.end(), piece.begin(), piece.end());
              });
          EXPECT_EQ(found, shape);
          std::vector<std::int64_t> expected(scanned.size());
          std::iota(expected.begin(), expected.end(), 0);
          EXPECT_EQ(scanned, expected);
          EXPECT_EQ(npz.integers(name, shape), expected);
          EXPECT_EQ(npz.doubles(name, shape),
                    std::vector<double>(expected.begin(), expected.end()));
          EXPECT_EQ(npz.floats(name, shape), std::vector<float>(expected.begin(), expected.end()));
        }
      }
    }
  }
}

TEST(Npz, DamageIsNamedBeforeWhatItHolds) {
  const std::string content = counting_npy({100'000}, false, false);
  const auto complaint = [](testing::Member member) {
    const Npz npz = open_bytes(make_zip({member}));
    return message_of([&] {
      npz.scan_integers(
          "x", Shape{-1}, [](std::span<const std::int64_t>) {},
          [](std::size_t, std::span<const std::int64_t>) {
            throw base::Error("a complaint about the first piece");
          });
    });
  };
  testing::Member member = stored_member("x.npy", content);
  EXPECT_EQ(complaint(member), "a complaint about the first piece");
  member.data.back() ^= 1;
  EXPECT_THAT(complaint(member), HasSubstr("checksum"));
}

TEST(Npz, DoublesStayWhatTheyAre) {
  const Scratch scratch;
  write_npz(scratch / "t.npz", {{"d", array_of<double>({0.1, 1e300}, {2})},
                                {"f", array_of<float>({0.1f, 2.0f}, {2})}});
  const Npz npz = Npz::open(scratch / "t.npz");
  EXPECT_THAT(npz.doubles("d", Shape{2}), ElementsAre(0.1, 1e300));
  EXPECT_THAT(npz.doubles("f", Shape{2}), ElementsAre(double{0.1f}, 2.0));
}

TEST(Npz, TellsHeadersWithoutTheNumbersAndWhatNobodyRead) {
  const Scratch scratch;
  write_npz(scratch / "t.npz", sample_arrays());
  const Npz npz = Npz::open(scratch / "t.npz");
  EXPECT_THAT(npz.unread_names(), ElementsAre("f", "folder/i", "none", "scalar"));
  EXPECT_EQ(npz.header("f").dtype, DType::kFloat32);
  EXPECT_THAT(npz.header("f").shape, ElementsAre(2, 3));
  npz.read("none");
  EXPECT_THAT(npz.unread_names(), ElementsAre("folder/i", "scalar"));
}

TEST(Npz, SameArraysGiveSameBytes) {
  const Scratch scratch;
  write_npz(scratch / "a", sample_arrays());
  write_npz(scratch / "b", sample_arrays());
  EXPECT_EQ(read_file(scratch / "a"), read_file(scratch / "b"));
}

TEST(Npz, RefusesToWriteBytesThatDoNotFitTheShape) {
  const Scratch scratch;
  EXPECT_THROW(write_npz(scratch / "t", {{"x", {.dtype = DType::kFloat32, .shape = {2}}}}),
               std::invalid_argument);
  EXPECT_THROW(array_of<float>({1.0f}, {2}), std::invalid_argument);
  EXPECT_EQ(scratch.num_files(), 0u);
}

TEST(Npz, NamesTheArraysItHas) {
  const Npz npz =
      open_bytes(make_zip({stored_member("a.npy", kGoodNpy), stored_member("b.npy", kGoodNpy)}));
  EXPECT_THAT(message_of([&] { npz.read("c"); }), EndsWith("expected an array 'c', got only a, b"));
  EXPECT_THAT(message_of([] { open_bytes(make_zip({})).read("c"); }), EndsWith("got none"));
}

TEST(Npy, VersionsTwoAndThreeDifferInTheLengthOfTheHeader) {
  const std::string data("\1\0\0\0\2\0\0\0", 8);
  for (const char version : {1, 2, 3}) {
    EXPECT_THAT(values_of<std::int32_t>(read_npy(npy(dict("<i4", "(2,)"), data, version))),
                ElementsAre(1, 2));
  }
  EXPECT_THAT(npy_error(npy(dict("<i4", "(2,)"), data, 4)), HasSubstr("got 4.0"));
}

TEST(Npy, BigEndianIsConverted) {
  const std::string data("\0\0\0\1\0\0\1\0", 8);
  EXPECT_THAT(values_of<std::int32_t>(read_npy(npy(dict(">i4", "(2,)"), data))),
              ElementsAre(1, 256));
}

TEST(Npy, FortranOrderIsConverted) {
  std::string data;
  for (char i = 0; i < 24; ++i) data += i;
  const Array array = read_npy(npy(dict("|u1", "(2, 3, 4)", "True"), data));
  const std::vector<std::uint8_t> values = values_of<std::uint8_t>(array);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) EXPECT_EQ(values[i * 12 + j * 4 + k], i + 2 * j + 6 * k);
    }
  }
  EXPECT_THAT(values_of<std::int16_t>(
                  read_npy(npy(dict(">i2", "(2, 2)", "True"), std::string("\0\1\0\2\0\3\0\4", 8)))),
              ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(read_npy(npy(dict("<f4", "(0, 3)", "True"), "")).bytes, IsEmpty());
}

TEST(Npy, BoolsAreZeroOrOne) {
  EXPECT_THAT(values_of<std::uint8_t>(read_npy(npy(dict("|b1", "(3,)"), std::string("\0\1\7", 3)))),
              ElementsAre(0, 1, 1));
}

TEST(Npy, PicklesAreNeverLoaded) {
  EXPECT_THAT(npy_error(npy(dict("|O", "(1,)"), "cos\nsystem\n")),
              HasSubstr("holds Python objects (pickle), which are never loaded"));
}

TEST(Npy, OtherDtypesAreRefusedByName) {
  for (const std::string descr :
       {"<f2", "<c16", "<U5", "|S3", "<M8[ns]", "=f4", "f4", "", "|f4", "<i3"}) {
    EXPECT_THAT(npy_error(npy(dict(descr, "(1,)"), "12345678")),
                HasSubstr("got dtype '" + descr + "'"));
  }
  const std::string fields = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}";
  EXPECT_THAT(npy_error(npy(fields, "1234")), HasSubstr("got a structured one"));
}

TEST(Npy, ShapeHasToAgreeWithTheBytes) {
  EXPECT_THAT(npy_error(npy(dict("<f4", "(2,)"), "1234")),
              HasSubstr("expected the bytes of float32 of shape [2], got 4"));
  EXPECT_THAT(npy_error(npy(dict("<f4", "()"), "12345")), HasSubstr("of shape [], got 5"));
  EXPECT_THAT(npy_error(npy(dict("<f8", "(4611686018427387904, 2)"), "")), HasSubstr("got 0"));
  EXPECT_THAT(npy_error(npy(dict("|u1", "(4294967296, 4294967296, 0)"), "")), HasSubstr("got 0"));
  EXPECT_THAT(npy_error(npy(dict("|u1", "(-1,)"), "")), HasSubstr("expected a size"));
  EXPECT_THAT(npy_error(npy(dict("|u1", "(99999999999999999999,)"), "")),
              HasSubstr("expected a size"));
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_THAT(npy_error(npy(dict("|u1", ones + ")"), "1")), HasSubstr("more than 64 axes"));
}

TEST(Npy, HeaderHasToBeTheExpectedDictionary) {
  EXPECT_EQ(read_npy(npy("{'shape':(1L,),'fortran_order':False,\"descr\":'|u1'}", "1")).shape,
            Shape{1});
  for (const char* text :
       {"", "{", "{}", "[]", "{'descr': '|u1'", "{'descr': '|u1', 'descr': '|u1'}",
        "{'descr': '|u1', 'fortran_order': False}", "{'descr' '|u1'}", "{'descr': |u1}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}"}) {
    EXPECT_THAT(npy_error(npy(text, "1")), HasSubstr("NumPy header")) << text;
  }
  EXPECT_THAT(npy_error("no array at all"), HasSubstr("got something else"));
  EXPECT_THAT(npy_error(npy(std::string(70'000, ' '), "", 2)), HasSubstr("header is too long"));
}

TEST(Npz, ConvertsToFloats) {
  const Scratch scratch;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  write_npz(scratch / "t", {{"i", array_of<std::int16_t>({-1, 2, 3, 4}, {2, 2})},
                            {"nan", array_of<double>({0.5, kNan, 1.0, 2.0}, {2, 2})},
                            {"huge", array_of<double>({1e300}, {1})}});
  const Npz npz = Npz::open(scratch / "t");
  Shape shape;
  EXPECT_THAT(npz.floats("i", Shape{-1, 2}, &shape), ElementsAre(-1.0f, 2.0f, 3.0f, 4.0f));
  EXPECT_THAT(shape, ElementsAre(2, 2));
  EXPECT_TRUE(std::isnan(npz.floats("nan", Shape{2, 2}, nullptr, /*allow_nan=*/true)[1]));
  EXPECT_THAT(
      message_of([&] {
        npz.floats("nan", Shape{2, 2});
      }),
      EndsWith(
          "t: array 'nan': expected finite numbers in the range of float32, got nan at [0, 1]"));
  EXPECT_THAT(message_of([&] { npz.floats("huge", Shape{1}); }), HasSubstr("range of float32"));
  EXPECT_THAT(message_of([&] {
                npz.floats("i", Shape{-1, 3});
              }),
              EndsWith("array 'i': expected shape [*, 3], got [2, 2]"));
  EXPECT_THAT(message_of([&] { npz.floats("i", Shape{4}); }),
              EndsWith("expected shape [4], got [2, 2]"));
}

TEST(Npz, ConvertsToIntegers) {
  const Scratch scratch;
  write_npz(scratch / "t", {{"b", array_of<std::uint8_t>({0, 1}, {2})},
                            {"f", array_of<double>({-3.0, 4.0}, {2})},
                            {"half", array_of<float>({1.0f, 0.5f}, {2})},
                            {"huge", array_of<double>({9223372036854775808.0}, {1})},
                            {"nan", array_of<float>({NAN}, {1})},
                            {"u", array_of<std::uint64_t>({UINT64_MAX}, {1})}});
  const Npz npz = Npz::open(scratch / "t");
  EXPECT_THAT(npz.integers("b", Shape{-1}), ElementsAre(0, 1));
  EXPECT_THAT(npz.integers("f", Shape{2}), ElementsAre(-3, 4));
  EXPECT_THAT(message_of([&] { npz.integers("half", Shape{2}); }),
              EndsWith("expected whole numbers in the range of int64, got 0.5 at [1]"));
  for (const char* name : {"huge", "nan", "u"}) {
    EXPECT_THAT(message_of([&] { npz.integers(name, Shape{1}); }), HasSubstr("range of int64"))
        << name;
  }
}

void read_all(const fs::path& path) {
  const Npz npz = Npz::open(path);
  for (const std::string& name : npz.names()) {
    const Array array = npz.read(name);
    ASSERT_EQ(array.num_elements() * size_of(array.dtype), array.bytes.size());
  }
}

TEST(Npz, SurvivesDamage) {
  const Scratch scratch;
  write_npz(scratch / "good", sample_arrays());
  testing::for_each_damage(read_file(scratch / "good"), [&](const std::string& damaged) {
    read_all(scratch.put("bad", damaged));
  });
}

TEST(Npy, SurvivesDamageBehindARightChecksum) {
  const Scratch scratch;
  const std::string content = npy(dict(">f4", "(2, 1, 2)", "True"), std::string(16, '\1'));
  testing::for_each_damage(content, [&](const std::string& damaged) {
    read_all(scratch.put("bad", make_zip({stored_member("x.npy", damaged)})));
  });
}

TEST(Npz, ReadsTheDatasets) {
  const fs::path folder = testing::real_data();
  if (!fs::is_directory(folder)) GTEST_SKIP() << "no datasets: set MPSSM_DATA to their folder";
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".npz") continue;
    SCOPED_TRACE(entry.path());
    read_all(entry.path());
    ++num_files;
  }
  EXPECT_GT(num_files, 0);
}

}  // namespace
}  // namespace mpssm::io
