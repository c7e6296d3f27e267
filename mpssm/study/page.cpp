// SPDX-License-Identifier: MIT
#include "mpssm/study/page.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "mpssm/report/text.h"
#include "mpssm/study/audit.h"
#include "mpssm/study/ranks.h"
#include "mpssm/study/run_row.h"
#include "mpssm/study/verdict.h"

namespace mpssm::study {
namespace {

/// "-3.5558 ± 0.1812 (printed -0.5188 on raw labels)"
std::string printed_cell(const Row& row, const Printed& printed) {
  return number_words(row, on_our_scale(row, printed)) +
         (printed.std > 0.0 ? " ± " + number_words(row, printed.std) : "") +
         (printed.raw ? " (printed " + number_words(row, printed.value) + " on raw labels)" : "");
}

std::string others_cell(const Row& row) {
  std::string cell;
  for (const Printed& other : row.others) {
    cell += fmt::format("{}{} {}", cell.empty() ? "" : "; ", other.name, printed_cell(row, other));
  }
  return cell;
}

bool has_validation(const RowResult& result) {
  return std::all_of(result.runs.begin(), result.runs.end(),
                     [](const RunResult& run) { return run.validation.has_value(); });
}

bool is_certain(const RowResult& result) {
  return std::all_of(result.runs.begin(), result.runs.end(), [](const RunResult& run) {
    return !run.code.commit.empty() && run.code.dirty.has_value();
  });
}

/// "1a2b3c4d5, files changed", or that it is not known.
std::string code_cell(const RowResult& result) {
  if (!result.version_matches) return result.version + ", not the code that ran";
  if (!is_certain(result)) return result.version + ", commit not certain";
  constexpr std::size_t kShort = 9;
  std::set<std::string> all;
  for (const RunResult& run : result.runs) {
    all.insert(run.code.commit.substr(0, kShort) + (*run.code.dirty ? ", files changed" : ""));
  }
  std::string cell;
  for (const std::string& one : all) cell += (cell.empty() ? "" : "; ") + one;
  return cell;
}

/// "zero 1.117, ridge 0.823"
std::string references_of(const Row& row, const RowResult& result, const std::string& metric) {
  std::string words;
  for (const auto& reference : result.references) {
    const auto found = reference.test.find(metric);
    if (found == reference.test.end()) continue;
    words += fmt::format("{}{} {:.3f}", words.empty() ? "" : ", ", reference.name,
                         row.scale * found->second);
  }
  return words;
}

/// "sound, best of 24"
std::string audit_cell(const Experiment& experiment, const Row& row, const RowResult& result,
                       const Records& records) {
  const RowAudit audit = audit_row(experiment, row, result, records);
  const std::int64_t compared = result.compared.value_or(1);
  return audit_words(audit) + (compared > 1 ? fmt::format(", best of {}", compared) : "");
}

/// "selecting, 5 of 24 settings" or "not begun"
std::string state_without_result(const Row& row, const Selection* selection) {
  if (selection == nullptr) return "not begun";
  return fmt::format("selecting, {} of {} settings", num_compared(row, *selection),
                     row.candidates.size());
}

std::string markdown_row(const Experiment& experiment, const Row& row, const Records& records) {
  const RowResult* result = find_result(records.results, row.name);
  const std::string paper = row.paper ? printed_cell(row, *row.paper) : "";
  std::string line = fmt::format("| {} | {} | {} | ", row.name, paper, others_cell(row));
  if (result == nullptr) {
    return line + state_without_result(row, find_selection(records.selections, row.name)) +
           " | | | | | | | | |\n";
  }
  const auto mean_of = [&](double scale, const auto& get) {
    return mean_words(row, values_of(*result, scale, get));
  };
  const std::string validation =
      has_validation(*result)
          ? mean_of(row.scale, [](const RunResult& run) { return *run.validation; })
          : "not recorded";
  const auto peak = std::max_element(
      result->runs.begin(), result->runs.end(),
      [](const RunResult& a, const RunResult& b) { return a.peak_mib < b.peak_mib; });
  line += fmt::format("{} | {} | {} | {} | {} | {:.1f} | {:.0f} | {} | ", ours_of(row, *result),
                      verdict_of(row, *result), validation,
                      audit_cell(experiment, row, *result, records), result->parameters,
                      milliseconds_per_step(*result), peak->peak_mib, code_cell(*result));
  std::vector<std::string> notes;
  if (!result->chosen.empty()) notes.push_back("chosen: " + result->chosen);
  if (!row.unfair.empty()) notes.push_back(row.unfair);
  if (!row.about.empty()) notes.push_back(row.about);
  if (!row.raw_metric.empty() && result->runs.front().raw) {
    notes.push_back("raw labels: " + mean_of(1.0, [](const RunResult& run) { return *run.raw; }));
  }
  if (result->runs.front().refit && result->runs.front().best_test) {
    notes.push_back(
        fmt::format("trained again with the validation part: {} at the selected epoch, {} at the "
                    "best test epoch",
                    mean_of(row.scale, [](const RunResult& run) { return *run.refit; }),
                    mean_of(row.scale, [](const RunResult& run) { return *run.best_test; })));
  }
  if (const std::string others = references_of(row, *result, row.metric); !others.empty()) {
    notes.push_back(others);
  }
  for (const std::string& metric : row.also) {
    const bool is_recorded_of_all =
        std::all_of(result->runs.begin(), result->runs.end(),
                    [&](const RunResult& run) { return run.also.contains(metric); });
    if (!is_recorded_of_all) continue;
    const std::string others = references_of(row, *result, metric);
    const auto value = [&](const RunResult& run) { return run.also.at(metric); };
    notes.push_back(fmt::format("{}: {}{}", metric, mean_of(row.scale, value),
                                others.empty() ? "" : " (" + others + ")"));
  }
  for (std::size_t i = 0; i < notes.size(); ++i) line += (i > 0 ? "; " : "") + notes[i];
  return line + " |\n";
}

/// Only the runs that another result has too, to compare the same with the same.
RowResult in_common(RowResult result, const RowResult& other) {
  std::erase_if(result.runs, [&](const RunResult& run) {
    return std::none_of(other.runs.begin(), other.runs.end(), [&](const RunResult& twin) {
      return twin.seed == run.seed && twin.split == run.split;
    });
  });
  return result;
}

/// The runs that two rows have in common, of the one and of the other; none if one is not recorded.
std::optional<std::pair<RowResult, RowResult>> runs_of_both(const std::vector<RowResult>& recorded,
                                                            const std::string& before,
                                                            const std::string& after) {
  const RowResult* const left = before.empty() ? nullptr : find_result(recorded, before);
  const RowResult* const right = find_result(recorded, after);
  if (left == nullptr || right == nullptr) return {};
  std::pair<RowResult, RowResult> both{in_common(*left, *right), in_common(*right, *left)};
  if (both.first.runs.empty()) return {};
  return both;
}

/// Every rung of a ladder beside the one below it.
std::string rungs_markdown(const AllResults& results) {
  std::string lines;
  for (const Experiment& experiment : experiments()) {
    for (const Row& row : experiment.rows) {
      const auto both = runs_of_both(results.at(experiment.name), row.after, row.name);
      if (!both) continue;
      const auto& [below, rung] = *both;
      lines += fmt::format("| {} | {} | {} | {} | {} |\n", row.after, ours_of(row, below), row.name,
                           ours_of(row, rung), paired_verdict(row, below, rung));
    }
  }
  if (lines.empty()) return {};
  return "\n## What each rung brings\n\nEvery rung of the ladder beside the one below it, each at "
         "the "
         "settings that validation chose for it; the verdict is on the\ndifference, seed by seed, "
         "and knows of the seeds alone.\n\n"
         "| rung below | ours | rung | ours | verdict on the rung |\n|---|---|---|---|---|\n" +
         lines;
}

/// Every row that differs from the one it is like in one thing, beside that one.
std::string switches_markdown(const AllResults& results) {
  std::string lines;
  for (const Experiment& experiment : experiments()) {
    const std::vector<RowResult>& recorded = results.at(experiment.name);
    for (const Row& row : experiment.rows) {
      if (row.switched.empty()) continue;
      const auto both = runs_of_both(recorded, row.like, row.name);
      if (!both) continue;
      const auto& [left, right] = *both;
      lines +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.1f} | {:.1f} |\n", experiment.name,
                      row.like, row.switched, ours_of(row, left), ours_of(row, right),
                      paired_verdict(row, left, right), row.lower_is_better ? "lower" : "higher",
                      milliseconds_per_step(left), milliseconds_per_step(right));
    }
  }
  if (lines.empty()) return {};
  return "\n## One switch at a time\n\nThe same settings, seeds and splits, but for one thing, "
         "each a "
         "step from our settings back to the paper's model. The verdict\nis on the difference that "
         "the "
         "switch makes, run by run; what several make together is seen in the rows \"-strict\". "
         "Time "
         "per step\nis that of the fastest run and rough: other work ran on the machine.\n\n"
         "| experiment | row | switch | without it | with it | verdict on the switch | better is | "
         "ms "
         "per step, without | ms per step, with |\n|---|---|---|---|---|---|---|---|---|\n" +
         lines;
}

