// SPDX-License-Identifier: MIT
// Several runs on one page.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>

#include "mpssm/report/chart.h"
#include "mpssm/report/interval.h"
#include "mpssm/report/page_text.h"
#include "mpssm/report/run_page.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

bool is_repetition(const std::string& key) { return key == "seed" || key == "data.split"; }

std::string value_of(const RunPage& run, const std::string& key) {
  for (const PageSetting& setting : run.settings) {
    if (setting.key == key) return setting.value;
  }
  return "-";
}

/// Keys in which the runs differ.
std::vector<std::string> differing_keys(std::span<const RunPage> runs) {
  std::vector<std::string> keys;
  for (const PageSetting& setting : runs.front().settings) {
    const bool differs = std::any_of(runs.begin(), runs.end(), [&](const RunPage& run) {
      return value_of(run, setting.key) != setting.value;
    });
    if (differs) keys.push_back(setting.key);
  }
  return keys;
}

/// Runs that differ in seed and split alone.
struct Group {
  std::string name = {};
  std::vector<std::size_t> runs = {};
};

std::vector<Group> groups_of(std::span<const RunPage> runs, const std::vector<std::string>& keys) {
  std::vector<Group> groups;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::string name;
    for (const std::string& key : keys) {
      if (is_repetition(key)) continue;
      name += fmt::format("{}{}={}", name.empty() ? "" : ", ", key, value_of(runs[r], key));
    }
    if (name.empty()) name = "all runs";
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& group) { return group.name == name; });
    if (found == groups.end()) found = groups.insert(groups.end(), {.name = name});
    found->runs.push_back(r);
  }
  return groups;
}

double selected_metric(const RunPage& run, const std::string& part, const std::string& metric) {
  const auto metrics = run.record.metrics.find(part);
  if (metrics == run.record.metrics.end() || !metrics->second.contains(metric)) {
    return std::nan("");
  }
  return metrics->second.at(metric);
}

std::string interval_text(const Mean& mean) {
  if (mean.count < 2) return "one run";
  const auto count = static_cast<double>(mean.count);
  const double half = student_t_quantile(0.975, count - 1.0) * mean.deviation / std::sqrt(count);
  return fmt::format("{} to {}", page::short_number(mean.value - half),
                     page::short_number(mean.value + half));
}

std::string groups_html(std::span<const RunPage> runs, const std::vector<Group>& groups,
                        const std::string& metric) {
  page::Table table{.caption =
                        "Runs that differ in seed and split alone, together. Intervals: 95 % "
                        "of the mean, by Student's t.",
                    .columns = {{"settings"},
                                {"runs", true},
                                {"validation " + metric, true},
                                {"test " + metric, true},
                                {"deviation", true},
                                {"interval", true},
                                {"test: difference to the first", true}},
                    .is_sortable = true};
  page::Chart chart{
      .title = "Spread", .x_label = "row of the table above", .y_label = "test " + metric};
  std::optional<Mean> first;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<double> val, test;
    page::Series dots{.name = g < 8 ? groups[g].name : "",
                      .mark = page::Mark::kDots,
                      .colour = static_cast<int>(g)};
    for (const std::size_t r : groups[g].runs) {
      val.push_back(selected_metric(runs[r], "val", metric));
      test.push_back(selected_metric(runs[r], "test", metric));
      dots.x.push_back(static_cast<double>(g + 1));
      dots.y.push_back(test.back());
    }
    const Mean mean = mean_of(test);
    std::string apart = "-";
    if (first && first->count >= 2 && mean.count >= 2) {
      const Difference gap = difference(mean, *first);
      apart = fmt::format("{} ({} to {})", page::short_number(gap.value),
                          page::short_number(gap.low), page::short_number(gap.high));
    }
    if (!first) first = mean;
    table.rows.push_back({groups[g].name, std::to_string(mean.count),
                          page::short_number(mean_of(val).value), page::short_number(mean.value),
                          mean.count < 2 ? "-" : page::short_number(mean.deviation),
                          interval_text(mean), apart});
    chart.series.push_back(std::move(dots));
  }
  chart.x_range = std::pair(0.0, static_cast<double>(groups.size()) + 1.0);
  return page::table_html(table) + "<div class=\"charts\">" + page::chart_html(chart) + "</div>\n";
}

std::string runs_html(std::span<const RunPage> runs, const std::vector<std::string>& keys,
                      const std::string& metric) {
  page::Table table{.caption = "Every run; headings sort",
                    .columns = {{"run"},
                                {"best step", true},
                                {"validation " + metric, true},
                                {"test " + metric, true},
                                {"parameters", true},
                                {"seconds", true}},
                    .is_sortable = true};
  for (const std::string& key : keys) table.columns.push_back({key});
  for (const RunPage& run : runs) {
    std::vector<std::string> row = {run.record.run,
                                    std::to_string(run.record.best_step),
                                    page::short_number(selected_metric(run, "val", metric)),
                                    page::short_number(selected_metric(run, "test", metric)),
                                    std::to_string(run.record.num_parameters),
                                    fmt::format("{:.3g}", run.record.seconds)};
    for (const std::string& key : keys) row.push_back(value_of(run, key));
    table.rows.push_back(std::move(row));
  }
  return page::table_html(table);
}

