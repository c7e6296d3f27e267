// SPDX-License-Identifier: MIT
#include "mpssm/train/experiment.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/train/checkpoint.h"
#include "mpssm/train/metrics.h"
#include "mpssm/version.h"

namespace mpssm::train {
namespace {

using io::InputError;
using nlohmann::json;
namespace fs = std::filesystem;

data::LoadOptions load_options(const Config& config, const fs::path& data_dir) {
  data::LoadOptions options;
  const DataConfig& data = config.data;
  options.data_dir = data_dir;
  if (data.task != "auto") options.task = data::task_from_name(data.task);
  options.target = data.target;
  // Not said is not "no": a registered dataset knows better.
  if (data.directed) options.directed = true;
  if (!data.standardise) options.standardise = false;
  if (data.lags > 0) options.lags = data.lags;
  if (data.horizon > 0) options.horizon = data.horizon;
  if (data.train_ratio > 0.0) options.train_ratio = data.train_ratio;
  options.split_seed = static_cast<std::uint64_t>(data.split_seed);
  options.make_seed = static_cast<std::uint64_t>(data.make_seed);
  return options;
}

std::string to_text(const Preprocessing& learned) {
  json columns = json::array();
  for (const data::Column& column : learned.columns) {
    columns.push_back({{"name", column.name},
                       {"mean", column.mean},
                       {"scale", column.scale},
                       {"categories", column.categories}});
  }
  return json{{"columns", columns},
              {"class_names", learned.class_names},
              {"label_scale", learned.label_scale},
              {"mean", learned.mean},
              {"scale", learned.scale}}
      .dump();
}

Preprocessing preprocessing_from(const std::string& text, const std::string& origin) {
  try {
    const json object = json::parse(text);
    Preprocessing learned;
    for (const json& item : object.at("columns")) {
      learned.columns.push_back({item.at("name"), item.at("mean"), item.at("scale"),
                                 item.at("categories").get<std::vector<std::string>>()});
    }
    object.at("class_names").get_to(learned.class_names);
    object.at("label_scale").get_to(learned.label_scale);
    object.at("mean").get_to(learned.mean);
    object.at("scale").get_to(learned.scale);
    return learned;
  } catch (const json::exception&) {
    throw InputError(origin + ": its 'preprocessing' cannot be read");
  }
}

const std::string& text_of(const ModelFile& file, const std::string& key,
                           const std::string& origin) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    throw InputError(origin + ": no '" + key + "' in its metadata; was this written by mpssm?");
  }
  return found->second;
}

data::Task task_of(const ModelFile& file, const std::string& origin) {
  const std::string& name = text_of(file, "task", origin);
  try {
    return data::task_from_name(name);
  } catch (const InputError& error) {
    throw InputError(origin + ": " + error.what());
  }
}

/// Numbers that a model gives per sample: rows of the last weight of its readout.
std::int64_t outputs_of(const Weights& weights) {
  std::int64_t outputs = 1;
  for (const auto& [name, weight] : weights) {  // sorted: the last layer comes last
    if (name.starts_with("readout") && weight.dim() == 2) outputs = weight.size(0);
  }
  return outputs;
}

std::string metric_of(const Config& config, const data::Dataset& dataset) {
  if (config.train.metric == "auto") return dataset.metric;
  const std::vector<std::string> known = [&]() -> std::vector<std::string> {
    switch (dataset.task) {
      case data::Task::kNodeBinary:
        return {"roc_auc", "average_precision", "accuracy", "loss"};
      case data::Task::kNodeClasses:
        return {"accuracy", "loss"};
      case data::Task::kGraphLabels:
        return {"average_precision", "loss"};
      case data::Task::kGraphRegression:
      case data::Task::kNodeRegression:
      case data::Task::kForecast:
        return {"mse", "mae", "rmse", "loss", dataset.metric};
    }
    return {};
  }();
  std::string list;
  for (const std::string& name : known) {
    if (name == config.train.metric) return name;
    list += (list.empty() ? "" : ", ") + name;
  }
  throw InputError("train.metric: expected one of " + list + " for this task, got '" +
                   io::printable(config.train.metric) + "'");
}

/// The file that a run is done by when it exists.
fs::path record_path(const fs::path& folder) { return folder / "record.json"; }

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw InputError(folder.string() + ": cannot make this folder: " + error.message());
  }
}

