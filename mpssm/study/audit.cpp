// SPDX-License-Identifier: MIT
#include "mpssm/study/audit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/report/text.h"
#include "mpssm/study/run_row.h"
#include "mpssm/train/config.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;

/// The words that a shell takes as one.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Lines that git prints about the checkout of `folder`; throws base::Error if it fails.
std::vector<std::string> git_lines(const fs::path& folder, const std::string& arguments) {
  const std::string command =
      fmt::format("git -C {} {} 2>/dev/null", quoted(folder.string()), arguments);
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe != nullptr) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe);
    if (count == 0) break;
    text.append(buffer.data(), count);
  }
  if (pipe == nullptr || pclose(pipe) != 0) {
    throw base::Error(folder.string(), "git tells no history of it")
        .with_hint("audit in a checkout of the repository");
  }
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string place_of(std::int64_t split, std::int64_t seed) {
  return fmt::format("split {}, seed {}", split, seed);
}

std::vector<std::string> keys_of(const Settings& settings) {
  std::vector<std::string> keys;
  for (const std::string& setting : settings) keys.push_back(setting.substr(0, setting.find('=')));
  return keys;
}

/// The audit of one row, finding by finding.
class Audit {
 public:
  Audit(const Experiment& experiment, const Row& row, const RowResult& result,
        const Records& records, const History* history)
      : experiment_(experiment), row_(row), result_(result), records_(records), history_(history) {}

  std::vector<std::string> findings() {
    check_protocol();
    check_choice();
    for (const RunResult& run : result_.runs) check_run(run);
    check_sibling();
    return std::move(findings_);
  }

  /// What can be said of a record that lacks most of it.
  std::vector<std::string> findings_of_old() {
    find("it has no validation values, no commits, no number of compared settings");
    const RunResult& first = result_.runs.front();
    check_config(place_of(first.split, first.seed), first.config,
                 {.split = first.split, .seed = first.seed}, {});
    return std::move(findings_);
  }

 private:
  template <typename... Values>
  void find(fmt::format_string<Values...> format, Values&&... values) {
    findings_.push_back(fmt::format(format, std::forward<Values>(values)...));
  }

  void check_protocol() {
    if (result_.dataset != row_.dataset) find("dataset {}, not {}", result_.dataset, row_.dataset);
    if (result_.metric != row_.metric) find("metric {}, not {}", result_.metric, row_.metric);
    if (result_.planned != row_.num_runs()) {
      find("{} runs planned, the protocol has {}", result_.planned, row_.num_runs());
    }
    if (!result_.version_matches) find("the version is not that of the code that ran");
    const std::vector<PlannedRun> plan = row_.plan();
    for (const RunResult& run : result_.runs) {
      if (std::find(plan.begin(), plan.end(), PlannedRun{run.split, run.seed}) == plan.end()) {
        find("{}: not of the protocol", place_of(run.split, run.seed));
      }
    }
  }

  void check_code(const std::string& place, const Provenance& code) {
    if (code.commit.empty() || !code.dirty) {
      find("{}: does not say which commit ran", place);
    } else if (*code.dirty) {
      find("{}: files were changed on top of commit {}", place, code.commit);
    } else if (history_ != nullptr && history_->is_whole &&
               !history_->commits.contains(code.commit)) {
      find("{}: commit {} is not in the history", place, code.commit);
    }
  }

  /// That a config is the row's with that candidate, and of that seed and split.
  void check_config(const std::string& place, const std::string& text, const PlannedRun& planned,
                    const Settings& candidate) {
    try {
      train::Config config;
      train::apply_toml(config, text, place);
      if (config.seed != planned.seed || config.data.split != planned.split) {
        find("{}: its settings say {}", place, place_of(config.data.split, config.seed));
      }
      if (config.data.name != row_.dataset) find("{}: data.name is {}", place, config.data.name);
      const std::string difference =
          difference_from_row(text, row_, /*quick=*/false, candidate, place);
      if (!difference.empty()) find("{}: {}", place, difference);
    } catch (const base::Error& error) {
      find("{}", error.what());
    }
  }

