// SPDX-License-Identifier: MIT
// The zip archive around the arrays: what writers make of it, and what an attacker can.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/npz.h"

#include "tests/io/raw_zip.h"
#include "tests/support/scratch.h"

namespace mpssm::io {
namespace {

using testing::deflated;
using testing::deflated_member;
using testing::dict;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGoodNpy;
using testing::make_zip;
using testing::Member;
using testing::message_of;
using testing::npy;
using testing::open_bytes;
using testing::stored_member;
using testing::values_of;

using Shape = std::vector<std::int64_t>;

std::string open_error(const std::string& file) {
  return message_of([&] { open_bytes(file); });
}

TEST(Zip, TakesStoredAndDeflatedMembersAndAComment) {
  const Npz npz =
      open_bytes(make_zip({stored_member("a.npy", kGoodNpy), deflated_member("b.npy", kGoodNpy),
                           stored_member("readme.txt", "text"), stored_member("dir/", "")},
                          "comment PK\5\6"));
  EXPECT_THAT(npz.names(), ElementsAre("a", "b"));
  EXPECT_THAT(values_of<std::int32_t>(npz.read("a")), ElementsAre(1, 2));
  EXPECT_THAT(values_of<std::int32_t>(npz.read("b")), ElementsAre(1, 2));
}

TEST(Zip, MayBeEmptyAndHaveOddNames) {
  EXPECT_THAT(open_bytes(make_zip({})).names(), IsEmpty());
  const std::string odd("a\0/../b", 7);
  const Npz npz = open_bytes(make_zip({stored_member(odd + ".npy", kGoodNpy)}));
  EXPECT_THAT(npz.names(), ElementsAre(odd));
  EXPECT_EQ(npz.read(odd).shape, Shape{2});
}

TEST(Zip, TakesSizesFromZip64Fields) {
  Member member = stored_member("x.npy", kGoodNpy);
  member.extra = std::string("\x99\x99\1\0z\1\0\x18\0", 9);
  append(member.extra, std::uint64_t{kGoodNpy.size()});
  append(member.extra, std::uint64_t{kGoodNpy.size()});
  append(member.extra, std::uint64_t{0});
  member.size = 0xFFFFFFFF;
  member.compressed_size = 0xFFFFFFFF;
  member.offset = 0xFFFFFFFF;
  EXPECT_THAT(values_of<std::int32_t>(open_bytes(make_zip({member})).read("x")), ElementsAre(1, 2));
  member.extra.resize(member.extra.size() - 8);
  member.extra[7] = 0x10;
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("a zip64 size lies outside"));
  member.extra = "";
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("a zip64 size lies outside"));
}

TEST(Zip, TakesTheZip64Directory) {
  const std::string plain = make_zip({stored_member("x.npy", kGoodNpy)});
  const std::string body = plain.substr(0, plain.size() - 22);
  const auto directory_size = load<std::uint32_t>(&plain[plain.size() - 10]);
  std::string end64 = "PK\6\6" + std::string(20, '\0');
  for (const std::uint64_t value :
       {std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{directory_size},
        std::uint64_t{body.size() - directory_size}}) {
    append(end64, value);
  }
  std::string locator = "PK\6\7" + std::string(4, '\0');
  append(locator, std::uint64_t{body.size()});
  locator.append(4, '\0');
  const std::string end =
      "PK\5\6" + std::string(4, '\0') + std::string(12, '\xFF') + std::string(2, '\0');
  EXPECT_EQ(open_bytes(body + end64 + locator + end).read("x").shape, Shape{2});
  EXPECT_THAT(open_error(body + end64 + end), HasSubstr("expected a zip64 locator"));
  locator[15] = '\x7F';
  EXPECT_THAT(open_error(body + end64 + locator + end), HasSubstr("zip64 record lies outside"));
}

TEST(Zip, RefusesWhatIsNoZip) {
  EXPECT_THAT(open_error(""), EndsWith("expected a zip archive (.npz), got something else"));
  EXPECT_THAT(open_error(kGoodNpy), HasSubstr("expected a zip archive"));
  const std::string good = make_zip({stored_member("x.npy", kGoodNpy)});
  EXPECT_THAT(open_error(good.substr(0, good.size() / 2)), HasSubstr("it is cut off"));
  EXPECT_THAT(open_error(good.substr(10)), HasSubstr("not where"));
}

