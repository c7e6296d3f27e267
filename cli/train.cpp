// SPDX-License-Identifier: MIT
// mpssm train
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <fmt/core.h>
#include <memory>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/file.h"
#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ranks/session.h"
#include "mpssm/report/run_summary.h"
#include "mpssm/run/run_folder.h"

#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  ConfigOptions config;
  std::string out;
  std::string seeds;
  std::string splits;
  bool resume = false;
  bool json = false;
  bool quiet = false;
  bool keys = false;
  ranks::SessionOptions session;
  ranks::Communicator* ranks = nullptr;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm train board                             built-in Minesweeper board, 100 x 100
  mpssm train minesweeper --set data.split=3    a registered dataset, another split
  mpssm train mygraph.npz --set model.blocks=8 --set train.lr=3e-4
  mpssm train myfolder/ --config my.toml --out runs/mine
  mpssm train runs/mine --resume                go on after Ctrl-C or a crash
  mpssm train tolokers --splits 0-9 --json      ten splits, mean and deviation
  mpssm train friends.csv --task links          which pairs of nodes have an edge
  mpssm train series.npz --ranks 4              four processes share each batch

The run folder holds config.toml (all settings), card.json (what the data are), metrics.csv, model.safetensors (best on
validation), state.safetensors (to go on from), predictions.csv, record.json and report.html.)";

void print_keys() {
  std::vector<std::vector<std::string>> rows = {{"key", "default", ""}};
  for (const train::Setting& setting : train::settings_of({})) {
    rows.push_back({setting.key, setting.value, setting.help});
  }
  print(table(rows));
}

std::optional<report::RunRecord> train_in(const fs::path& folder, const train::Config& config,
                                          const Options& options) {
  return train_once(config, {.folder = folder,
                             .data_dir = options.config.data_dir,
                             .memory_limit_mib = options.config.memory_limit_mib,
                             .resume = options.resume,
                             .quiet = options.quiet,
                             .ranks = options.ranks});
}

/// Splits times seeds, each in a folder of its own, then mean and deviation.
int train_many(const Options& options, const train::Config& config, const fs::path& folder) {
  const auto seeds =
      options.seeds.empty() ? std::vector{config.seed} : io::parse_ranges("--seeds", options.seeds);
  const auto splits = options.splits.empty() ? std::vector{config.data.split}
                                             : io::parse_ranges("--splits", options.splits);
  io::check_replaceable(folder / "summary.json",
                        {.bytes = "{\n  \"run\":", .kind = "a summary of runs"});
  std::vector<report::RunRecord> records;
  for (const std::int64_t split : splits) {
    for (const std::int64_t seed : seeds) {
      train::Config one = config;
      one.seed = seed;
      one.data.split = split;
      const auto record =
          train_in(folder / fmt::format("split-{}-seed-{}", split, seed), one, options);
      if (!record) {
        say("all runs: the same command with --resume --out " + folder.string());
        return kInterrupted;
      }
      records.push_back(*record);
    }
  }
  if (!options.ranks->is_first()) return 0;
  io::write_file(folder / "summary.json", report::summary_json(folder.string(), records, 2) + "\n");
  print(report::summary_of(records));
  say("next: mpssm report " + folder.string());
  if (options.json) print(report::summary_json(folder.string(), records));
  return 0;
}

int train_one(const Options& options, const train::Config& config, const fs::path& folder) {
  const auto record = train_in(folder, config, options);
  if (!record) return kInterrupted;
  print(fmt::format("{}, seed {}, best step {} of {} (by val {}), {}, {:.0f} MiB at the peak",
                    record->dataset, record->seed, record->best_step, record->steps, record->metric,
                    duration(record->seconds), record->peak_mib));
  if (record->best_step < record->steps / 4) {
    say("note: the best step came early; a smaller model, more model.dropout or "
        "train.weight_decay may do better than more steps");
  }
  print(report::summary_of(*record));
  say(fmt::format("report: {}", (folder / "report.html").string()));
  say(fmt::format("next: mpssm predict {}, mpssm evaluate {}", folder.string(), folder.string()));
  if (options.json) print(report::to_json(*record));
  return 0;
}

int run(Options options, ranks::Communicator& ranks) {
  if (options.keys) {
    print_keys();
    return 0;
  }
  options.ranks = &ranks;
  options.resume |= ranks.is_restart();
  ops::set_process_threads(options.config.threads);
  catch_interrupts();
  const fs::path as_run = options.config.dataset;
  if (options.resume && fs::exists(as_run / "config.toml")) {
    // `mpssm train RUN --resume`: the run knows the rest.
    if (!options.config.settings.empty() || !options.config.files.empty() ||
        !options.config.target.empty() || !options.config.task.empty()) {
      throw base::Error("--resume: " + as_run.string() +
                        " has its settings; leave out --set, --config, --target and --task");
    }
    return train_one(options, run::read_run_config(as_run), as_run);
  }
  if (options.resume && options.out.empty()) {
    throw base::Error("--resume: expected a run folder, as in: mpssm train RUN --resume; got '" +
                      base::printable(options.config.dataset) + "'");
  }
  const train::Config config = make_config(options.config);
  const fs::path folder =
      options.out.empty() ? run::new_folder(config.data.name) : fs::path(options.out);
  const bool is_many = !options.seeds.empty() || !options.splits.empty();
  return is_many ? train_many(options, config, folder) : train_one(options, config, folder);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train", "Train a model on a dataset");
  add_config_options(*verb, options->config);
  verb->add_option("--out", options->out, "run folder (default runs/<dataset>-<time>)")
      ->type_name("DIR");
  verb->add_flag("--resume", options->resume, "go on with an interrupted run");
  verb->add_option("--seeds", options->seeds, "several seeds, e.g. 0-3 or 1,5")->type_name("LIST");
  verb->add_option("--splits", options->splits, "several splits, e.g. 0-9")->type_name("LIST");
  verb->add_flag("--json", options->json, "the last line of stdout is one JSON object");
  verb->add_flag("--quiet", options->quiet, "no progress (warnings stay)");
  verb->add_flag("--keys", options->keys, "list all settings and leave");
  verb->add_option("--ranks", options->session.ranks, "processes that share the work")
      ->check(at_least(1));
  verb->add_option("--timeout", options->session.timeout, "seconds that ranks wait for each other")
      ->check(CLI::PositiveNumber);
  verb->footer(kFooter);
  verb->callback([options, &action] {
    action = [options] {
      return ranks::run_session(options->session, [&](auto& all) { return run(*options, all); });
    };
  });
}

}  // namespace mpssm::cli
