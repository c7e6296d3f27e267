// SPDX-License-Identifier: MIT
#include "mpssm/report/completion.h"

#include <fmt/core.h>

namespace mpssm::report {
namespace {

/// A word of a shell, whatever is in it.
std::string shell_word(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string joined(const std::vector<std::string>& words, std::string_view after = "") {
  std::string text;
  for (const std::string& word : words)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", word, after);
  return text;
}

template <typename Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

/// Calls visit("train", verb), visit("data", verb), visit("data info", verb), ...
template <typename Visit>
void for_each_verb(const Completion& completion, const Visit& visit) {
  for (const CompletedVerb& verb : completion.verbs) {
    visit(verb.name, verb);
    for (const CompletedVerb& part : verb.parts) visit(verb.name + " " + part.name, part);
  }
}

/// 'data list'|'data info'|...: what a case of a shell takes.
std::string paths_of_parts(const Completion& completion) {
  std::string patterns;
  for_each_verb(completion, [&](const std::string& path, const CompletedVerb&) {
    if (path.find(' ') == std::string::npos) return;
    patterns += (patterns.empty() ? "" : "|") + shell_word(path);
  });
  return patterns.empty() ? "''" : patterns;
}

std::string for_bash(const Completion& completion) {
  std::string cases;
  for_each_verb(completion, [&](const std::string& path, const CompletedVerb& verb) {
    cases += fmt::format("    {}) options={}; parts={} ;;\n", shell_word(path),
                         shell_word(joined(names_of(verb.options))),
                         shell_word(joined(names_of(verb.parts))));
  });
  return fmt::format(
      R"sh(# Completion of {0} for bash: eval "$({0} completion bash)"
_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local path=${{COMP_WORDS[1]}} options= parts= words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {1} -- "$cur"))
    return
  fi
  case "$path ${{COMP_WORDS[2]}}" in
    {2}) [ "$COMP_CWORD" -gt 2 ] && path="$path ${{COMP_WORDS[2]}}" ;;
  esac
  case "$path" in
{3}  esac
  case "$prev" in
    --set|--grid)
      COMPREPLY=($(compgen -W {4} -- "$cur"))
      compopt -o nospace
      return ;;
    =) return ;;
  esac
  case "$cur" in
    -*) words=$options ;;
    *) words=$parts; [ -z "$parts" ] && words={5} ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _{0} {0}
)sh",
      completion.program, shell_word(joined(names_of(completion.verbs))),
      paths_of_parts(completion), cases, shell_word(joined(completion.keys, "=")),
      shell_word(joined(completion.datasets)));
}

/// 'word:what it is', as zsh's _describe wants it.
std::string described(const std::string& word, const std::string& help) {
  const auto escaped = [](const std::string& text) {
    std::string result;
    for (const char c : text) result += c == ':' ? std::string("\\:") : std::string(1, c);
    return result;
  };
  return shell_word(escaped(word) + ":" + escaped(help));
}

template <typename Named>
std::string described(const std::vector<Named>& all) {
  std::string text;
  for (const Named& one : all) text += "\n      " + described(one.name, one.help);
  return text;
}

std::string for_zsh(const Completion& completion) {
  std::string cases;
  for_each_verb(completion, [&](const std::string& path, const CompletedVerb& verb) {
    cases += fmt::format("    {}) options=({}); parts=({}) ;;\n", shell_word(path),
                         described(verb.options), described(verb.parts));
  });
  return fmt::format(
      R"sh(#compdef {0}
# Completion of {0} for zsh: in a folder of $fpath as _{0}, or eval "$({0} completion zsh)"
_{0}() {{
  local -a verbs options parts
  verbs=({1})
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb_path=$words[2]
  case "$words[2] $words[3]" in
    {2}) (( CURRENT > 3 )) && verb_path="$words[2] $words[3]" ;;
  esac
  case "$verb_path" in
{3}  esac
  if [[ $words[CURRENT-1] == (--set|--grid) ]]; then
    compadd -S '' -- {4}
  elif [[ $words[CURRENT] == -* ]]; then
    _describe -o option options
  elif (( $#parts )); then
    _describe part parts
  else
    _files
    compadd -- {5}
  fi
}}
if [ "$funcstack[1]" = _{0} ]; then _{0} "$@"; else compdef _{0} {0}; fi
)sh",
      completion.program, described(completion.verbs), paths_of_parts(completion), cases,
      joined(completion.keys, "="), joined(completion.datasets));
}

std::string for_fish(const Completion& completion) {
  const std::string& name = completion.program;
  std::string script =
      fmt::format("# Completion of {0} for fish: {0} completion fish | source\n", name);
  for (const CompletedVerb& verb : completion.verbs) {
    script += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", name, verb.name,
                          shell_word(verb.help));
  }
  const auto add_options = [&](const std::string& condition, const CompletedVerb& verb) {
    for (const CompletedOption& option : verb.options) {
      const bool is_long = option.name.starts_with("--");
      std::string line = fmt::format("complete -c {} -n {} -{} {} -d {}", name,
                                     shell_word(condition), is_long ? "l" : "s",
                                     option.name.substr(is_long ? 2 : 1), shell_word(option.help));
      if (option.takes_value) line += " -r";
      if (option.name == "--set" || option.name == "--grid") {
        line += " -f -a " + shell_word(joined(completion.keys, "="));
      }
      script += line + "\n";
    }
  };
  for (const CompletedVerb& verb : completion.verbs) {
    const std::string seen = "__fish_seen_subcommand_from " + verb.name;
    add_options(seen, verb);
    for (const CompletedVerb& part : verb.parts) {
      script += fmt::format("complete -c {} -n {} -a {} -d {}\n", name, shell_word(seen), part.name,
                            shell_word(part.help));
      add_options(seen + "; and __fish_seen_subcommand_from " + part.name, part);
    }
  }
  return script;
}

}  // namespace

std::string completion_script(const Completion& completion, Shell shell) {
  switch (shell) {
    case Shell::kZsh:
      return for_zsh(completion);
    case Shell::kFish:
      return for_fish(completion);
    case Shell::kBash:
      break;
  }
  return for_bash(completion);
}

}  // namespace mpssm::report
