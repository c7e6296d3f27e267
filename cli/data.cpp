// SPDX-License-Identifier: MIT
// mpssm data list | info | make | import
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/load.h"
#include "mpssm/data/registry.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/io/npz.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name;
  std::string out;
  std::string target;
  std::int64_t seed = 0;
  bool directed = false;
  fs::path data_dir;
  bool json = false;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm data list
  mpssm data info minesweeper
  mpssm data make board:50x80 --out board.npz
  mpssm data make properties:diameter --out graphs.npz
  mpssm data import myfolder/ --out mygraph.npz)";

int list(const Options& options) {
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  std::vector<std::vector<std::string>> rows = {{"name", "task", "metric", "here", ""}};
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::DatasetInfo& info : data::registry()) {
    const bool here = data::is_present(info, load);
    rows.push_back({info.name, std::string(data::to_string(info.task)), info.metric,
                    here ? "yes" : "no", info.summary});
    json.push_back({{"name", info.name},
                    {"task", data::to_string(info.task)},
                    {"metric", info.metric},
                    {"present", here},
                    {"summary", info.summary}});
  }
  rows.push_back({"board[:RxC]", "node_binary", "roc_auc", "yes", "Minesweeper board, built in"});
  rows.push_back({"properties:TASK[:N]", "", "log10_mse", "yes",
                  "graphs and their diameter, sssp, eccentricity or laplacian, built in"});
  print(table(rows));
  if (options.json) print(io::json_text(json));
  return 0;
}

data::LoadOptions load_options(const Options& options) {
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  load.target = options.target;
  load.make_seed = static_cast<std::uint64_t>(options.seed);
  if (options.directed) load.directed = true;
  return load;
}

using Rows = std::vector<std::vector<std::string>>;

std::string count(std::int64_t number) { return std::to_string(number); }

void describe(const data::NodeData& data, Rows& rows) {
  rows.push_back({"nodes", count(data.graph.num_nodes())});
  rows.push_back({"edges", count(data.graph.num_edges())});
  rows.push_back({"features", count(data.features.columns)});
  for (std::size_t c = 0; c < data.class_names.size(); ++c) {
    const auto nodes = std::count(data.target.begin(), data.target.end(), static_cast<float>(c));
    rows.push_back({"class " + data.class_names[c], count(nodes)});
  }
  rows.push_back({"splits", count(static_cast<std::int64_t>(data.splits.size()))});
  if (data.splits.empty()) return;
  for (const data::Part part : {data::Part::kTrain, data::Part::kVal, data::Part::kTest}) {
    rows.push_back({fmt::format("{} (split 0)", data::to_string(part)),
                    count(std::count(data.splits[0].begin(), data.splits[0].end(), part))});
  }
}

void describe(const data::GraphsData& data, Rows& rows) {
  rows.push_back({"graphs", count(data.num_graphs())});
  rows.push_back({"nodes", count(data.node_ptr.back())});
  rows.push_back({"edge entries", count(data.edge_ptr.back())});
  rows.push_back({"targets", count(data.target.columns)});
  if (data.label_scale != 1.0)
    rows.push_back({"label scale", fmt::format("{:.6g}", data.label_scale)});
  for (const data::Part part : {data::Part::kTrain, data::Part::kVal, data::Part::kTest}) {
    rows.push_back({std::string(data::to_string(part)),
                    count(std::count(data.part.begin(), data.part.end(), part))});
  }
}

void describe(const data::SeriesData& data, Rows& rows) {
  const data::WindowSplit split = data::window_split(data);
  rows.push_back({"nodes", count(data.num_nodes)});
  rows.push_back({"edges", count(data.graph.num_edges())});
  rows.push_back({"steps", count(data.num_steps)});
  rows.push_back({"steps seen", count(data.lags)});
  rows.push_back({"steps ahead", count(data.horizon)});
  rows.push_back({"train windows", count(split.val)});
  rows.push_back({"val windows", count(split.test - split.val)});
  rows.push_back({"test windows", count(split.end - split.test)});
}

int info(const Options& options) {
  const data::Dataset dataset = data::load(options.name, load_options(options));
  Rows rows = {{"name", dataset.name},
               {"task", std::string(data::to_string(dataset.task))},
               {"metric", dataset.metric},
               {"source", dataset.source}};
  std::visit([&](const auto& content) { describe(content, rows); }, dataset.content);
  print(table(rows));
  print("protocol: " + dataset.protocol);
  for (const std::string& note : dataset.notes) say("note: " + note);
  if (options.json) {
    nlohmann::ordered_json json;
    for (const auto& row : rows) json[row[0]] = row[1];
    json["protocol"] = dataset.protocol;
    print(io::json_text(json));
  }
  return 0;
}

/// make and import: whatever load() can read, written as one npz.
int write(const Options& options) {
  io::check_replaceable(options.out, io::kNpzMark);
  const data::Dataset dataset = data::load(options.name, load_options(options));
  if (std::holds_alternative<data::SeriesData>(dataset.content)) {
    throw base::Error(options.name + ": a series is used as it is, there is nothing to import");
  }
  for (const std::string& note : dataset.notes) say("note: " + note);
  data::save_npz(options.out, dataset);
  say("wrote " + options.out);
  return 0;
}

int make(const Options& options) {
  if (options.name.find(':') == std::string::npos && options.name != "board") {
    throw base::Error("data make: expected board[:RxC] or properties:TASK[:N], got '" +
                      base::printable(options.name) + "'");
  }
  return write(options);
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("data", "List, describe, make and convert datasets");
  verb->require_subcommand(1);
  verb->footer(kFooter);
  auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* help, int (*function)(const Options&)) {
    CLI::App* part = verb->add_subcommand(name, help);
    part->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
    part->callback([options, function, &action] { action = [=] { return function(*options); }; });
    return part;
  };
  CLI::App* part = add("list", "Datasets known by name, and whether their files are here", list);
  part->add_flag("--json", options->json, "the last line of stdout is JSON");
  part = add("info", "Sizes, splits and protocol of a dataset", info);
  part->add_option("dataset", options->name, "name or path")->required();
  part->add_option("--target", options->target, "own tables: label column")->type_name("NAME");
  part->add_flag("--json", options->json, "the last line of stdout is JSON");
  part = add("make", "Make built-in data: board:RxC, properties:TASK[:N]", make);
  part->add_option("what", options->name, "what to make")->required();
  part->add_option("--out", options->out, "npz file to write")->required()->type_name("FILE");
  part->add_option("--seed", options->seed, "start of the random numbers")->check(at_least(0));
  part = add("import", "Check own data and write them as one npz", write);
  part->add_option("path", options->name, "folder with edges.csv and nodes.csv, or an npz")
      ->required();
  part->add_option("--out", options->out, "npz file to write")->required()->type_name("FILE");
  part->add_option("--target", options->target, "label column")->type_name("NAME");
  part->add_flag("--directed", options->directed, "edges count one way only");
}

}  // namespace mpssm::cli