  void check_run(const RunResult& run) {
    const std::string place = place_of(run.split, run.seed);
    check_code(place, run.code);
    if (!run.validation || !std::isfinite(*run.validation)) find("{}: no validation value", place);
    if (run.best_step < 0 || run.best_step > run.steps) {
      find("{}: selected step {} of {}", place, run.best_step, run.steps);
    }
    check_config(place, run.config, {.split = run.split, .seed = run.seed}, chosen());
  }

  /// That candidate of the row which the record names; none: what it names is none of them.
  const Settings& chosen() const {
    static const Settings kNone;
    const auto found = std::find_if(
        row_.candidates.begin(), row_.candidates.end(),
        [&](const Settings& candidate) { return joined_settings(candidate) == result_.chosen; });
    return found == row_.candidates.end() ? kNone : *found;
  }

  void check_choice() {
    const std::int64_t compared = std::max<std::int64_t>(std::ssize(row_.candidates), 1);
    if (!result_.compared) {
      find("does not say how many settings were compared");
    } else if (*result_.compared != compared) {
      find("{} compared, the row has {}", report::counted(*result_.compared, "setting"), compared);
    }
    const Selection* selection = find_selection(records_.selections, row_.name);
    if (row_.candidates.empty()) {
      if (!result_.chosen.empty())
        find("chosen '{}', but the row has no candidates", result_.chosen);
      return;
    }
    if (selection == nullptr) return find("no validation values of its candidates");
    check_candidates(*selection);
    const Settings* best = best_candidate(row_, *selection);
    if (best == nullptr) {
      find("{} of {} candidates have validation values", num_compared(row_, *selection),
           row_.candidates.size());
    } else if (joined_settings(*best) != result_.chosen) {
      find("chosen '{}', but validation says '{}'", result_.chosen, joined_settings(*best));
    }
  }

  void check_candidates(const Selection& selection) {
    if (selection.metric != row_.metric) {
      find("candidates are compared by {}, not {}", selection.metric, row_.metric);
    }
    const std::vector<PlannedRun> plan = row_.plan(row_.candidate_runs);
    for (const CandidateRun& run : selection.runs) {
      const std::string place =
          fmt::format("{}, candidate {}", place_of(run.split, run.seed), run.candidate);
      const auto candidate = std::find_if(
          row_.candidates.begin(), row_.candidates.end(),
          [&](const Settings& settings) { return joined_settings(settings) == run.candidate; });
      const PlannedRun planned{.split = run.split, .seed = run.seed};
      if (candidate == row_.candidates.end()) {
        find("{}: the row has no such candidate", place);
      } else if (std::find(plan.begin(), plan.end(), planned) == plan.end()) {
        find("{}: candidates are compared on the first {} of the protocol", place, plan.size());
      } else {
        check_config(place, run.config, planned, candidate_settings(row_, *candidate));
      }
      check_code(place, run.code);
    }
  }

  /// That the row differs from the one it is like in nothing but what it says.
  void check_sibling() {
    const RowResult* sibling = find_result(records_.results, row_.like);
    const Row* model = find_row(experiment_, row_.like);
    if (sibling == nullptr || model == nullptr || is_of_old(*sibling)) return;
    std::set<std::string> said = {"seed", "data.split"};
    const auto say = [&](const Settings& settings) {
      for (const std::string& key : keys_of(settings)) said.insert(key);
    };
    say(row_.own);
    for (const Settings& candidate : row_.candidates) say(candidate);
    for (const Settings& candidate : model->candidates) say(candidate);
    if (row_.has_own_dataset) said.insert({"data.name", "data.lags", "data.horizon"});
    try {
      train::Config ours;
      train::Config theirs;
      train::apply_toml(ours, result_.runs.front().config, row_.name);
      train::apply_toml(theirs, sibling->runs.front().config, row_.like);
      const std::vector<train::Setting> left = train::settings_of(ours);
      const std::vector<train::Setting> right = train::settings_of(theirs);
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i].value == right[i].value || said.contains(left[i].key)) continue;
        find("{} is {}, of {} it is {}, and the row does not say so", left[i].key, left[i].value,
             row_.like, right[i].value);
      }
    } catch (const base::Error&) {
      // check_run() of the row whose settings cannot be read has found it.
    }
  }

  const Experiment& experiment_;
  const Row& row_;
  const RowResult& result_;
  const Records& records_;
  const History* history_;
  std::vector<std::string> findings_;
};

}  // namespace

