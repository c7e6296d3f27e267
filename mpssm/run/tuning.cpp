// SPDX-License-Identifier: MIT
#include "mpssm/run/tuning.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "mpssm/base/error.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/ranks/shared_work.h"
#include "mpssm/report/text.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/task/metrics.h"
#include "mpssm/train/defaults.h"
#include "mpssm/train/grid.h"
#include "mpssm/train/search.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

constexpr std::string_view kTableStart = "settings,val_mean,";
constexpr std::string_view kBestStart = "# Best of ";
constexpr std::int64_t kUsualPoints = 16;
constexpr std::int64_t kThird = 3;
constexpr std::string_view kFailed = "failed: ";  // no record begins like this

std::string joined(const Settings& settings) {
  std::string text;
  for (const std::string& setting : settings) text += (text.empty() ? "" : " ") + setting;
  return text.empty() ? "defaults" : text;
}

bool is_better(const TuneOutcome& outcome, const Trial& a, const Trial& b) {
  if (a.epochs != b.epochs) return a.epochs > b.epochs;
  const double x = a.val_mean();
  const double y = b.val_mean();
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  return task::metric_info(outcome.metric).higher_is_better ? x > y : x < y;
}

class Search {
 public:
  Search(const train::Config& base, const TuneOptions& options, const TrainRun& train_run,
         const OnTrial& on_trial)
      : base_(base),
        options_(options),
        train_run_(train_run),
        on_trial_(on_trial),
        alone_(ranks::alone()),
        ranks_(options.ranks != nullptr ? *options.ranks : *alone_) {
    check_folder();
    const Explained explained = explain(base, options.data_dir);
    epochs_ = explained.config.train.epochs;
    points_ = points_for(train::facts_of(*explained.dataset, base.data.split).shape);
    outcome_.planned = std::ssize(points_);
  }

  TuneOutcome run() {
    const std::vector<std::int64_t> rounds =
        options_.halving ? halving_rounds(std::ssize(points_), epochs_) : std::vector{epochs_};
    std::vector<Settings> points = points_;
    for (const std::int64_t epochs : rounds) {
      if (!run_round(points, epochs)) {
        outcome_.is_complete = false;
        break;
      }
      points = best_third(epochs);
    }
    if (outcome_.trials.empty() && outcome_.is_complete) {
      throw base::Error("tune: no trial finished; the lines above say why");
    }
    return std::move(outcome_);
  }

 private:
  void check_folder() const {
    io::check_replaceable(options_.folder / "trials.csv",
                          {.bytes = kTableStart, .kind = "a table of trials"});
    io::check_replaceable(options_.folder / "best.toml",
                          {.bytes = kBestStart, .kind = "the outcome of a search"});
    io::check_replaceable(options_.folder / "tune.json",
                          {.bytes = "{\n  \"run\":", .kind = "the outcome of a search"});
  }

  std::vector<Settings> points_for(train::DataShape shape) const {
    const bool usual = options_.axes.empty();
    const std::int64_t count = usual && options_.random == 0 ? kUsualPoints : options_.random;
    std::vector<Settings> points = train::search_points(
        usual ? train::usual_axes(shape) : options_.axes, usual ? count - 1 : count);
    // What one has without a search is the first to beat.
    if (usual) points.insert(points.begin(), Settings());
    for (const Settings& point : points) {
      train::Config probe = base_;
      for (const std::string& setting : point) train::apply_setting(probe, setting);
      train::check(probe);
    }
    return points;
  }

