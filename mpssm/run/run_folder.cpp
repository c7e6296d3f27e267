// SPDX-License-Identifier: MIT
#include "mpssm/run/run_folder.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/file.h"
#include "mpssm/run/data_pins.h"

namespace mpssm::run {
namespace {

using base::Error;
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> kNames = {
    "data.json",         "card.json",       "config.toml", "metrics.csv", "model.safetensors",
    "state.safetensors", "predictions.csv", "record.json", "report.html", "board.svg"};
constexpr std::string_view kLockName = ".mpssm-lock";
constexpr std::string_view kLockStart = "process ";

/// "process 4711 on host since 2025-01-31 12:00:00"
std::string signature() {
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> stamp = {};
  std::strftime(stamp.data(), stamp.size(), "%Y-%m-%d %H:%M:%S", std::localtime(&now));
  return fmt::format("{}{} on {} since {}", kLockStart, getpid(), host.data(), stamp.data());
}

std::string content_of(int file) {
  std::array<char, 512> text = {};
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

/// Whether the name still belongs to the open file: its holder removes it when done.
bool is_same_file(int file, const fs::path& path) {
  struct stat open_one = {};
  struct stat named = {};
  return fstat(file, &open_one) == 0 && stat(path.c_str(), &named) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

bool is_written_by_run(const fs::path& folder) {
  try {
    const fs::path path = pins_path(folder);
    pins_from_json(io::read_file(path), path.string());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

RunFolder::RunFolder(const fs::path& folder, bool resume, Writer writer) : folder_(folder) {
  if (writer == Writer::kAnotherRank) return;
  std::error_code error;
  for (fs::path path = fs::absolute(folder).lexically_normal(); !fs::exists(path, error);
       path = path.parent_path()) {
    if (path.has_filename()) made_.push_back(path);
  }
  fs::create_directories(folder, error);
  if (error) {
    throw Error(folder.string() + ": cannot make this folder: " + error.message());
  }
  try {
    lock();
    check_nothing_to_lose(resume);
  } catch (...) {
    release();
    throw;
  }
  remove_leftovers();
}

RunFolder::~RunFolder() { release(); }

void RunFolder::release() noexcept {
  std::error_code ignored;
  if (lock_ >= 0) {
    fs::remove(folder_ / kLockName, ignored);  // still held: nobody else can have it
    close(lock_);
    lock_ = -1;
  }
  for (const fs::path& path : made_) fs::remove(path, ignored);  // fails unless it is empty
}

void RunFolder::lock() {
  const fs::path path = folder_ / kLockName;
  const auto fail = [&](const std::string& action) {
    throw Error(path.string(), fmt::format("{}: {}", action, std::strerror(errno)));
  };
  for (;;) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) fail("cannot create");
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      const std::string holder = content_of(file);
      close(file);
      errno = code;
      if (code != EWOULDBLOCK) fail("cannot lock");
      throw Error(folder_.string(),
                  fmt::format("is being written by {}; wait for it or stop it",
                              holder.starts_with(kLockStart) ? base::printable(holder, 200)
                                                             : std::string("another process")));
    }
    if (!is_same_file(file, path)) {
      close(file);
      continue;
    }
    const std::string text = content_of(file);
    if (!text.empty() && !text.starts_with(kLockStart)) {
      close(file);
      throw Error(path.string() + ": is there and was not written by mpssm");
    }
    lock_ = file;
    const std::string mine = signature();
    if (ftruncate(file, 0) != 0 || pwrite(file, mine.data(), mine.size(), 0) < 0) {
      fail("cannot write");
    }
    return;
  }
}

void RunFolder::check_nothing_to_lose(bool resume) const {
  if (resume && fs::exists(pins_path(folder_))) return;  // whoever goes on reads it first
  const bool is_ours = is_written_by_run(folder_);
  for (const char* name : {"state.safetensors", "record.json"}) {
    if (is_ours && fs::exists(folder_ / name)) {
      throw Error(folder_.string() +
                  ": holds a run already; --resume goes on with it, another --out starts anew");
    }
  }
  if (is_ours) return;  // a run that never got to its first checkpoint
  for (const std::string_view name : kNames) {
    if (fs::exists(fs::symlink_status(folder_ / name))) {
      throw Error((folder_ / name).string() +
                  ": is there already and not from this version of mpssm; another --out "
                  "starts anew");
    }
  }
}

/// Files that a killed process was about to write (io::write_file).
void RunFolder::remove_leftovers() const {
  std::error_code ignored;  // they take space, and that is all
  for (fs::directory_iterator entry(folder_, ignored); entry != fs::directory_iterator();
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    for (const std::string_view own : kNames) {
      if (name.starts_with(fmt::format(".{}.tmp-", own))) fs::remove(entry->path(), ignored);
    }
  }
}

std::string short_name(const std::string& dataset) {
  std::string name = fs::path(dataset).filename().string();
  if (name.empty()) name = fs::path(dataset).parent_path().filename().string();
  for (char& c : name) {
    if (c == ':' || c == '/') c = '-';
  }
  return name;
}

fs::path new_folder(const std::string& dataset) {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> stamp = {};
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", std::localtime(&now));
  const fs::path base = fs::path("runs") / (short_name(dataset) + "-" + stamp.data());
  fs::path folder = base;
  for (int i = 2; fs::exists(folder); ++i) folder = fmt::format("{}-{}", base.string(), i);
  return folder;
}

train::Config read_run_config(const fs::path& folder) {
  constexpr std::int64_t kMaxConfigBytes = 1 << 20;
  const fs::path path = folder / "config.toml";
  train::Config config;
  train::apply_toml(config, io::read_file(path, kMaxConfigBytes), path.string());
  return config;
}

train::Config settings_to_go_on(const fs::path& folder, const train::Config& wanted) {
  if (!wanted.by_rules) return wanted;
  train::Config config = train::with_given(read_run_config(folder), wanted);
  config.seed = wanted.seed;
  config.data.split = wanted.data.split;
  config.data.name = wanted.data.name;
  return config;
}

void check_same_settings(const fs::path& folder, const train::Config& config, Length length) {
  train::Config there = read_run_config(folder);
  if (length == Length::kLonger && config.train.epochs >= there.train.epochs) {
    there.train.epochs = config.train.epochs;
    there.train.patience = config.train.patience;
  }
  const std::string difference = train::first_difference(there, config);
  if (difference.empty()) return;
  throw Error(
      folder.string(),
      fmt::format(
          "cannot go on with other settings: {}; another --out starts anew{}", difference,
          length == Length::kLonger ? " (train.epochs may grow, train.patience may change)" : ""));
}

}  // namespace mpssm::run
