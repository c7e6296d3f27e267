// SPDX-License-Identifier: MIT
#include "mpssm/train/preset.h"

#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"

namespace mpssm::train {

std::string preset_name(const std::string& dataset) {
  const std::string name = dataset.substr(0, dataset.find(':'));
  const data::DatasetInfo* info = data::find_dataset(name);
  if (!data::is_name(dataset)) return "";
  return preset(name) == nullptr && info != nullptr ? info->family : name;
}

Config preset_config(const std::string& dataset) {
  Config config;
  const std::string name = preset_name(dataset);
  if (const char* text = preset(name)) {
    apply_toml(config, text, "configs/" + name + ".toml");
    config.given.clear();
  } else {
    config.by_rules = true;
  }
  return config;
}

}  // namespace mpssm::train
