// SPDX-License-Identifier: MIT
#include "mpssm/io/file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/core.h>
#include <limits>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/sha256.h"

namespace mpssm::io {
namespace {

using base::Error;
using base::ErrorKind;

namespace fs = std::filesystem;

[[noreturn]] void fail_with_errno(const fs::path& path, const std::string& action,
                                  ErrorKind kind = ErrorKind::kInput) {
  const int code = errno;
  throw Error(path, action + ": " + std::generic_category().message(code), kind);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  /// Some file systems report a failed write only here.
  int release() { return std::exchange(fd_, -1); }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

void check_regular(const fs::path& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  throw Error(path, S_ISDIR(status.st_mode)
                        ? "expected a file, got a folder"
                        : "expected a regular file, got a device, pipe or socket");
}

[[noreturn]] void fail_shorter(const fs::path& path) {
  throw Error(path, "became shorter while it was read; try again");
}

// A file open for reading.
class RegularFile {
 public:
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  explicit RegularFile(const fs::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat status = {};
    if (!file_.is_open() || ::fstat(file_.get(), &status) != 0)
      fail_with_errno(path, "cannot open");
    check_regular(path, status);
    size_ = status.st_size;
  }

  std::int64_t size() const { return size_; }
  void check_size(std::int64_t max_bytes) const {
    if (size_ <= max_bytes) return;
    throw Error(path_, fmt::format("expected at most {} bytes, got {}", max_bytes, size_));
  }
  int release() { return file_.release(); }

  /// Bytes read, 0 at the end.
  std::size_t read(char* to, std::size_t count) const {
    for (;;) {
      const ssize_t done = ::read(file_.get(), to, count);
      if (done >= 0) return static_cast<std::size_t>(done);
      if (errno != EINTR) fail_with_errno(path_, "cannot read");
    }
  }

 private:
  const fs::path& path_;
  Descriptor file_;
  std::int64_t size_ = 0;
};

// New file beside `target`, gone at the end of its life unless renamed over the target.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target), file_(create()) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view piece) {
    if (buffer_.size() + piece.size() > kBufferBytes) flush();
    if (piece.size() > kBufferBytes) {
      write_now(piece);
    } else {
      buffer_ += piece;
    }
  }

  void rename_over_target() {
    flush();
    keep_permissions();
    if (::fsync(file_.get()) != 0 || !file_.close()) give_up("cannot write");
    if (::rename(path_.c_str(), target_.c_str()) != 0) give_up("cannot replace");
    path_.clear();
    // Whether the new name survives a power cut; the file is whole in any case, so no error.
    const Descriptor folder(
        ::open(target_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.is_open()) ::fsync(folder.get());
  }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 16;

  // A crash may have left a file of this name (process ids come again), another thread may be
  // writing one: never touch it, number on.
  int create() {
    const std::string name = fmt::format(".{}.tmp-{}", target_.filename().string(), ::getpid());
    for (int attempt = 0; attempt < 100; ++attempt) {
      path_ = target_.parent_path() / (attempt == 0 ? name : fmt::format("{}-{}", name, attempt));
      const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0) return fd;
      if (errno != EEXIST) break;
    }
    path_.clear();
    fail_with_errno(target_, "cannot create", ErrorKind::kSystem);
  }

  void flush() {
    write_now(buffer_);
    buffer_.clear();
  }

  void write_now(std::string_view rest) {
    while (!rest.empty()) {
      const ssize_t count = ::write(file_.get(), rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) give_up("cannot write");
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // A file that was private stays private.
  void keep_permissions() {
    struct stat status = {};
    if (::stat(target_.c_str(), &status) != 0) return;
    if (::fchmod(file_.get(), status.st_mode & 07777) != 0) give_up("cannot set permissions");
  }

  [[noreturn]] void give_up(const std::string& action) const {
    fail_with_errno(target_, action, ErrorKind::kSystem);
  }

  fs::path target_;
  fs::path path_;
  Descriptor file_;
  std::string buffer_;
};

// Where the content has to go: through symbolic links (they stay), to a regular file or a new one.
fs::path resolve_target(const fs::path& path) {
  if (path.filename().empty()) throw Error(path, "expected the path of a file, got a folder");
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return fs::absolute(path);
  const fs::path target = fs::canonical(path, error);
  if (error) throw Error(path, "cannot follow the link: " + error.message());
  struct stat status = {};
  if (::stat(target.c_str(), &status) != 0) fail_with_errno(path, "cannot open");
  check_regular(path, status);
  return target;
}

}  // namespace

std::string read_file(const fs::path& path, std::int64_t max_bytes) {
  const RegularFile file(path);
  file.check_size(max_bytes);
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const std::size_t count = file.read(content.data() + done, content.size() - done);
    if (count == 0) fail_shorter(path);
    done += count;
  }
  return content;
}

FileBytes::FileBytes(const fs::path& path, std::int64_t max_bytes) : path_(path) {
  RegularFile file(path_);
  file.check_size(max_bytes);
  size_ = static_cast<std::uint64_t>(file.size());
  descriptor_ = {new int(file.release()), [](const int* descriptor) {
                   ::close(*descriptor);
                   delete descriptor;
                 }};
}

void FileBytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(*descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(path_, "cannot read");
    if (count == 0) fail_shorter(path_);
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::string FileBytes::read(std::uint64_t offset, std::uint64_t count) const {
  std::string bytes(count, '\0');
  read(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void check_replaceable(const fs::path& path, const FileMark& mark) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const FileBytes file(path, std::numeric_limits<std::int64_t>::max());
  if (file.size() == 0) return;
  const std::size_t size = mark.bytes.size();
  if (file.size() >= size && file.read(mark.at_end ? file.size() - size : 0, size) == mark.bytes) {
    return;
  }
  throw Error(
      path,
      fmt::format("is there already and does not hold {}; choose another name, or remove it first",
                  mark.kind));
}

void read_pieces(const fs::path& path, const Sink& take) {
  const RegularFile file(path);
  std::string piece(1 << 20, '\0');
  while (const std::size_t count = file.read(piece.data(), piece.size())) {
    take(std::string_view(piece).substr(0, count));
  }
}

std::string sha256_of_file(const fs::path& path) {
  base::Sha256 hash;
  read_pieces(path, [&](std::string_view piece) { hash.add(piece); });
  return hash.hex();
}

void write_file(const fs::path& path, std::string_view content) {
  write_file(path, [&](const Sink& sink) { sink(content); });
}

void write_file(const fs::path& path, const std::function<void(const Sink&)>& produce) {
  TemporaryFile file(resolve_target(path));
  produce([&](std::string_view piece) { file.write(piece); });
  file.rename_over_target();
}

}  // namespace mpssm::io
