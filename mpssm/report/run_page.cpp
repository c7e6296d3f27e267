// SPDX-License-Identifier: MIT
#include "mpssm/report/run_page.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "mpssm/report/advice_page.h"
#include "mpssm/report/chart.h"
#include "mpssm/report/page_text.h"
#include "mpssm/report/svg.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

using page::Chart;
using page::Mark;
using page::short_number;
using page::Table;

std::string paragraph(const std::string& text) { return "<p>" + svg::escaped(text) + "</p>\n"; }

double metric_at(const RunRecord& record, const std::string& part, const std::string& name) {
  const auto metrics = record.metrics.find(part);
  if (metrics == record.metrics.end()) return std::nan("");
  const auto found = metrics->second.find(name);
  return found == metrics->second.end() ? std::nan("") : found->second;
}

std::string tile(const std::string& name, const std::string& value, const std::string& small) {
  return fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>", svg::escaped(name),
                     svg::escaped(value), svg::escaped(small));
}

std::string result_html(const RunPage& run) {
  const RunRecord& record = run.record;
  std::string out = "<dl class=\"tiles\">";
  out += tile("test " + record.metric, short_number(metric_at(record, "test", record.metric)),
              "looked at once, at the end");
  out += tile("validation " + record.metric, short_number(metric_at(record, "val", record.metric)),
              "selected the step");
  out += tile("best step", page::grouped(record.best_step), "of " + page::grouped(record.steps));
  out += tile("parameters", page::grouped(record.num_parameters), "learned numbers");
  out += tile("training", fmt::format("{:.3g} s", record.seconds),
              fmt::format("{:.0f} MiB at the peak", record.peak_mib));
  out += "</dl>\n";
  Table table{.caption = "All metrics",
              .columns = {{"metric"}, {"validation", true}, {"test", true}}};
  const auto test = record.metrics.find("test");
  if (test != record.metrics.end()) {
    for (const auto& [name, value] : test->second) {
      if (name == record.metric) table.strong.push_back(table.rows.size());
      table.rows.push_back(
          {name, short_number(metric_at(record, "val", name)), short_number(value)});
    }
  }
  out += page::table_html(table);
  if (record.references.empty()) return out;
  Table others{.caption = "Beside predictors that need no such training, on the same test part",
               .columns = {{"predictor"}},
               .rows = {{"this model"}},
               .strong = {0}};
  for (const auto& [name, value] : record.references.front().test) {
    others.columns.push_back({name, true});
    others.rows[0].push_back(short_number(metric_at(record, "test", name)));
  }
  for (const RunRecord::Reference& reference : record.references) {
    std::vector<std::string> row = {reference.name};
    for (std::size_t c = 1; c < others.columns.size(); ++c) {
      const auto found = reference.test.find(others.columns[c].title);
      row.push_back(found == reference.test.end() ? "-" : short_number(found->second));
    }
    others.rows.push_back(std::move(row));
  }
  return out + page::table_html(others);
}

/// A data card, where a run has one, belongs here.
std::string data_html(const RunPage& run) {
  Table table{.columns = {{""}, {""}}};
  for (const PageFact& fact : run.data) table.rows.push_back({fact.name, fact.value});
  std::string html = page::table_html(table);
  if (run.columns.empty()) return html;
  Table columns{.caption = "What each column became"};
  for (const std::string& title : run.columns.front()) columns.columns.push_back({title});
  columns.rows.assign(run.columns.begin() + 1, run.columns.end());
  return html + page::table_html(columns);
}

std::string settings_html(const RunPage& run) {
  Table table{.caption = "Settings that differ from the default",
              .columns = {{"setting"}, {"here"}, {"default"}, {"what it is"}}};
  for (const PageSetting& setting : run.settings) {
    if (setting.value == setting.usual || setting.key == "data.name") continue;
    table.rows.push_back({setting.key, setting.value, setting.usual, setting.help});
  }
  if (table.rows.empty()) return paragraph("All settings have their defaults.");
  return page::table_html(table);
}

