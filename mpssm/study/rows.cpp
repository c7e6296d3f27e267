// SPDX-License-Identifier: MIT
// From configs/reproduce/*.toml to rows. The files are compiled in; a mistake in one is ours, and
// the tests read them all.
#include "mpssm/study/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "mpssm/train/search.h"

namespace mpssm::study {
namespace {

constexpr std::array kExperimentNames = {"gpp",      "ladder",  "hetero", "depth",
                                         "temporal", "traffic", "lrgb"};

[[noreturn]] void throw_mistake(const std::string& where, const std::string& what) {
  throw std::logic_error(fmt::format("configs/reproduce/{}: {}", where, what));
}

std::vector<Printed> printed_of(const toml::array& array, const std::string& where) {
  std::vector<Printed> result;
  for (const auto& node : array) {
    Printed printed;
    for (const auto& [key, value] : *node.as_table()) {
      const std::string_view name = key.str();
      if (name == "name") {
        printed.name = value.value<std::string>().value();
      } else if (name == "value") {
        printed.value = value.value<double>().value();
      } else if (name == "std") {
        printed.std = value.value<double>().value();
      } else if (name == "raw") {
        printed.raw = value.value<bool>().value();
      } else {
        throw_mistake(where, fmt::format("unknown key '{}'", name));
      }
    }
    result.push_back(std::move(printed));
  }
  return result;
}

/// Takes over what the table says; keys of the experiment are defaults for its rows.
void apply_table(const toml::table& table, const std::string& where, Row& row) {
  for (const auto& [key, value] : table) {
    const std::string_view name = key.str();
    const toml::node& node = value;  // clang 14 cannot capture a structured binding
    const auto text = [&](std::string& to) { to = node.value<std::string>().value(); };
    const auto number = [&] { return node.value<double>().value(); };
    const auto paper = [&]() -> Printed& {
      if (!row.paper) row.paper = Printed{.name = "MP-SSM"};
      return *row.paper;
    };
    // The last one is for the experiment, see parse_experiment().
    if (name == "row" || name == "title" || name == "source" || name == "like" ||
        name == "candidate_points" || name == "paper_runs") {
      continue;
    }
    const auto settings = [](const toml::node& list) {
      Settings words;
      for (const auto& one : *list.as_array()) words.push_back(*one.value<std::string>());
      return words;
    };
    if (name == "name") {
      text(row.name);
    } else if (name == "dataset") {
      text(row.dataset);
    } else if (name == "quick_dataset") {
      text(row.quick_dataset);
    } else if (name == "about") {
      text(row.about);
    } else if (name == "metric") {
      text(row.metric);
    } else if (name == "raw_metric") {
      text(row.raw_metric);
    } else if (name == "unfair") {
      text(row.unfair);
    } else if (name == "switch") {
      text(row.switched);
    } else if (name == "after") {
      text(row.after);
    } else if (name == "scale") {
      row.scale = number();
    } else if (name == "paper") {
      paper().value = number();
    } else if (name == "paper_std") {
      paper().std = number();
    } else if (name == "paper_raw") {
      paper().raw = node.value<bool>().value();
    } else if (name == "others") {
      row.others = printed_of(*node.as_array(), where);
    } else if (name == "label_max") {
      row.label_max = number();
    } else if (name == "lower_is_better") {
      row.lower_is_better = node.value<bool>().value();
    } else if (name == "comparable") {
      row.comparable = node.value<bool>().value();
    } else if (name == "refit") {
      row.refit = node.value<bool>().value();
    } else if (name == "also") {
      for (const auto& one : *node.as_array()) row.also.push_back(*one.value<std::string>());
    } else if (name == "splits") {
      row.splits = node.value<std::int64_t>().value();
    } else if (name == "seeds") {
      row.seeds.clear();
      for (const auto& seed : *node.as_array()) row.seeds.push_back(*seed.value<std::int64_t>());
    } else if (name == "settings") {
      row.own = settings(node);
      row.settings.insert(row.settings.end(), row.own.begin(), row.own.end());
    } else if (name == "candidates") {
      row.candidates.clear();
      for (const auto& one : *node.as_array()) row.candidates.push_back(settings(one));
    } else if (name == "candidate_grid") {
      row.candidates = train::search_points(
          settings(node), table["candidate_points"].value<std::int64_t>().value_or(0));
    } else if (name == "candidate_runs") {
      row.candidate_runs = node.value<std::int64_t>().value();
    } else if (name == "candidate_budget") {
      row.candidate_budget = settings(node);
    } else {
      throw_mistake(where, fmt::format("unknown key '{}'", name));
    }
  }
}

Experiment parse_experiment(const std::string& name) {
  const toml::table table = toml::parse(experiment_toml(name));
  Experiment experiment{.name = name,
                        .title = table["title"].value<std::string>().value(),
                        .source = table["source"].value<std::string>().value(),
                        .rows = {}};
  Row defaults;
  apply_table(table, name, defaults);
  for (const auto& node : *table["row"].as_array()) {
    const toml::table& entry = *node.as_table();
    Row row = defaults;
    if (const auto like = entry["like"].value<std::string>()) {
      const Row* model = find_row(experiment, *like);
      if (model == nullptr) throw_mistake(name, "like '" + *like + "': no such row above");
      row = *model;
      row.like = *like;
    }
    row.own.clear();
    row.switched.clear();
    row.after.clear();
    row.has_own_dataset = entry.contains("dataset");
    apply_table(entry, name, row);
    const auto runs = table["paper_runs"].value<std::int64_t>().value_or(0);
    if (row.paper && row.paper->std > 0.0) row.paper->runs = runs;
    for (Printed& other : row.others) {
      if (other.std > 0.0) other.runs = runs;
    }
    experiment.rows.push_back(std::move(row));
  }
  return experiment;
}

}  // namespace

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> list;
    for (const char* name : kExperimentNames) list.push_back(parse_experiment(name));
    return list;
  }();
  return all;
}

std::vector<PlannedRun> Row::plan(std::int64_t most) const {
  std::vector<PlannedRun> all;
  for (std::int64_t split = 0; split < splits; ++split) {
    for (const std::int64_t seed : seeds) all.push_back({.split = split, .seed = seed});
  }
  if (most > 0 && most < std::ssize(all)) all.resize(static_cast<std::size_t>(most));
  return all;
}

const Row* find_row(const Experiment& experiment, std::string_view name) {
  const auto found = std::find_if(experiment.rows.begin(), experiment.rows.end(),
                                  [&](const Row& row) { return row.name == name; });
  return found == experiment.rows.end() ? nullptr : &*found;
}

Settings candidate_settings(const Row& row, const Settings& candidate) {
  Settings all = candidate;
  all.insert(all.end(), row.candidate_budget.begin(), row.candidate_budget.end());
  return all;
}

std::string joined_settings(const Settings& settings) {
  std::string words;
  for (const std::string& setting : settings) words += (words.empty() ? "" : " ") + setting;
  return words;
}

std::vector<std::string> experiment_names() {
  return {kExperimentNames.begin(), kExperimentNames.end()};
}

double on_our_scale(const Row& row, const Printed& printed) {
  return printed.raw ? printed.value - 2.0 * std::log10(row.label_max) : printed.value;
}

}  // namespace mpssm::study
