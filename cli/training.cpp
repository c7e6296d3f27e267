// SPDX-License-Identifier: MIT
#include "cli/training.h"

#include <fmt/core.h>

#include "mpssm/data/data_card.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/run/prepared_run.h"

#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

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
  run::PreparedRun prepared(config, {.folder = options.folder,
                                     .data_dir = options.data_dir,
                                     .memory_limit_mib = options.memory_limit_mib,
                                     .resume = options.resume,
                                     .ranks = options.ranks});
  for (const std::string& note : prepared.notes()) say(note);
  if (!options.quiet) introduce(prepared.experiment(), options.folder);
  ProgressLine progress(prepared.experiment().metric, options.quiet);
  const std::optional<report::RunRecord> record =
      prepared.train({.on_step = [&](const train::Progress& now) { progress.update(now); },
                      .should_stop = was_interrupted});
  progress.finish();
  const std::filesystem::path picture = options.folder / "board.svg";
  if (!record) {
    say("mpssm: stopped; the state is saved, go on with: mpssm train " + options.folder.string() +
        " --resume");
  } else if (std::filesystem::exists(picture)) {
    say("picture: " + picture.string());
  }
  return record;
}

}  // namespace mpssm::cli