Chart history_chart(const RunPage& run, const std::string& title,
                    std::initializer_list<std::pair<std::string, std::string>> columns) {
  Chart chart{.title = title,
              .x_label = "step",
              .y_label = title,
              .marked_x = static_cast<double>(run.record.best_step),
              .marked_label = "selected"};
  const std::vector<double>* steps = run.history.find("step");
  int colour = 0;
  for (const auto& [column, name] : columns) {
    const std::vector<double>* values = run.history.find(column);
    if (values == nullptr || steps == nullptr) continue;
    chart.series.push_back({.name = name, .x = *steps, .y = *values, .colour = colour++});
  }
  return chart;
}

std::string training_html(const RunPage& run) {
  if (run.history.name.empty()) return "";
  const std::string& metric = run.record.metric;
  Chart loss = history_chart(run, "Loss",
                             {{"train_loss", "training (with dropout)"},
                              {"val_loss", "validation"},
                              {"test_loss", "test"}});
  loss.log_y = std::all_of(loss.series.begin(), loss.series.end(), [](const page::Series& s) {
    return std::all_of(s.y.begin(), s.y.end(), [](double y) { return !(y <= 0.0); });
  });
  std::string out = "<div class=\"charts\">" + page::chart_html(loss);
  if (metric != "loss") {
    Chart chart =
        history_chart(run, metric, {{"val_" + metric, "validation"}, {"test_" + metric, "test"}});
    for (page::Series& series : chart.series) ++series.colour;  // the colours of the left chart
    chart.note = fmt::format("The step with the best value on validation, {}, gave the model.",
                             page::grouped(run.record.best_step));
    out += page::chart_html(chart);
  }
  return out + "</div>\n";
}

std::string confusion_html(const Classification& classes) {
  const std::size_t count = classes.class_names.size();
  constexpr std::size_t kMostClasses = 30;
  if (count > kMostClasses) {
    return paragraph(
        fmt::format("{} classes: too many for a table of who is taken for whom.", count));
  }
  std::string out =
      "<div class=\"wide\"><table class=\"confusion\"><caption>Who is taken for whom: rows are the "
      "truth, columns what was predicted; below each count its share of the row</caption>"
      "<thead><tr><th scope=\"col\">truth</th>";
  for (const std::string& name : classes.class_names) {
    out += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", svg::escaped(name));
  }
  out += "<th scope=\"col\" class=\"n\">found</th></tr></thead><tbody>\n";
  for (std::size_t t = 0; t < count; ++t) {
    std::int64_t total = 0;
    for (std::size_t p = 0; p < count; ++p) total += classes.confusion[t * count + p];
    const auto share = [&](std::size_t p) {
      const auto cell = static_cast<double>(classes.confusion[t * count + p]);
      return total > 0 ? cell / static_cast<double>(total) : 0.0;
    };
    out += fmt::format("<tr><th scope=\"row\">{}</th>", svg::escaped(classes.class_names[t]));
    for (std::size_t p = 0; p < count; ++p) {
      out += fmt::format(
          "<td style=\"background:rgba(var(--shade),{:.2f})\">{}<small>{:.3g} %</small></td>",
          0.4 * share(p), page::grouped(classes.confusion[t * count + p]), 100.0 * share(p));
    }
    out += fmt::format("<td>{:.3g} %</td></tr>\n", 100.0 * share(t));
  }
  return out + "</tbody></table></div>\n";
}

void add_guess_line(Chart& chart, std::vector<double> x, std::vector<double> y) {
  chart.series.push_back({.name = "guessing",
                          .mark = Mark::kDashed,
                          .x = std::move(x),
                          .y = std::move(y),
                          .colour = -1});
}

