// SPDX-License-Identifier: MIT
// Finished rows as files, as a table and as a page.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/train/metrics.h"

#include "cli/reproduce.h"
#include "cli/terminal.h"

namespace mpssm::cli {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}
std::optional<double> or_nothing(const ordered_json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

/// null where an older file has no such key.
ordered_json value_of(const ordered_json& run, const char* key) {
  return run.contains(key) ? run.at(key) : ordered_json();
}
Provenance read_code(const ordered_json& run) {
  const ordered_json dirty = value_of(run, "dirty");
  return {.commit = run.value("commit", ""),
          .dirty = dirty.is_null() ? std::nullopt : std::optional<bool>(dirty.get<bool>()),
          .machine = run.value("machine", ""),
          .libtorch = run.value("libtorch", "")};
}

int digits_of(const ReproduceRow& row) { return row.scale > 1.0 ? 2 : 4; }

std::string number(const ReproduceRow& row, double value) {
  return text("%.*f", digits_of(row), value);
}

template <typename Get>
std::string mean_of(const ReproduceRow& row, const RowResult& result, double scale,
                    const Get& get) {
  std::vector<double> values;
  for (const RunValue& run : result.runs) values.push_back(scale * get(run));
  const train::Summary summary = train::summarise(values);
  if (summary.count < 2) return number(row, summary.mean);
  return number(row, summary.mean) + " ± " + number(row, summary.std);
}

report::Mean mean_over(const std::vector<double>& values) {
  const train::Summary summary = train::summarise(values);
  return {.value = summary.mean, .deviation = summary.std, .count = summary.count};
}

report::Mean mean_value(const ReproduceRow& row, const RowResult& result) {
  std::vector<double> values;
  for (const RunValue& run : result.runs) values.push_back(row.scale * run.value);
  return mean_over(values);
}

/// "better, +2.61 [+1.52, +3.70]"
std::string words_of(const ReproduceRow& row, const report::Difference& difference) {
  const bool is_better = (difference.value < 0.0) == row.lower_is_better;
  const int digits = digits_of(row);
  return (difference.holds_zero() ? "no difference shown"
          : is_better             ? "better"
                                  : "worse") +
         text(", %+.*f [%+.*f, %+.*f]", digits, difference.value, digits, difference.low, digits,
              difference.high);
}

std::string comparison(const ReproduceRow& row, const RowResult& result, const Printed& printed) {
  const report::Mean theirs = {
      .value = on_our_scale(row, printed), .deviation = printed.std, .count = printed.runs};
  return words_of(row, report::difference(mean_value(row, result), theirs));
}

/// "-3.5558 ± 0.1812 (printed -0.5188 on raw labels)"
std::string printed_cell(const ReproduceRow& row, const Printed& printed) {
  return number(row, on_our_scale(row, printed)) +
         (printed.std > 0.0 ? " ± " + number(row, printed.std) : "") +
         (printed.raw ? " (printed " + number(row, printed.value) + " on raw labels)" : "");
}

std::string others_cell(const ReproduceRow& row) {
  std::string cell;
  for (const Printed& other : row.others) {
    cell += (cell.empty() ? "" : "; ") + other.name + " " + printed_cell(row, other);
  }
  return cell;
}

bool has_validation(const RowResult& result) {
  return std::all_of(result.runs.begin(), result.runs.end(),
                     [](const RunValue& run) { return run.validation.has_value(); });
}

bool is_certain(const RowResult& result) {
  return std::all_of(result.runs.begin(), result.runs.end(), [](const RunValue& run) {
    return !run.code.commit.empty() && run.code.dirty.has_value();
  });
}

/// "1a2b3c4d5, files changed", or that it is not known.
std::string code_cell(const RowResult& result) {
  if (!result.version_matches) return result.version + ", not the code that ran";
  if (!is_certain(result)) return result.version + ", commit not certain";
  constexpr std::size_t kShort = 9;
  std::set<std::string> all;
  for (const RunValue& run : result.runs) {
    all.insert(run.code.commit.substr(0, kShort) + (*run.code.dirty ? ", files changed" : ""));
  }
  std::string cell;
  for (const std::string& one : all) cell += (cell.empty() ? "" : "; ") + one;
  return cell;
}

/// Of the fastest run: others may have shared the machine or been paused.
double milliseconds_per_step(const RowResult& result) {
  double least = std::numeric_limits<double>::infinity();
  for (const RunValue& run : result.runs) {
    least = std::min(least, 1000.0 * run.seconds / static_cast<double>(run.steps));
  }
  return least;
}

/// "zero 1.117, ridge 0.823"
std::string references_of(const ReproduceRow& row, const RowResult& result,
                          const std::string& metric) {
  std::string words;
  for (const auto& reference : result.references) {
    const auto found = reference.test.find(metric);
    if (found == reference.test.end()) continue;
    words += (words.empty() ? "" : ", ") + reference.name + " " +
             text("%.3f", row.scale * found->second);
  }
  return words;
}

std::string markdown_row(const ReproduceRow& row, const std::optional<RowResult>& result) {
  const std::string paper = row.paper ? printed_cell(row, *row.paper) : "";
  std::string line = "| " + row.name + " | " + paper + " | " + others_cell(row) + " | ";
  if (!result) return line + "not run | | | | | | |\n";
  const std::string validation =
      has_validation(*result)
          ? mean_of(row, *result, row.scale, [](const RunValue& run) { return *run.validation; })
          : "not recorded";
  line += ours_of(row, *result) + " | " + verdict_of(row, *result) + " | " + validation + " | " +
          std::to_string(result->parameters) + " | " +
          text("%.1f", milliseconds_per_step(*result)) + " | " + code_cell(*result) + " | ";
  std::vector<std::string> notes;
  if (!row.unfair.empty()) notes.push_back(row.unfair);
  if (!row.about.empty()) notes.push_back(row.about);
  if (!row.raw_metric.empty() && result->runs.front().raw) {
    notes.push_back("raw labels: " +
                    mean_of(row, *result, 1.0, [](const RunValue& run) { return *run.raw; }));
  }
  if (result->runs.front().refit && result->runs.front().best_test) {
    notes.push_back(
        "trained again with the validation part: " +
        mean_of(row, *result, row.scale, [](const RunValue& run) { return *run.refit; }) +
        " at the selected epoch, " +
        mean_of(row, *result, row.scale, [](const RunValue& run) { return *run.best_test; }) +
        " at the best test epoch");
  }
  if (const std::string others = references_of(row, *result, row.metric); !others.empty()) {
    notes.push_back(others);
  }
  for (const std::string& metric : row.also) {
    const std::string others = references_of(row, *result, metric);
    notes.push_back(
        metric + ": " +
        mean_of(row, *result, row.scale, [&](const RunValue& run) { return run.also.at(metric); }) +
        (others.empty() ? "" : " (" + others + ")"));
  }
  for (std::size_t i = 0; i < notes.size(); ++i) line += (i > 0 ? "; " : "") + notes[i];
  return line + " |\n";
}

/// Only the runs that another result has too, to compare the same with the same.
RowResult in_common(RowResult result, const RowResult& other) {
  std::erase_if(result.runs, [&](const RunValue& run) {
    return std::none_of(other.runs.begin(), other.runs.end(), [&](const RunValue& twin) {
      return twin.seed == run.seed && twin.split == run.split;
    });
  });
  return result;
}

/// Dense minus diagonal, seed by seed and split by split.
std::string paired_words(const ReproduceRow& row, const RowResult& diagonal,
                         const RowResult& dense) {
  std::vector<double> differences;
  for (const RunValue& run : diagonal.runs) {
    const auto twin = std::find_if(
        dense.runs.begin(), dense.runs.end(),
        [&](const RunValue& other) { return other.seed == run.seed && other.split == run.split; });
    differences.push_back(row.scale * (twin->value - run.value));
  }
  if (std::ssize(differences) < std::max<std::int64_t>(row.num_runs(), 2)) {
    return "no verdict, " + text("%+.*f", digits_of(row), mean_over(differences).value);
  }
  return words_of(row, report::difference(mean_over(differences), {}));
}

/// Every row that was run both with a diagonal and, under the name "...-dense", with a dense W.
std::string dense_markdown(const std::filesystem::path& results) {
  std::string lines;
  for (const ReproduceExperiment& experiment : reproduce_experiments()) {
    for (const ReproduceRow& row : experiment.rows) {
      const auto diagonal = read_result(result_path(results, experiment.name, row.name));
      const auto dense = read_result(result_path(results, experiment.name, row.name + "-dense"));
      if (!diagonal || !dense) continue;
      const RowResult left = in_common(*diagonal, *dense);
      const RowResult right = in_common(*dense, *diagonal);
      if (left.runs.empty()) continue;
      lines += "| " + experiment.name + " | " + row.name + " | " + ours_of(row, left) + " | " +
               ours_of(row, right) + " | " + paired_words(row, left, right) + " | " +
               (row.lower_is_better ? "lower" : "higher") + " | " +
               text("%.1f", milliseconds_per_step(left)) + " | " +
               text("%.1f", milliseconds_per_step(right)) + " |\n";
    }
  }
  if (lines.empty()) return {};
  return "\n## Dense against diagonal\n\nThe same settings, the same seeds and splits, only W "
         "differs; the settings are those of the diagonal one.\nThe verdict is on dense minus "
         "diagonal, run by run. Time per step is that of the fastest run and rough: other work "
         "ran on\nthe machine.\n\n| experiment | row | diagonal | dense | verdict on dense | "
         "better is | ms per step, diagonal | ms per step, dense |\n"
         "|---|---|---|---|---|---|---|---|\n" +
         lines;
}

}  // namespace

