// SPDX-License-Identifier: MIT
#include "mpssm/study/json_lines.h"

#include <algorithm>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/file.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::int64_t kMaxResultsBytes = 1 << 26;

/// Whoever adds a row reads the whole file first: nobody else may write in between. The lock is on
/// the folder itself, so no file is left behind.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // A file system without locks is no reason to lose a result.
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (file_ >= 0) close(file_);
  }

 private:
  int file_;
};

/// Throws with the place of the line.
[[noreturn]] void refuse_line(const std::string& place, const std::string& why) {
  throw base::Error(place, "not a result: " + why);
}

}  // namespace

std::vector<JsonLine> read_json_lines(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  const std::string content = io::read_file(path, kMaxResultsBytes);
  std::vector<JsonLine> lines;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    JsonLine line{.place = fmt::format("{}:{}", path.string(), lines.size() + 1),
                  .text = content.substr(begin, end - begin),
                  .json = {}};
    try {
      line.json = ordered_json::parse(line.text);
    } catch (const ordered_json::exception& error) {
      refuse_line(line.place, error.what());
    }
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

void for_each_json_line(const fs::path& path, const std::function<void(const ordered_json&)>& add) {
  for (const JsonLine& line : read_json_lines(path)) {
    try {
      add(line.json);
    } catch (const ordered_json::exception& error) {
      refuse_line(line.place, error.what());
    } catch (const base::Error& error) {
      throw error.within(line.place + ": not a result");
    }
  }
}

void replace_lines_of(const fs::path& path, const std::string& row, const std::string& lines) {
  fs::create_directories(path.parent_path());
  const FolderLock lock(path.parent_path());
  std::string content;
  bool is_placed = false;
  for (const JsonLine& line : read_json_lines(path)) {
    if (line.json.contains("row") && line.json.at("row") == row) {
      if (!is_placed) content += lines;
      is_placed = true;
    } else {
      content += line.text + "\n";
    }
  }
  if (!is_placed) content += lines;
  io::write_file(path, content);
}

std::string words_at(const ordered_json& json, const char* key) {
  auto words = json.at(key).get<std::string>();
  if (base::printable(words, std::string::npos) == words) return words;
  throw base::Error(fmt::format("'{}': expected one line of text", key));
}

std::int64_t whole_at(const ordered_json& json, const char* key) {
  const ordered_json& value = json.at(key);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw base::Error(fmt::format("'{}': expected a whole number", key));
}

std::optional<std::int64_t> whole_or_nothing_at(const ordered_json& json, const char* key) {
  return json.at(key).is_null() ? std::nullopt : std::optional(whole_at(json, key));
}

}  // namespace mpssm::study
