// SPDX-License-Identifier: MIT
#include "mpssm/train/preset.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/file.h"

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

std::string settings_text(const std::string& file_or_name) {
  constexpr std::int64_t kMaxBytes = 1 << 20;
  std::error_code ignored;
  const char* shipped = preset(file_or_name);
  const bool has_file = std::filesystem::exists(file_or_name, ignored);
  return shipped != nullptr && !has_file ? shipped : io::read_file(file_or_name, kMaxBytes);
}

}  // namespace mpssm::train