std::filesystem::path result_path(const std::filesystem::path& folder,
                                  const std::string& experiment, const std::string& row) {
  return folder / (experiment + "-" + row + ".json");
}

void write_result(const std::filesystem::path& path, const RowResult& result) {
  ordered_json runs = ordered_json::array();
  for (const RunValue& run : result.runs) {
    runs.push_back({{"seed", run.seed},
                    {"split", run.split},
                    {"value", run.value},
                    {"validation", or_null(run.validation)},
                    {"also", run.also},
                    {"raw", or_null(run.raw)},
                    {"refit", or_null(run.refit)},
                    {"best_test", or_null(run.best_test)},
                    {"best_step", run.best_step},
                    {"steps", run.steps},
                    {"seconds", std::round(10.0 * run.seconds) / 10.0},
                    {"peak_mib", std::round(run.peak_mib)},
                    {"commit", run.code.commit},
                    {"dirty", run.code.dirty ? ordered_json(*run.code.dirty) : ordered_json()},
                    {"machine", run.code.machine},
                    {"libtorch", run.code.libtorch}});
  }
  ordered_json references = ordered_json::array();
  for (const auto& reference : result.references) {
    references.push_back({{"name", reference.name}, {"test", reference.test}});
  }
  ordered_json json = {{"experiment", result.experiment}, {"row", result.row},
                       {"dataset", result.dataset},       {"metric", result.metric},
                       {"protocol", result.protocol},     {"version", result.version},
                       {"parameters", result.parameters}, {"planned", result.planned},
                       {"runs", std::move(runs)},         {"references", std::move(references)},
                       {"config", result.config}};
  if (!result.version_matches) json["version_matches"] = false;
  std::filesystem::create_directories(path.parent_path());
  io::write_file(path, json.dump(1) + "\n");
}

