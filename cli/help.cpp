// SPDX-License-Identifier: MIT
// mpssm help, mpssm completion
#include <cstdio>
#include <memory>

#include "mpssm/base/printable.h"
#include "mpssm/data/registry.h"
#include "mpssm/report/completion.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

constexpr const char* kCompletionFooter = R"help(
Examples:
  eval "$(mpssm completion bash)"                  for this shell; in ~/.bashrc for all
  mpssm completion zsh > ~/.zfunc/_mpssm           a folder of $fpath
  mpssm completion fish > ~/.config/fish/completions/mpssm.fish

The script is made from the options of the program that prints it; ./dev install puts all three in
place.)help";

/// The first sentence of a help is enough in a list.
std::string brief(const std::string& help) { return help.substr(0, help.find_first_of("(;")); }

report::CompletedVerb completed(const CLI::App& app) {
  report::CompletedVerb verb{.name = app.get_name(), .help = brief(app.get_description())};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      verb.options.push_back(
          {"--" + name, brief(option->get_description()), option->get_items_expected_max() > 0});
    }
  }
  for (const CLI::App* part : app.get_subcommands({})) verb.parts.push_back(completed(*part));
  return verb;
}

int print_completion(const CLI::App& app, const std::string& shell) {
  report::Completion completion{.program = "mpssm", .verbs = completed(app).parts};
  for (const auto& setting : train::settings_of({})) completion.keys.push_back(setting.key);
  for (const auto& info : data::registry()) completion.datasets.push_back(info.name);
  completion.datasets.emplace_back("board");
  std::fputs(report::completion_script(completion, *table_of(report::Shell{}).find(shell)).c_str(),
             stdout);
  return 0;
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "This page, or that of a verb");
  help->add_option("verb", *words, "as in: mpssm help train");
  help->callback([words, &app, &action] {
    action = [words, &app] {
      const CLI::App* at = &app;
      std::string path = "mpssm";
      for (const std::string& word : *words) {
        const auto is_it = [&](const CLI::App* part) { return part->get_name() == word; };
        const auto parts = at->get_subcommands(is_it);
        refuse_if(parts.empty(),
                  "help: no verb '" + base::printable(word) + "'; mpssm help lists them");
        at = parts.front();
        path += " " + word;
      }
      // Not its help(), which is that of the verb being run: this one.
      std::fputs(at->get_formatter()->make_help(at, path, CLI::AppFormatMode::Normal).c_str(),
                 stdout);
      return 0;
    };
  });
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "A script that teaches a shell these words");
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer(kCompletionFooter);
  verb->callback(
      [shell, &app, &action] { action = [shell, &app] { return print_completion(app, *shell); }; });
}

}  // namespace mpssm::cli
