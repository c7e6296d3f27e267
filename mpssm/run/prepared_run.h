// SPDX-License-Identifier: MIT
// A training that is about to start: its folder held, its data read, its settings and memory
// checked, by this process or by several ranks together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/ranks/communicator.h"
#include "mpssm/report/run_record.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/memory_limit.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/train/config.h"
#include "mpssm/train/trainer.h"

namespace mpssm::run {

struct RunOptions {
  std::filesystem::path folder;
  std::filesystem::path data_dir = {};
  std::int64_t memory_limit_mib = 0;  ///< 0: what is free
  bool resume = false;
  bool may_last_longer = false;          ///< with resume: more epochs than it was started with
  bool with_notes = true;                ///< on the data
  bool with_picture = true;              ///< of a board
  ranks::Communicator* ranks = nullptr;  ///< those that train together; null: this process alone
};

class PreparedRun {
 public:
  /// Throws base::Error. With ranks, called by all of them; the folder is rank 0's. They share the
  /// channels of one graph, or its nodes where it is in parts (run/partition.h); of many graphs or
  /// windows a new run has a piece of each batch (train.pieces) for every rank, and one that goes
  /// on keeps its pieces, so that any number of ranks ends with the same bits.
  PreparedRun(const train::Config& config, const RunOptions& options);

  const Experiment& experiment() const { return experiment_; }
  /// What people should know before it starts, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  /// See train_into(). A board gets its picture, too, unless told otherwise.
  std::optional<report::RunRecord> train(const train::TrainHooks& hooks);

 private:
  std::optional<DataPins> pins_to_go_on(bool resume) const;
  Experiment make_experiment(const train::Config& config, const RunOptions& options);
  void share_batches();
  void share_channels();

  MemoryLimit limit_;
  std::unique_ptr<ranks::Communicator> alone_;
  ranks::Communicator& ranks_;
  RunFolder folder_;
  std::optional<DataPins> pins_;  // of a run that goes on
  Experiment experiment_;
  std::vector<std::string> notes_;
  bool with_picture_;
};

}  // namespace mpssm::run