std::optional<RowResult> read_result(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  try {
    const auto json = ordered_json::parse(io::read_file(path, 1 << 20));
    RowResult result{.experiment = json.at("experiment"),
                     .row = json.at("row"),
                     .dataset = json.at("dataset"),
                     .metric = json.at("metric"),
                     .protocol = json.at("protocol"),
                     .config = json.at("config"),
                     .version = json.at("version"),
                     .version_matches = json.value("version_matches", true),
                     .parameters = json.at("parameters"),
                     .planned = json.at("planned"),
                     .runs = {},
                     .references = {}};
    for (const auto& run : json.at("runs")) {
      result.runs.push_back({.seed = run.at("seed"),
                             .split = run.at("split"),
                             .value = run.at("value"),
                             .validation = or_nothing(value_of(run, "validation")),
                             .also = run.at("also"),
                             .raw = or_nothing(run.at("raw")),
                             .refit = or_nothing(run.at("refit")),
                             .best_test = or_nothing(run.at("best_test")),
                             .best_step = run.at("best_step"),
                             .steps = run.at("steps"),
                             .seconds = run.at("seconds"),
                             .peak_mib = run.at("peak_mib"),
                             .code = read_code(run)});
    }
    for (const auto& reference : json.at("references")) {
      result.references.push_back({reference.at("name"), reference.at("test")});
    }
    const RunValue empty;
    const RunValue& first = result.runs.empty() ? empty : result.runs.front();
    const bool is_plausible =
        !result.runs.empty() && std::ssize(result.runs) <= result.planned &&
        std::all_of(result.runs.begin(), result.runs.end(), [&](const RunValue& run) {
          return run.steps > 0 && run.raw.has_value() == first.raw.has_value() &&
                 run.refit.has_value() == first.refit.has_value() &&
                 run.best_test.has_value() == first.best_test.has_value();
        });
    if (!is_plausible) throw io::InputError("expected 1 to 'planned' runs with the same numbers");
    if (path.stem() != result.experiment + "-" + result.row) {
      throw io::InputError("it is of " + result.experiment + " " + result.row);
    }
    return result;
  } catch (const std::exception& error) {
    io::fail(path.string(), std::string("not a result: ") + error.what());
  }
}

