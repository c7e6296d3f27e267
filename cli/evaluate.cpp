// SPDX-License-Identifier: MIT
// mpssm evaluate
#include <memory>

#include "mpssm/ops/runtime.h"
#include "mpssm/run/evaluation.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct EvaluateOptions {
  run::EvaluateOptions how;
  bool json = false;
};

constexpr const char* kEvaluateFooter = R"(
Examples:
  mpssm evaluate runs/mine                     on the test part it was not trained on
  mpssm evaluate runs/mine --part val --json
  mpssm evaluate runs/mine --data otherfolder/   on other labelled data of the same columns
  mpssm evaluate runs/a runs/b runs/seeds      several: mean, deviation, interval

Data that have changed since the training are refused: nothing is standardised, numbered or split
anew. Given as --data they are scored as new data, with the columns and classes that the model has
learned, under the heading "labelled": nodes of the training may be among them.)";

int evaluate(EvaluateOptions& options) {
  only_json_on_stdout(options.json);
  ops::set_process_threads(0);
  options.how.on_note = [](const std::string& note) { say("note: " + note); };
  const auto evaluations = run::evaluate_runs(options.how);
  print(report::summary_of(evaluations));
  if (options.json) print_json(report::summary_json(evaluations));
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* verb = app.add_subcommand("evaluate", "Metrics of trained models");
  verb->add_option("runs", options->how.runs,
                   "run folders or model.safetensors, or folders of several; then perhaps data")
      ->required();
  verb->add_option("--data", options->how.data, "other data of the same kind (default: its own)");
  verb->add_option("--part", options->how.part, "train, val or test (default)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  verb->add_option("--data-dir", options->how.data_dir,
                   "folder to look for registered files first");
  add_json(*verb, options->json);
  verb->footer(kEvaluateFooter);
  verb->callback([options, &action] { action = [options] { return evaluate(*options); }; });
}

}  // namespace mpssm::cli
