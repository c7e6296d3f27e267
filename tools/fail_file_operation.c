// SPDX-License-Identifier: MIT
// Loaded before a program (LD_PRELOAD): notes its file operations below a folder and makes one
// fail.
//
//   FAULT_FOLDER  absolute path; operations elsewhere pass
//   FAULT_LOG     file that gets a line "<operation> <path>" for each, "! " before those that
//   failed FAULT_AT      number of the operation that fails (from 1); none without it FAULT_KIND
//   once: that one, input/output error; full: from there on all that need space on the disk
//
// Calls that the C library makes inside itself do not come by here (what fwrite does, say).
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kPasses = 0, kFails = 1 };
enum Need { kNoSpace, kSpace };

static atomic_long num_operations;

static void note(int fails, const char* operation, const char* path) {
  const char* log = getenv("FAULT_LOG");
  if (log == NULL) return;
  char line[PATH_MAX + 64];
  const int size = snprintf(line, sizeof line, "%s%s %s\n", fails ? "! " : "", operation, path);
  const long fd =
      syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, (size_t)size);
  syscall(SYS_close, fd);
}

// Whether this operation is to fail, with errno set then.
static int decide(const char* operation, const char* path, enum Need need) {
  const char* folder = getenv("FAULT_FOLDER");
  if (folder == NULL) return kPasses;
  const size_t length = strlen(folder);
  if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != '\0'))
    return kPasses;
  const int before = errno;
  const long number = atomic_fetch_add(&num_operations, 1) + 1;
  const char* at = getenv("FAULT_AT");
  const char* kind = getenv("FAULT_KIND");
  const long first = at == NULL ? LONG_MAX : atol(at);
  const int is_full = kind != NULL && strcmp(kind, "full") == 0;
  const int fails = is_full ? number >= first && need == kSpace : number == first;
  note(fails, operation, path);
  errno = fails ? (is_full ? ENOSPC : EIO) : before;
  return fails;
}

static int decide_at(const char* operation, int folder, const char* name, enum Need need) {
  const int before = errno;
  char path[2 * PATH_MAX];
  size_t used = 0;
  if (name == NULL) name = "";
  if (name[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    const ssize_t size = readlink(link, path, PATH_MAX);
    if (size < 0) {
      errno = before;
      return kPasses;
    }
    used = (size_t)size;
    if (name[0] != '\0') path[used++] = '/';
  }
  snprintf(path + used, sizeof path - used, "%s", name);
  errno = before;
  return decide(operation, path, need);
}

static int decide_path(const char* operation, const char* path, enum Need need) {
  return decide_at(operation, AT_FDCWD, path, need);
}

static int decide_fd(const char* operation, int fd, enum Need need) {
  return decide_at(operation, fd, "", need);
}

// The C library's own function of that name.
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(result, name, parameters, arguments, failure, fails) \
  result name parameters {                                        \
    if (fails) return failure;                                    \
    return NEXT(name) arguments;                                  \
  }

static int decide_open(int folder, const char* path, int creates) {
  return decide_at(creates ? "create" : "open", folder, path, creates ? kSpace : kNoSpace);
}

#define WRAP_OPEN(name, parameters, arguments, folder)                     \
  int name parameters {                                                    \
    mode_t mode = 0;                                                       \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {           \
      va_list rest;                                                        \
      va_start(rest, flags);                                               \
      mode = va_arg(rest, mode_t);                                         \
      va_end(rest);                                                        \
    }                                                                      \
    if (decide_open(folder, path, flags & (O_CREAT | O_TRUNC))) return -1; \
    return NEXT(name) arguments;                                           \
  }
WRAP_OPEN(open, (const char* path, int flags, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode),
          folder)
WRAP_OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode),
          folder)
WRAP(int, creat, (const char* path, mode_t mode), (path, mode), -1, decide_open(AT_FDCWD, path, 1))
WRAP(FILE*, fopen, (const char* path, const char* mode), (path, mode), NULL,
     decide_open(AT_FDCWD, path, mode[0] != 'r'))
WRAP(FILE*, fopen64, (const char* path, const char* mode), (path, mode), NULL,
     decide_open(AT_FDCWD, path, mode[0] != 'r'))
WRAP(DIR*, opendir, (const char* path), (path), NULL, decide_path("opendir", path, kNoSpace))

