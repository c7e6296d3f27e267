// SPDX-License-Identifier: MIT
#include "mpssm/run/explanation.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpssm/data/data_card.h"
#include "mpssm/io/json_text.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/report/text.h"
#include "mpssm/train/preset.h"

namespace mpssm::run {

std::string introduction(const Experiment& experiment, const std::filesystem::path& folder) {
  constexpr double kMib = 1024.0 * 1024.0;
  std::string text =
      (experiment.by_nodes ? experiment.about : report::text_of(card_of(experiment))) +
      fmt::format("\n{} with {} parameters, about {:.0f} MiB per step; run folder {}",
                  to_string(experiment.config.model.kind), experiment.model.num_parameters,
                  static_cast<double>(experiment.model.training_bytes) / kMib, folder.string());
  if (!experiment.choices.empty()) {
    text += fmt::format("\nsettings chosen from the data: {} (mpssm train --explain says why)",
                        train::to_line(experiment.choices));
  }
  return text;
}

std::string keys_table() {
  report::Rows rows = {{"key", "default", ""}};
  for (const train::Setting& setting : train::settings_of({})) {
    rows.push_back({setting.key, setting.value, setting.help});
  }
  return report::table(rows);
}

std::string to_text(const Explained& explained) {
  if (explained.choices.empty()) {
    const std::string preset = train::preset_name(explained.config.data.name);
    return "the settings are those of " +
           (preset.empty() ? "the files and options given" : "configs/" + preset + ".toml");
  }
  report::Rows rows = {{"setting", "value", "because"}};
  for (const train::Choice& choice : explained.choices) {
    rows.push_back({choice.key, choice.value, choice.because});
  }
  return report::table(rows);
}

std::string to_json(const Explained& explained) {
  auto choices = nlohmann::ordered_json::array();
  for (const train::Choice& choice : explained.choices) {
    choices.push_back({{"setting", choice.key},
                       {"value", choice.value},
                       {"because", choice.because},
                       {"given", choice.given}});
  }
  return io::json_text(
      nlohmann::ordered_json{{"dataset", explained.dataset->name}, {"choices", choices}});
}

}  // namespace mpssm::run
