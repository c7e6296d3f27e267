// SPDX-License-Identifier: MIT
#include "cli/training.h"

#include "mpssm/run/explanation.h"
#include "mpssm/run/remarks.h"

#include "cli/terminal.h"

namespace mpssm::cli {

std::optional<report::RunRecord> train_once(const train::Config& config,
                                            const TrainingOptions& options) {
  run::PreparedRun prepared(config, {.folder = options.folder,
                                     .data_dir = options.data_dir,
                                     .memory_limit_mib = options.memory_limit_mib,
                                     .resume = options.resume,
                                     .may_last_longer = options.may_last_longer,
                                     .with_notes = options.with_notes,
                                     .with_picture = !options.is_part,
                                     .ranks = options.ranks});
  const run::Experiment& experiment = prepared.experiment();
  for (const std::string& note : prepared.notes()) say(note);
  if (!options.quiet) say(run::introduction(experiment, options.folder));
  ProgressLine progress(experiment.metric, options.quiet);
  bool is_long = false;
  const auto on_step = [&](const train::Progress& now) {
    progress.update(now);
    const std::string remark = is_long ? "" : run::time_remark(experiment.config, now);
    if (remark.empty()) return;
    is_long = true;  // said once
    progress.finish();
    say("note: " + remark);
  };
  const auto should_stop = [&] {
    return was_interrupted() || (options.should_stop && options.should_stop());
  };
  const std::optional<report::RunRecord> record =
      prepared.train({.on_step = on_step, .should_stop = should_stop});
  progress.finish();
  if (options.is_part) return record;
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
