// SPDX-License-Identifier: MIT
// mpssm evaluate
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/report/run_summary.h"
#include "mpssm/run/experiment.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string run;
  OtherData data;
  std::string part;  // empty: test
  std::filesystem::path data_dir;
  bool json = false;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm evaluate runs/mine                     on the test part it was not trained on
  mpssm evaluate runs/mine --part val --json
  mpssm evaluate runs/mine --data otherfolder/   on other labelled data of the same columns

Data that have changed since the training are refused: nothing is standardised, numbered or split
anew. Given as --data they are scored as new data, with the columns and classes that the model has
learned, under the heading "labelled": nodes of the training may be among them.)";

int run(const Options& options) {
  ops::set_process_threads(0);
  const run::Experiment experiment =
      run::reopen(options.run, {.data_dir = options.data_dir, .new_data = options.data.chosen()});
  for (const std::string& note : experiment.dataset->notes) say("note: " + note);
  const bool is_new = experiment.dataset->is_new;
  if (is_new && !options.part.empty()) {
    throw base::Error("--part: data that the model was not trained on have no parts");
  }
  const std::string part_name = is_new ? "labelled" : options.part.empty() ? "test" : options.part;
  const data::Part part = part_name == "train" ? data::Part::kTrain
                          : part_name == "val" ? data::Part::kVal
                                               : data::Part::kTest;
  const task::Metrics metrics = run::evaluate(experiment, part);
  print(experiment.dataset->name + ": " + experiment.dataset->protocol);
  print(report::metrics_of(part_name, metrics));
  const fs::path record = fs::path(options.run) / "record.json";
  if (part_name == "test" && fs::exists(record)) {
    print(report::references_of(
        report::run_record_from_json(io::read_file(record), record.string())));
  }
  if (options.json) {
    print(io::json_text(nlohmann::ordered_json{{"run", options.run},
                                               {"dataset", experiment.dataset->name},
                                               {"part", part_name},
                                               {"metrics", metrics}}));
  }
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("evaluate", "Metrics of a trained model");
  verb->add_option("run", options->run, "run folder or model.safetensors")->required();
  options->data.add_to(*verb);
  verb->add_option("--part", options->part, "train, val or test (default)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  verb->add_flag("--json", options->json, "the last line of stdout is one JSON object");
  verb->footer(kFooter);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mpssm::cli
