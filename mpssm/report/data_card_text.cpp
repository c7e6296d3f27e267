// SPDX-License-Identifier: MIT
#include "mpssm/report/data_card_text.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpssm/base/printable.h"
#include "mpssm/io/json_text.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

using data::DataCard;

constexpr std::size_t kShownClasses = 8;
constexpr std::size_t kShownColumns = 30;

std::string graph_line(const DataCard& card) {
  std::string text;
  if (card.shape == "many graphs") {
    return fmt::format("{}, {} nodes, {} edge entries", counted(card.graphs, "graph"), card.nodes,
                       card.edges);
  }
  text = fmt::format("{}, {} {}{}", counted(card.nodes, "node"), counted(card.edges, "edge"),
                     card.directed ? "one way" : "both ways", card.weighted ? " with weights" : "");
  text += card.components == 1 ? ", connected" : fmt::format(", {} components", card.components);
  if (card.isolated > 0) text += fmt::format(" ({} of them a single node)", card.isolated);
  return text;
}

std::string classes_line(const DataCard& card) {
  std::string text;
  for (std::size_t c = 0; c < std::min(card.classes.size(), kShownClasses); ++c) {
    text += fmt::format("{}{} {}", c == 0 ? "" : ", ", base::printable(card.classes[c].name, 40),
                        card.classes[c].count);
  }
  if (card.classes.size() > kShownClasses) {
    const auto [least, most] =
        std::minmax_element(card.classes.begin(), card.classes.end(),
                            [](const auto& a, const auto& b) { return a.count < b.count; });
    text += fmt::format(", ... ({} classes of {} to {})", card.classes.size(), least->count,
                        most->count);
  }
  return text;
}

std::string edge_columns_line(const DataCard& card) {
  std::string text;
  for (std::size_t c = 0; c < std::min(card.edge_columns.size(), kShownClasses); ++c) {
    text += (c == 0 ? "" : ", ") + base::printable(card.edge_columns[c], 40);
  }
  if (card.edge_columns.size() > kShownClasses) {
    text += fmt::format(", ... ({} columns)", card.edge_columns.size());
  }
  return text + ": read and kept, used by the model with data.encodings=edges or model.gso only";
}

}  // namespace

std::vector<CardLine> lines_of(const DataCard& card) {
  std::vector<CardLine> lines;
  const auto line = [&](const char* what, const std::string& value) {
    if (!value.empty()) lines.push_back({what, value});
  };
  line("source", card.source);
  line("graph", graph_line(card));
  std::string task = fmt::format("{}, measured by {}", card.task, card.metric);
  if (!card.why.empty()) task += fmt::format(" ({}; data.task changes it)", card.why);
  line("task", task);
  line("classes", classes_line(card));
  if (card.unlabelled > 0) {
    line("labels", fmt::format("{} there, {} missing", card.labelled, card.unlabelled));
  }
  if (card.homophily) {
    line("homophily",
         fmt::format("{:.2f} of {} edges between training nodes join one class; {:.2f} "
                     "by chance",
                     card.homophily->share, card.homophily->edges, card.homophily->by_chance));
  }
  if (card.series) {
    line("series", fmt::format("{} steps; {} seen, {} ahead", card.series->steps, card.series->lags,
                               card.series->horizon));
    if (card.series->graphs > 1) {
      line("over time", fmt::format("{} graphs, one after the other", card.series->graphs));
    }
  }
  line("features", fmt::format("{} for each node", card.features));
  if (card.encoded > 0) {
    line("encodings", fmt::format("{}: {} more for each node, from the graph alone", card.encodings,
                                  card.encoded));
  }
  if (!card.edge_columns.empty()) line("edge data", edge_columns_line(card));
  line("split",
       fmt::format("{} train, {} val, {} test {}{}", card.train, card.val, card.test, card.samples,
                   card.splits > 1 ? fmt::format(" (split {} of {})", card.split, card.splits)
                                   : std::string()));
  line("protocol", card.protocol);
  return lines;
}

Rows column_rows(const DataCard& card) {
  if (card.columns.empty()) return {};
  Rows rows = {{"column", "type", "features", "missing", ""}};
  const std::size_t shown_rows = std::min(card.columns.size(), kShownColumns);
  for (std::size_t c = 0; c < shown_rows; ++c) {
    const data::ColumnReport& column = card.columns[c];
    rows.push_back({base::printable(column.name, 40), column.type,
                    column.unused.empty() ? shown(column.features) : "-",
                    column.missing == 0 ? "" : shown(column.missing),
                    column.unused.empty() ? column.encoding : "not used: " + column.unused});
  }
  if (shown_rows < card.columns.size()) {
    rows.push_back({fmt::format("... {} more", card.columns.size() - shown_rows)});
  }
  return rows;
}

std::string text_of(const DataCard& card) {
  std::string text = fmt::format("{}: {}\n", base::printable(card.name, 200), card.shape);
  for (const CardLine& line : lines_of(card)) {
    text += fmt::format("  {:<10}{}\n", line.what, line.value);
  }
  const Rows rows = column_rows(card);
  return rows.empty() ? text : text + table(rows);
}

std::string to_json(const DataCard& card, int indent) {
  using nlohmann::ordered_json;
  ordered_json json = {
      {"name", card.name},
      {"source", card.source},
      {"shape", card.shape},
      {"task", card.task},
      {"why", card.why},
      {"metric", card.metric},
      {"target", card.target},
      {"graphs", card.graphs},
      {"nodes", card.nodes},
      {"edges", card.edges},
      {"directed", card.directed},
      {"weighted", card.weighted},
      {"components", card.components},
      {"isolated", card.isolated},
      {"features", card.features},
      {"labelled", card.labelled},
      {"unlabelled", card.unlabelled},
  };
  if (card.encoded > 0) {
    json["encodings"] = {{"name", card.encodings}, {"features", card.encoded}};
  }
  if (card.homophily) {
    json["homophily"] = {{"share", card.homophily->share},
                         {"by_chance", card.homophily->by_chance},
                         {"edges", card.homophily->edges}};
  }
  if (card.series) {
    json["series"] = {{"steps", card.series->steps},
                      {"lags", card.series->lags},
                      {"horizon", card.series->horizon}};
    if (card.series->graphs > 1) json["series"]["graphs"] = card.series->graphs;
  }
  ordered_json classes = ordered_json::array();
  for (const DataCard::Class& one : card.classes) {
    classes.push_back({{"name", one.name}, {"count", one.count}});
  }
  json["classes"] = classes;
  ordered_json columns = ordered_json::array();
  for (const data::ColumnReport& column : card.columns) {
    ordered_json entry = {
        {"name", column.name}, {"type", column.type}, {"missing", column.missing}};
    if (column.unused.empty()) {
      entry["features"] = column.features;
      entry["encoding"] = column.encoding;
    } else {
      entry["not_used"] = column.unused;
    }
    columns.push_back(entry);
  }
  json["columns"] = columns;
  json["edge_columns"] = card.edge_columns;
  json["samples"] = card.samples;
  json["splits"] = card.splits;
  json["split"] = card.split;
  json["parts"] = {{"train", card.train}, {"val", card.val}, {"test", card.test}};
  json["protocol"] = card.protocol;
  return io::json_text(json, indent);
}

}  // namespace mpssm::report
