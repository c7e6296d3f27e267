// SPDX-License-Identifier: MIT
// The folder of a run: one writer at a time, and nothing in it is touched that a run did not write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/train/config.h"

namespace mpssm::run {

enum class Writer {
  kThisProcess,
  kAnotherRank,  ///< the folder is only named, not touched
};

/// Holds the folder for writing until it is destroyed. The lock is the system's (flock), so that of
/// a dead process is gone with it.
class RunFolder {
 public:
  /// Makes the folder if it is not there. Throws base::Error, having changed nothing, if another
  /// process holds it (which one, since when), if it holds files of somebody else under the names
  /// that a run would write, or, unless `resume`, a run.
  RunFolder(const std::filesystem::path& folder, bool resume, Writer writer = Writer::kThisProcess);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Takes the folder, and those it is in, away again if they were made here and are empty.
  ~RunFolder();

  const std::filesystem::path& path() const { return folder_; }

 private:
  void lock();
  void release() noexcept;
  void check_nothing_to_lose(bool resume) const;
  void remove_leftovers() const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // here, the outermost last
  int lock_ = -1;
};

/// What a dataset is called in the name of a folder: "board-6x6", "myfolder".
std::string short_name(const std::string& dataset);

/// runs/<dataset>-<time>, with a number if two start in one second.
std::filesystem::path new_folder(const std::string& dataset);

/// config.toml of a run folder. Throws base::Error if there is none, or it cannot be read.
train::Config read_run_config(const std::filesystem::path& folder);

/// The settings to go on with in a folder: what the rules had chosen there is not chosen again
/// (train/defaults.h), what was given now stays. Without rules, `wanted` as it is.
train::Config settings_to_go_on(const std::filesystem::path& folder, const train::Config& wanted);

/// How long a run that goes on may last.
enum class Length { kSame, kLonger };
/// Throws base::Error that names the first setting in which a run that is to go on differs. With
/// kLonger, train.epochs may have grown, and train.patience may be another.
void check_same_settings(const std::filesystem::path& folder, const train::Config& config,
                         Length length = Length::kSame);

}  // namespace mpssm::run
