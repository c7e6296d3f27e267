// SPDX-License-Identifier: MIT
// Finished rows as files, as a table and as a page.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
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

double mean_value(const ReproduceRow& row, const RowResult& result) {
  double sum = 0.0;
  for (const RunValue& run : result.runs) sum += run.value;
  return row.scale * sum / static_cast<double>(result.runs.size());
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
  const std::string paper = row.paper ? number(row, *row.paper) : "";
  std::string line = "| " + row.name + " | " + paper + " | " + row.best + " | ";
  if (!result) return line + "not run | | | | |\n";
  line += ours_of(row, *result) + " | " + verdict_of(row, *result) + " | " +
          std::to_string(result->parameters) + " | " +
          text("%.1f", milliseconds_per_step(*result)) + " | ";
  std::vector<std::string> notes;
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
               ours_of(row, right) + " | " + (row.lower_is_better ? "lower" : "higher") + " | " +
               text("%.1f", milliseconds_per_step(left)) + " | " +
               text("%.1f", milliseconds_per_step(right)) + " |\n";
    }
  }
  if (lines.empty()) return {};
  return "\n## Dense against diagonal\n\nThe same settings, the same seeds and splits, only W "
         "differs. Time per step is that of the fastest run and rough: other\nwork ran on the "
         "machine.\n\n| experiment | row | diagonal | dense | better is | ms per step, diagonal | "
         "ms per step, dense |\n|---|---|---|---|---|---|---|\n" +
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
                    {"also", run.also},
                    {"raw", or_null(run.raw)},
                    {"refit", or_null(run.refit)},
                    {"best_test", or_null(run.best_test)},
                    {"best_step", run.best_step},
                    {"steps", run.steps},
                    {"seconds", std::round(10.0 * run.seconds) / 10.0},
                    {"peak_mib", std::round(run.peak_mib)}});
  }
  ordered_json references = ordered_json::array();
  for (const auto& reference : result.references) {
    references.push_back({{"name", reference.name}, {"test", reference.test}});
  }
  const ordered_json json = {
      {"experiment", result.experiment}, {"row", result.row},
      {"dataset", result.dataset},       {"metric", result.metric},
      {"protocol", result.protocol},     {"version", result.version},
      {"parameters", result.parameters}, {"planned", result.planned},
      {"runs", std::move(runs)},         {"references", std::move(references)},
      {"config", result.config}};
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
                     .parameters = json.at("parameters"),
                     .planned = json.at("planned"),
                     .runs = {},
                     .references = {}};
    for (const auto& run : json.at("runs")) {
      result.runs.push_back({.seed = run.at("seed"),
                             .split = run.at("split"),
                             .value = run.at("value"),
                             .also = run.at("also"),
                             .raw = or_nothing(run.at("raw")),
                             .refit = or_nothing(run.at("refit")),
                             .best_test = or_nothing(run.at("best_test")),
                             .best_step = run.at("best_step"),
                             .steps = run.at("steps"),
                             .seconds = run.at("seconds"),
                             .peak_mib = run.at("peak_mib")});
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
         std::to_string(result.runs.size()) + " of " + std::to_string(result.planned) + ")";
}

std::string verdict_of(const ReproduceRow& row, const RowResult& result) {
  const double ours = mean_value(row, result);
  const auto reaches = [&](double wanted) {
    return row.lower_is_better ? ours <= wanted : ours >= wanted;
  };
  std::string words;
  if (!row.paper) {
    words = "not in the paper";
  } else if (!row.comparable) {
    words = "not comparable";
  } else {
    const double difference = ours - *row.paper;
    words = (reaches(*row.paper) ? "reached, " : "not reached, ") +
            text("%+.*f", digits_of(row), difference);
  }
  if (row.aim) {
    words += std::string(reaches(*row.aim) ? "; aim " : "; short of the aim ") +
             number(row, *row.aim) + (reaches(*row.aim) ? " reached" : "");
  }
  return words;
}

std::string table_of(const ReproduceExperiment& experiment, const std::filesystem::path& results) {
  std::vector<std::vector<std::string>> rows = {{"task", "paper", "best there", "ours", "verdict"}};
  std::string protocols;
  for (const ReproduceRow& row : experiment.rows) {
    const auto result = read_result(result_path(results, experiment.name, row.name));
    rows.push_back({row.name, row.paper ? number(row, *row.paper) : "-", row.best,
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
                    number(row, mean_value(row, *result)),
                    text("%.1f", milliseconds_per_step(*result))});
  }
  return table(rows);
}

std::string results_page(const std::filesystem::path& results) {
  std::string page =
      "# Results\n\nWritten by `mpssm reproduce --page docs/results.md` from the files in "
      "`results/` and nothing else. Ours: mean and\nsample deviation over the runs (how many of "
      "the protocol's), selected on validation. What differs from the paper, and\nwhy: "
      "[errata](errata.md).\n";
  for (const ReproduceExperiment& experiment : reproduce_experiments()) {
    page += "\n## " + experiment.title + "\n\nPrinted numbers: " + experiment.source +
            ". `mpssm reproduce " + experiment.name +
            "`\n\n| row | paper | best there | ours | verdict | parameters | ms per step | notes "
            "|\n|---|---|---|---|---|---|---|---|\n";
    for (const ReproduceRow& row : experiment.rows) {
      page += markdown_row(row, read_result(result_path(results, experiment.name, row.name)));
    }
  }
  return page + dense_markdown(results) + runtime_markdown(results) + figure_markdown(results);
}

}  // namespace mpssm::cli