/// What the records do and do not say about how they came about.
std::string records_of(const std::vector<const RowResult*>& results) {
  if (results.empty()) return "Nothing is recorded yet.\n";
  const auto count = [&](const auto& holds) {
    return static_cast<long long>(std::count_if(results.begin(), results.end(), holds));
  };
  std::map<std::string, int> places;
  for (const RowResult* result : results) {
    for (const RunResult& run : result->runs) {
      const bool is_known = !run.code.machine.empty();
      ++places[is_known ? run.code.machine + ", libtorch " + run.code.libtorch : "not recorded"];
    }
  }
  std::string words = fmt::format(
      "Of {} rows here, {} have no validation value; {} do not say for certain which commit ran.\n",
      results.size(), count([](const RowResult* result) { return !has_validation(*result); }),
      count([](const RowResult* result) {
        return !is_certain(*result) || !result->version_matches;
      }));
  if (const auto wrong = count([](const RowResult* result) { return !result->version_matches; })) {
    words += fmt::format(
        "In {} of them the version in the file is not that of the code that ran: it lacks their "
        "settings or fields\n(changes that were committed later, copies of builds).\n",
        wrong);
  }
  words += "Machine of the runs:";
  std::string separator = " ";
  for (const auto& [place, runs] : places) {
    words += fmt::format("{}{} ({})", separator, place, runs);
    separator = "; ";
  }
  return words + ".\n";
}

}  // namespace