std::string curves_html(std::span<const RunPage> runs, const std::string& metric) {
  constexpr std::size_t kMostCurves = 40;
  page::Chart chart{.title = "validation " + metric, .x_label = "step", .y_label = metric};
  page::Chart loss{.title = "training loss", .x_label = "step", .y_label = "loss"};
  for (std::size_t r = 0; r < std::min(runs.size(), kMostCurves); ++r) {
    const std::vector<double>* steps = runs[r].history.find("step");
    const std::vector<double>* values = runs[r].history.find("val_" + metric);
    const std::vector<double>* losses = runs[r].history.find("train_loss");
    const std::string name = r < 8 ? runs[r].record.run : "";
    const auto colour = static_cast<int>(r);
    if (steps != nullptr && values != nullptr) {
      chart.series.push_back({.name = name, .x = *steps, .y = *values, .colour = colour});
    }
    if (steps != nullptr && losses != nullptr) {
      loss.series.push_back({.name = name, .x = *steps, .y = *losses, .colour = colour});
    }
  }
  if (chart.series.empty()) return "";
  if (runs.size() > 8) {
    chart.note = fmt::format("The first {} of {} runs; the legend names eight.",
                             std::min(runs.size(), kMostCurves), runs.size());
  }
  return "<div class=\"charts\">" + page::chart_html(chart) + page::chart_html(loss) + "</div>\n";
}

/// What a search found along each setting: one chart for each that has numbers.
std::string slices_html(std::span<const RunPage> runs, const std::vector<std::string>& keys,
                        const std::string& metric) {
  std::string out;
  for (const std::string& key : keys) {
    if (is_repetition(key)) continue;
    page::Series dots{.name = "", .mark = page::Mark::kDots};
    bool has_numbers = true;
    for (const RunPage& run : runs) {
      char* end = nullptr;
      const std::string text = value_of(run, key);
      const double value = std::strtod(text.c_str(), &end);
      has_numbers &= end != text.c_str() && *end == '\0';
      dots.x.push_back(value);
      dots.y.push_back(selected_metric(run, "val", metric));
    }
    if (!has_numbers) continue;
    out += page::chart_html({.title = key,
                             .x_label = key,
                             .y_label = "validation " + metric,
                             .series = {std::move(dots)}});
  }
  return out.empty() ? "" : "<div class=\"charts\">" + out + "</div>\n";
}

/// Where predictions listen, one line for each run.
std::string listening_html(std::span<const RunPage> runs) {
  page::Chart chart{.title = "Where predictions listen, by hops",
                    .x_label = "hops away",
                    .y_label = "% of the influence"};
  page::Table table{.caption = "Mean distance that a prediction listens at",
                    .columns = {{"run"}, {"mean hop", true}, {"predictions", true}}};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].share_of_hop.empty()) continue;
    page::Series line{.name = runs[r].record.run, .colour = static_cast<int>(r)};
    for (std::size_t hop = 0; hop < runs[r].share_of_hop.size(); ++hop) {
      line.x.push_back(static_cast<double>(hop));
      line.y.push_back(100.0 * runs[r].share_of_hop[hop]);
    }
    chart.series.push_back(std::move(line));
    table.rows.push_back({runs[r].record.run, fmt::format("{:.2f}", runs[r].mean_hop),
                          std::to_string(runs[r].reach_targets)});
  }
  if (chart.series.empty()) return "";
  chart.note =
      "How much some test predictions, evenly spread, change with the features of nodes at each "
      "distance: through the whole network, whichever it is.";
  return "<div class=\"charts\">" + page::chart_html(chart) + "</div>\n" + page::table_html(table);
}

}  // namespace

std::string comparison_html(std::span<const RunPage> runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  const std::string metric = runs.front().record.metric;
  const std::vector<Group> groups = groups_of(runs, keys);
  std::set<std::string> datasets, metrics;
  for (const RunPage& run : runs) {
    datasets.insert(run.record.dataset);
    metrics.insert(run.record.metric);
  }
  std::string notes;
  if (datasets.size() > 1) {
    notes +=
        "<p class=\"note\">These runs are on different data: their numbers do not compare.</p>\n";
  }
  if (metrics.size() > 1) {
    notes += fmt::format(
        "<p class=\"note\">These runs were selected by different metrics; shown is {}, where a run "
        "has it.</p>\n",
        svg::escaped(metric));
  }
  for (const RunPage& run : runs) {
    for (const std::string& note : run.notes) {
      notes += "<p class=\"note\">" + svg::escaped(note) + "</p>\n";
    }
  }
  return page::page_html(
      {.title = fmt::format("{} runs on {}", runs.size(), *datasets.begin()),
       .lead = datasets.size() > 1 ? "and other data" : runs.front().record.protocol,
       .sections = {{"together", "Together", notes + groups_html(runs, groups, metric)},
                    {"runs", "Runs", runs_html(runs, keys, metric)},
                    {"slices", "Along each setting", slices_html(runs, keys, metric)},
                    {"listening", "Who is heard", listening_html(runs)},
                    {"training", "Training", curves_html(runs, metric)}}});
}

}  // namespace mpssm::report