/// Files that a killed process was about to write (io::write_file).
void remove_leftovers(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") && name.find(".tmp-") != std::string::npos) {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

std::int64_t least_parameters(const Config& config) {
  const std::int64_t square = config.model.channels * config.model.channels;
  return config.model.blocks * (config.model.kind == "mpssm" ? 3 : 1) * square;
}

Experiment set_up(const Config& config, const fs::path& data_dir) {
  check(config);
  Experiment experiment;
  experiment.config = config;
  experiment.dataset =
      std::make_unique<data::Dataset>(data::load(config.data.name, load_options(config, data_dir)));
  // A path must mean the same wherever the run is opened from.
  if (!data::is_name(config.data.name)) {
    experiment.config.data.name = fs::weakly_canonical(config.data.name).string();
  }
  if (const auto* series = std::get_if<data::SeriesData>(&experiment.dataset->content)) {
    // A new series may have another length, and with it other defaults.
    experiment.config.data.lags = series->lags;
    experiment.config.data.horizon = series->horizon;
  }
  experiment.metric = metric_of(config, *experiment.dataset);
  experiment.problem = make_problem(*experiment.dataset, experiment.config);
  ops::ensure_runtime();
  torch::manual_seed(static_cast<std::uint64_t>(config.seed));
  experiment.model = build_model(*experiment.problem, experiment.config);
  experiment.problem->start(*experiment.model.module);
  return experiment;
}

Experiment reopen(const fs::path& run, const fs::path& data_dir,
                  const std::optional<std::string>& new_data) {
  std::error_code error;
  const fs::path path = fs::is_directory(run, error) ? run / "model.safetensors" : run;
  const std::string origin = path.string();
  const ModelFile file = load_model(path);
  Experiment experiment;
  apply_toml(experiment.config, text_of(file, "config", origin), origin + " (config)");
  check(experiment.config);
  std::int64_t num_weights = 0;
  for (const auto& [name, weight] : file.weights) num_weights += weight.numel();
  // Before a network of that size is made.
  if (num_weights < least_parameters(experiment.config)) {
    throw InputError(origin + ": expected at least " +
                     std::to_string(least_parameters(experiment.config)) +
                     " weights for its settings, got " + std::to_string(num_weights));
  }
  const Preprocessing learned = preprocessing_from(text_of(file, "preprocessing", origin), origin);
  const data::Task task = task_of(file, origin);
  data::LoadOptions options = load_options(experiment.config, data_dir);
  if (new_data) {
    options.columns = &learned.columns;
    options.class_names = &learned.class_names;
    options.task = task;
    options.num_targets = outputs_of(file.weights);
  }
  experiment.dataset = std::make_unique<data::Dataset>(
      data::load(new_data ? *new_data : experiment.config.data.name, options));
  const auto* nodes = std::get_if<data::NodeData>(&experiment.dataset->content);
  // The split it was trained on says nothing about data that have fewer.
  if (new_data && nodes != nullptr && experiment.config.data.split >= std::ssize(nodes->splits)) {
    experiment.config.data.split = 0;
  }
  if (experiment.dataset->task != task) {
    throw InputError(experiment.dataset->name + ": the model was trained for " +
                     std::string(data::to_string(task)) + ", these data are for " +
                     std::string(data::to_string(experiment.dataset->task)));
  }
  experiment.metric = metric_of(experiment.config, *experiment.dataset);
  experiment.problem = make_problem(*experiment.dataset, experiment.config, &learned);
  ops::ensure_runtime();
  experiment.model = build_model(*experiment.problem, experiment.config);
  const auto encoder = file.weights.find("encoder.weight");
  const torch::Tensor expected = experiment.model.module->named_parameters()["encoder.weight"];
  if (encoder != file.weights.end() && encoder->second.dim() == 2 &&
      encoder->second.size(1) != expected.size(1)) {
    throw InputError(experiment.dataset->name + ": the model was trained on " +
                     std::to_string(encoder->second.size(1)) + " features per node, got " +
                     std::to_string(expected.size(1)));
  }
  set_weights(*experiment.model.module, file.weights, origin);
  experiment.model.module->eval();
  return experiment;
}

std::optional<report::RunRecord> run(Experiment& experiment, const RunOptions& options) {
  make_folder(options.folder);
  remove_leftovers(options.folder);
  const std::string config_text = to_toml(experiment.config);
  const fs::path config_path = options.folder / "config.toml";
  if (!options.resume) {
    // Without a state there is nothing to lose: a run that never got to its first checkpoint.
    if (fs::exists(options.folder / "state.safetensors") ||
        fs::exists(record_path(options.folder))) {
      throw InputError(
          options.folder.string() +
          ": holds a run already; --resume goes on with it, another --out starts anew");
    }
    io::write_file(config_path, config_text);
  }
  const TrainJob job{.problem = *experiment.problem,
                     .config = experiment.config,
                     .metric = experiment.metric,
                     .model = experiment.model.module,
                     .folder = options.folder,
                     .metadata = {{"format", "mpssm-model-1"},
                                  {"version", kVersion},
                                  {"dataset", experiment.dataset->name},
                                  {"task", std::string(data::to_string(experiment.dataset->task))},
                                  {"config", config_text},
                                  {"preprocessing", to_text(experiment.problem->preprocessing())}},
                     .resume = options.resume};
  const TrainOutcome outcome = train(job, options.hooks);
  if (!outcome.finished) return std::nullopt;

  report::RunRecord record;
  record.version = kVersion;
  record.run = options.folder.string();
  record.dataset = experiment.dataset->name;
  record.task = data::to_string(experiment.dataset->task);
  record.metric = experiment.metric;
  record.protocol = experiment.dataset->protocol;
  record.seed = experiment.config.seed;
  record.split = experiment.config.data.split;
  record.num_parameters = experiment.model.num_parameters;
  record.steps = outcome.steps;
  record.best_step = outcome.best_step;
  record.metrics["val"] = evaluate(experiment, data::Part::kVal);
  record.metrics["test"] = evaluate(experiment, data::Part::kTest);
  for (const Reference& reference : experiment.problem->references()) {
    record.references.push_back({reference.name, reference.test});
  }
  {
    const torch::NoGradGuard no_grad;
    io::write_file(options.folder / "predictions.csv", [&](const io::Sink& sink) {
      experiment.problem->write_predictions(*experiment.model.module, sink);
    });
  }
  record.seconds = outcome.seconds;
  record.peak_mib = peak_mib();
  io::write_file(record_path(options.folder), report::to_json(record, 2) + "\n");
  return record;
}

Metrics evaluate(const Experiment& experiment, data::Part part) {
  const torch::NoGradGuard no_grad;
  experiment.model.module->eval();
  return experiment.problem->evaluate(*experiment.model.module, part);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace mpssm::train
