// SPDX-License-Identifier: MIT
// mpssm train
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <ctime>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/run_summary.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/task/metrics.h"

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
};

constexpr const char* kFooter = R"(
Examples:
  mpssm train board                             built-in Minesweeper board, 100 x 100
  mpssm train minesweeper --set data.split=3    a registered dataset, another split
  mpssm train mygraph.npz --set model.blocks=8 --set train.lr=3e-4
  mpssm train myfolder/ --config my.toml --out runs/mine
  mpssm train runs/mine --resume                go on after Ctrl-C or a crash
  mpssm train tolokers --splits 0-9 --json      ten splits, mean and deviation

The run folder holds config.toml (all settings), card.json (what the data are), metrics.csv, model.safetensors (best on
validation), state.safetensors (to go on from), predictions.csv and record.json.)";

/// runs/<dataset>-<time>, with a number if two start in one second.
fs::path new_folder(const std::string& dataset) {
  std::string name = fs::path(dataset).filename().string();
  if (name.empty()) name = fs::path(dataset).parent_path().filename().string();
  for (char& c : name) {
    if (c == ':' || c == '/') c = '-';
  }
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", std::localtime(&now));
  const fs::path base = fs::path("runs") / (name + "-" + stamp);
  fs::path folder = base;
  for (int i = 2; fs::exists(folder); ++i) folder = fmt::format("{}-{}", base.string(), i);
  return folder;
}

void print_keys() {
  std::vector<std::vector<std::string>> rows = {{"key", "default", ""}};
  for (const train::Setting& setting : train::settings_of({})) {
    rows.push_back({setting.key, setting.value, setting.help});
  }
  print(table(rows));
}

/// Splits times seeds, each in a folder of its own, then mean and deviation.
int train_many(const Options& options, const train::Config& config, const fs::path& folder) {
  const auto seeds =
      options.seeds.empty() ? std::vector{config.seed} : parse_list("--seeds", options.seeds);
  const auto splits = options.splits.empty() ? std::vector{config.data.split}
                                             : parse_list("--splits", options.splits);
  io::check_replaceable(folder / "summary.json",
                        {.bytes = "{\n  \"run\":", .kind = "a summary of runs"});
  std::vector<std::vector<std::string>> rows = {{"split", "seed", "best step", "val", "test"}};
  std::vector<double> values;
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  std::string metric;
  for (const std::int64_t split : splits) {
    for (const std::int64_t seed : seeds) {
      train::Config one = config;
      one.seed = seed;
      one.data.split = split;
      const auto record =
          train_once(one, {.folder = folder / fmt::format("split-{}-seed-{}", split, seed),
                           .data_dir = options.config.data_dir,
                           .memory_limit_mib = options.config.memory_limit_mib,
                           .resume = options.resume,
                           .quiet = options.quiet});
      if (!record) {
        say("all runs: the same command with --resume --out " + folder.string());
        return kInterrupted;
      }
      metric = record->metric;
      values.push_back(record->metrics.at("test").at(metric));
      runs.push_back(nlohmann::ordered_json::parse(report::to_json(*record)));
      rows.push_back({std::to_string(split), std::to_string(seed),
                      std::to_string(record->best_step),
                      fmt::format("{:.4f}", record->metrics.at("val").at(metric)),
                      fmt::format("{:.4f}", values.back())});
    }
  }
  const task::Summary summary = task::summarise(values);
  const nlohmann::ordered_json json = {{"run", folder.string()},    {"metric", metric},
                                       {"test_mean", summary.mean}, {"test_std", summary.std},
                                       {"count", summary.count},    {"runs", runs}};
  io::write_file(folder / "summary.json", io::json_text(json, 2) + "\n");
  print(table(rows));
  print(fmt::format("test {} {:.4f} ± {:.4f} (mean, sample deviation, {} runs)", metric,
                    summary.mean, summary.std, summary.count));
  if (options.json) print(io::json_text(json));
  return 0;
}

int train_one(const Options& options, const train::Config& config, const fs::path& folder) {
  const auto record = train_once(config, {.folder = folder,
                                          .data_dir = options.config.data_dir,
                                          .memory_limit_mib = options.config.memory_limit_mib,
                                          .resume = options.resume,
                                          .quiet = options.quiet});
  if (!record) return kInterrupted;
  print(fmt::format("{}, seed {}, best step {} of {} (by val {}), {}, {:.0f} MiB at the peak",
                    record->dataset, record->seed, record->best_step, record->steps, record->metric,
                    duration(record->seconds), record->peak_mib));
  if (record->best_step < record->steps / 4) {
    say("note: the best step came early; a smaller model, more model.dropout or "
        "train.weight_decay may do better than more steps");
  }
  print(report::summary_of(*record));
  say(fmt::format("next: mpssm predict {}, mpssm evaluate {}", folder.string(), folder.string()));
  if (options.json) print(report::to_json(*record));
  return 0;
}

int run(const Options& options) {
  if (options.keys) {
    print_keys();
    return 0;
  }
  ops::set_process_threads(options.config.threads);
  catch_interrupts();
  const fs::path as_run = options.config.dataset;
  if (options.resume && fs::exists(as_run / "config.toml")) {
    // `mpssm train RUN --resume`: the run knows the rest.
    if (!options.config.settings.empty() || !options.config.files.empty() ||
        !options.config.target.empty()) {
      throw base::Error("--resume: " + as_run.string() +
                        " has its settings; leave out --set, --config and --target");
    }
    return train_one(options, run::read_run_config(as_run), as_run);
  }
  if (options.resume && options.out.empty()) {
    throw base::Error("--resume: expected a run folder, as in: mpssm train RUN --resume; got '" +
                      base::printable(options.config.dataset) + "'");
  }
  const train::Config config = make_config(options.config);
  const fs::path folder =
      options.out.empty() ? new_folder(config.data.name) : fs::path(options.out);
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
  verb->footer(kFooter);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mpssm::cli
