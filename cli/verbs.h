// SPDX-License-Identifier: MIT
// The verbs of `mpssm`, one file each. A verb adds its options to the command line and leaves the
// work to be done in `action`.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/ranks/session.h"
#include "mpssm/train/config.h"

namespace mpssm::cli {

inline constexpr int kFailed = 1;
inline constexpr int kInterrupted = 130;

using Action = std::function<int()>;

void add_data(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_sensitivity(CLI::App& app, Action& action);
void add_advise(CLI::App& app, Action& action);
void add_reproduce(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);

/// Options that train and tune share.
struct ConfigOptions {
  std::string dataset;
  std::vector<std::string> files;     ///< --config
  std::vector<std::string> settings;  ///< --set
  std::string target;                 ///< --target
  std::string task;                   ///< --task
  std::string rewired;                ///< --rewired
  std::filesystem::path data_dir;
  std::int64_t threads = 0;
  std::int64_t memory_limit_mib = 0;
};
void add_config_options(CLI::App& verb, ConfigOptions& options);
/// Defaults, then the dataset's preset, then the files, then the settings.
train::Config make_config(const ConfigOptions& options);
void add_json(CLI::App& verb, bool& json);
void add_ranks(CLI::App& verb, ranks::SessionOptions& options);

/// Data to apply a trained model to in place of its own: `RUN DATA` or `RUN --data DATA`.
struct OtherData {
  void add_to(CLI::App& verb) {
    verb.add_option("--data,data", name, "other data of the same kind (default: its own)");
  }
  std::optional<std::string> chosen() const {
    return name.empty() ? std::nullopt : std::optional(name);
  }
  std::string name;
};

/// For CLI11's check(): a whole number of `least` or more.
CLI::Validator at_least(std::int64_t least);
/// The same for --threads: 0 or more, and not more than the machine can bear.
CLI::Validator thread_count();

}  // namespace mpssm::cli
