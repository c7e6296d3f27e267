// SPDX-License-Identifier: MIT
// The paper's experiments as rows: what to run, what was printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::study {

/// A printed number of the paper.
struct Printed {
  std::string name;  ///< of the model
  double value = 0.0;
  double std = 0.0;       ///< over `runs`
  std::int64_t runs = 0;  ///< 0: no deviation is printed, the number is taken as exact
  bool raw = false;       ///< on raw labels, where ours are divided by label_max
};

/// "KEY=VALUE" each.
using Settings = std::vector<std::string>;

/// Split and seed of a run.
struct PlannedRun {
  std::int64_t split = 0;
  std::int64_t seed = 0;

  bool operator==(const PlannedRun&) const = default;
};

/// A number of the paper and how we run for it; from configs/reproduce/*.toml.
struct Row {
  std::string name;
  std::string dataset;
  std::string quick_dataset;  ///< built in, for a quick look; empty: none
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
  Settings settings;
  std::string like;      ///< the row that it takes its keys from; empty: those of the experiment
  Settings own;          ///< what `settings` adds to those of that row
  std::string switched;  ///< the one thing that is not as in that row, in words; empty: several
  std::string after;     ///< the rung below, which it is compared with; empty: none
  bool has_own_dataset = false;  ///< another dataset than that row's
  /// Settings to choose from on validation, each on top of `settings`; empty: nothing to choose.
  std::vector<Settings> candidates;
  std::int64_t candidate_runs = 1;  ///< the first of the protocol, on which they are compared
  Settings candidate_budget;        ///< for these runs only, as "train.epochs=50"; empty: as long

  std::int64_t num_runs() const { return std::ssize(seeds) * splits; }
  /// Every split with every seed, the first `most` of them (0: all).
  std::vector<PlannedRun> plan(std::int64_t most = 0) const;
};

struct Experiment {
  std::string name;
  std::string title;
  std::string source;
  std::vector<Row> rows;
};

/// Their names, without reading the files.
std::vector<std::string> experiment_names();

/// All of them, in the order of the paper.
const std::vector<Experiment>& experiments();

/// TOML of configs/reproduce/<name>.toml, compiled in; nullptr: none of that name.
const char* experiment_toml(std::string_view name);

/// That row of an experiment, or nullptr.
const Row* find_row(const Experiment& experiment, std::string_view name);

/// What a candidate is compared with: itself and the budget.
Settings candidate_settings(const Row& row, const Settings& candidate);

/// "train.lr=0.003 model.hops=5"
std::string joined_settings(const Settings& settings);

/// A printed number on our scale: log10(mse) of labels divided by row.label_max.
double on_our_scale(const Row& row, const Printed& printed);

}  // namespace mpssm::study
