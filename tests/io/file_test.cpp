// SPDX-License-Identifier: MIT
// Whole files and their checksums.
#include "mpssm/io/file.h"

#include <csignal>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/sha256.h"

#include "tests/support/scratch.h"

namespace mpssm::io {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::message_of;
using testing::Scratch;
using ::testing::StartsWith;

// Writes beyond `bytes` fail with an error instead of a signal, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_ = {};
  void (*old_handler_)(int);
};

TEST(ReadFile, GivesAllBytes) {
  const Scratch scratch;
  const std::string content("a\0b\r\n\xFF", 6);
  EXPECT_EQ(read_file(scratch.put("x", content)), content);
  EXPECT_EQ(read_file(scratch.put("empty", "")), "");
}

TEST(ReadFile, SaysWhyItCannotOpen) {
  const Scratch scratch;
  const fs::path path = scratch / "missing";
  EXPECT_EQ(message_of([&] { read_file(path); }),
            path.string() + ": cannot open: No such file or directory");
}

TEST(ReadFile, RefusesFoldersDevicesAndPipes) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", scratch / "link");
  EXPECT_THAT(message_of([&] { read_file(scratch.folder()); }), EndsWith("got a folder"));
  EXPECT_THAT(message_of([&] { read_file(scratch / "pipe"); }), HasSubstr("got a device, pipe"));
  EXPECT_THAT(message_of([&] { read_file(scratch / "link"); }), HasSubstr("got a device, pipe"));
}

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const Scratch scratch;
  const fs::path path = scratch.put("x", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_THAT(message_of([&] { read_file(path, 4); }), EndsWith("at most 4 bytes, got 5"));
}

TEST(WriteFile, ReplacesAndLeavesNothingElse) {
  const Scratch scratch;
  const fs::path path = scratch / "x";
  write_file(path, "old");
  write_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(scratch.num_files(), 1u);
}

TEST(WriteFile, JoinsPiecesOfAnySize) {
  const Scratch scratch;
  std::string expected;
  write_file(scratch / "x", [&](const Sink& sink) {
    for (std::size_t size = 0; size < 200'000; size = size * 3 + 1) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      sink(piece);
      expected += piece;
    }
  });
  EXPECT_EQ(read_file(scratch / "x"), expected);
}

TEST(WriteFile, TakesAPathWithoutFolder) {
  const Scratch scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.folder());
  write_file("x", "content");
  fs::current_path(before);
  EXPECT_EQ(read_file(scratch / "x"), "content");
}

TEST(WriteFile, KeepsPermissionsAndLinks) {
  const Scratch scratch;
  const fs::path path = scratch.put("x", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("x", scratch / "link");
  write_file(scratch / "link", "new");
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WriteFile, SurvivesALeftoverOfItsTemporaryName) {
  const Scratch scratch;
  scratch.put(".x.tmp-" + std::to_string(::getpid()), "left by a crash");
  write_file(scratch / "x", "content");
  EXPECT_EQ(read_file(scratch / "x"), "content");
  EXPECT_EQ(scratch.num_files(), 2u);
}

TEST(WriteFile, WithoutSpaceLeavesTheOldFile) {
  const Scratch scratch;
  const fs::path path = scratch.put("x", "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    message = message_of([&] { write_file(path, std::string(5000, 'n')); });
  }
  EXPECT_EQ(message, path.string() + ": cannot write: File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(scratch.num_files(), 1u);
}

TEST(WriteFile, WhoseProducerFailsLeavesTheOldFile) {
  const Scratch scratch;
  const fs::path path = scratch.put("x", "old");
  EXPECT_THROW(write_file(path,
                          [](const Sink& sink) {
                            sink("half");
                            throw std::logic_error("producer");
                          }),
               std::logic_error);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(scratch.num_files(), 1u);
}

TEST(WriteFile, SaysWhyItCannotCreate) {
  const Scratch scratch;
  const fs::path path = scratch / "missing/x";
  EXPECT_EQ(message_of([&] { write_file(path, "content"); }),
            path.string() + ": cannot create: No such file or directory");
  // Even the superuser cannot create files here.
  EXPECT_THAT(message_of([] { write_file("/proc/mpssm", "content"); }),
              StartsWith("/proc/mpssm: cannot create: "));
}

TEST(WriteFile, RefusesFoldersAndPipes) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { write_file(scratch.folder(), "x"); }), EndsWith("got a folder"));
  EXPECT_THAT(message_of([&] { write_file(scratch / "x/", "x"); }), EndsWith("got a folder"));
  EXPECT_THAT(message_of([&] { write_file(scratch / "pipe", "x"); }),
              HasSubstr("got a device, pipe"));
}

TEST(CheckReplaceable, TakesFilesThatCarryTheMarkAndEmptyOnes) {
  const Scratch scratch;
  const FileMark start{.bytes = "ours", .kind = "a thing of ours"};
  const FileMark end{.bytes = "ours", .kind = "a thing of ours", .at_end = true};
  const auto refusal = [&](const std::string& content, const FileMark& mark) {
    const fs::path path = scratch.put("x", content);
    return message_of([&] { check_replaceable(path, mark); });
  };
  EXPECT_NO_THROW(check_replaceable(scratch / "missing", start));
  for (const char* content : {"", "ours", "ours and more"}) {
    EXPECT_NO_THROW(check_replaceable(scratch.put("x", content), start)) << content;
  }
  EXPECT_NO_THROW(check_replaceable(scratch.put("x", "it is ours"), end));
  EXPECT_EQ(refusal("our", start), (scratch / "x").string() +
                                       ": is there already and does not hold a thing of ours; "
                                       "choose another name, or remove it first");
  EXPECT_THAT(refusal("it is ours", start), HasSubstr("is there already"));
  EXPECT_THAT(refusal("ours and more", end), HasSubstr("is there already"));
  EXPECT_THAT(refusal("o", end), HasSubstr("is there already"));
}

TEST(Sha256OfFile, IsThatOfItsContent) {
  const Scratch scratch;
  for (const std::size_t size : {0, 1, 63, 64, 65, 1 << 20, (1 << 20) + 7}) {
    const std::string content(size, 'x');
    EXPECT_EQ(sha256_of_file(scratch.put("f", content)), base::sha256(content)) << size;
  }
}

}  // namespace
}  // namespace mpssm::io
