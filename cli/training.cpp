// SPDX-License-Identifier: MIT
#include "cli/training.h"

#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/train/available_memory.h"
#include "mpssm/train/metrics.h"

#include "cli/board.h"
#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

void check_memory(double bytes, std::int64_t limit_mib) {
  const double wanted = bytes / kMib;
  const double limit = limit_mib > 0 ? static_cast<double>(limit_mib) : train::available_mib();
  if (limit > 0.0 && wanted > limit) {
    throw io::InputError(
        text("a training step needs about %.0f MiB, the limit is %.0f MiB; lower model.channels, "
             "model.blocks or train.batch, or raise --memory-limit",
             wanted, limit));
  }
}

void introduce(const train::Experiment& experiment, const std::filesystem::path& folder) {
  const data::Dataset& dataset = *experiment.dataset;
  say(dataset.name + ": " + dataset.protocol);
  say(text("%s with %lld parameters, about %.0f MiB per step; run folder %s",
           experiment.config.model.kind.c_str(),
           static_cast<long long>(experiment.model.num_parameters),
           static_cast<double>(experiment.model.training_bytes) / kMib, folder.c_str()));
}

/// The first setting in which two configs differ, as "KEY = a there, b here".
std::string first_difference(const train::Config& stored, const train::Config& given) {
  const auto collect = [](const train::Config& config) {
    std::map<std::string, std::string> result;
    train::visit_settings(config, [&](std::string_view key, const auto& value, std::string_view) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>) {
        result[std::string(key)] = value;
      } else {
        result[std::string(key)] = text("%.17g", static_cast<double>(value));
      }
    });
    return result;
  };
  const auto there = collect(stored);
  for (const auto& [key, value] : collect(given)) {
    if (there.at(key) != value) return key + " is " + there.at(key) + " there, " + value + " here";
  }
  return "";
}

}  // namespace

train::Config read_run_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.toml";
  train::Config config;
  train::apply_toml(config, io::read_file(path, 1 << 20), path.string());
  return config;
}

std::optional<report::RunRecord> train_once(const train::Config& config,
                                            const TrainingOptions& options) {
  // The weights alone first (with gradient, Adam's two moments and the best), before they are made.
  constexpr double kBytesPerWeight = 5 * 4;
  check_memory(kBytesPerWeight * static_cast<double>(train::least_parameters(config)),
               options.memory_limit_mib);
  // First of all: whoever writes into this folder must not notice that we were here.
  const train::RunFolder folder(options.folder, options.resume);
  const auto pins =
      options.resume ? train::read_pins(options.folder) : std::optional<train::DataPins>();
  const bool goes_on = pins && std::filesystem::exists(options.folder / "config.toml");
  train::Experiment experiment =
      train::set_up(config, options.data_dir, goes_on ? &*pins : nullptr);
  check_memory(static_cast<double>(experiment.model.training_bytes), options.memory_limit_mib);
  if (goes_on) {
    const std::string difference =
        first_difference(read_run_config(options.folder), experiment.config);
    if (!difference.empty()) {
      throw io::InputError(options.folder.string() + ": cannot go on with other settings: " +
                           difference + "; another --out starts anew");
    }
  }
  for (const std::string& note : experiment.dataset->notes) say("note: " + note);
  if (!options.quiet) introduce(experiment, options.folder);
  ProgressLine progress(experiment.metric, options.quiet);
  const std::optional<report::RunRecord> record =
      train::run(experiment, folder, goes_on,
                 {.on_step = [&](const train::Progress& now) { progress.update(now); },
                  .should_stop = was_interrupted});
  progress.finish();
  if (!record) {
    say("mpssm: stopped; the state is saved, go on with: mpssm train " + options.folder.string() +
        " --resume");
    return record;
  }
  if (is_board(*experiment.dataset)) write_board(experiment, *record);
  return record;
}

std::string summary_of(const report::RunRecord& record) {
  std::vector<std::vector<std::string>> rows = {{"", "val", "test"}};
  const auto number = [](const train::Metrics& metrics, const std::string& name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::string() : text("%.4f", found->second);
  };
  const train::Metrics& val = record.metrics.at("val");
  const train::Metrics& test = record.metrics.at("test");
  const auto add = [&](const std::string& name) {
    rows.push_back({name, number(val, name), number(test, name)});
  };
  add(record.metric);
  for (const auto& [name, value] : test) {
    if (name != record.metric) add(name);
  }
  std::string result = table(rows);
  if (record.references.empty()) return result;

  // Forecasts that need no training, on the same test part.
  rows = {{"test"}};
  std::vector<std::string> names = {record.metric};
  for (const char* step : {"mae_3", "mae_6", "mae_12"}) {
    if (test.contains(step)) names.emplace_back(step);
  }
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  const auto add_row = [&](const std::string& title, const train::Metrics& metrics) {
    std::vector<std::string> row = {title};
    for (const std::string& name : names) row.push_back(number(metrics, name));
    rows.push_back(row);
  };
  add_row("this model", test);
  for (const auto& reference : record.references) add_row(reference.name, reference.test);
  return result + "\n" + table(rows);
}

}  // namespace mpssm::cli