  /// False: stopped.
  bool run_round(const std::vector<Settings>& points, std::int64_t epochs) {
    ranks::SharedWork work(ranks_, fmt::format("trials-{}", epochs));
    bool is_whole = true;
    std::size_t next = 0;
    // Told in the order of the points, whoever has trained them.
    const auto take_down = [&](bool waits) {
      for (; next < points.size(); ++next) {
        const std::optional<std::string> text = work.hear(next, waits);
        if (!text) return;
        is_whole &= !text->empty();
        if (!text->empty()) add({.settings = points[next], .epochs = epochs}, *text);
      }
    };
    bool is_stopped = false;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!work.is_own(i)) continue;
      is_stopped = is_stopped || is_over();
      const std::string text = is_stopped ? "" : outcome_of(points[i], epochs);
      is_stopped |= text.empty();
      work.tell(i, text);
      take_down(/*waits=*/false);
    }
    take_down(/*waits=*/true);
    return is_whole;
  }

  bool is_over() const { return options_.is_over && options_.is_over(); }

  /// Trains it on every seed and split: the records, a line each, or kFailed and why. Empty: it was
  /// stopped.
  std::string outcome_of(const Settings& settings, std::int64_t epochs) const {
    train::Config config = base_;
    for (const std::string& setting : settings) train::apply_setting(config, setting);
    if (options_.halving) train::apply_setting(config, fmt::format("train.epochs={}", epochs));
    // The name is made of the settings, so that another grid in the same folder shares trials.
    fs::path folder = options_.folder / train::folder_name(settings);
    if (settings.empty()) folder = options_.folder / "defaults";
    if (options_.halving) folder /= fmt::format("epochs-{}", epochs);
    std::string text;
    try {
      const auto records =
          train_all(config, options_.splits, options_.seeds, folder, *ranks::alone(), train_run_);
      if (!records) return "";
      for (const report::RunRecord& record : *records) text += report::to_json(record) + "\n";
    } catch (const base::Error& error) {
      // One bad combination does not end the search; if none is good the end says so. A full disk
      // does.
      if (error.kind() == base::ErrorKind::kSystem) throw;
      text = std::string(kFailed) + error.what();
    }
    return text;
  }

  /// One more trial, of which outcome_of() said `text`.
  void add(Trial trial, const std::string& text) {
    if (std::find(seen_.begin(), seen_.end(), trial.settings) == seen_.end()) {
      seen_.push_back(trial.settings);
    }
    outcome_.tried = std::ssize(seen_);
    if (text.starts_with(kFailed)) {
      trial.error = text.substr(kFailed.size());
    } else {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        const report::RunRecord record = report::run_record_from_json(line, "a trial");
        if (trial.val.empty()) trial.run = record.run;
        outcome_.metric = record.metric;
        trial.val.push_back(record.metrics.at("val").at(record.metric));
        trial.test.push_back(record.metrics.at("test").at(record.metric));
        trial.seconds += record.seconds;
      }
      const auto worse = [&](const Trial& other) { return is_better(outcome_, trial, other); };
      outcome_.trials.insert(std::find_if(outcome_.trials.begin(), outcome_.trials.end(), worse),
                             trial);
      if (ranks_.is_first()) write_down();
    }
    if (on_trial_) on_trial_(outcome_, trial);
  }

  std::vector<Settings> best_third(std::int64_t epochs) const {
    std::vector<Settings> best;
    for (const Trial& trial : outcome_.trials) {
      if (trial.epochs == epochs) best.push_back(trial.settings);
    }
    const std::size_t count = (best.size() + kThird - 1) / kThird;
    best.resize(count);
    return best;
  }

  void write_down() const {
    std::string csv = std::string(kTableStart) + "val_std,runs,epochs,seconds\n";
    for (const Trial& trial : outcome_.trials) {
      const task::Summary val = task::summarise(trial.val);
      csv += io::csv_cell(joined(trial.settings)) + fmt::format(",{:.9g},{:.9g},{},{},{:.1f}\n",
                                                                val.mean, val.std, val.count,
                                                                trial.epochs, trial.seconds);
    }
    io::write_file(options_.folder / "trials.csv", csv);
    io::write_file(options_.folder / "tune.json", to_json(outcome_, options_.folder, 2) + "\n");
    const Trial& best = outcome_.trials.front();
    train::Config config = read_run_config(best.run);
    config.seed = base_.seed;
    config.data.split = base_.data.split;
    io::write_file(options_.folder / "best.toml",
                   fmt::format("{}{} settings tried, by validation: {} {:.6g} ({}, {} epochs)\n",
                               kBestStart, outcome_.tried, outcome_.metric, best.val_mean(),
                               joined(best.settings), best.epochs) +
                       train::to_toml(config));
  }

  const train::Config& base_;
  TuneOptions options_;
  const TrainRun& train_run_;
  const OnTrial& on_trial_;
  std::unique_ptr<ranks::Communicator> alone_;
  ranks::Communicator& ranks_;
  std::int64_t epochs_ = 0;
  std::vector<Settings> points_;
  std::vector<Settings> seen_;
  TuneOutcome outcome_;
};

