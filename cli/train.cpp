// SPDX-License-Identifier: MIT
// mpssm train
#include <filesystem>
#include <fmt/core.h>
#include <memory>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/run_summary.h"
#include "mpssm/run/explanation.h"
#include "mpssm/run/remarks.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/run/train_all.h"

#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  ConfigOptions config;
  std::string out;
  std::string seeds;
  std::string splits;
  bool resume = false;
  bool json = false;
  bool quiet = false;
  bool keys = false;
  bool explain = false;
  ranks::SessionOptions session;
  ranks::Communicator* ranks = nullptr;
};

constexpr const char* kTrainFooter = R"(
Examples:
  mpssm train board                             built-in Minesweeper board, 100 x 100
  mpssm train minesweeper --set data.split=3    a registered dataset, another split
  mpssm train mygraph.npz --set model.blocks=8 --set train.lr=3e-4
  mpssm train myfolder/ --config my.toml --out runs/mine
  mpssm train myfolder/ --explain               settings that the data suggest, and why
  mpssm train runs/mine --resume                go on after Ctrl-C or a crash
  mpssm train runs/mine --resume --set train.epochs=600    longer than it was started with
  mpssm train tolokers --splits 0-9 --json      ten splits, mean and deviation
  mpssm train friends.csv --task links          which pairs of nodes have an edge
  mpssm train series.npz --ranks 4              four processes share each batch

The run folder holds config.toml (all settings), card.json (what the data are), metrics.csv, model.safetensors (best on
validation), state.safetensors (to go on from), predictions.csv, record.json and report.html.)";

/// What the rules choose, and why; nothing is trained.
int explain(const TrainOptions& options, const train::Config& config) {
  const run::Explained explained = run::explain(config, options.config.data_dir);
  for (const std::string& note : explained.dataset->notes) say("note: " + note);
  print(run::to_text(explained));
  if (options.json) print_json(run::to_json(explained));
  return 0;
}

TrainingOptions training_options(const TrainOptions& options, const fs::path& folder) {
  return {.folder = folder,
          .data_dir = options.config.data_dir,
          .memory_limit_mib = options.config.memory_limit_mib,
          .resume = options.resume,
          .quiet = options.quiet,
          .may_last_longer = options.resume,
          .ranks = options.ranks};
}

/// Splits times seeds, each in a folder of its own, then mean and deviation.
int train_many(const TrainOptions& options, const train::Config& config, const fs::path& folder) {
  const auto list = [](const char* option, const std::string& text) {
    return text.empty() ? std::vector<std::int64_t>() : io::parse_ranges(option, text);
  };
  const auto records = run::train_all(
      config, list("--splits", options.splits), list("--seeds", options.seeds), folder,
      *options.ranks, [&](const train::Config& one, const fs::path& run, auto* together) {
        TrainingOptions how = training_options(options, run);
        how.ranks = together;
        return train_once(one, how);
      });
  if (!records) {
    say("all runs: the same command with --resume --out " + folder.string());
    return kInterrupted;
  }
  if (!options.ranks->is_first()) return 0;
  print(report::summary_of(*records));
  say("next: mpssm report " + folder.string());
  if (options.json) print_json(report::summary_json(folder.string(), *records));
  return 0;
}

int train_one(const TrainOptions& options, const train::Config& config, const fs::path& folder) {
  const auto record = train_once(config, training_options(options, folder));
  if (!record) return kInterrupted;
  print(fmt::format("{}, seed {}, best step {} of {} (by val {}), {}, {:.0f} MiB at the peak",
                    record->dataset, record->seed, record->best_step, record->steps, record->metric,
                    duration(record->seconds), record->peak_mib));
  for (const std::string& remark : run::remarks_on(folder)) say("note: " + remark);
  print(report::summary_of(*record));
  const fs::path page = folder / "report.html";
  if (fs::exists(page)) say("report: " + page.string());  // a graph in parts has none
  say(fmt::format("next: mpssm predict {}, mpssm evaluate {}", folder.string(), folder.string()));
  if (options.json) print_json(report::to_json(*record));
  return 0;
}

int start_training(TrainOptions options, ranks::Communicator& ranks) {
  if (options.keys) {
    print(run::keys_table());
    return 0;
  }
  options.ranks = &ranks;
  options.resume |= ranks.is_restart();
  only_json_on_stdout(options.json);
  ops::set_process_threads(options.config.threads);
  catch_interrupts();
  const fs::path as_run = options.config.dataset;
  if (options.resume && fs::exists(as_run / "config.toml")) {
    // `mpssm train RUN --resume`: the run knows the rest.
    if (!options.config.files.empty() || !options.config.target.empty() ||
        !options.config.task.empty()) {
      throw base::Error("--resume: " + as_run.string() +
                        " has its settings; leave out --config, --target and --task");
    }
    train::Config config = run::read_run_config(as_run);
    for (const std::string& setting : options.config.settings) {
      train::apply_setting(config, setting);
    }
    train::check(config);
    return train_one(options, config, as_run);
  }
  refuse_if(options.resume && options.out.empty(),
            "--resume: expected a run folder, as in: mpssm train RUN --resume; got '" +
                base::printable(options.config.dataset) + "'");
  const train::Config config = make_config(options.config);
  if (options.explain) return explain(options, config);
  const fs::path folder =
      options.out.empty() ? run::new_folder(config.data.name) : fs::path(options.out);
  const bool is_many = !options.seeds.empty() || !options.splits.empty();
  return is_many ? train_many(options, config, folder) : train_one(options, config, folder);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Train a model on a dataset");
  add_config_options(*verb, options->config);
  verb->add_option("--out", options->out, "run folder (default runs/<dataset>-<time>)")
      ->type_name("DIR");
  verb->add_flag("--resume", options->resume, "go on with an interrupted run");
  verb->add_option("--seeds", options->seeds, "several seeds, e.g. 0-3 or 1,5")->type_name("LIST");
  verb->add_option("--splits", options->splits, "several splits, e.g. 0-9")->type_name("LIST");
  add_json(*verb, options->json);
  verb->add_flag("--quiet", options->quiet, "no progress (warnings stay)");
  verb->add_flag("--keys", options->keys, "list all settings and leave");
  verb->add_flag("--explain", options->explain,
                 "say which settings the data suggest, and why, and leave");
  add_ranks(*verb, options->session);
  verb->footer(kTrainFooter);
  verb->callback([options, &action] {
    action = [options] {
      return ranks::run_session(options->session,
                                [&](auto& all) { return start_training(*options, all); });
    };
  });
}

}  // namespace mpssm::cli