History read_history(const fs::path& folder) {
  const std::vector<std::string> shallow = git_lines(folder, "rev-parse --is-shallow-repository");
  const std::vector<std::string> commits = git_lines(folder, "rev-list HEAD");
  return {.commits = {commits.begin(), commits.end()},
          .is_whole = shallow == std::vector<std::string>{"false"}};
}

bool is_of_old(const RowResult& result) {
  return !result.compared &&
         std::all_of(result.runs.begin(), result.runs.end(), [](const RunResult& run) {
           return !run.validation && run.code.commit.empty();
         });
}

RowAudit audit_row(const Experiment& experiment, const Row& row, const RowResult& result,
                   const Records& records, const History* history) {
  RowAudit audit{.experiment = experiment.name, .row = row.name};
  Audit checks(experiment, row, result, records, history);
  if (is_of_old(result)) {
    audit.soundness = Soundness::kNotAuditable;
    audit.findings = checks.findings_of_old();
  } else {
    audit.findings = checks.findings();
    if (!audit.findings.empty()) audit.soundness = Soundness::kBreach;
  }
  return audit;
}

std::vector<RowAudit> audit_all(const AllResults& results, const AllSelections& selections,
                                const History& history) {
  std::vector<RowAudit> audits;
  for (const Experiment& experiment : experiments()) {
    const Records records{.results = results.at(experiment.name),
                          .selections = selections.at(experiment.name)};
    for (const RowResult& result : records.results) {
      if (const Row* row = find_row(experiment, result.row)) {
        audits.push_back(audit_row(experiment, *row, result, records, &history));
      } else {
        audits.push_back({.experiment = experiment.name,
                          .row = result.row,
                          .soundness = Soundness::kBreach,
                          .findings = {"no such row in configs/reproduce/"}});
      }
    }
  }
  return audits;
}

std::string audit_words(const RowAudit& audit) {
  switch (audit.soundness) {
    case Soundness::kSound:
      return "sound";
    case Soundness::kNotAuditable:
      return "not auditable";
    case Soundness::kBreach:
      break;
  }
  return "breach: " + audit.findings.front();
}

std::string to_text(const std::vector<RowAudit>& audits, const History& history) {
  std::string text;
  const auto count = [&](Soundness soundness) {
    return std::count_if(audits.begin(), audits.end(),
                         [&](const RowAudit& audit) { return audit.soundness == soundness; });
  };
  for (const RowAudit& audit : audits) {
    const bool is_breach = audit.soundness == Soundness::kBreach;
    for (const std::string& finding : audit.findings) {
      text += fmt::format("{}: {} {}: {}\n", is_breach ? "breach" : "not auditable",
                          audit.experiment, audit.row, finding);
    }
  }
  if (!history.is_whole) {
    text +=
        "not checked: whether the commits exist; this clone is shallow (git fetch --unshallow)\n";
  }
  return text + fmt::format("{} recorded: {} sound, {} not auditable, {} in breach",
                            report::counted(std::ssize(audits), "row"), count(Soundness::kSound),
                            count(Soundness::kNotAuditable), count(Soundness::kBreach));
}

AuditReport audit_folder(const fs::path& folder) {
  const History history = read_history(folder);
  const std::vector<RowAudit> audits =
      audit_all(read_all_results(folder), read_all_selections(folder), history);
  return {.text = to_text(audits, history),
          .has_breach = std::any_of(audits.begin(), audits.end(), [](const RowAudit& audit) {
            return audit.soundness == Soundness::kBreach;
          })};
}

}  // namespace mpssm::study