std::string list_table(const std::filesystem::path& folder, const std::filesystem::path& data_dir) {
  const AllResults results = read_all_results(folder);
  const AllSelections selections = read_all_selections(folder);
  std::vector<std::vector<std::string>> rows = {
      {"experiment", "row", "dataset", "runs", "files", "state", "audit"}};
  for (const Experiment& experiment : experiments()) {
    const Records records{.results = results.at(experiment.name),
                          .selections = selections.at(experiment.name)};
    for (const Row& row : experiment.rows) {
      const RowResult* known = find_result(records.results, row.name);
      rows.push_back({experiment.name, row.name, row.dataset, std::to_string(row.num_runs()),
                      is_absent(row.dataset, data_dir) ? "absent" : "here",
                      known != nullptr
                          ? ours_of(row, *known)
                          : state_without_result(row, find_selection(records.selections, row.name)),
                      known != nullptr ? audit_cell(experiment, row, *known, records) : ""});
    }
  }
  return report::table(rows);
}

std::string experiment_table(const Experiment& experiment, const std::vector<RowResult>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "paper", "others there", "ours", "verdict"}};
  std::string protocols;
  for (const Row& row : experiment.rows) {
    const RowResult* result = find_result(results, row.name);
    rows.push_back({row.name, row.paper ? printed_cell(row, *row.paper) : "-", others_cell(row),
                    result != nullptr ? ours_of(row, *result) : state_without_result(row, nullptr),
                    result != nullptr ? verdict_of(row, *result) : ""});
    if (result != nullptr) protocols += fmt::format("{}: {}\n", row.name, result->protocol);
  }
  return report::table(rows) + "\n" + protocols;
}