std::string class_curves_html(const std::vector<ClassCurve>& curves) {
  Chart roc{.title = "ROC",
            .x_label = "false alarms among the others",
            .y_label = "found of the class",
            .x_range = std::pair(0.0, 1.0),
            .y_range = std::pair(0.0, 1.0)};
  Chart recall{.title = "Precision and recall",
               .x_label = "found of the class (recall)",
               .y_label = "right among those named (precision)",
               .x_range = std::pair(0.0, 1.0),
               .y_range = std::pair(0.0, 1.0)};
  int colour = 0;
  for (const ClassCurve& curve : curves) {
    roc.series.push_back(
        {.name = fmt::format("{}, area {}", curve.name, short_number(curve.roc_auc)),
         .x = curve.false_positive_rate,
         .y = curve.true_positive_rate,
         .colour = colour});
    recall.series.push_back(
        {.name = fmt::format("{}, average precision {} ({} by guessing)", curve.name,
                             short_number(curve.average_precision), short_number(curve.share)),
         .x = curve.recall,
         .y = curve.precision,
         .colour = colour++});
  }
  add_guess_line(roc, {0.0, 1.0}, {0.0, 1.0});
  return page::chart_html(roc) + page::chart_html(recall);
}

std::string calibration_html(const Calibration& calibration) {
  Chart chart{.title = "Do the probabilities mean what they say?",
              .x_label = "probability of the predicted class",
              .y_label = "share that was right",
              .series = {{.name = "bins of a tenth",
                          .mark = Mark::kDots,
                          .x = calibration.confidence,
                          .y = calibration.accuracy}},
              .x_range = std::pair(0.0, 1.0),
              .y_range = std::pair(0.0, 1.0),
              .note = fmt::format("On the dashed line they do. Mean distance from it, by how many "
                                  "are in a bin: {}.",
                                  short_number(calibration.error))};
  chart.series.push_back(
      {.name = "as said", .mark = Mark::kDashed, .x = {0.0, 1.0}, .y = {0.0, 1.0}, .colour = -1});
  return page::chart_html(chart);
}

std::string classes_html(const RunPage& run) {
  if (!run.labels.empty()) {
    return "<div class=\"charts\">" + class_curves_html(run.labels) + "</div>\n";
  }
  if (!run.classes) return "";
  const Classification& classes = *run.classes;
  std::string out =
      paragraph(fmt::format("Of {} test samples {} are wrong.", page::grouped(classes.count),
                            page::grouped(classes.wrong)));
  out += confusion_html(classes);
  out += "<div class=\"charts\">" + class_curves_html(classes.curves) +
         calibration_html(classes.calibration) + "</div>\n";
  Table worst{
      .caption = fmt::format("Worst mistakes: the {} of {} whose truth got the least "
                             "probability; headings sort",
                             classes.worst.size(), page::grouped(classes.wrong)),
      .columns = {{"id"}, {"truth"}, {"predicted"}, {"p(truth)", true}, {"p(predicted)", true}},
      .is_sortable = true};
  for (const Mistake& mistake : classes.worst) {
    worst.rows.push_back(
        {mistake.id, classes.class_names[mistake.truth], classes.class_names[mistake.predicted],
         fmt::format("{:.4f}", mistake.p_truth), fmt::format("{:.4f}", mistake.p_predicted)});
  }
  return worst.rows.empty() ? out : out + page::table_html(worst);
}

Chart against_truth(const std::string& title, const std::vector<double>& truth,
                    const std::vector<double>& predicted, std::int64_t count) {
  Chart chart{.title = title,
              .x_label = "truth",
              .y_label = "predicted",
              .series = {{.name = "predictions", .mark = Mark::kDots, .x = truth, .y = predicted}}};
  if (std::ssize(truth) < count) {
    chart.note = fmt::format("{} of {} points, evenly spaced over the table.",
                             page::grouped(std::ssize(truth)), page::grouped(count));
  }
  if (truth.empty()) return chart;
  const auto [low, high] = std::minmax_element(truth.begin(), truth.end());
  chart.series.push_back({.name = "exact",
                          .mark = Mark::kDashed,
                          .x = {*low, *high},
                          .y = {*low, *high},
                          .colour = -1});
  return chart;
}

