// SPDX-License-Identifier: MIT
#include "cli/training.h"

#include <fmt/core.h>

#include "mpssm/data/data_card.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/run/board_file.h"
#include "mpssm/run/memory_limit.h"
#include "mpssm/run/train_into.h"

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
  const run::MemoryLimit limit(static_cast<double>(options.memory_limit_mib));
  limit.check_weights(config);
  // First of all: whoever writes into this folder must not notice that we were here.
  const run::RunFolder folder(options.folder, options.resume);
  const auto pins =
      options.resume ? run::read_pins(options.folder) : std::optional<run::DataPins>();
  const bool goes_on = pins && std::filesystem::exists(options.folder / "config.toml");
  run::Experiment experiment = run::set_up(config, options.data_dir, goes_on ? &*pins : nullptr);
  if (const std::string note = limit.fit(experiment); !note.empty()) say("note: " + note);
  if (goes_on) run::check_same_settings(options.folder, experiment.config);
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
