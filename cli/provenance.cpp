// SPDX-License-Identifier: MIT
#include "cli/provenance.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include <torch/version.h>

#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/version.h"

#include "cli/code_stamp.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string machine() {
  std::string processor = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    processor = line.substr(colon + 2);
    break;
  }
  return processor + ", " + std::to_string(std::thread::hardware_concurrency()) + " CPUs";
}

/// Not in the folder, where nothing but the run's own files belongs.
fs::path path_of(const fs::path& run) { return run.string() + ".code.json"; }

void write(const fs::path& path, const Provenance& code) {
  const ordered_json json = {{"commit", code.commit},
                             {"dirty", code.dirty ? ordered_json(*code.dirty) : ordered_json()},
                             {"machine", code.machine},
                             {"libtorch", code.libtorch}};
  io::write_file(path, json.dump(1) + "\n");
}

Provenance read(const fs::path& path) {
  try {
    const auto json = ordered_json::parse(io::read_file(path, 1 << 16));
    const auto& dirty = json.at("dirty");
    return {.commit = json.at("commit"),
            .dirty = dirty.is_null() ? std::nullopt : std::optional<bool>(dirty.get<bool>()),
            .machine = json.at("machine"),
            .libtorch = json.at("libtorch")};
  } catch (const nlohmann::json::exception& error) {
    io::fail(path.string(), std::string("does not say which code ran: ") + error.what());
  }
}

}  // namespace

const Provenance& this_program() {
  static const Provenance code = [] {
    const std::string commit = code_stamp::kCommit;
    return Provenance{.commit = commit,
                      .dirty = commit.empty() ? std::nullopt : std::optional(code_stamp::kDirty),
                      .machine = machine(),
                      .libtorch = TORCH_VERSION};
  }();
  return code;
}

std::string code_version() {
  constexpr std::size_t kShort = 9;
  const Provenance& code = this_program();
  std::string version = kVersion;
  if (!code.commit.empty()) version += "+" + code.commit.substr(0, kShort);
  if (code.dirty.value_or(false)) version += "-dirty";
  return version;
}

Provenance provenance_of(const fs::path& run, bool is_finished) {
  std::error_code ignored;
  if (!fs::exists(path_of(run), ignored)) {
    return fs::exists(run, ignored) ? Provenance{} : this_program();
  }
  Provenance code = read(path_of(run));
  if (is_finished || code == this_program()) return code;
  code = this_program();
  code.dirty = true;  // some of its steps were another program's
  return code;
}

void keep_provenance(const fs::path& run, const Provenance& code) {
  if (code != Provenance{}) write(path_of(run), code);
}

}  // namespace mpssm::cli