std::string numbers_html(const RunPage& run) {
  std::string out;
  constexpr std::size_t kMostTargets = 12;
  for (std::size_t t = 0; t < std::min(run.numbers.size(), kMostTargets); ++t) {
    const Regression& numbers = run.numbers[t];
    out +=
        paragraph(fmt::format("{}: mean error {} (root of the mean square {}), R2 {}, {} too {} "
                              "on average, over {} test samples.",
                              numbers.name, short_number(numbers.mae), short_number(numbers.rmse),
                              short_number(numbers.r2), short_number(std::abs(numbers.bias)),
                              numbers.bias < 0 ? "low" : "high", page::grouped(numbers.count)));
    out += "<div class=\"charts\">" +
           page::chart_html(against_truth("Prediction against truth: " + numbers.name,
                                          numbers.truth, numbers.predicted, numbers.count));
    if (!numbers.error_count.empty()) {
      out += page::chart_html({.title = "Errors: " + numbers.name,
                               .x_label = "predicted - truth",
                               .y_label = "samples",
                               .series = {{.name = "",
                                           .mark = Mark::kBars,
                                           .x = numbers.error_centre,
                                           .y = numbers.error_count}}});
    }
    out += "</div>\n";
    Table worst{
        .caption = fmt::format("Largest errors, {} of {}: {}; headings sort", numbers.worst.size(),
                               page::grouped(numbers.count), numbers.name),
        .columns = {{"id"}, {"truth", true}, {"predicted", true}, {"error", true}},
        .is_sortable = true};
    for (const NumberError& error : numbers.worst) {
      worst.rows.push_back({error.id, fmt::format("{:.6g}", error.truth),
                            fmt::format("{:.6g}", error.predicted),
                            fmt::format("{:.4g}", error.predicted - error.truth)});
    }
    out += page::table_html(worst);
  }
  if (run.numbers.size() > kMostTargets) {
    out += paragraph(
        fmt::format("{} more targets are in predictions.csv.", run.numbers.size() - kMostTargets));
  }
  return out;
}

std::vector<double> counted_from(double first, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(first + static_cast<double>(i));
  return numbers;
}

std::string examples_html(const ForecastErrors& forecast) {
  std::string out;
  for (const ForecastExample& example : forecast.examples) {
    const double first = static_cast<double>(example.first_step);
    const double past = static_cast<double>(example.past.size());
    Chart chart{
        .title = "Node " + example.node, .x_label = "step of the series", .y_label = "value"};
    if (!example.past.empty()) {
      chart.series.push_back({.name = "seen",
                              .x = counted_from(first - past, example.past.size()),
                              .y = example.past,
                              .colour = -1});
    }
    chart.series.push_back(
        {.name = "truth", .x = counted_from(first, example.truth.size()), .y = example.truth});
    chart.series.push_back({.name = example.past.empty() ? "forecast, one step ahead" : "forecast",
                            .x = counted_from(first, example.forecast.size()),
                            .y = example.forecast,
                            .colour = 1});
    out += page::chart_html(chart);
  }
  return out;
}

std::string forecast_html(const RunPage& run) {
  if (!run.forecast) return "";
  const ForecastErrors& forecast = *run.forecast;
  const auto steps = counted_from(1.0, forecast.mae_of_step.size());
  std::string out = "<div class=\"charts\">";
  if (forecast.horizon > 1) {
    Chart chart{.title = "Error by steps ahead",
                .x_label = "steps ahead",
                .y_label = "error",
                .series = {{.name = "mean absolute", .x = steps, .y = forecast.mae_of_step},
                           {.name = "root of the mean square",
                            .x = steps,
                            .y = forecast.rmse_of_step,
                            .colour = 1}}};
    // References are recorded at some steps only.
    int colour = 2;
    for (const RunRecord::Reference& reference : run.record.references) {
      page::Series points{
          .name = reference.name + " (mean absolute)", .mark = Mark::kDots, .colour = colour++};
      for (const int step : {3, 6, 12}) {
        const auto found = reference.test.find(fmt::format("mae_{}", step));
        if (found == reference.test.end()) continue;
        points.x.push_back(step);
        points.y.push_back(found->second);
      }
      if (!points.x.empty()) chart.series.push_back(points);
    }
    out += page::chart_html(chart);
  }
  if (!forecast.mae_of_hour.empty()) {
    out += page::chart_html({.title = "Error by hour of the day",
                             .x_label = "hour that is forecast",
                             .y_label = "mean absolute error",
                             .series = {{.name = "",
                                         .mark = Mark::kBars,
                                         .x = counted_from(0.0, 24),
                                         .y = forecast.mae_of_hour}}});
  }
  out += page::chart_html(
      against_truth("Forecast against truth", forecast.truth, forecast.forecast,
                    forecast.windows * forecast.horizon * std::ssize(forecast.mae_of_node)));
  out += "</div>\n";
  Table nodes{
      .caption = "Error by node; headings sort",
      .columns = {{"node"}, {"mean absolute error", true}, {"mean of forecast - truth", true}},
      .is_sortable = true};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < forecast.mae_of_node.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return forecast.mae_of_node[a] > forecast.mae_of_node[b];
  });
  constexpr std::size_t kMostNodes = 300;
  if (order.size() > kMostNodes) {
    nodes.caption = fmt::format("Error by node, the {} largest of {}; headings sort", kMostNodes,
                                page::grouped(std::ssize(order)));
    order.resize(kMostNodes);
  }
  for (const std::size_t i : order) {
    nodes.rows.push_back({forecast.node_ids.empty() ? std::to_string(i) : forecast.node_ids[i],
                          short_number(forecast.mae_of_node[i]),
                          short_number(forecast.bias_of_node[i])});
  }
  out += page::table_html(nodes);
  out += "<h3>Some forecasts</h3>" +
         paragraph("Evenly spaced over nodes and test windows, none of them chosen.") +
         "<div class=\"charts\">" + examples_html(forecast) + "</div>\n";
  return out;
}