TEST(Zip, RefusesLyingDirectories) {
  const Member x = stored_member("x.npy", kGoodNpy);
  Member bad = x;
  bad.offset = 1'000'000;
  EXPECT_THAT(open_error(make_zip({bad})), HasSubstr("entry 'x.npy' lies outside the file"));
  bad = x;
  bad.offset = 3;
  EXPECT_THAT(open_error(make_zip({bad})), HasSubstr("is not where the directory says"));
  bad = x;
  bad.local_name = "y.npy";
  EXPECT_THAT(open_error(make_zip({bad})), HasSubstr("is not where the directory says"));
  bad = x;
  bad.compressed_size = bad.size = 1'000'000;
  EXPECT_THAT(open_error(make_zip({bad})), HasSubstr("entry 'x.npy' lies outside the file"));
  bad.compressed_size = bad.size = static_cast<std::uint32_t>(kGoodNpy.size() + 1);
  EXPECT_THAT(open_error(make_zip({bad})), HasSubstr("its entries overlap"));
  EXPECT_THAT(open_error(make_zip({x, x})),
              HasSubstr("expected each name once, got 'x.npy' twice"));
  std::string miscounted = make_zip({x});
  miscounted[miscounted.size() - 12] = 2;
  EXPECT_THAT(open_error(miscounted), HasSubstr("a directory entry lies outside"));
  miscounted[miscounted.size() - 12] = 0;
  EXPECT_THAT(open_error(miscounted), HasSubstr("holds more than its end says"));
}

TEST(Zip, RefusesMembersThatShareData) {
  // The second member contains the first: each byte of the file would be read twice.
  const std::string inner =
      make_zip({stored_member("x.npy", kGoodNpy)}).substr(0, 35 + kGoodNpy.size());
  Member x = stored_member("x.npy", kGoodNpy);
  x.offset = static_cast<std::uint32_t>(35 + kGoodNpy.size() + 35);
  EXPECT_THAT(open_error(make_zip({x, stored_member("y.npy", inner)})),
              HasSubstr("entries overlap"));
}

TEST(Zip, RefusesEncryptionAndOtherMethods) {
  Member member = stored_member("x.npy", kGoodNpy);
  member.flags = 1;
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("array 'x': is encrypted"));
  member.flags = 0;
  member.method = 12;
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("got compression method 12"));
  member.name = "x.txt";
  EXPECT_THAT(open_bytes(make_zip({member})).names(), IsEmpty());
}

TEST(Zip, RefusesSizesThatDeflateCannotReach) {
  Member member = deflated_member("x.npy", kGoodNpy);
  member.size = 2'000'000'000;
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("declares 2000000000 bytes, which its"));
  member = stored_member("x.npy", kGoodNpy);
  ++member.size;
  EXPECT_THAT(open_error(make_zip({member})), HasSubstr("cannot hold"));
}

TEST(Zip, RefusesMoreThanTheLimit) {
  const std::string zeros = npy(dict("|u1", "(1000000,)"), std::string(1'000'000, '\0'));
  const Npz npz = open_bytes(make_zip({deflated_member("x.npy", zeros)}));
  EXPECT_THAT(message_of([&] { npz.read("x", 1000); }),
              HasSubstr("expected at most 1000 bytes, got"));
  EXPECT_EQ(npz.read("x").bytes.size(), 1'000'000u);
}

TEST(Zip, RefusesDataThatDoesNotMatchItsSize) {
  const auto read_error = [](const Member& member) {
    return message_of([&] { open_bytes(make_zip({member})).read("x"); });
  };
  const Member good = deflated_member("x.npy", kGoodNpy);
  Member bad = good;
  bad.data.pop_back();
  EXPECT_THAT(read_error(bad), HasSubstr("damaged zip archive"));
  bad = good;
  bad.data += "tail";
  EXPECT_THAT(read_error(bad), HasSubstr("data is longer than declared"));
  bad = good;
  bad.data = deflated(kGoodNpy + "tail");
  EXPECT_THAT(read_error(bad), HasSubstr("data is longer than declared"));
  bad = good;
  bad.data = deflated(kGoodNpy.substr(0, kGoodNpy.size() - 1));
  EXPECT_THAT(read_error(bad), HasSubstr("broken or ends too early"));
  bad = good;
  ++bad.crc;
  EXPECT_THAT(read_error(bad), HasSubstr("does not match its checksum"));
  bad = stored_member("x.npy", "\x93NUM");
  EXPECT_THAT(read_error(bad), HasSubstr("ends too early"));
}

}  // namespace
}  // namespace mpssm::io