std::string ours_of(const ReproduceRow& row, const RowResult& result) {
  return mean_of(row, result, row.scale, [](const RunValue& run) { return run.value; }) + " (" +
         std::to_string(result.runs.size()) + " of " + std::to_string(row.num_runs()) + ")";
}

double on_our_scale(const ReproduceRow& row, const Printed& printed) {
  return printed.raw ? printed.value - 2.0 * std::log10(row.label_max) : printed.value;
}

std::string verdict_of(const ReproduceRow& row, const RowResult& result) {
  if (!row.paper) return "not in the paper";
  if (!row.comparable) return "not comparable";
  if (!row.unfair.empty()) return "no verdict, " + row.unfair;
  if (std::ssize(result.runs) < std::max<std::int64_t>(row.num_runs(), 2)) {
    return text("no verdict, %td of %lld runs", std::ssize(result.runs),
                static_cast<long long>(row.num_runs()));
  }
  std::string words = comparison(row, result, *row.paper);
  for (const Printed& other : row.others) {
    words += "; to " + other.name + ": " + comparison(row, result, other);
  }
  return words;
}

std::string table_of(const ReproduceExperiment& experiment, const std::filesystem::path& results) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "paper", "others there", "ours", "verdict"}};
  std::string protocols;
  for (const ReproduceRow& row : experiment.rows) {
    const auto result = read_result(result_path(results, experiment.name, row.name));
    rows.push_back({row.name, row.paper ? printed_cell(row, *row.paper) : "-", others_cell(row),
                    result ? ours_of(row, *result) : "not run",
                    result ? verdict_of(row, *result) : ""});
    if (result) protocols += row.name + ": " + result->protocol + "\n";
  }
  return table(rows) + "\n" + protocols;
}

std::string quick_table_of(const ReproduceExperiment& experiment,
                           const std::filesystem::path& results) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "dataset", "metric", "test", "ms per step"}};
  for (const ReproduceRow& row : experiment.rows) {
    const auto result = read_result(result_path(results, experiment.name, row.name));
    if (!result) continue;
    rows.push_back({row.name, result->dataset, result->metric,
                    number(row, mean_value(row, *result).value),
                    text("%.1f", milliseconds_per_step(*result))});
  }
  return table(rows);
}

namespace {

/// What the recorded files do and do not say about how they came about.
std::string records_of(const std::vector<RowResult>& results) {
  if (results.empty()) return "Nothing is recorded yet.\n";
  const auto count = [&](const auto& holds) {
    return static_cast<long long>(std::count_if(results.begin(), results.end(), holds));
  };
  std::map<std::string, int> places;
  for (const RowResult& result : results) {
    for (const RunValue& run : result.runs) {
      const bool is_known = !run.code.machine.empty();
      ++places[is_known ? run.code.machine + ", libtorch " + run.code.libtorch : "not recorded"];
    }
  }
  std::string words = text(
      "Of %zu files here, %lld have no validation value; %lld do not say for certain which commit "
      "ran.\n",
      results.size(), count([](const RowResult& result) { return !has_validation(result); }),
      count(
          [](const RowResult& result) { return !is_certain(result) || !result.version_matches; }));
  if (const auto wrong = count([](const RowResult& result) { return !result.version_matches; })) {
    words += text(
        "In %lld of them the version in the file is not that of the code that ran: it lacks their "
        "settings or fields\n(changes that were committed later, copies of builds).\n",
        wrong);
  }
  words += "Machine of the runs:";
  std::string separator = " ";
  for (const auto& [place, runs] : places) {
    words += separator + place + " (" + std::to_string(runs) + ")";
    separator = "; ";
  }
  return words + ".\n";
}

}  // namespace

std::string results_page(const std::filesystem::path& results) {
  std::string tables;
  std::vector<RowResult> recorded;
  for (const ReproduceExperiment& experiment : reproduce_experiments()) {
    tables +=
        "\n## " + experiment.title + "\n\nPrinted numbers: " + experiment.source +
        ". `mpssm reproduce " + experiment.name +
        "`\n\n| row | paper | others there | ours | verdict | validation | parameters | ms per "
        "step | code | notes |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for (const ReproduceRow& row : experiment.rows) {
      const auto result = read_result(result_path(results, experiment.name, row.name));
      tables += markdown_row(row, result);
      if (result) recorded.push_back(*result);
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
- *Code*: the commit that the program was built from. "Commit not certain": the file does not say whether files were
  changed on top of it.

)" + records_of(recorded) +
         tables + dense_markdown(results) + runtime_markdown(results) + figure_markdown(results);
}

}  // namespace mpssm::cli
