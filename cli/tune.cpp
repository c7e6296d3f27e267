// SPDX-License-Identifier: MIT
// mpssm tune
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "mpssm/base/error.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/io/number_list.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/task/metrics.h"
#include "mpssm/train/preset.h"
#include "mpssm/train/search.h"

#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  ConfigOptions config;
  std::vector<std::string> axes;
  std::int64_t random = 0;
  std::string seeds;
  std::string out;
  bool json = false;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm tune myfolder/ --grid model.blocks=2,4,8 --grid train.lr=1e-3,3e-4
  mpssm tune minesweeper --grid model.dropout=0,0.2,0.4 --grid model.hops=2,4,8 --random 5
  mpssm tune pedalme --grid train.weight_decay=0,1e-3 --seeds 0-4 --out runs/tune

The trial with the best mean on validation wins; only then is its test result shown. The same
command with the same --out goes on where it was stopped.)";

constexpr const char* kTrialsHeader = "settings,val_mean,val_std,runs\n";

struct Trial {
  std::vector<std::string> settings;
  std::vector<double> val;
  std::vector<double> test;
  std::string error;
  double mean() const { return task::summarise(val).mean; }
};

std::string joined(const std::vector<std::string>& settings) {
  std::string result;
  for (const std::string& setting : settings) result += (result.empty() ? "" : " ") + setting;
  return result;
}

/// Runs the seeds of a trial; false: interrupted.
bool run_trial(const Options& options, const std::vector<std::int64_t>& seeds,
               const fs::path& folder, Trial& trial, std::string& metric) {
  for (const std::int64_t seed : seeds) {
    ConfigOptions with = options.config;
    with.settings.insert(with.settings.end(), trial.settings.begin(), trial.settings.end());
    train::Config config = make_config(with);
    config.seed = seed;
    try {
      const auto record = train_once(config, {.folder = folder / fmt::format("seed-{}", seed),
                                              .data_dir = options.config.data_dir,
                                              .memory_limit_mib = options.config.memory_limit_mib,
                                              .resume = true,
                                              .quiet = true});
      if (!record) return false;
      metric = record->metric;
      trial.val.push_back(record->metrics.at("val").at(metric));
      trial.test.push_back(record->metrics.at("test").at(metric));
    } catch (const base::Error& error) {
      // One bad combination does not end the search; if none is good the end says so. A full disk
      // does.
      if (error.kind() == base::ErrorKind::kSystem) throw;
      trial.error = error.what();
      return true;
    }
  }
  return true;
}

int run(const Options& options) {
  ops::set_process_threads(options.config.threads);
  catch_interrupts();
  const train::Config base = make_config(options.config);
  const auto seeds =
      options.seeds.empty() ? std::vector{base.seed} : io::parse_ranges("--seeds", options.seeds);
  std::vector<Trial> trials;
  for (auto& settings : train::search_points(options.axes, options.random)) {
    train::Config probe = base;
    for (const std::string& setting : settings) train::apply_setting(probe, setting);
    train::check(probe);
    trials.push_back({std::move(settings), {}, {}, {}});
  }
  const fs::path folder = options.out;
  io::check_replaceable(folder / "trials.csv",
                        {.bytes = kTrialsHeader, .kind = "a table of trials"});
  std::string metric;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Trial& trial = trials[i];
    // The name is made of the settings, so that another grid in the same folder shares trials.
    if (!run_trial(options, seeds, folder / train::folder_name(trial.settings), trial, metric)) {
      say("stopped; go on with the same command");
      return kInterrupted;
    }
    say(fmt::format("trial {}/{}: {}: ", i + 1, trials.size(), joined(trial.settings)) +
        (trial.error.empty() ? "val " + metric + fmt::format(" {:.4f}", trial.mean())
                             : trial.error));
  }
  std::erase_if(trials, [](const Trial& trial) { return !trial.error.empty(); });
  if (trials.empty()) throw base::Error("tune: no trial finished; the lines above say why");

  const bool higher = task::metric_info(metric).higher_is_better;
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    if (std::isnan(a.mean()) || std::isnan(b.mean()))
      return !std::isnan(a.mean()) && std::isnan(b.mean());
    return higher ? a.mean() > b.mean() : a.mean() < b.mean();
  });
  std::vector<std::vector<std::string>> rows = {{"settings", "val " + metric, "std", "runs"}};
  std::string csv = kTrialsHeader;
  for (const Trial& trial : trials) {
    const task::Summary val = task::summarise(trial.val);
    rows.push_back({joined(trial.settings), fmt::format("{:.4f}", val.mean),
                    fmt::format("{:.4f}", val.std), std::to_string(val.count)});
    csv += io::csv_cell(joined(trial.settings)) +
           fmt::format(",{:.9g},{:.9g},{}\n", val.mean, val.std, val.count);
  }
  io::write_file(folder / "trials.csv", csv);
  print(table(rows));
  const Trial& best = trials.front();
  const task::Summary test = task::summarise(best.test);
  print(fmt::format("best on validation: {}", joined(best.settings)));
  print(fmt::format("its test {} {:.4f} ± {:.4f} ({} runs)", metric, test.mean, test.std,
                    test.count));
  if (options.json) {
    print(io::json_text(nlohmann::ordered_json{{"run", folder.string()},
                                               {"metric", metric},
                                               {"best", best.settings},
                                               {"val", best.mean()},
                                               {"test", test.mean},
                                               {"trials", trials.size()}}));
  }
  return 0;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("tune", "Search over settings, selected on validation");
  add_config_options(*verb, options->config);
  verb->add_option("--grid", options->axes, "values of a setting, KEY=A,B,C; may be given again")
      ->required()
      ->type_name("KEY=A,B,...")
      ->allow_extra_args(false);
  verb->add_option("--random", options->random, "try so many random points of the grid")
      ->check(at_least(0));
  verb->add_option("--seeds", options->seeds, "several seeds per trial")->type_name("LIST");
  verb->add_option("--out", options->out, "folder of the trials")->type_name("DIR");
  verb->add_flag("--json", options->json, "the last line of stdout is one JSON object");
  verb->footer(kFooter);
  verb->callback([options, &action] {
    if (options->out.empty()) {
      options->out =
          "runs/tune-" + train::preset_name(fs::path(options->config.dataset).filename().string());
    }
    action = [options] { return run(*options); };
  });
}

}  // namespace mpssm::cli
