// SPDX-License-Identifier: MIT
#include "cli/training.h"

#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/machine.h"
#include "mpssm/data/data_card.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/run/board_file.h"
#include "mpssm/run/train_into.h"

#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

/// MiB; 0: not known.
double memory_limit(const TrainingOptions& options) {
  return options.memory_limit_mib > 0 ? static_cast<double>(options.memory_limit_mib)
                                      : base::available_mib();
}

void check_memory(double bytes, double limit) {
  const double wanted = bytes / kMib;
  if (limit > 0.0 && wanted > limit) {
    throw base::Error(
        fmt::format("a training step needs about {:.0f} MiB, the limit is {:.0f} MiB; lower "
                    "model.channels, model.blocks or train.batch, or raise --memory-limit",
                    wanted, limit));
  }
}

void introduce(const run::Experiment& experiment, const std::filesystem::path& folder) {
  const data::Dataset& dataset = *experiment.dataset;
  say(report::text_of(data::make_card(dataset, experiment.config.data.split)));
  say(fmt::format("{} with {} parameters, about {:.0f} MiB per step; run folder {}",
                  to_string(experiment.config.model.kind), experiment.model.num_parameters,
                  static_cast<double>(experiment.model.training_bytes) / kMib, folder.string()));
}

}  // namespace

std::optional<report::RunRecord> train_once(const train::Config& config,
                                            const TrainingOptions& options) {
  const double limit = memory_limit(options);
  // The weights alone first (with gradient, Adam's two moments and the best), before they are made.
  constexpr double kBytesPerWeight = 5 * 4;
  check_memory(kBytesPerWeight * static_cast<double>(run::least_parameters(config)), limit);
  // First of all: whoever writes into this folder must not notice that we were here.
  const run::RunFolder folder(options.folder, options.resume);
  const auto pins =
      options.resume ? run::read_pins(options.folder) : std::optional<run::DataPins>();
  const bool goes_on = pins && std::filesystem::exists(options.folder / "config.toml");
  run::Experiment experiment = run::set_up(config, options.data_dir, goes_on ? &*pins : nullptr);
  const double kept_mib = static_cast<double>(experiment.model.training_bytes) / kMib;
  if (limit > 0.0 && kept_mib > limit) {
    train::save_memory(experiment.model);
    const double mib = static_cast<double>(experiment.model.training_bytes) / kMib;
    if (mib <= limit) {
      say(
          fmt::format("note: a training step would need about {:.0f} MiB, the limit is {:.0f}: "
                      "blocks run again in the backward pass, which takes {:.0f} MiB and more time "
                      "and gives the same numbers",
                      kept_mib, limit, mib));
    }
  }
  check_memory(static_cast<double>(experiment.model.training_bytes), limit);
  if (goes_on) {
    const std::string difference =
        train::first_difference(run::read_run_config(options.folder), experiment.config);
    if (!difference.empty()) {
      throw base::Error(
          options.folder.string(),
          fmt::format("cannot go on with other settings: {}; another --out starts anew",
                      difference));
    }
  }
  for (const std::string& note : experiment.dataset->notes) say("note: " + note);
  if (!options.quiet) introduce(experiment, options.folder);
  ProgressLine progress(experiment.metric, options.quiet);
  const std::optional<report::RunRecord> record =
      run::train_into(folder, experiment, goes_on,
                      {.on_step = [&](const train::Progress& now) { progress.update(now); },
                       .should_stop = was_interrupted});
  progress.finish();
  if (!record) {
    say("mpssm: stopped; the state is saved, go on with: mpssm train " + options.folder.string() +
        " --resume");
    return record;
  }
  if (run::is_board(*experiment.dataset)) {
    say("picture: " + run::write_board(experiment, *record).string());
  }
  return record;
}

}  // namespace mpssm::cli
