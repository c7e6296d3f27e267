// SPDX-License-Identifier: MIT
// A folder for a test, what an error says, and damaged copies of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <stdlib.h>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "mpssm/base/error.h"

namespace mpssm::testing {

/// New folder, removed with its content at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "mpssm-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }

  /// Not through io/, which is under test.
  std::filesystem::path put(std::string_view name, std::string_view content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::filesystem::remove(folder_ / name);  // faster than to overwrite
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

/// What the Error of `action` says; fails the test if there is none.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const base::Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

/// Calls `try_to_read` with `content` cut at each length, with each byte changed in several ways,
/// and with several bytes changed at random. Only an Error may come out of it.
inline void for_each_damage(const std::string& content,
                            const std::function<void(const std::string&)>& try_to_read) {
  const auto attempt = [&](const std::string& damaged, const std::string& what) {
    try {
      try_to_read(damaged);
    } catch (const base::Error&) {
      // One of the two good ends.
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  };
  for (std::size_t at = 0; at < content.size(); ++at) {
    attempt(content.substr(0, at), "cut at " + std::to_string(at));
    for (const int change : {0x01, 0x10, 0x80, 0xFF}) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      attempt(damaged, "byte " + std::to_string(at) + " ^ " + std::to_string(change));
    }
  }
  constexpr int kRandomDamages = 3000;
  std::mt19937 random(17);
  for (int i = 0; i < kRandomDamages; ++i) {
    std::string damaged = content;
    for (std::uint32_t changes = 2 + random() % 6; changes > 0; --changes) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    attempt(damaged, "random damage " + std::to_string(i));
  }
}

}  // namespace mpssm::testing
