// SPDX-License-Identifier: MIT
// mpssm reproduce: the paper's experiments again, our number beside the printed one.
#include <memory>
#include <stdexcept>
#include <system_error>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/study/audit.h"
#include "mpssm/study/page.h"
#include "mpssm/study/run_experiment.h"

#include "cli/code_stamp.h"
#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  std::string experiment;
  std::string row;
  std::int64_t seeds = 0;  ///< 0: all of the protocol
  bool quick = false;
  bool list = false;
  std::string page;
  fs::path out = "runs/reproduce";
  fs::path results = "results";
  fs::path data_dir;
  std::int64_t threads = 0;

  fs::path runs_folder() const { return quick ? out / "quick" : out; }
  /// Where results are kept: those of a quick look are none of the recorded ones.
  fs::path results_folder() const { return quick ? out / "quick" / "results" : results; }
};

constexpr const char* kReproduceFooter = R"(
Examples:
  mpssm reproduce --list                      all rows, and which are recorded
  mpssm reproduce gpp --quick                 small built-in data, some minutes
  mpssm reproduce hetero --row minesweeper    ten splits; stop and start again as you like
  mpssm reproduce hetero --seeds 3            the first three splits or seeds only
  mpssm reproduce runtime                     time against depth, beside a GCN
  mpssm reproduce audit                       is what is recorded what it says?
  mpssm reproduce --page docs/results.md      the page of all recorded results

Experiments: gpp ladder hetero depth temporal traffic lrgb runtime figure. A finished row is
recorded in results/ and not run again; its runs are folders under runs/reproduce/.)";

int run_experiment(const study::Experiment& experiment, const ReproduceOptions& options) {
  const study::ExperimentOptions how{
      .row = options.row,
      .run = {.quick = options.quick,
              .max_runs = options.seeds,
              .out = options.runs_folder(),
              .program = study::provenance_here(code_stamp::kCommit, code_stamp::kDirty)},
      .results = options.results_folder(),
      .data_dir = options.data_dir,
      .say = [](const std::string& line) { say(line); }};
  const auto train_run = [&](const train::Config& config, const fs::path& run) {
    return train_once(config,
                      {.folder = run, .data_dir = options.data_dir, .resume = fs::exists(run)});
  };
  if (!study::run_experiment(experiment, how, train_run)) {
    say("stopped; the same command goes on");
    return kInterrupted;
  }
  print(study::outcome_of(experiment, how));
  return 0;
}

int run_timing(const ReproduceOptions& options) {
  print(study::run_timing(
      options.experiment == "runtime" ? study::Timing::kRuntime : study::Timing::kFigure,
      options.results_folder(),
      {.quick = options.quick,
       .code = study::words_of(study::provenance_here(code_stamp::kCommit, code_stamp::kDirty)),
       .on_done = [](const std::string& done) { say(done + ": done"); }}));
  return 0;
}

int reproduce(const ReproduceOptions& options) {
  ops::set_process_threads(options.threads);
  const int asked = (options.experiment.empty() ? 0 : 1) + (options.list ? 1 : 0) +
                    (options.page.empty() ? 0 : 1);
  if (asked != 1) {
    throw base::Error("reproduce: expected an experiment, audit, --list or --page");
  }
  const bool is_timing = options.experiment == "runtime" || options.experiment == "figure";
  if (is_timing && (!options.row.empty() || options.seeds > 0)) {
    throw base::Error("--row and --seeds: " + options.experiment + " has neither");
  }
  if (options.list) {
    print(study::list_table(options.results, options.data_dir));
    return 0;
  }
  if (!options.page.empty()) {
    io::check_replaceable(options.page, study::kPageMark);
    io::write_file(options.page, study::results_page(options.results));
    say("wrote " + options.page);
    return 0;
  }
  if (options.experiment == "audit") {
    const study::AuditReport report = study::audit_folder(options.results);
    print(report.text);
    return report.has_breach ? 1 : 0;
  }
  if (is_timing) return run_timing(options);
  catch_interrupts();
  for (const study::Experiment& experiment : study::experiments()) {
    if (experiment.name == options.experiment) return run_experiment(experiment, options);
  }
  throw std::logic_error("reproduce: no such experiment");  // the command line has checked it
}

}  // namespace

void add_reproduce(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* verb =
      app.add_subcommand("reproduce", "Run the paper's experiments, our number beside theirs");
  verb->footer(kReproduceFooter);
  std::vector<std::string> names = study::experiment_names();
  names.insert(names.end(), {"runtime", "figure", "audit"});
  verb->add_option("experiment", options->experiment, "which one")->check(CLI::IsMember(names));
  verb->add_option("--row", options->row, "one row only")->type_name("NAME");
  verb->add_option("--seeds", options->seeds, "only the first N runs of each row (0: all)")
      ->type_name("N")
      ->check(at_least(0));
  verb->add_flag("--quick", options->quick,
                 "a quick look: small built-in data, few epochs, one run; nothing is recorded");
  verb->add_flag("--list", options->list, "all rows, and which are recorded");
  verb->add_option("--page", options->page, "write the page of all recorded results")
      ->type_name("FILE");
  verb->add_option("--out", options->out, "folder of the runs")->type_name("DIR");
  verb->add_option("--results", options->results, "folder of the recorded results")
      ->type_name("DIR");
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first")
      ->type_name("DIR");
  verb->add_option("--threads", options->threads, "threads to use (0: all cores)")
      ->check(thread_count());
  verb->callback([options, &action] { action = [options] { return reproduce(*options); }; });
}

}  // namespace mpssm::cli
