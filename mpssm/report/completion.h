// SPDX-License-Identifier: MIT
// Scripts that teach a shell the words of a program, made from the program's own tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mpssm/base/enum_table.h"

namespace mpssm::report {

enum class Shell { kBash, kZsh, kFish };
inline constexpr base::EnumRow<Shell> kShells[] = {
    {Shell::kBash, "bash"}, {Shell::kZsh, "zsh"}, {Shell::kFish, "fish"}};
constexpr base::EnumTable<Shell> table_of(Shell) { return kShells; }

struct CompletedOption {
  std::string name;  ///< "--set"
  std::string help;
  bool takes_value = false;
};

struct CompletedVerb {
  std::string name;
  std::string help;
  std::vector<CompletedOption> options = {};
  std::vector<CompletedVerb> parts = {};  ///< verbs of its own: data list, data info
};

struct Completion {
  std::string program;
  std::vector<CompletedVerb> verbs = {};
  std::vector<std::string> keys = {};      ///< what --set and --grid are about
  std::vector<std::string> datasets = {};  ///< names that may stand where files may
};

std::string completion_script(const Completion& completion, Shell shell);

}  // namespace mpssm::report
