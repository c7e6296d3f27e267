// SPDX-License-Identifier: MIT
// mpssm evaluate
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "mpssm/train/experiment.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct Options {
  std::string run;
  std::string data;
  std::string part = "test";
  std::filesystem::path data_dir;
  bool json = false;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm evaluate runs/mine                     on the test part it was not trained on
  mpssm evaluate runs/mine --part val --json
  mpssm evaluate runs/mine otherfolder/        on new labelled data of the same columns)";

int run(const Options& options) {
  const train::Experiment experiment =
      train::reopen(options.run, options.data_dir,
                    options.data.empty() ? std::nullopt : std::optional<std::string>(options.data));
  const data::Part part = options.part == "train" ? data::Part::kTrain
                          : options.part == "val" ? data::Part::kVal
                                                  : data::Part::kTest;
  const train::Metrics metrics = train::evaluate(experiment, part);
  std::vector<std::vector<std::string>> rows = {{"metric", options.part}};
  for (const auto& [name, value] : metrics) rows.push_back({name, text("%.4f", value)});
  print(experiment.dataset->name + ": " + experiment.dataset->protocol);
  print(table(rows));
  if (options.json) {
    print(nlohmann::ordered_json{{"run", options.run},
                                 {"dataset", experiment.dataset->name},
                                 {"part", options.part},
                                 {"metrics", metrics}}
              .dump());
  }
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("evaluate", "Metrics of a trained model");
  verb->add_option("run", options->run, "run folder or model.safetensors")->required();
  verb->add_option("data", options->data, "other data of the same kind (default: its own)");
  verb->add_option("--part", options->part, "train, val or test")
      ->check(CLI::IsMember({"train", "val", "test"}));
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  verb->add_flag("--json", options->json, "the last line of stdout is one JSON object");
  verb->footer(kFooter);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mpssm::cli
