// SPDX-License-Identifier: MIT
#include "mpssm/run/experiment.h"

#include <cstdlib>
#include <fmt/core.h>
#include <utility>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/data/incident_edges.h"
#include "mpssm/data/links.h"
#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/engine/node_encodings.h"
#include "mpssm/engine/plan_costs.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/shared_module.h"
#include "mpssm/run/graph_edit_file.h"
#include "mpssm/run/measured_costs.h"
#include "mpssm/task/links.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/checkpoint.h"

namespace mpssm::run {
namespace {

using base::Error;
namespace fs = std::filesystem;

data::LoadOptions load_options(const train::Config& config, const fs::path& data_dir) {
  data::LoadOptions options;
  const train::DataConfig& data = config.data;
  options.data_dir = data_dir;
  options.task = data.task;
  options.target = data.target;
  options.directed = data.directed;
  options.id = data.id;
  options.ignore = data.ignore;
  options.categorical = data.categorical;
  options.numeric = data.numeric;
  options.text = data.text;
  // Not said is not "no": a registered dataset knows better.
  if (!data.standardise) options.standardise = false;
  if (data.lags > 0) options.lags = data.lags;
  if (data.horizon > 0) options.horizon = data.horizon;
  if (data.train_ratio > 0.0) options.train_ratio = data.train_ratio;
  if (data.period > 0.0) options.period = data.period;
  options.split_seed = static_cast<std::uint64_t>(data.split_seed);
  options.make_seed = static_cast<std::uint64_t>(data.make_seed);
  return options;
}

data::Dataset load_data(const std::string& name, const data::LoadOptions& options,
                        const train::Config& config) {
  data::Dataset dataset = data::load(name, options);
  if (engine::encodings_from_text(config.data.encodings).edges || config.model.gso.is_of_edges()) {
    data::read_bonds(dataset);
  }
  return dataset;
}

const std::string& text_of(const train::ModelFile& file, const std::string& key,
                           const std::string& origin) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    throw Error(origin, fmt::format("no '{}' in its metadata; was this written by mpssm?", key));
  }
  return found->second;
}

data::Task task_of(const train::ModelFile& file, const std::string& origin) {
  const std::string& name = text_of(file, "task", origin);
  try {
    return data::task_from_name(name);
  } catch (const Error& error) {
    throw error.within(origin);
  }
}

/// Numbers that a model gives per sample: rows of the last weight of its readout.
std::int64_t outputs_of(const train::Weights& weights) {
  constexpr std::string_view kPrefix = "readout_";
  std::int64_t outputs = 1;
  std::int64_t last = -1;
  for (const auto& [name, weight] : weights) {
    if (!name.starts_with(kPrefix) || !name.ends_with(".weight") || weight.dim() != 2) continue;
    // By number: as text "readout_10" comes before "readout_9".
    const std::int64_t layer = std::atoll(name.c_str() + kPrefix.size());
    if (layer < last) continue;
    last = layer;
    outputs = weight.size(0);
  }
  return outputs;
}

/// A hostile file may say anything.
void check_classes(const task::Preprocessing& learned, data::Task task,
                   const train::Weights& weights, const std::string& origin) {
  const std::int64_t outputs = outputs_of(weights);
  const auto names = static_cast<std::int64_t>(learned.class_names.size());
  const bool fits = data::is_binary(task)       ? names == 2 && outputs == 1
                    : data::is_of_classes(task) ? names >= 2 && names == outputs
                                                : names == 0;
  if (fits) return;
  throw Error(origin, fmt::format("a model for {} with {} output(s) cannot have {} class name(s)",
                                  data::to_string(task), outputs, names));
}

/// The pins in a model's metadata.
DataPins pins_of(const train::ModelFile& file, const std::string& origin) {
  if (!file.metadata.contains("data") && file.metadata.contains("preprocessing")) {
    throw Error(origin +
                ": was written by mpssm 0.2.0 or older, which did not keep its data; "
                "train it again");
  }
  return pins_from_json(text_of(file, "data", origin), origin);
}

/// What to do about data that are gone, and about others in their place.
struct WaysOut {
  std::string gone;
  std::string changed;
};

/// Stops if a file of the run is not what it was.
void check_unchanged(const DataPins& pins, const std::string& name,
                     const data::LoadOptions& options, const WaysOut& ways_out) {
  std::error_code ignored;
  if (!data::is_name(name) && !fs::exists(name, ignored)) {
    throw Error(base::printable(name, 200) + ": the data of this run are not there any more; " +
                ways_out.gone);
  }
  const std::string change = what_changed(pins.files, data::input_files(name, options));
  if (change.empty()) return;
  throw Error(base::printable(name, 200),
              fmt::format("{} since this run was trained; {}", change, ways_out.changed));
}

