// SPDX-License-Identifier: MIT
#include "mpssm/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <set>
#include <variant>

#include <torch/types.h>

#include "mpssm/analysis/state_norms.h"
#include "mpssm/base/error.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/model.h"
#include "mpssm/report/advice.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/run/advise.h"
#include "mpssm/run/board_file.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/task/problem.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;
using report::RunPage;

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

double number_in(std::string_view cell) { return io::to_number(cell).value_or(kNotKnown); }

report::History read_history(const fs::path& path) {
  io::CsvReader reader(path);
  report::History history{.name = reader.head().header};
  history.value.resize(history.name.size());
  while (reader.next()) {
    for (std::size_t c = 0; c < history.name.size(); ++c) {
      history.value[c].push_back(number_in(reader.cells()[c]));
    }
  }
  return history;
}

std::vector<report::PageSetting> settings_on_page(const train::Config& config) {
  const std::vector<train::Setting> here = train::settings_of(config);
  const std::vector<train::Setting> usual = train::settings_of({});
  std::vector<report::PageSetting> settings;
  for (std::size_t s = 0; s < here.size(); ++s) {
    settings.push_back({here[s].key, here[s].value, usual[s].value, here[s].help});
  }
  return settings;
}

// ---- what predictions.csv holds ----

std::int32_t class_named(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<std::int32_t>(found - names.begin());
}

/// Fills in the test part and the colours of the explorer.
/// Rows begin with `ids` names: of the node, of the graph, or of both.
void read_classes(const fs::path& path, std::size_t ids,
                  const std::vector<std::string>& class_names, RunPage& page,
                  std::vector<report::NodeColour>& colours) {
  const std::size_t classes = class_names.size();
  io::CsvReader reader(path);
  if (reader.head().header.size() != ids + 3 + classes) return;  // no labels
  report::ClassTable table{.class_names = class_names};
  report::NodeColour predicted{.name = "prediction", .classes = class_names};
  report::NodeColour likely{.name = "probability of " + class_names.back()};
  report::NodeColour truth{.name = "truth", .classes = class_names};
  report::NodeColour error{.name = "error: 1 - p(truth)"};
  while (reader.next()) {
    const auto cells = reader.cells();
    const std::int32_t is = class_named(class_names, cells[ids + 1]);
    const std::int32_t guess = class_named(class_names, cells[ids + 2]);
    const auto p = [&](std::int32_t c) { return number_in(cells[ids + 3 + c]); };
    predicted.value.push_back(guess);
    likely.value.push_back(p(static_cast<std::int32_t>(classes) - 1));
    truth.value.push_back(is < 0 ? kNotKnown : is);
    error.value.push_back(is < 0 ? kNotKnown : 1.0 - p(is));
    if (cells[ids] != "test" || is < 0) continue;
    table.id.push_back(ids == 2 ? fmt::format("{} node {}", cells[0], cells[1])
                                : std::string(cells[0]));
    table.truth.push_back(is);
    table.predicted.push_back(guess);
    for (std::size_t c = 0; c < classes; ++c) {
      table.probability.push_back(static_cast<float>(p(static_cast<std::int32_t>(c))));
    }
  }
  page.classes = report::classification_of(table);
  colours = {std::move(predicted), std::move(truth), std::move(error)};
  if (classes == 2) colours.insert(colours.begin() + 1, std::move(likely));
}

/// src, dst, split, edge, score.
void read_link_scores(const fs::path& path, RunPage& page) {
  io::CsvReader reader(path);
  report::ClassTable table{.class_names = {"no edge", "edge"}};
  while (reader.next()) {
    const auto cells = reader.cells();
    if (cells[2] != "test") continue;
    const double score = number_in(cells[4]);
    table.id.push_back(fmt::format("{} - {}", cells[0], cells[1]));
    table.truth.push_back(cells[3] == "yes" ? 1 : 0);
    table.predicted.push_back(score > 0.5 ? 1 : 0);
    table.probability.push_back(static_cast<float>(1.0 - score));
    table.probability.push_back(static_cast<float>(score));
  }
  page.classes = report::classification_of(table);
}

void read_node_numbers(const fs::path& path, RunPage& page,
                       std::vector<report::NodeColour>& colours) {
  io::CsvReader reader(path);
  report::NumberTable table{.name = reader.head().header[2]};
  report::NodeColour predicted{.name = "prediction"}, truth{.name = "truth"},
      error{.name = "error"};
  while (reader.next()) {
    const auto cells = reader.cells();
    const double is = number_in(cells[2]);
    const double guess = number_in(cells[3]);
    predicted.value.push_back(guess);
    truth.value.push_back(is);
    error.value.push_back(std::abs(guess - is));
    if (cells[1] != "test" || std::isnan(is)) continue;
    table.id.emplace_back(cells[0]);
    table.truth.push_back(is);
    table.predicted.push_back(guess);
  }
  page.numbers = {report::regression_of(table)};
  colours = {std::move(predicted), std::move(truth), std::move(error)};
}