std::string quick_table(const Experiment& experiment, const std::vector<RowResult>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "dataset", "metric", "test", "ms per step"}};
  for (const Row& row : experiment.rows) {
    const RowResult* result = find_result(results, row.name);
    if (result == nullptr) continue;
    rows.push_back({row.name, result->dataset, result->metric,
                    mean_words(row, test_values(row, *result)),
                    fmt::format("{:.1f}", milliseconds_per_step(*result))});
  }
  return report::table(rows);
}

std::string results_page(const std::filesystem::path& folder) {
  const AllResults results = read_all_results(folder);
  const AllSelections selections = read_all_selections(folder);
  std::string tables;
  std::vector<const RowResult*> recorded;
  for (const Experiment& experiment : experiments()) {
    const Records records{.results = results.at(experiment.name),
                          .selections = selections.at(experiment.name)};
    tables += fmt::format(
        "\n"
        "## {}\n"
        "\n"
        "Printed numbers: {}. `mpssm reproduce {}`\n"
        "\n"
        "| row | paper | others there | ours | verdict | validation | audit | parameters | "
        "ms per step | peak MiB | code | notes |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        experiment.title, experiment.source, experiment.name);
    for (const Row& row : experiment.rows) {
      const RowResult* result = find_result(records.results, row.name);
      tables += markdown_row(experiment, row, records);
      if (result != nullptr) recorded.push_back(result);
    }
  }
  return R"(# Results

Written by `mpssm reproduce --page docs/results.md` from the files in `results/` and the printed numbers in
`configs/reproduce/`, and nothing else. What differs from the paper, and why: [errata](errata.md).

- *Ours*: mean and sample deviation of the test value over the runs (how many of the protocol's), each run at its best
  step on validation.
- *Verdict*: ours minus the printed number, with the 95 % interval by Welch's t over our runs and the paper's (a number
  printed without deviation is taken as exact). "Better" or "worse" only if the interval leaves out zero, otherwise "no
  difference shown". No verdict for rows with fewer runs than their protocol, or with a help that the printed number
  did not have. An interval knows of seeds and splits only: not of how small the test part is, not of how settings were
  chosen (several times with test values in sight, so ours lean to the hopeful side), and splits of one graph share
  nodes, which makes theirs too narrow.
- *Printed on raw labels*: converted here to labels divided by their training maximum, by subtracting 2 log10(maximum). The
  published scores also average batches of another size without weights, which leaves up to 0.04 of doubt.
- *Validation*: the same for the validation part. "Not recorded": the file was written before it was kept, so how the
  settings were chosen cannot be checked.
- *Audit*: what `mpssm reproduce audit` says of the record, but for the existence of its commits. "Sound": from a clean commit,
  with the protocol's seeds and splits and the settings that `configs/reproduce/` says today; where a row names candidates
  ("best of n"), all of them were trained for their validation values, which are kept beside it, and these chose; rows
  without candidates have one setting, and what was tried by hand before it was written down is not counted. "Not
  auditable": recorded before these things were kept. No test value chose anything in a row of candidates.
- *Code*: the commit that the program was built from. "Commit not certain": the file does not say whether files were
  changed on top of it.

)" + records_of(recorded) +
         tables + rungs_markdown(results) + switches_markdown(results) + ranks_markdown(results) +
         runtime_markdown(read_runtime(folder)) + figure_markdown(read_figure(folder));
}

}  // namespace mpssm::study
