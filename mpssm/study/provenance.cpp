// SPDX-License-Identifier: MIT
#include "mpssm/study/provenance.h"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include <torch/version.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/version.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string this_machine() {
  std::string processor = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    processor = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} CPUs", processor, std::thread::hardware_concurrency());
}

/// Not in the folder, where nothing but the run's own files belongs.
fs::path code_path(const fs::path& run) { return run.string() + ".code.json"; }

Provenance read_code(const fs::path& path) {
  try {
    const auto json = ordered_json::parse(io::read_file(path, 1 << 16));
    const auto& dirty = json.at("dirty");
    return {.commit = json.at("commit"),
            .dirty = dirty.is_null() ? std::nullopt : std::optional<bool>(dirty.get<bool>()),
            .machine = json.at("machine"),
            .libtorch = json.at("libtorch")};
  } catch (const nlohmann::json::exception& error) {
    throw base::Error(path.string(), fmt::format("does not say which code ran: {}", error.what()));
  }
}

}  // namespace

Provenance provenance_here(const std::string& commit, bool is_dirty) {
  return {.commit = commit,
          .dirty = commit.empty() ? std::nullopt : std::optional(is_dirty),
          .machine = this_machine(),
          .libtorch = TORCH_VERSION};
}

std::string version_of(const Provenance& code) {
  constexpr std::size_t kShort = 9;
  std::string version = kVersion;
  if (!code.commit.empty()) version += "+" + code.commit.substr(0, kShort);
  if (code.dirty.value_or(false)) version += "-dirty";
  return version;
}

std::string words_of(const Provenance& code) {
  return fmt::format("{}, {}, libtorch {}", version_of(code), code.machine, code.libtorch);
}

Provenance provenance_of(const fs::path& run, bool is_finished, const Provenance& program) {
  std::error_code ignored;
  if (!fs::exists(run, ignored)) return program;
  if (!fs::exists(code_path(run), ignored)) return {};
  Provenance code = read_code(code_path(run));
  if (is_finished || code == program) return code;
  code = program;
  code.dirty = true;  // some of its steps were another program's
  return code;
}

void keep_provenance(const fs::path& run, const Provenance& code) {
  if (code == Provenance{}) return;
  const ordered_json json = {{"commit", code.commit},
                             {"dirty", code.dirty ? ordered_json(*code.dirty) : ordered_json()},
                             {"machine", code.machine},
                             {"libtorch", code.libtorch}};
  fs::create_directories(run.parent_path());
  io::write_file(code_path(run), json.dump(1) + "\n");
}

void forget_provenance(const fs::path& run) {
  std::error_code ignored;
  fs::remove(code_path(run), ignored);
}

}  // namespace mpssm::study
