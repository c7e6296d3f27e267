// SPDX-License-Identifier: MIT
// mpssm reproduce: the paper's experiments again, our number beside the printed one.
#include "cli/reproduce.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"

#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
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
};

constexpr const char* kFooter = R"(
Examples:
  mpssm reproduce --list                      all rows, and which are recorded
  mpssm reproduce gpp --quick                 small built-in data, some minutes
  mpssm reproduce hetero --row minesweeper    ten splits; stop and start again as you like
  mpssm reproduce hetero --seeds 3            the first three splits or seeds only
  mpssm reproduce runtime                     time against depth, beside a GCN
  mpssm reproduce --page docs/results.md      the page of all recorded results

Experiments: gpp ablation hetero temporal traffic lrgb runtime figure. A finished row is recorded in
results/ and not run again; its runs are folders under runs/reproduce/.)";

bool is_absent(const std::string& dataset, const fs::path& data_dir) {
  data::LoadOptions load;
  load.data_dir = data_dir;
  const data::DatasetInfo* info = data::find_dataset(dataset);
  return info != nullptr && !info->files.empty() && !data::is_present(*info, load);
}

train::Config config_of(const ReproduceRow& row, const Options& options) {
  ConfigOptions config;
  config.dataset = options.quick && !row.quick_dataset.empty() ? row.quick_dataset : row.dataset;
  config.settings = row.settings;
  if (row.refit) config.settings.emplace_back("train.track_test=true");
  if (options.quick) {
    config.settings.emplace_back(row.quick_dataset.empty() ? "train.epochs=2" : "train.epochs=150");
  }
  return make_config(config);
}

/// A column of a run's metrics.csv.
std::vector<double> history_of(const fs::path& run, const std::string& name) {
  const io::CsvTable table = io::read_csv(run / "metrics.csv");
  const auto column = table.column(name);
  if (!column) throw io::InputError(run.string() + ": metrics.csv has no " + name);
  std::vector<double> values;
  for (const auto& line : table.rows) values.push_back(io::to_number(line[*column]).value());
  return values;
}

fs::path refit_of(const fs::path& run) { return run.string() + "-refit"; }

bool is_finished(const fs::path& run, const ReproduceRow& row) {
  return fs::exists(run / "record.json") &&
         (!row.refit || fs::exists(refit_of(run) / "record.json"));
}

/// Trains `selected`'s run again with the validation part; false: interrupted.
bool refit(const train::Config& config, const fs::path& selected, const Options& options,
           const ReproduceRow& row, RunValue& value) {
  const fs::path run = refit_of(selected);
  train::Config with_validation = config;
  with_validation.train.on_validation = true;
  if (!train_once(with_validation,
                  {.folder = run, .data_dir = options.data_dir, .resume = fs::exists(run)})) {
    return false;
  }
  const std::vector<double> steps = history_of(selected, "step");
  const auto best = std::find(steps.begin(), steps.end(), static_cast<double>(value.best_step));
  const std::vector<double> tests = history_of(run, "test_" + row.metric);
  // One line per evaluation in both, so the same line is the same epoch.
  value.refit = tests.at(static_cast<std::size_t>(best - steps.begin()));
  value.best_test = row.lower_is_better ? *std::min_element(tests.begin(), tests.end())
                                        : *std::max_element(tests.begin(), tests.end());
  return true;
}

/// Runs of the protocol in order: every split with every seed.
std::vector<std::pair<std::int64_t, std::int64_t>> plan_of(const ReproduceRow& row,
                                                           const Options& options) {
  std::vector<std::pair<std::int64_t, std::int64_t>> plan;
  for (std::int64_t split = 0; split < row.splits; ++split) {
    for (const std::int64_t seed : row.seeds) plan.emplace_back(split, seed);
  }
  const std::int64_t wanted = options.quick ? 1 : options.seeds;
  if (wanted > 0 && wanted < std::ssize(plan)) plan.resize(static_cast<std::size_t>(wanted));
  return plan;
}

/// nullopt: interrupted.
std::optional<RowResult> run_row(const ReproduceExperiment& experiment, const ReproduceRow& row,
                                 const Options& options) {
  const auto plan = plan_of(row, options);
  train::Config config = config_of(row, options);
  RowResult result{.experiment = experiment.name,
                   .row = row.name,
                   .dataset = config.data.name,
                   .metric = row.metric,
                   .protocol = {},
                   .config = {},
                   .version = code_version(),
                   .planned = options.quick ? 1 : row.num_runs(),
                   .runs = {},
                   .references = {}};
  const fs::path folder = options.out / (options.quick ? "quick" : "") / experiment.name / row.name;
  for (const auto& [split, seed] : plan) {
    config.seed = seed;
    config.data.split = split;
    const fs::path run = folder / text("split-%lld-seed-%lld", static_cast<long long>(split),
                                       static_cast<long long>(seed));
    const Provenance code = provenance_of(run, is_finished(run, row));
    const auto record = train_once(
        config, {.folder = run, .data_dir = options.data_dir, .resume = fs::exists(run)});
    keep_provenance(run, code);
    if (!record) return {};
    const train::Metrics& test = record->metrics.at("test");
    if (!std::isfinite(test.at(row.metric))) {
      throw io::InputError(run.string() + ": " + row.metric + " of the test part is not defined");
    }
    RunValue value{.seed = seed,
                   .split = split,
                   .value = test.at(row.metric),
                   .validation = record->metrics.at("val").at(row.metric),
                   .best_step = record->best_step,
                   .steps = record->steps,
                   .seconds = record->seconds,
                   .peak_mib = record->peak_mib,
                   .code = code};
    for (const std::string& metric : row.also) value.also[metric] = test.at(metric);
    if (!row.raw_metric.empty()) value.raw = test.at(row.raw_metric);
    if (row.refit && !refit(config, run, options, row, value)) return {};
    result.runs.push_back(value);
    if (result.config.empty()) {
      result.config = train::to_toml(read_run_config(run));
      result.protocol = record->protocol;
      result.parameters = record->num_parameters;
      result.references = record->references;
    }
  }
  return result;
}