void note_place_in_period(const train::Config& config, data::Dataset& dataset) {
  const auto* series = std::get_if<data::SeriesData>(&dataset.content);
  if (series == nullptr || series->first_step != 0) return;
  if (!config.data.deviation && config.data.harmonics == 0) return;
  dataset.notes.push_back(fmt::format(
      "taken to begin where the series of the training begins in its period of {:.6g} steps; dates "
      "in tables would tell",
      series->period));
}

/// What selected a model is no judge of it where it was trained on as well.
void note_training_on_validation(const train::Config& config, data::Dataset& dataset) {
  if (!config.train.on_validation) return;
  dataset.notes.emplace_back(
      "train.on_validation: the val part is trained on, its values judge nothing, and the last "
      "step is kept");
}

/// Reads data again the way that a run has read them: its columns, its classes, its parts.
data::Dataset load_pinned(const DataPins& pins, const train::Config& config,
                          const data::LoadOptions& how) {
  data::LoadOptions options = how;
  if (!pins.learned.columns.empty()) options.columns = &pins.learned.columns;
  if (!pins.learned.class_names.empty()) options.class_names = &pins.learned.class_names;
  if (!pins.learned.vocabulary.empty()) options.vocabulary = &pins.learned.vocabulary;
  if (pins.links) options.links = &*pins.links;
  data::Dataset dataset = load_data(config.data.name, options, config);
  apply_pins(pins, config.data.split, dataset);
  return dataset;
}

/// Parts that other data may come with are not the parts of this model.
void count_all_as_test(data::Dataset& dataset) {
  if (auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    nodes->splits = {std::vector(nodes->target.size(), data::Part::kTest)};
  } else if (auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
    graphs->part.assign(graphs->part.size(), data::Part::kTest);
  }
}

}  // namespace

Experiment::Experiment() = default;
Experiment::Experiment(Experiment&&) noexcept = default;
Experiment& Experiment::operator=(Experiment&&) noexcept = default;
Experiment::~Experiment() = default;

nn::GraphModule& Experiment::network() const {
  return by_nodes ? static_cast<nn::GraphModule&>(*by_nodes) : *model.module;
}

std::string metric_of(const train::Config& config, const data::Dataset& dataset) {
  if (config.train.metric == "auto") return dataset.metric;
  const std::vector<std::string> known = [&]() -> std::vector<std::string> {
    switch (dataset.task) {
      case data::Task::kNodeBinary:
      case data::Task::kGraphBinary:
        return {"roc_auc", "average_precision", "accuracy", "balanced_accuracy", "f1", "loss"};
      case data::Task::kNodeClasses:
      case data::Task::kGraphClasses:
        return {"accuracy", "balanced_accuracy", "macro_f1", "loss"};
      case data::Task::kGraphLabels:
        return {"average_precision", "loss"};
      case data::Task::kGraphRegression:
      case data::Task::kNodeRegression:
        return {"mse", "mae", "rmse", "r2", "loss", dataset.metric};
      case data::Task::kForecast:
        return {"mse", "mae", "rmse", "loss", dataset.metric};
      case data::Task::kLinks:
        return {"roc_auc", "average_precision", "hits_20", "hits_50", "hits_100", "loss"};
    }
    return {};
  }();
  std::string list;
  for (const std::string& name : known) {
    if (name == config.train.metric) return name;
    list += (list.empty() ? "" : ", ") + name;
  }
  throw Error("train.metric", fmt::format("expected one of {} for this task, got '{}'", list,
                                          base::printable(config.train.metric)));
}

std::int64_t least_parameters(const train::Config& config) {
  const std::int64_t square = config.model.channels * config.model.channels;
  return config.model.blocks * (config.model.kind == train::ModelKind::kMpssm ? 3 : 1) * square;
}

Explained explain(const train::Config& config, const fs::path& data_dir) {
  train::check(config);
  Explained explained{.config = config, .choices = {}, .dataset = {}};
  explained.dataset = std::make_unique<data::Dataset>(
      load_data(config.data.name, load_options(config, data_dir), config));
  if (config.by_rules) {
    explained.choices = train::choose_defaults(
        train::facts_of(*explained.dataset, config.data.split), explained.config);
  }
  return explained;
}

