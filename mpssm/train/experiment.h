// SPDX-License-Identifier: MIT
// From a config to a trained model in a folder, and from that folder back to the model.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mpssm/data/dataset.h"
#include "mpssm/io/file.h"
#include "mpssm/report/run_record.h"
#include "mpssm/train/built_model.h"
#include "mpssm/train/config.h"
#include "mpssm/train/data_pins.h"
#include "mpssm/train/metrics.h"
#include "mpssm/train/run_folder.h"
#include "mpssm/train/trainer.h"

namespace mpssm::train {

/// Data, problem and network of a config.
struct Experiment {
  Experiment();
  Experiment(Experiment&&) noexcept;
  Experiment& operator=(Experiment&&) noexcept;
  ~Experiment();

  Config config;
  std::unique_ptr<data::Dataset> dataset;  // the problem refers to it
  std::unique_ptr<Problem> problem;
  BuiltModel model;
  std::string metric;  ///< that selects the best model
  DataPins pins;       ///< what the run keeps of its data
};

/// Weights that a network of these settings has at least, told without making it.
std::int64_t least_parameters(const Config& config);

/// Loads the data and builds the network, its weights drawn from config.seed. `pins`: of a run that
/// is to go on; throws io::InputError if a file is not what it was.
Experiment set_up(const Config& config, const std::filesystem::path& data_dir = {},
                  const DataPins* pins = nullptr);

struct ReopenOptions {
  std::filesystem::path data_dir = {};
  /// Other data (a name or path), read with the columns and classes that the model has learned.
  std::optional<std::string> new_data = {};
  /// In new data, labels of classes that the model has never seen count as none; else an error.
  bool skip_new_classes = false;
};
/// The trained model of a run folder (or model.safetensors file) with the data it was trained on,
/// which must not have changed since, or with other data.
Experiment reopen(const std::filesystem::path& run, const ReopenOptions& options = {});

/// What a run keeps of its data, or nullopt if there is no run yet.
std::optional<DataPins> read_pins(const std::filesystem::path& folder);

/// Trains into a folder: data.json and config.toml first, then metrics.csv, model.safetensors and
/// state.safetensors at every checkpoint, predictions.csv and, when all is done, record.json.
/// nullopt: interrupted, can be resumed. A finished run that is resumed gives its record again.
std::optional<report::RunRecord> run(Experiment& experiment, const RunFolder& folder, bool resume,
                                     const TrainHooks& hooks = {});

/// Metrics of a part with the model as it is, without gradients. New data have one part, kTest: all
/// that is labelled.
Metrics evaluate(const Experiment& experiment, data::Part part);

/// Predictions of the model as it is, as CSV: one line per node or graph; for a series the steps
/// that follow its end, one line per node.
void write_predictions(const Experiment& experiment, const io::Sink& sink);

/// Peak memory of this process so far, in MiB.
double peak_mib();

}  // namespace mpssm::train
