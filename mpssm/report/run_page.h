// SPDX-License-Identifier: MIT
// The report of a run as plain data, and the page made of it: one HTML file that needs nothing
// else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/report/classification.h"
#include "mpssm/report/explorer.h"
#include "mpssm/report/forecast_errors.h"
#include "mpssm/report/regression.h"
#include "mpssm/report/run_record.h"
#include "mpssm/report/text.h"

namespace mpssm::report {

struct PageFact {
  std::string name = {};
  std::string value = {};
};

struct PageSetting {
  std::string key = {};
  std::string value = {};
  std::string usual = {};  ///< the default
  std::string help = {};
};

/// metrics.csv: a column each, by evaluation.
struct History {
  std::vector<std::string> name = {};
  std::vector<std::vector<double>> value = {};  ///< as many as names; NaN: not a number

  const std::vector<double>* find(std::string_view column) const;
};

struct RunPage {
  RunRecord record = {};
  std::vector<std::string> about = {};     ///< paragraphs: what this is, for anybody
  std::vector<PageFact> data = {};         ///< what was understood of them, and their files
  Rows columns = {};                       ///< of tables: what each became, below titles
  std::vector<PageSetting> settings = {};  ///< all of them
  History history = {};
  std::string picture = {};                    ///< SVG, or empty
  std::optional<Classification> classes = {};  ///< of the test part, like all that follows
  std::vector<ClassCurve> labels = {};         ///< yes/no labels of graphs
  std::vector<Regression> numbers = {};        ///< one for each target
  std::optional<ForecastErrors> forecast = {};
  std::optional<Explorer> explorer = {};
  data::BareGraph graph = {};  ///< that the advice is about
  analysis::Advice advice = {};
  /// Share of the influence on some test predictions, by the hops it comes from; empty: not known.
  std::vector<double> share_of_hop = {};
  double mean_hop = 0.0;
  std::int64_t reach_targets = 0;       ///< how many predictions these are
  std::vector<std::string> notes = {};  ///< what is missing, and why
};

/// What pages begin with, to tell them from other files.
std::string_view page_start();

/// The report of one run. Below 1 MB, and below 2 MB with a graph that is cut down.
std::string to_html(const RunPage& page);

/// The record as text for a terminal: what, settings that differ from the default, how validation
/// went, metrics.
std::string to_text(const RunPage& page);

/// Several runs side by side: numbers, settings in which they differ, curves; runs that differ in
/// seed and split alone are put together, with mean and 95 % interval.
std::string comparison_html(std::span<const RunPage> pages);

/// A page with the explorer alone.
std::string explorer_page_html(const std::string& title, const std::string& lead,
                               const Explorer& explorer);

}  // namespace mpssm::report