/// "0.8123 ± 0.0040", of one run without the deviation.
std::string with_deviation(const std::vector<double>& values) {
  const task::Summary summary = task::summarise(values);
  std::string text = fmt::format("{:.4f}", summary.mean);
  if (summary.count > 1) text += fmt::format(" \u00b1 {:.4f}", summary.std);
  return text;
}

}  // namespace

double Trial::val_mean() const { return task::summarise(val).mean; }

std::vector<std::int64_t> halving_rounds(std::int64_t points, std::int64_t epochs) {
  // Shorter trainings than a 27th say little of long ones.
  constexpr std::size_t kMostRounds = 4;
  std::vector<std::int64_t> rounds = {epochs};
  for (std::int64_t rest = points; rest >= kThird && rounds.size() < kMostRounds; rest /= kThird) {
    if (rounds.front() < 2 * kThird) break;
    rounds.insert(rounds.begin(), rounds.front() / kThird);
  }
  return rounds;
}

TuneOutcome tune(const train::Config& base, const TuneOptions& options, const TrainRun& train_run,
                 const OnTrial& on_trial) {
  train::Config start = base;
  TuneOptions read = options;
  read.axes = train::with_grids(options.axes, start);
  return Search(start, read, train_run, on_trial).run();
}

std::string to_text(const TuneOutcome& outcome) {
  if (outcome.trials.empty()) return "no trial has ended yet";
  report::Rows rows = {{"settings", "val " + outcome.metric, "runs", "epochs", "seconds"}};
  for (const Trial& trial : outcome.trials) {
    rows.push_back({joined(trial.settings), with_deviation(trial.val),
                    std::to_string(trial.val.size()), std::to_string(trial.epochs),
                    fmt::format("{:.0f}", trial.seconds)});
  }
  const Trial& best = outcome.trials.front();
  return report::table(rows) +
         fmt::format("\nbest on validation of {} tried: {}\nits test {} {} ({})",
                     report::counted(outcome.tried, "setting"), joined(best.settings),
                     outcome.metric, with_deviation(best.test),
                     report::counted(std::ssize(best.test), "run"));
}

std::string to_json(const TuneOutcome& outcome, const fs::path& folder, int indent) {
  nlohmann::ordered_json json{{"run", folder.string()}, {"metric", outcome.metric}};
  if (!outcome.trials.empty()) {
    const Trial& best = outcome.trials.front();
    json["best"] = best.settings;
    json["val"] = best.val_mean();
    json["val_std"] = task::summarise(best.val).std;
    json["test"] = task::summarise(best.test).mean;
    json["test_std"] = task::summarise(best.test).std;
    json["runs"] = best.val.size();
    json["config"] = (folder / "best.toml").string();
  }
  json["settings_tried"] = outcome.tried;
  json["settings_planned"] = outcome.planned;
  json["trials"] = outcome.trials.size();
  return io::json_text(json, indent);
}

std::string line_of(const TuneOutcome& so_far, const Trial& trial) {
  const std::string place = fmt::format("trial {}/{}", so_far.tried, so_far.planned);
  if (!trial.error.empty())
    return fmt::format("{}  {}: {}", place, joined(trial.settings), trial.error);
  return fmt::format(
      "{}  val {} {} (best {:.4f})  {:.0f} s{}  {}", place, so_far.metric,
      with_deviation(trial.val), so_far.trials.front().val_mean(), trial.seconds,
      so_far.trials.front().epochs == trial.epochs ? "" : fmt::format(", {} epochs", trial.epochs),
      joined(trial.settings));
}

}  // namespace mpssm::run
