// SPDX-License-Identifier: MIT
// Data, problem and network of a run: made from a config, or opened from a folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "mpssm/data/data_card.h"
#include "mpssm/data/dataset.h"
#include "mpssm/io/file.h"
#include "mpssm/run/data_pins.h"
#include "mpssm/task/metrics.h"
#include "mpssm/train/built_model.h"
#include "mpssm/train/config.h"
#include "mpssm/train/defaults.h"

namespace mpssm::nn {
class SharedModule;
}
namespace mpssm::task {
struct NodeShare;
}

namespace mpssm::run {

/// Data, problem and network of a config.
struct Experiment {
  Experiment();
  Experiment(Experiment&&) noexcept;
  Experiment& operator=(Experiment&&) noexcept;
  ~Experiment();

  train::Config config;
  std::unique_ptr<data::Dataset> dataset;  // the problem refers to it
  std::unique_ptr<task::Problem> problem;
  train::BuiltModel model;
  std::string metric;                  ///< that selects the best model
  DataPins pins;                       ///< what the run keeps of its data
  std::vector<train::Choice> choices;  ///< by rules, where nothing was given

  /// Of a graph in parts (run/partition.h), of which each rank has some: `dataset` holds own nodes.
  /// None of these for data that are whole.
  std::shared_ptr<const task::NodeShare> share = {};  // the problem refers to it
  std::shared_ptr<nn::SharedModule> by_nodes = {};    ///< `model`, to be called by all ranks
  std::string about = {};                             ///< the card of the whole, for people
  std::string card = {};                              ///< the same as JSON

  /// What the problem is to be handed.
  nn::GraphModule& network() const;
};

/// The metric that selects: of the config or else of the dataset. Throws base::Error.
std::string metric_of(const train::Config& config, const data::Dataset& dataset);

/// Weights that a network of these settings has at least, told without making it.
std::int64_t least_parameters(const train::Config& config);

/// What the rules choose for a config that goes by them (train/defaults.h), without more than
/// loading the data; all else is in `config`.
struct Explained {
  train::Config config;
  std::vector<train::Choice> choices;
  std::unique_ptr<data::Dataset> dataset;
};
Explained explain(const train::Config& config, const std::filesystem::path& data_dir = {});

/// Loads the data and builds the network, its weights drawn from config.seed. `pins`: of a run that
/// is to go on; throws base::Error if a file is not what it was.
Experiment set_up(const train::Config& config, const std::filesystem::path& data_dir = {},
                  const DataPins* pins = nullptr);

struct ReopenOptions {
  std::filesystem::path data_dir = {};
  /// Other data (a name or path), read with the columns and classes that the model has learned.
  std::optional<std::string> new_data = {};
  /// In new data, labels of classes that the model has never seen count as none; else an error.
  bool skip_new_classes = false;
  /// Whatever it was trained in; else as it was trained.
  bool in_float32 = false;
};
/// The trained model of a run folder (or model.safetensors file) with the data it was trained on,
/// which must not have changed since, or with other data.
Experiment reopen(const std::filesystem::path& run, const ReopenOptions& options = {});

/// What a run keeps of its data, or nullopt if there is no run yet.
std::optional<DataPins> read_pins(const std::filesystem::path& folder);

/// What is known of the data of a run, and what it adds to them.
data::DataCard card_of(const Experiment& experiment);

/// Metrics of a part with the model as it is, without gradients. New data have one part, kTest: all
/// that is labelled.
task::Metrics evaluate(const Experiment& experiment, data::Part part);

/// What predict is asked for beside the predictions of every node.
struct PredictOptions {
  std::string pairs = {};  ///< links: a table of pairs to score
  std::int64_t top = 0;    ///< links: as many of the best pairs without an edge (0: 100)
};

/// Predictions of the model as it is, as CSV: one line per node or graph; for a series the steps
/// that follow its end, one line per node; for links the pairs that are asked for. Throws
/// base::Error if the options mean nothing to the task.
void write_predictions(const Experiment& experiment, const io::Sink& sink,
                       const PredictOptions& options = {});
/// The same into a file, which may replace predictions of the same kind and nothing else.
void write_predictions(const Experiment& experiment, const std::filesystem::path& path,
                       const PredictOptions& options = {});

}  // namespace mpssm::run
