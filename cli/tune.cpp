// SPDX-License-Identifier: MIT
// mpssm tune
#include <chrono>
#include <memory>
#include <utility>

#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/run/tuning.h"

#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct TuneOptions {
  ConfigOptions config;
  run::TuneOptions tune;
  std::string seeds;
  std::string splits;
  std::string out;
  double minutes = 0.0;
  bool json = false;
  ranks::SessionOptions session;
};

constexpr const char* kTuneFooter = R"(
Examples:
  mpssm tune myfolder/ --minutes 10                  the usual settings, as many as there is time for
  mpssm tune myfolder/ --random 27 --halving         short trainings first, the best third goes on
  mpssm tune minesweeper --grid hetero --random 27 --halving           of the paper's grid
  mpssm tune minesweeper --grid model.dropout=0,0.2,0.4 --grid model.hops=2,4,8 --splits 0-2
  mpssm tune pedalme --grid train.weight_decay=0,1e-3 --seeds 0-4 --out runs/tune
  mpssm tune myfolder/ --ranks 4                     four processes share the trials

The trial with the best mean on validation wins; only then is its test result shown. The folder holds
trials.csv, tune.json (with the number of settings tried) and best.toml, for mpssm train --config. The
same command with the same --out goes on where it was stopped.)";

int search(const TuneOptions& options, ranks::Communicator& ranks) {
  using Clock = std::chrono::steady_clock;
  only_json_on_stdout(options.json);
  ops::set_process_threads(options.config.threads);
  catch_interrupts();
  const train::Config base = make_config(options.config);
  const auto start = Clock::now();
  run::TuneOptions tune = options.tune;
  tune.folder = options.out.empty() ? "runs/tune-" + run::short_name(base.data.name) : options.out;
  tune.data_dir = options.config.data_dir;
  tune.ranks = &ranks;
  if (!options.seeds.empty()) tune.seeds = io::parse_ranges("--seeds", options.seeds);
  if (!options.splits.empty()) tune.splits = io::parse_ranges("--splits", options.splits);
  const auto out_of_time = [&] {
    const std::chrono::duration<double> since = Clock::now() - start;
    return options.minutes > 0.0 && since.count() > 60.0 * options.minutes;
  };
  tune.is_over = [&] { return was_interrupted() || out_of_time(); };
  bool has_notes = false;
  const auto outcome = run::tune(
      base, tune,
      [&](const train::Config& config, const std::filesystem::path& folder, auto*) {
        return train_once(config, {.folder = folder,
                                   .data_dir = options.config.data_dir,
                                   .memory_limit_mib = options.config.memory_limit_mib,
                                   .resume = true,
                                   .quiet = true,
                                   .is_part = true,
                                   .with_notes = !std::exchange(has_notes, true),
                                   .should_stop = out_of_time});
      },
      [](const run::TuneOutcome& so_far, const run::Trial& trial) {
        say(run::line_of(so_far, trial));
      });
  if (!outcome.is_complete) {
    say(std::string(was_interrupted() ? "stopped" : "time is up") +
        "; go on with the same command");
  }
  if (was_interrupted()) return kInterrupted;
  print(run::to_text(outcome));
  if (!outcome.trials.empty()) {
    say("next: mpssm train --config " + (tune.folder / "best.toml").string());
  }
  if (options.json) print_json(run::to_json(outcome, tune.folder));
  return 0;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* verb = app.add_subcommand("tune", "Search over settings, selected on validation");
  add_config_options(*verb, options->config);
  verb->add_option(
          "--grid", options->tune.axes,
          "values of a setting, KEY=A,B,C, or a file of such, or one of the paper's: gpp, lrgb, "
          "hetero, temporal; may be given again (default: the usual ones)")
      ->type_name("KEY=A,B,...")
      ->allow_extra_args(false);
  verb->add_option("--random", options->tune.random,
                   "so many random points (default: the whole grid; 16 of the usual ones)")
      ->check(at_least(0));
  verb->add_flag("--halving", options->tune.halving,
                 "successive halving: short trainings first, the best third three times as long");
  verb->add_option("--minutes", options->minutes, "time to spend (default: until all is tried)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--seeds", options->seeds, "several seeds per trial")->type_name("LIST");
  verb->add_option("--splits", options->splits, "several splits per trial")->type_name("LIST");
  verb->add_option("--out", options->out, "folder of the trials (default runs/tune-<dataset>)")
      ->type_name("DIR");
  add_json(*verb, options->json);
  add_ranks(*verb, options->session);
  verb->footer(kTuneFooter);
  verb->callback([options, &action] {
    action = [options] {
      return ranks::run_session(options->session, [&](auto& all) { return search(*options, all); });
    };
  });
}

}  // namespace mpssm::cli