Experiment set_up(const train::Config& config, const fs::path& data_dir, const DataPins* pins) {
  train::check(config);
  Experiment experiment;
  experiment.config = config;
  // What a plan was chosen by stays with the run: measured again, another might be chosen.
  if (config.model.plan_costs == engine::kMeasuredCosts) {
    experiment.config.model.plan_costs = engine::to_text(measured_plan_costs());
  }
  const data::LoadOptions options = load_options(config, data_dir);
  analysis::GraphEdit edit = pins != nullptr ? pins->edit : analysis::GraphEdit();
  if (pins != nullptr) {
    const std::string way_out = "or start anew with another --out";
    check_unchanged(
        *pins, config.data.name, options,
        {.gone = "put them back, " + way_out, .changed = "put the old file back, " + way_out});
    experiment.dataset = std::make_unique<data::Dataset>(load_pinned(*pins, config, options));
  } else {
    Explained explained = explain(experiment.config, data_dir);
    experiment.config = std::move(explained.config);
    experiment.choices = std::move(explained.choices);
    experiment.dataset = std::move(explained.dataset);
    train::check(experiment.config);
    if (!config.data.rewired.empty()) {
      edit = read_edit(config.data.rewired, graph_in(*experiment.dataset));
      apply_edit(edit, *experiment.dataset);
    }
  }
  note_training_on_validation(config, *experiment.dataset);
  // Which values edges have stays with the run: other data may have others.
  experiment.config.model.gso =
      data::with_values_of_edges(experiment.config.model.gso, *experiment.dataset);
  train::check(experiment.config);
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
  experiment.problem =
      task::make_problem(*experiment.dataset, train::problem_options(experiment.config),
                         pins != nullptr ? &pins->learned : nullptr);
  if (const auto* series = std::get_if<data::SeriesData>(&experiment.dataset->content)) {
    const bool uses_period =
        config.data.harmonics > 0 || !experiment.problem->preprocessing().period_mean.empty();
    if (uses_period) experiment.config.data.period = series->period;
  }
  experiment.pins =
      pin(*experiment.dataset, config.data.split, experiment.problem->preprocessing());
  experiment.pins.edit = edit;
  experiment.model = train::build_model(*experiment.problem, experiment.config);
  train::start_from_data(*experiment.problem, experiment.model);
  return experiment;
}

Experiment reopen(const fs::path& run, const ReopenOptions& how) {
  std::error_code error;
  const fs::path path = fs::is_directory(run, error) ? run / "model.safetensors" : run;
  const std::string origin = path.string();
  const train::ModelFile file = train::load_model(path);
  Experiment experiment;
  train::apply_toml(experiment.config, text_of(file, "config", origin), origin + " (config)");
  train::check(experiment.config);
  if (how.in_float32) experiment.config.train.precision = engine::Precision::kFloat32;
  std::int64_t num_weights = 0;
  for (const auto& [name, weight] : file.weights) num_weights += weight.numel();
  // Before a network of that size is made.
  if (num_weights < least_parameters(experiment.config)) {
    throw Error(origin, fmt::format("expected at least {} weights for its settings, got {}",
                                    least_parameters(experiment.config), num_weights));
  }
  experiment.pins = pins_of(file, origin);
  const task::Preprocessing& learned = experiment.pins.learned;
  const data::Task task = task_of(file, origin);
  check_classes(learned, task, file.weights, origin);
  data::LoadOptions options = load_options(experiment.config, how.data_dir);
  const std::string& own_data = experiment.config.data.name;
  // The same files under another name are no new data: their parts are known.
  const bool is_new =
      how.new_data &&
      (experiment.pins.files.empty() ||
       !what_changed(experiment.pins.files, data::input_files(*how.new_data, options)).empty());
  if (is_new) {
    const data::DatasetInfo* published = data::find_dataset(own_data);
    if (published != nullptr && published->over_all_time) {
      throw Error(base::printable(*how.new_data, 200),
                  fmt::format("a model of {} knows values that are standardised over all time of "
                              "that series; other data cannot be read so",
                              own_data));
    }
    options.columns = &learned.columns;
    options.class_names = &learned.class_names;
    if (!learned.vocabulary.empty()) options.vocabulary = &learned.vocabulary;
    options.skip_new_classes = how.skip_new_classes;
    options.task = task;
    options.num_targets = outputs_of(file.weights);
    experiment.dataset =
        std::make_unique<data::Dataset>(load_data(*how.new_data, options, experiment.config));
    experiment.dataset->protocol = "other data than it was trained on, all that is labelled";
    experiment.config.data.split = 0;
    count_all_as_test(*experiment.dataset);
    note_place_in_period(experiment.config, *experiment.dataset);
    if (!experiment.pins.edit.empty()) {
      experiment.dataset->notes.emplace_back(
          "the run was trained on a rewired graph; that of other data is taken as it is");
    }
  } else {
    if (how.new_data) experiment.config.data.name = *how.new_data;
    check_unchanged(experiment.pins, own_data, options,
                    {.gone = "put them back, or say with --data where they are now",
                     .changed = "put the old file back, or score it as new data with --data " +
                                base::printable(own_data, 200)});
    experiment.dataset =
        std::make_unique<data::Dataset>(load_pinned(experiment.pins, experiment.config, options));
    note_training_on_validation(experiment.config, *experiment.dataset);
  }
  if (experiment.dataset->task != task) {
    throw Error(experiment.dataset->name,
                fmt::format("the model was trained for {}, these data are for {}",
                            data::to_string(task), data::to_string(experiment.dataset->task)));
  }
  experiment.metric = metric_of(experiment.config, *experiment.dataset);
  experiment.problem =
      task::make_problem(*experiment.dataset, train::problem_options(experiment.config), &learned);
  experiment.model = train::build_model(*experiment.problem, experiment.config);
  const auto encoder = file.weights.find("encoder.weight");
  const torch::Tensor expected = experiment.model.module->named_parameters()["encoder.weight"];
  if (encoder != file.weights.end() && encoder->second.dim() == 2 &&
      encoder->second.size(1) != expected.size(1)) {
    throw Error(experiment.dataset->name,
                fmt::format("the model was trained on {} features per node, got {}",
                            encoder->second.size(1), expected.size(1)));
  }
  train::set_weights(*experiment.model.module, file.weights, origin);
  experiment.model.module->eval();
  return experiment;
}