std::string reach_html(const RunPage& run) {
  if (run.share_of_hop.empty()) return "";
  Chart chart{
      .title = "Where predictions listen, by hops",
      .x_label = "hops away",
      .y_label = "% of the influence",
      .series = {{.name = "",
                  .mark = Mark::kBars,
                  .x = counted_from(0.0, run.share_of_hop.size()),
                  .y = {}}},
      .note = fmt::format("Of {}, evenly spread over the test part: how much they change with "
                          "the features of nodes at each distance, through the whole "
                          "network. On average {:.2f} hops away.",
                          counted(run.reach_targets, "prediction"), run.mean_hop)};
  for (const double share : run.share_of_hop) chart.series[0].y.push_back(100.0 * share);
  return "<div class=\"charts\">" + page::chart_html(chart) + "</div>\n";
}

std::string about_html(const RunPage& run) {
  std::string out;
  for (const std::string& text : run.about) out += paragraph(text);
  if (!run.picture.empty()) out += "<div class=\"picture\">" + run.picture + "</div>\n";
  for (const std::string& note : run.notes) {
    out += "<p class=\"note\">" + svg::escaped(note) + "</p>\n";
  }
  return out;
}

}  // namespace

const std::vector<double>* History::find(std::string_view column) const {
  const auto found = std::find(name.begin(), name.end(), column);
  return found == name.end() ? nullptr : &value[found - name.begin()];
}

std::string_view page_start() { return page::kFirstLine; }

std::string to_html(const RunPage& run) {
  const RunRecord& record = run.record;
  const std::string explorer = run.explorer ? explorer_html(*run.explorer) : "";
  return page::page_html(
      {.title = record.dataset + ": " + record.run,
       .lead = fmt::format("{}, seed {}, split {}, mpssm {}", record.task, record.seed,
                           record.split, record.version),
       .sections = {{"result", "Result", result_html(run)},
                    {"about", "What this is", about_html(run)},
                    {"data", "Data and split", data_html(run)},
                    {"settings", "Settings", settings_html(run)},
                    {"training", "Training", training_html(run)},
                    {"classes", "Classes", classes_html(run)},
                    {"numbers", "Numbers", numbers_html(run)},
                    {"forecasts", "Forecasts", forecast_html(run)},
                    {"advice", "Advice", reach_html(run) + advice_html(run.graph, run.advice)},
                    {"explorer", "The graph: who reaches whom", explorer}},
       .has_explorer = run.explorer.has_value()});
}

std::string explorer_page_html(const std::string& title, const std::string& lead,
                               const Explorer& explorer) {
  return page::page_html(
      {.title = title,
       .lead = lead,
       .sections = {{"explorer", "The graph: who reaches whom", explorer_html(explorer)}},
       .has_explorer = true});
}

}  // namespace mpssm::report
