// SPDX-License-Identifier: MIT
#include "mpssm/study/results.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "mpssm/base/error.h"
#include "mpssm/io/json_text.h"
#include "mpssm/study/json_lines.h"
#include "mpssm/study/rows.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// --- writing ------------------------------------------------------------------------------------

std::string line_of(const RowResult& row, const RunResult& run) {
  ordered_json references = ordered_json::array();
  for (const auto& reference : row.references) {
    references.push_back({{"name", reference.name}, {"test", reference.test}});
  }
  const ordered_json json = {{"experiment", row.experiment},
                             {"row", row.row},
                             {"seed", run.seed},
                             {"split", run.split},
                             {"dataset", row.dataset},
                             {"metric", row.metric},
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
                             {"parameters", row.parameters},
                             {"planned", row.planned},
                             {"compared", or_null(row.compared)},
                             {"chosen", row.chosen},
                             {"protocol", row.protocol},
                             {"references", std::move(references)},
                             {"version", row.version},
                             {"version_matches", row.version_matches},
                             {"commit", run.code.commit},
                             {"dirty", or_null(run.code.dirty)},
                             {"machine", run.code.machine},
                             {"libtorch", run.code.libtorch},
                             {"config", run.config}};
  return io::json_text(json) + "\n";
}

// --- reading ------------------------------------------------------------------------------------

RunResult read_run(const ordered_json& json) {
  RunResult run{.seed = whole_at(json, "seed"),
                .split = whole_at(json, "split"),
                .value = json.at("value"),
                .validation = or_nothing<double>(json.at("validation")),
                .also = json.at("also"),
                .raw = or_nothing<double>(json.at("raw")),
                .refit = or_nothing<double>(json.at("refit")),
                .best_test = or_nothing<double>(json.at("best_test")),
                .best_step = whole_at(json, "best_step"),
                .steps = whole_at(json, "steps"),
                .seconds = json.at("seconds"),
                .peak_mib = json.at("peak_mib"),
                .code = {.commit = words_at(json, "commit"),
                         .dirty = or_nothing<bool>(json.at("dirty")),
                         .machine = words_at(json, "machine"),
                         .libtorch = words_at(json, "libtorch")},
                .config = json.at("config")};
  if (run.steps <= 0) throw base::Error("'steps': expected 1 or more");
  return run;
}

RowResult read_row(const ordered_json& json) {
  RowResult row{.experiment = words_at(json, "experiment"),
                .row = words_at(json, "row"),
                .dataset = words_at(json, "dataset"),
                .metric = words_at(json, "metric"),
                .protocol = words_at(json, "protocol"),
                .version = words_at(json, "version"),
                .version_matches = json.at("version_matches"),
                .parameters = whole_at(json, "parameters"),
                .planned = whole_at(json, "planned"),
                .compared = whole_or_nothing_at(json, "compared"),
                .chosen = words_at(json, "chosen")};
  for (const ordered_json& reference : json.at("references")) {
    row.references.push_back({words_at(reference, "name"), reference.at("test")});
  }
  return row;
}

/// A run that a row can have beside those it has; throws otherwise.
void check_fits(const RowResult& row, const RunResult& run) {
  for (const RunResult& other : row.runs) {
    if (other.seed == run.seed && other.split == run.split) {
      throw base::Error(
          fmt::format("seed {}, split {} of {} is there twice", run.seed, run.split, row.row));
    }
    if (other.raw.has_value() != run.raw.has_value() ||
        other.refit.has_value() != run.refit.has_value() ||
        other.best_test.has_value() != run.best_test.has_value()) {
      throw base::Error("expected the same numbers as in the other runs of " + row.row);
    }
  }
  if (std::ssize(row.runs) >= row.planned) {
    throw base::Error(fmt::format("more than the {} 'planned' runs of {}", row.planned, row.row));
  }
}

void add_line(const ordered_json& json, const std::string& experiment,
              std::vector<RowResult>& rows) {
  const RowResult read = read_row(json);
  if (read.experiment != experiment) throw base::Error("it is of " + read.experiment);
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const RowResult& known) { return known.row == read.row; });
  if (row == rows.end()) row = rows.insert(rows.end(), read);
  const auto common = [](const RowResult& any) {
    return std::tie(any.dataset, any.metric, any.version, any.version_matches, any.parameters,
                    any.planned, any.compared, any.chosen);
  };
  if (common(read) != common(*row)) {
    throw base::Error(
        "expected the same dataset, metric, version, parameters, planned runs and choice of "
        "settings "
        "as in the other runs of " +
        row->row);
  }
  RunResult run = read_run(json);
  check_fits(*row, run);
  row->runs.push_back(std::move(run));
}

}  // namespace

fs::path results_path(const fs::path& folder, const std::string& experiment) {
  return folder / (experiment + ".jsonl");
}

std::vector<RowResult> read_results(const fs::path& path) {
  std::vector<RowResult> rows;
  for_each_json_line(path,
                     [&](const ordered_json& json) { add_line(json, path.stem().string(), rows); });
  return rows;
}

const RowResult* find_result(const std::vector<RowResult>& results, std::string_view row) {
  const auto found = std::find_if(results.begin(), results.end(),
                                  [&](const RowResult& result) { return result.row == row; });
  return found == results.end() ? nullptr : &*found;
}

AllResults read_all_results(const fs::path& folder) {
  AllResults all;
  for (const Experiment& experiment : experiments()) {
    all[experiment.name] = read_results(results_path(folder, experiment.name));
  }
  return all;
}

void record_result(const fs::path& path, const RowResult& result) {
  std::string lines;
  for (const RunResult& run : result.runs) lines += line_of(result, run);
  replace_lines_of(path, result.row, lines);
}

}  // namespace mpssm::study
