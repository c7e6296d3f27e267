// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <string>

#include "mpssm/base/error.h"
#include "mpssm/base/machine.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/csv.h"
#include "mpssm/train/preset.h"

#include "cli/verbs.h"

namespace mpssm::cli {

void add_config_options(CLI::App& verb, ConfigOptions& options) {
  verb.add_option("dataset", options.dataset,
                  "registered or built-in name (mpssm data list), or a file or folder of your own");
  verb.add_option(
          "--config", options.files,
          "TOML file with settings, or the name of shipped ones such as paper; may be given again")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--set", options.settings, "one setting, KEY=VALUE; may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--target", options.target, "own tables: label column (data.target)")
      ->type_name("NAME");
  verb.add_option("--task", options.task, "own files: what to learn (data.task), such as links")
      ->type_name("TASK");
  verb.add_option("--rewired", options.rewired, "edges of mpssm advise --save (data.rewired)")
      ->type_name("FILE");
  verb.add_option("--data-dir", options.data_dir, "folder to look for registered files first")
      ->type_name("DIR");
  verb.add_option("--threads", options.threads,
                  "threads to use (0: MPSSM_NUM_THREADS, OMP_NUM_THREADS or all cores)")
      ->check(thread_count());
  verb.add_option("--memory-limit", options.memory_limit_mib,
                  "MiB that a step may take (0: what is free): above it blocks run again in the "
                  "backward pass, and if that is not enough, the start is refused")
      ->check(at_least(0));
}

train::Config make_config(const ConfigOptions& options) {
  train::Config config = train::preset_config(options.dataset);
  for (const auto& file : options.files)
    train::apply_toml(config, train::settings_text(file), file);
  if (!options.dataset.empty()) config.data.name = options.dataset;
  for (const std::string& setting : options.settings) train::apply_setting(config, setting);
  if (!options.target.empty()) train::apply_setting(config, "data.target=" + options.target);
  if (!options.task.empty()) train::apply_setting(config, "data.task=" + options.task);
  if (!options.rewired.empty()) train::apply_setting(config, "data.rewired=" + options.rewired);
  if (config.data.name.empty()) {
    throw base::Error(
        "no dataset: give a name (mpssm data list) or a path, or data.name in a config");
  }
  train::check(config);
  return config;
}

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "stdout is one JSON object, all else goes to stderr");
}

void add_ranks(CLI::App& verb, ranks::SessionOptions& options) {
  verb.add_option("--ranks", options.ranks, "processes that share the work")->check(at_least(1));
  verb.add_option("--timeout", options.timeout, "seconds that ranks wait for each other")
      ->check(CLI::PositiveNumber);
}

CLI::Validator at_least(std::int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    const auto number = io::to_integer(text);
    if (number && *number >= least) return {};
    return fmt::format("expected a whole number of {} or more, got '{}'", least,
                       base::printable(text));
  };
  return CLI::Validator(check, "");
}

CLI::Validator thread_count() {
  const auto check = [](const std::string& text) -> std::string {
    const auto number = io::to_integer(text);
    const std::int64_t most = base::max_threads();
    if (number && *number >= 0 && *number <= most) return {};
    if (!number || *number < 0) {
      return "expected a whole number of 0 or more, got '" + base::printable(text) + "'";
    }
    return fmt::format(
        "expected at most {} threads (64 for each core that the program may use), got '{}'", most,
        base::printable(text));
  };
  return CLI::Validator(check, "");
}

}  // namespace mpssm::cli
