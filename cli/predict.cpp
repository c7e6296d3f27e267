// SPDX-License-Identifier: MIT
// mpssm predict
#include <cstdio>
#include <memory>
#include <string>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/experiment.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct PredictOptions {
  std::string run;
  OtherData data;
  std::string out;
  run::PredictOptions asked;
  std::filesystem::path data_dir;
};

constexpr const char* kPredictFooter = R"(
Examples:
  mpssm predict runs/mine                        every node of the training graph, to stdout
  mpssm predict runs/mine --data newfolder/ --out p.csv   a new graph with the same columns
  mpssm predict runs/traffic --data new.npz      the steps that follow the end of a series
  mpssm predict runs/friends --top 20            links: the likeliest edges that are not there
  mpssm predict runs/friends --pairs asked.csv   links: the pairs in columns src and dst

One line per node (or graph, or node and steps ahead, or pair), with id and probabilities.)";

int predict(const PredictOptions& options) {
  ops::set_process_threads(0);
  const run::Experiment experiment = run::reopen(
      options.run,
      {.data_dir = options.data_dir, .new_data = options.data.chosen(), .skip_new_classes = true});
  for (const std::string& note : experiment.dataset->notes) say("note: " + note);
  if (options.out.empty() || options.out == "-") {
    const auto print_piece = [](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size()) {
        throw base::Error("cannot write to stdout");
      }
    };
    run::write_predictions(experiment, io::Sink(print_piece), options.asked);
    return 0;
  }
  run::write_predictions(experiment, std::filesystem::path(options.out), options.asked);
  say("wrote " + options.out);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = app.add_subcommand("predict", "Predictions of a trained model, as CSV");
  verb->add_option("run", options->run, "run folder or model.safetensors")->required();
  options->data.add_to(*verb);
  verb->add_option("--out", options->out, "file to write (default: stdout)")->type_name("FILE");
  verb->add_option("--pairs", options->asked.pairs, "links: CSV of pairs to score")
      ->type_name("FILE");
  verb->add_option("--top", options->asked.top, "links: how many missing edges (default: 100)")
      ->check(at_least(1));
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  verb->footer(kPredictFooter);
  verb->callback([options, &action] { action = [options] { return predict(*options); }; });
}

}  // namespace mpssm::cli