/// graph, [node,] split, labels, as many predictions.
void read_graphs(const fs::path& path, const data::GraphsData& data, data::Task task,
                 RunPage& page) {
  const bool of_nodes = task == data::Task::kNodeRegression;
  const std::size_t first = of_nodes ? 3 : 2;
  const std::size_t targets = data.target_names.size();
  io::CsvReader reader(path);
  if (reader.head().header.size() != first + 2 * targets) return;  // no labels
  std::vector<report::NumberTable> tables(targets);
  std::vector<std::vector<float>> score(targets);
  std::vector<std::vector<bool>> positive(targets);
  while (reader.next()) {
    const auto cells = reader.cells();
    if (cells[first - 1] != "test") continue;
    for (std::size_t t = 0; t < targets; ++t) {
      const double is = number_in(cells[first + t]);
      const double guess = number_in(cells[first + targets + t]);
      if (std::isnan(is)) continue;
      if (task == data::Task::kGraphLabels) {
        score[t].push_back(static_cast<float>(guess));
        positive[t].push_back(is > 0.5);
        continue;
      }
      tables[t].id.push_back(of_nodes ? fmt::format("{} node {}", cells[0], cells[1])
                                      : std::string(cells[0]));
      tables[t].truth.push_back(is);
      tables[t].predicted.push_back(guess);
    }
  }
  for (std::size_t t = 0; t < targets; ++t) {
    if (task == data::Task::kGraphLabels) {
      if (page.labels.size() == report::kMaxClassCurves) break;
      page.labels.push_back(report::class_curve(data.target_names[t], score[t], positive[t]));
    } else {
      tables[t].name = data.target_names[t];
      page.numbers.push_back(report::regression_of(tables[t]));
    }
  }
}

/// window, node, step_1, ...: every node of a window, window by window.
void read_forecasts(const fs::path& path, const data::SeriesData& series,
                    const data::WindowSplit& split, RunPage& page,
                    std::vector<report::NodeColour>& colours) {
  io::CsvReader reader(path);
  report::ForecastCollector collector(series, split.end - split.test);
  std::vector<double> forecast(static_cast<std::size_t>(series.horizon));
  for (std::int64_t row = 0; reader.next(); ++row) {
    const auto cells = reader.cells();
    for (std::size_t h = 0; h < forecast.size(); ++h) forecast[h] = number_in(cells[2 + h]);
    collector.add(io::to_integer(cells[0]).value_or(0), row % series.num_nodes, forecast);
  }
  page.forecast = collector.errors();
  colours = {{.name = "mean absolute error", .value = page.forecast->mae_of_node},
             {.name = "mean of forecast - truth", .value = page.forecast->bias_of_node}};
}

// ---- what the data are ----

std::vector<report::PageFact> facts_of(const data::DataCard& card, const data::Dataset& dataset) {
  std::vector<report::PageFact> facts;
  for (const report::CardLine& line : report::lines_of(card)) {
    facts.push_back({line.what, line.value});
  }
  for (const data::InputFile& file : dataset.files) {
    facts.push_back(
        {"file", fmt::format("{} (sha256 {}...)", file.path, file.sha256.substr(0, 12))});
  }
  for (const std::string& note : dataset.notes) facts.push_back({"note", note});
  return facts;
}

std::vector<std::string> about_board() {
  return {
      "A Minesweeper board: a grid of cells, a fifth of them mines. A cell that is no secret shows "
      "how "
      "many of its eight neighbours are mines; half of the cells hide their number. The model has "
      "been "
      "told for half of the cells whether they are mines, and learned to say it for the others.",
      "What a cell is can be told from the numbers around it, and these depend on cells further "
      "away. "
      "So the model lets every cell hear its neighbours, these theirs, and so on, hop by hop; "
      "between "
      "the hops everything is linear, and that is why this page can compute exactly how much of a "
      "cell reaches another: see the graph below, where a click on a cell shows whom it hears.",
      "The picture: what is shown to the model, where the mines are, and the probability of a mine "
      "that the model gives to each cell."};
}

// ---- the graph ----

