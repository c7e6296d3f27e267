// SPDX-License-Identifier: MIT
// The paper's experiments as rows: what to run, what was printed, what came out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/report/interval.h"
#include "mpssm/report/run_record.h"

#include "cli/provenance.h"

namespace mpssm::cli {

/// A printed number of the paper.
struct Printed {
  std::string name;  ///< of the model
  double value = 0.0;
  double std = 0.0;       ///< over `runs`
  std::int64_t runs = 0;  ///< 0: no deviation is printed, the number is taken as exact
  bool raw = false;       ///< on raw labels, where ours are divided by label_max
};

/// A number of the paper and how we run for it; from configs/reproduce/*.toml.
struct ReproduceRow {
  std::string name;
  std::string dataset;
  std::string quick_dataset;  ///< built in, for --quick; empty: none
  std::string about;
  std::string metric;
  std::vector<std::string> also;  ///< metrics to show beside it, with those of the references
  std::string raw_metric;  ///< the same on the scale of the raw labels; empty: there is one scale
  double scale = 1.0;      ///< numbers are printed times this
  bool lower_is_better = false;
  /// Also trained on the training and validation parts together: the test value at the epoch that
  /// validation chose before, and the best test value over all epochs, as some papers print.
  bool refit = false;
  bool comparable = true;  ///< whether the printed number was had in the same way
  std::string unfair;      ///< help that the printed number did not have, in two words; empty: none
  double label_max = 1.0;  ///< the largest training label, by which ours are divided
  std::optional<Printed> paper;  ///< MP-SSM, or a rung of the ladder
  std::vector<Printed> others;   ///< the best other models of the paper's table
  std::vector<std::int64_t> seeds = {0};
  std::int64_t splits = 1;
  std::vector<std::string> settings;

  std::int64_t num_runs() const { return std::ssize(seeds) * splits; }
};

struct ReproduceExperiment {
  std::string name;
  std::string title;
  std::string source;
  std::vector<ReproduceRow> rows;
};

/// All of them, in the order of the paper.
const std::vector<ReproduceExperiment>& reproduce_experiments();

/// TOML of configs/reproduce/<name>.toml, compiled in; nullptr: none of that name.
const char* reproduce_toml(std::string_view name);

/// One training of a row.
struct RunValue {
  std::int64_t seed = 0;
  std::int64_t split = 0;
  double value = 0.0;  ///< test, selected on validation; in the unit of the metric, not scaled
  std::optional<double> validation = {};  ///< the same of the validation part
  std::map<std::string, double> also = {};
  std::optional<double> raw = {};
  std::optional<double> refit = {};
  std::optional<double> best_test = {};
  std::int64_t best_step = 0;
  std::int64_t steps = 0;
  double seconds = 0.0;
  double peak_mib = 0.0;
  Provenance code = {};
};

/// A finished row, as kept in results/<experiment>-<row>.json.
struct RowResult {
  std::string experiment;
  std::string row;
  std::string dataset;
  std::string metric;
  std::string protocol;
  std::string config;   ///< TOML of the first run, whole; others differ in seed and split alone
  std::string version;  ///< of the program that wrote it
  bool version_matches = true;  ///< false: settings or numbers are not those of that version
  std::int64_t parameters = 0;
  std::int64_t planned = 0;  ///< runs of the whole protocol
  std::vector<RunValue> runs;
  std::vector<report::RunRecord::Reference> references;  ///< of the first run
};

std::filesystem::path result_path(const std::filesystem::path& folder,
                                  const std::string& experiment, const std::string& row);
void write_result(const std::filesystem::path& path, const RowResult& result);
/// nullopt: there is no such file. Throws io::InputError if it is damaged.
std::optional<RowResult> read_result(const std::filesystem::path& path);

/// A printed number on our scale: log10(mse) of labels divided by row.label_max.
double on_our_scale(const ReproduceRow& row, const Printed& printed);

/// "0.9795 ± 0.0012 (10 of 10)"; scaled.
std::string ours_of(const ReproduceRow& row, const RowResult& result);
/// Ours against the printed numbers: differences with their 95 % intervals, in words. None for a
/// row of fewer runs than its protocol, or with a help that the printed number did not have.
std::string verdict_of(const ReproduceRow& row, const RowResult& result);

/// The table of an experiment for people; rows without a result say so.
std::string table_of(const ReproduceExperiment& experiment, const std::filesystem::path& results);
/// The same for --quick: no comparison, the data are others.
std::string quick_table_of(const ReproduceExperiment& experiment,
                           const std::filesystem::path& results);
/// The whole page docs/results.md.
std::string results_page(const std::filesystem::path& results);

/// The paper's runtime table and inference figure, measured here; written as JSON into `results`.
void measure_runtime(const std::filesystem::path& results, bool quick);
void measure_figure(const std::filesystem::path& results, bool quick);
/// Their part of the page; empty if they were not measured.
std::string runtime_markdown(const std::filesystem::path& results);
std::string figure_markdown(const std::filesystem::path& results);

}  // namespace mpssm::cli
