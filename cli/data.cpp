// SPDX-License-Identifier: MIT
// mpssm data list | info | make | import | convert | partition
#include <filesystem>
#include <memory>

#include "mpssm/base/printable.h"
#include "mpssm/data/data_card.h"
#include "mpssm/data/load.h"
#include "mpssm/data/save_as.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/report/dataset_list.h"
#include "mpssm/run/partition.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct DataOptions {
  std::string name;
  std::string out;
  std::string target;
  std::string ignore;
  std::string task;
  std::int64_t seed = 0;
  run::PartitionRequest partition;
  bool directed = false;
  fs::path data_dir;
  bool json = false;
};

constexpr const char* kDataFooter = R"(
Examples:
  mpssm data list
  mpssm data info minesweeper
  mpssm data info myfolder/ --target price
  mpssm data make board:50x80 --out board.npz
  mpssm data make properties:diameter --out graphs.npz
  mpssm data import myfolder/ --out mygraph.npz
  mpssm data convert mygraph.npz --out tables/
  mpssm data convert tables/ --out mygraph.graphml
  mpssm data partition mygraph.npz --parts 4 --out parts/)";

int list_data(const DataOptions& options) {
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  only_json_on_stdout(options.json);
  print(report::dataset_list(load));
  if (options.json) print_json(report::dataset_list_json(load));
  return 0;
}

data::LoadOptions load_options(const DataOptions& options) {
  data::LoadOptions load;
  load.data_dir = options.data_dir;
  load.target = options.target;
  load.make_seed = static_cast<std::uint64_t>(options.seed);
  load.ignore = options.ignore;
  if (!options.task.empty()) load.task = data::task_from_name(options.task);
  if (options.directed) load.directed = data::EdgeUse::kForward;
  return load;
}

int describe_data(const DataOptions& options) {
  const data::Dataset dataset = data::load(options.name, load_options(options));
  const data::DataCard card = data::make_card(dataset);
  for (const std::string& note : dataset.notes) say("note: " + note);
  print(options.json ? report::to_json(card) : report::text_of(card));
  return 0;
}

/// make, import and convert: whatever load() can read, in the format that the name asks for.
int write_data(const DataOptions& options) {
  data::check_new_data(options.out);
  const data::Dataset dataset = data::load(options.name, load_options(options));
  for (const std::string& note : dataset.notes) say("note: " + note);
  data::save_as(options.out, dataset);
  say("wrote " + options.out);
  return 0;
}

int partition_data(const DataOptions& options) {
  say(run::write_partition(options.name, load_options(options), options.partition));
  return 0;
}

int make_data(const DataOptions& options) {
  refuse_if(options.name.find(':') == std::string::npos && options.name != "board",
            "data make: expected board[:RxC] or properties:TASK[:N], got '" +
                base::printable(options.name) + "'");
  return write_data(options);
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("data", "List, describe, make and convert datasets");
  verb->require_subcommand(1);
  verb->footer(kDataFooter);
  auto options = std::make_shared<DataOptions>();
  const auto add = [&](const char* name, const char* help, int (*function)(const DataOptions&)) {
    CLI::App* part = verb->add_subcommand(name, help);
    part->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
    part->callback([options, function, &action] { action = [=] { return function(*options); }; });
    return part;
  };
  CLI::App* part =
      add("list", "Datasets known by name, and whether their files are here", list_data);
  add_json(*part, options->json);
  part =
      add("info", "What is made of a dataset: task, graph, columns, classes, split", describe_data);
  part->add_option("dataset", options->name, "name or path")->required();
  part->add_option("--target", options->target, "own tables: label column")->type_name("NAME");
  part->add_option("--ignore", options->ignore, "own tables: columns to leave out")
      ->type_name("A,B");
  part->add_option("--task", options->task, "own files: what to learn")->type_name("TASK");
  add_json(*part, options->json);
  part = add("make", "Make built-in data: board:RxC, properties:TASK[:N]", make_data);
  part->add_option("what", options->name, "what to make")->required();
  part->add_option("--out", options->out, "npz file to write")->required()->type_name("FILE");
  part->add_option("--seed", options->seed, "start of the random numbers")->check(at_least(0));
  part = add("import", "Check own data and write them as one npz", write_data);
  part->add_option("path", options->name, "folder with edges.csv and nodes.csv, or an npz")
      ->required();
  part->add_option("--out", options->out, "npz file to write")->required()->type_name("FILE");
  part->add_option("--target", options->target, "label column")->type_name("NAME");
  part->add_flag("--directed", options->directed, "edges count one way only");
  part = add("convert", "Write any data as one file, or as tables in a folder", write_data);
  part->add_option("path", options->name, "name or path")->required();
  part->add_option("--out", options->out,
                   "FILE.npz, or a folder to make; one graph also FILE.json, .graphml, .gml")
      ->required();
  part->add_option("--target", options->target, "label column")->type_name("NAME");
  part = add("partition", "Cut one graph into parts, for ranks that read their own alone",
             partition_data);
  part->add_option("path", options->name, "name or path")->required();
  part->add_option("--parts", options->partition.parts, "how many")->required()->check(at_least(1));
  part->add_option("--out", options->partition.out, "folder to make")->required()->type_name("DIR");
  part->add_option("--gso", options->partition.gso, "operator, as model.gso of the trainings");
  part->add_option("--method", options->partition.method, "metis or ranges (default: the best)");
}

}  // namespace mpssm::cli