std::optional<DataPins> read_pins(const fs::path& folder) {
  const fs::path path = pins_path(folder);
  if (!fs::exists(path)) return std::nullopt;
  return pins_from_json(io::read_file(path), path.string());
}

data::DataCard card_of(const Experiment& experiment) {
  data::DataCard card = data::make_card(*experiment.dataset, experiment.config.data.split);
  const engine::EncodingOptions encodings =
      engine::encodings_from_text(experiment.config.data.encodings);
  card.encodings = engine::to_text(encodings);
  card.encoded = encodings.width() + data::edge_features(experiment.pins.learned.edge_columns);
  return card;
}

task::Metrics evaluate(const Experiment& experiment, data::Part part) {
  const torch::NoGradGuard no_grad;
  experiment.model.module->eval();
  return experiment.problem->evaluate(experiment.network(), part);
}

void write_predictions(const Experiment& experiment, const io::Sink& sink,
                       const PredictOptions& options) {
  const torch::NoGradGuard no_grad;
  const data::Dataset& dataset = *experiment.dataset;
  if (dataset.task == data::Task::kLinks) {
    task::LinkQuestion question;
    if (options.top > 0) question.top = options.top;
    if (!options.pairs.empty()) {
      question.pairs = data::read_pairs(options.pairs, std::get<data::NodeData>(dataset.content));
    }
    return task::write_links(dataset, experiment.config.model.gso, *experiment.model.module,
                             question, sink);
  }
  if (!options.pairs.empty() || options.top > 0) {
    throw Error(options.pairs.empty() ? "--top" : "--pairs",
                fmt::format("for runs of task links, this one is for {}; leave it out",
                            data::to_string(dataset.task)));
  }
  if (dataset.task == data::Task::kForecast) {
    task::write_forecast(dataset, train::problem_options(experiment.config),
                         experiment.problem->preprocessing(), *experiment.model.module, sink);
  } else {
    experiment.problem->write_predictions(*experiment.model.module, sink);
  }
}

void write_predictions(const Experiment& experiment, const fs::path& path,
                       const PredictOptions& options) {
  io::write_file(path, [&](const io::Sink& sink) {
    bool is_first = true;
    const auto take = [&](std::string_view piece) {
      if (std::exchange(is_first, false)) {
        io::check_replaceable(path, {.bytes = piece.substr(0, piece.find('\n') + 1),
                                     .kind = "predictions of this model"});
      }
      sink(piece);
    };
    write_predictions(experiment, io::Sink(take), options);
  });
}

}  // namespace mpssm::run
