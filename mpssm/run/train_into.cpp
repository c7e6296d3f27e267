// SPDX-License-Identifier: MIT
#include "mpssm/run/train_into.h"

#include <torch/types.h>

#include "mpssm/base/machine.h"
#include "mpssm/data/data_card.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/channel_ranks.h"
#include "mpssm/ranks/collectives.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/run/run_report.h"
#include "mpssm/task/problem.h"
#include "mpssm/version.h"

namespace mpssm::run {

namespace fs = std::filesystem;
namespace {

/// The model shared by its nodes, or by its channels where there is but one sample to share.
std::shared_ptr<nn::SharedModule> shared(const Experiment& experiment, ranks::Communicator* ranks) {
  if (experiment.by_nodes) return experiment.by_nodes;
  if (ranks == nullptr || ranks->size() == 1 || experiment.problem->num_train() > 1) return nullptr;
  return std::make_shared<nn::ChannelRanks>(
      std::dynamic_pointer_cast<nn::ModelImpl>(experiment.model.module), *ranks);
}

/// Metrics of the selected weights, and their predictions into a file; where the nodes are on
/// several ranks all of them look, and one that is given no file writes none.
std::map<std::string, task::Metrics> last_look(const Experiment& experiment, const fs::path& path) {
  std::map<std::string, task::Metrics> metrics;
  metrics["val"] = evaluate(experiment, data::Part::kVal);
  metrics["test"] = evaluate(experiment, data::Part::kTest);
  const torch::NoGradGuard no_grad;
  const auto write = [&](const io::Sink& sink) {
    experiment.problem->write_predictions(experiment.network(), sink);
  };
  if (path.empty()) {
    write([](std::string_view) {});
  } else {
    io::write_file(path, write);
  }
  return metrics;
}

}  // namespace

std::optional<report::RunRecord> train_into(const RunFolder& run_folder, Experiment& experiment,
                                            bool resume, const train::TrainHooks& hooks,
                                            ranks::Communicator* ranks) {
  const bool is_first = ranks == nullptr || ranks->is_first();
  const fs::path& folder = run_folder.path();
  const std::string config_text = train::to_toml(experiment.config);
  const std::string pins_text = to_json(experiment.pins);
  if (is_first && !resume) {
    io::write_file(pins_path(folder), pins_text + "\n");
    const std::string card =
        experiment.by_nodes ? experiment.card : report::to_json(card_of(experiment), 1);
    io::write_file(folder / "card.json", card + "\n");
    io::write_file(folder / "config.toml", config_text);
  } else if (is_first && train::to_toml(read_run_config(folder)) != config_text) {
    // It is to last longer. The record of its former end goes last: until then that is what it is.
    io::write_file(folder / "config.toml", config_text);
    fs::remove(folder / "record.json");
  }
  const train::TrainJob job{
      .problem = *experiment.problem,
      .config = experiment.config,
      .metric = experiment.metric,
      .model = experiment.model.module,
      .generator = experiment.model.generator,
      .folder = folder,
      .metadata = {{"format", "mpssm-model-2"},
                   {"version", kVersion},
                   {"dataset", experiment.dataset->name},
                   {"task", std::string(data::to_string(experiment.dataset->task))},
                   {"config", config_text},
                   {"data", pins_text}},
      .resume = resume,
      .ranks = ranks,
      .shared = shared(experiment, ranks)};
  const train::TrainOutcome outcome = train::train(job, hooks);
  if (!outcome.finished) return std::nullopt;
  if (!is_first) {
    if (experiment.by_nodes) (void)last_look(experiment, {});
    return report::run_record_from_json(ranks::from_first(*ranks, ""), "the record of rank 0");
  }

  report::RunRecord record;
  record.version = kVersion;
  record.run = folder.string();
  record.dataset = experiment.dataset->name;
  record.task = data::to_string(experiment.dataset->task);
  record.metric = experiment.metric;
  record.protocol = experiment.dataset->protocol;
  record.seed = experiment.config.seed;
  record.split = experiment.config.data.split;
  record.num_parameters = experiment.model.num_parameters;
  record.steps = outcome.steps;
  record.best_step = outcome.best_step;
  record.metrics = last_look(experiment, folder / "predictions.csv");
  for (const task::Reference& reference : experiment.problem->references()) {
    record.references.push_back({reference.name, reference.test});
  }
  record.seconds = outcome.seconds;
  record.peak_mib = base::peak_mib();
  if (!experiment.by_nodes) {  // the page looks at the whole graph
    io::write_file(report_path(folder), report::to_html(page_of(experiment, record, folder)));
  }
  io::write_file(folder / "record.json", report::to_json(record, 2) + "\n");
  if (ranks != nullptr) ranks::from_first(*ranks, report::to_json(record));
  return record;
}

}  // namespace mpssm::run