std::vector<report::HopNorms> norms_of(const Experiment& experiment) {
  constexpr std::int64_t kLeastHops = 16;
  constexpr std::int64_t kMostHops = 128;
  std::vector<std::int64_t> taus;
  const auto* model = dynamic_cast<const nn::ModelImpl*>(experiment.model.module.get());
  const std::int64_t hops =
      model == nullptr ? kLeastHops
      : model->options().mode == nn::Mode::kStatic
          ? model->options().hops
          : (experiment.problem->shape().num_steps - 1) * model->options().hops_per_step;
  for (std::int64_t tau = 0; tau <= std::clamp(hops, kLeastHops, kMostHops); ++tau) {
    taus.push_back(tau);
  }
  // The picture has one operator for all blocks, and not one that is learned.
  const bool changes = experiment.problem->sample(0).gso.is_sequence();
  if (model == nullptr || changes || model->options().entries != nn::EntriesKind::kFixed) {
    return {{"the graph alone", std::vector<double>(taus.size(), 1.0)}};
  }
  std::vector<report::HopNorms> blocks;
  for (const nn::Block& block : model->blocks()) {
    blocks.push_back({fmt::format("block {}", blocks.size() + 1),
                      analysis::power_norms(block->w_state->forward().detach(), taus)});
  }
  return blocks;
}

report::Explorer explorer_of(const Experiment& experiment,
                             std::vector<report::NodeColour> colours) {
  const data::Dataset& dataset = *experiment.dataset;
  const auto* nodes = std::get_if<data::NodeData>(&dataset.content);
  const graph::Operators operators = experiment.problem->sample(0).gso;
  // Of a graph that changes, the edges of all times.
  report::Explorer explorer{
      .gso = !operators.is_sequence()
                 ? operators.only()
                 : graph::make_gso(std::get<data::SeriesData>(dataset.content).graph,
                                   {.kind = operators.largest().only().kind()}),
      .node_ids =
          nodes != nullptr ? nodes->node_ids : std::get<data::SeriesData>(dataset.content).node_ids,
      .colours = std::move(colours),
      .blocks = norms_of(experiment),
      .position = board_places(dataset)};
  explorer.target = explorer.gso.num_nodes() / 2;
  if (!explorer.position.empty()) {
    // The middle of a board, not of its edge.
    explorer.target += static_cast<std::int64_t>(std::sqrt(explorer.gso.num_nodes())) / 2;
    explorer.target = std::min(explorer.target, explorer.gso.num_nodes() - 1);
  }
  const auto* model = dynamic_cast<const nn::ModelImpl*>(experiment.model.module.get());
  explorer.hops = model != nullptr && model->options().mode == nn::Mode::kStatic
                      ? model->options().hops
                      : std::min<std::int64_t>(4, std::ssize(explorer.blocks[0].norm) - 1);
  return explorer;
}

void add_listening(const Experiment& experiment, RunPage& page) {
  // A backward pass for every output of every prediction.
  constexpr std::int64_t kPasses = 10;
  constexpr std::int64_t kPredictions = 5;
  const std::int64_t outputs = experiment.problem->shape().out_channels;
  Listening listening =
      listening_of(experiment, std::clamp<std::int64_t>(kPasses / outputs, 1, kPredictions));
  page.share_of_hop = std::move(listening.share_of_hop);
  page.mean_hop = listening.mean_hop;
  page.reach_targets = listening.predictions;
}

}  // namespace

fs::path report_path(const fs::path& folder) { return folder / "report.html"; }

RunPage page_of(const Experiment& experiment, const report::RunRecord& record,
                const fs::path& folder) {
  const torch::NoGradGuard no_grad;
  const data::Dataset& dataset = *experiment.dataset;
  const fs::path predictions = folder / "predictions.csv";
  const data::DataCard card = card_of(experiment);
  RunPage page{.record = record,
               .data = facts_of(card, dataset),
               .columns = report::column_rows(card),
               .settings = settings_on_page(experiment.config),
               .history = read_history(folder / "metrics.csv")};
  std::vector<report::NodeColour> colours;
  if (const auto* series = std::get_if<data::SeriesData>(&dataset.content)) {
    read_forecasts(predictions, *series, data::window_split(*series), page, colours);
  } else if (const auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
    if (data::is_of_classes(dataset.task)) {
      read_classes(predictions, data::is_of_graphs(dataset.task) ? 1 : 2,
                   experiment.pins.learned.class_names, page, colours);
    } else {
      read_graphs(predictions, *graphs, dataset.task, page);
    }
    return page;
  } else if (dataset.task == data::Task::kLinks) {
    read_link_scores(predictions, page);
  } else if (dataset.task == data::Task::kNodeRegression) {
    read_node_numbers(predictions, page, colours);
  } else {
    read_classes(predictions, 1, experiment.pins.learned.class_names, page, colours);
  }
  if (is_board(dataset)) {
    page.about = about_board();
    page.picture = board_picture(experiment, record);
  }
  // It computes with one operator.
  const bool has_explorer = experiment.config.model.gso.is_single();
  if (has_explorer) page.explorer = explorer_of(experiment, std::move(colours));
  add_listening(experiment, page);
  const std::string worst = page.classes && !page.classes->worst.empty()
                                ? page.classes->worst.front().id
                            : !page.numbers.empty() && !page.numbers.front().worst.empty()
                                ? page.numbers.front().worst.front().id
                                : "";
  AdviceResult found = advice_for_page(experiment, worst);
  page.graph = std::move(found.graph);
  page.advice = std::move(found.advice);
  if (!has_explorer) return page;
  if (experiment.config.model.gso == graph::GsoKind::kSymNormalized) {
    report::describe_graph(page.graph.graph, found.lambda_star, *page.explorer);
  }
  const std::int64_t target = page.explorer->target;
  report::mark_advice(page.advice, *page.explorer);
  page.explorer->target = target;
  page.explorer->worst.clear();
  page.explorer->worst_hops = found.worst_tau;
  for (const analysis::PairValue& pair : found.worst) {
    page.explorer->worst.push_back({pair.source, pair.target});
  }
  return page;
}