/// Recorded with the same settings and at least as many runs.
bool is_recorded(const fs::path& path, const ReproduceRow& row, const Options& options) {
  const auto known = read_result(path);
  if (!known || std::ssize(known->runs) < std::ssize(plan_of(row, options))) return false;
  train::Config recorded;
  train::apply_toml(recorded, known->config, path.string());
  train::Config wanted = config_of(row, options);
  wanted.seed = recorded.seed;
  wanted.data.split = recorded.data.split;
  // What the data decide, or that they are: a subset may have taken their place.
  wanted.data.name = recorded.data.name;
  if (wanted.data.lags == 0) wanted.data.lags = recorded.data.lags;
  if (wanted.data.horizon == 0) wanted.data.horizon = recorded.data.horizon;
  const bool is_same = train::to_toml(recorded) == train::to_toml(wanted);
  if (!is_same) say(path.string() + " was had with other settings");
  return is_same;
}

int run_experiment(const ReproduceExperiment& experiment, const Options& options) {
  const fs::path results = options.quick ? options.out / "quick" / "results" : options.results;
  bool found = options.row.empty();
  for (const ReproduceRow& row : experiment.rows) {
    if (!options.row.empty() && row.name != options.row) continue;
    found = true;
    const fs::path path = result_path(results, experiment.name, row.name);
    if (!options.quick && is_recorded(path, row, options)) {
      say(experiment.name + " " + row.name + ": recorded in " + path.string());
      continue;
    }
    const bool needs_files = !options.quick || row.quick_dataset.empty();
    if (needs_files && is_absent(row.dataset, options.data_dir)) {
      say(experiment.name + " " + row.name + ": not run, the files of " + row.dataset +
          " are absent (mpssm data info " + row.dataset + ")");
      continue;
    }
    say("--- " + experiment.name + " " + row.name);
    const auto result = run_row(experiment, row, options);
    if (!result) {
      say("stopped; the same command goes on");
      return kInterrupted;
    }
    write_result(path, *result);
  }
  if (!found) {
    std::string known;
    for (const ReproduceRow& row : experiment.rows) known += " " + row.name;
    throw io::InputError("--row: expected one of" + known + ", got '" + io::printable(options.row) +
                         "'");
  }
  if (options.quick) {
    print(experiment.title +
          ", a quick look: small data, few epochs, one run. Not to be compared "
          "with the paper.\n");
    print(quick_table_of(experiment, results));
  } else {
    print(experiment.title + "\n");
    print(table_of(experiment, results));
  }
  return 0;
}

int list_rows(const Options& options) {
  std::vector<std::vector<std::string>> rows = {
      {"experiment", "row", "dataset", "runs", "files", "recorded"}};
  for (const ReproduceExperiment& experiment : reproduce_experiments()) {
    for (const ReproduceRow& row : experiment.rows) {
      const auto known = read_result(result_path(options.results, experiment.name, row.name));
      rows.push_back({experiment.name, row.name, row.dataset, std::to_string(row.num_runs()),
                      is_absent(row.dataset, options.data_dir) ? "absent" : "here",
                      known ? ours_of(row, *known) : "no"});
    }
  }
  print(table(rows));
  return 0;
}

int run(const Options& options) {
  ops::set_process_threads(options.threads);
  const int asked = (options.experiment.empty() ? 0 : 1) + (options.list ? 1 : 0) +
                    (options.page.empty() ? 0 : 1);
  if (asked != 1) {
    throw io::InputError("reproduce: expected an experiment (see --help), --list or --page");
  }
  const bool is_timing = options.experiment == "runtime" || options.experiment == "figure";
  if (is_timing && (!options.row.empty() || options.seeds > 0)) {
    throw io::InputError("--row and --seeds: " + options.experiment + " has neither");
  }
  if (options.list) return list_rows(options);
  if (!options.page.empty()) {
    io::write_file(options.page, results_page(options.results));
    say("wrote " + options.page);
    return 0;
  }
  const fs::path results = options.quick ? options.out / "quick" / "results" : options.results;
  if (is_timing) {
    std::error_code error;
    fs::create_directories(results, error);
    if (error) io::fail(results.string(), "cannot create: " + error.message());
  }
  if (options.experiment == "runtime") {
    measure_runtime(results, options.quick);
    print(runtime_markdown(results));
    return 0;
  }
  if (options.experiment == "figure") {
    measure_figure(results, options.quick);
    print(figure_markdown(results));
    return 0;
  }
  catch_interrupts();
  for (const ReproduceExperiment& experiment : reproduce_experiments()) {
    if (experiment.name == options.experiment) return run_experiment(experiment, options);
  }
  throw std::logic_error("reproduce: no such experiment");  // the command line has checked it
}

}  // namespace

void add_reproduce(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("reproduce", "Run the paper's experiments, our number beside theirs");
  verb->footer(kFooter);
  verb->add_option("experiment", options->experiment, "which one")
      ->check(CLI::IsMember(
          {"gpp", "ablation", "hetero", "temporal", "traffic", "lrgb", "runtime", "figure"}));
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
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mpssm::cli