// A close that fails has closed nevertheless.
int close(int fd) {
  const int fails = decide_fd("close", fd, kNoSpace);
  const int code = errno;
  const int result = NEXT(close)(fd);
  if (!fails) return result;
  errno = code;
  return -1;
}

WRAP(ssize_t, read, (int fd, void* data, size_t size), (fd, data, size), -1,
     decide_fd("read", fd, kNoSpace))
WRAP(ssize_t, write, (int fd, const void* data, size_t size), (fd, data, size), -1,
     decide_fd("write", fd, kSpace))
WRAP(ssize_t, pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at), -1,
     decide_fd("write", fd, kSpace))
WRAP(ssize_t, pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at),
     -1, decide_fd("write", fd, kSpace))
WRAP(ssize_t, writev, (int fd, const struct iovec* pieces, int count), (fd, pieces, count), -1,
     decide_fd("write", fd, kSpace))
WRAP(int, fsync, (int fd), (fd), -1, decide_fd("fsync", fd, kSpace))
WRAP(int, fdatasync, (int fd), (fd), -1, decide_fd("fsync", fd, kSpace))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1, decide_fd("truncate", fd, kSpace))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), -1, decide_fd("truncate", fd, kSpace))
WRAP(int, truncate, (const char* path, off_t size), (path, size), -1,
     decide_path("truncate", path, kSpace))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, decide_fd("chmod", fd, kNoSpace))
WRAP(int, flock, (int fd, int operation), (fd, operation), -1, decide_fd("lock", fd, kNoSpace))

static int is_lock(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW;
}
#define WRAP_FCNTL(name)                                                \
  int name(int fd, int command, ...) {                                  \
    va_list rest;                                                       \
    va_start(rest, command);                                            \
    void* argument = va_arg(rest, void*);                               \
    va_end(rest);                                                       \
    if (is_lock(command) && decide_fd("lock", fd, kNoSpace)) return -1; \
    return NEXT(name)(fd, command, argument);                           \
  }
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

WRAP(int, rename, (const char* from, const char* to), (from, to), -1,
     decide_path("rename", to, kSpace))
WRAP(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to), -1,
     decide_at("rename", b, to, kSpace))
WRAP(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
     (a, from, b, to, flags), -1, decide_at("rename", b, to, kSpace))
WRAP(int, link, (const char* from, const char* to), (from, to), -1, decide_path("link", to, kSpace))
WRAP(int, linkat, (int a, const char* from, int b, const char* to, int flags),
     (a, from, b, to, flags), -1, decide_at("link", b, to, kSpace))
WRAP(int, symlink, (const char* content, const char* path), (content, path), -1,
     decide_path("link", path, kSpace))
WRAP(int, mkdir, (const char* path, mode_t mode), (path, mode), -1,
     decide_path("mkdir", path, kSpace))
WRAP(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), -1,
     decide_at("mkdir", folder, path, kSpace))
WRAP(int, unlink, (const char* path), (path), -1, decide_path("unlink", path, kNoSpace))
WRAP(int, unlinkat, (int folder, const char* path, int flags), (folder, path, flags), -1,
     decide_at("unlink", folder, path, kNoSpace))
WRAP(int, rmdir, (const char* path), (path), -1, decide_path("unlink", path, kNoSpace))
WRAP(int, remove, (const char* path), (path), -1, decide_path("unlink", path, kNoSpace))

WRAP(int, stat, (const char* path, struct stat* out), (path, out), -1,
     decide_path("stat", path, kNoSpace))
WRAP(int, lstat, (const char* path, struct stat* out), (path, out), -1,
     decide_path("stat", path, kNoSpace))
WRAP(int, fstat, (int fd, struct stat* out), (fd, out), -1, decide_fd("stat", fd, kNoSpace))
WRAP(int, fstatat, (int folder, const char* path, struct stat* out, int flags),
     (folder, path, out, flags), -1, decide_at("stat", folder, path, kNoSpace))
WRAP(int, stat64, (const char* path, struct stat64* out), (path, out), -1,
     decide_path("stat", path, kNoSpace))
WRAP(int, lstat64, (const char* path, struct stat64* out), (path, out), -1,
     decide_path("stat", path, kNoSpace))
WRAP(int, fstat64, (int fd, struct stat64* out), (fd, out), -1, decide_fd("stat", fd, kNoSpace))
WRAP(ssize_t, readlink, (const char* path, char* out, size_t size), (path, out, size), -1,
     strncmp(path, "/proc/", 6) != 0 && decide_path("stat", path, kNoSpace))