RunPage read_folder(const fs::path& folder) {
  const fs::path path = folder / "record.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw base::Error(folder.string(), fs::exists(folder / "config.toml", ignored)
                                           ? "the run has not ended: mpssm train RUN --resume"
                                           : "expected the folder of a run");
  }
  report::RunRecord record = report::run_record_from_json(io::read_file(path), path.string());
  record.run = folder.lexically_normal().string();  // it may have been moved
  return {.record = record,
          .settings = settings_on_page(read_run_config(folder)),
          .history = read_history(folder / "metrics.csv")};
}

RunPage read_page(const fs::path& folder, const fs::path& data_dir) {
  RunPage page = read_folder(folder);
  try {
    const Experiment experiment = reopen(folder, {.data_dir = data_dir});
    return page_of(experiment, page.record, folder);
  } catch (const base::Error& error) {
    page.notes.push_back(fmt::format("Predictions and graph are not shown: {}", error.what()));
    return page;
  }
}

std::vector<fs::path> finished_runs(const std::vector<std::string>& folders) {
  std::vector<fs::path> runs;
  std::set<fs::path> seen;
  const auto add = [&](const fs::path& folder) {
    if (seen.insert(fs::weakly_canonical(folder)).second) runs.push_back(folder);
  };
  for (const std::string& name : folders) {
    std::error_code ignored;
    std::vector<fs::path> inside;
    if (fs::exists(fs::path(name) / "config.toml", ignored)) {
      inside.emplace_back(name);
    } else {
      fs::recursive_directory_iterator entry(name, ignored);
      for (; entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
        if (entry.depth() > 3) entry.pop();
        if (entry == fs::recursive_directory_iterator()) break;
        if (entry->path().filename() == "record.json")
          inside.push_back(entry->path().parent_path());
      }
    }
    if (inside.empty()) throw base::Error(name, "expected the folder of a run, or of several");
    std::sort(inside.begin(), inside.end());
    for (const fs::path& folder : inside) add(folder);
  }
  return runs;
}

bool holds_runs(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == ".safetensors" || fs::exists(path / "model.safetensors", ignored)) {
    return true;
  }
  try {
    return !finished_runs({path.string()}).empty();
  } catch (const base::Error&) {
    return false;
  }
}

std::vector<std::string> runs_in(const std::vector<std::string>& paths) {
  std::vector<std::string> runs;
  for (const std::string& path : paths) {
    std::error_code ignored;
    const bool is_several = fs::is_directory(path, ignored) &&
                            !fs::exists(fs::path(path) / "model.safetensors", ignored) &&
                            holds_runs(path);
    if (!is_several) {
      runs.push_back(path);  // whoever opens it says what is wrong with it
      continue;
    }
    for (const fs::path& run : finished_runs({path})) runs.push_back(run.string());
  }
  return runs;
}

std::string report_html(const std::vector<fs::path>& runs, const fs::path& data_dir) {
  if (runs.size() == 1) return report::to_html(read_page(runs[0], data_dir));
  std::vector<RunPage> pages;
  // To ask networks takes their data: of a few runs only.
  constexpr std::size_t kMostAsked = 6;
  for (const fs::path& run : runs) {
    pages.push_back(read_folder(run));
    if (runs.size() > kMostAsked) continue;
    try {
      add_listening(reopen(run, {.data_dir = data_dir}), pages.back());
    } catch (const base::Error& error) {
      pages.back().notes.push_back(
          fmt::format("{}: its predictions cannot be asked: {}", run.string(), error.what()));
    }
  }
  return report::comparison_html(pages);
}

}  // namespace mpssm::run
