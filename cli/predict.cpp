// SPDX-License-Identifier: MIT
// mpssm predict
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include <torch/types.h>

#include "mpssm/io/error.h"
#include "mpssm/io/file.h"
#include "mpssm/train/experiment.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct Options {
  std::string run;
  std::string data;
  std::string out;
  std::filesystem::path data_dir;
};

constexpr const char* kFooter = R"(
Examples:
  mpssm predict runs/mine                        every node of the training graph, to stdout
  mpssm predict runs/mine newfolder/ --out p.csv   a new graph with the same columns
  mpssm predict runs/traffic new_series.npz      the steps that follow the end of a series

One line per node (or graph, or node and steps ahead), with id and probabilities.)";

int run(const Options& options) {
  const torch::NoGradGuard no_grad;
  const bool is_new = !options.data.empty();
  train::Experiment experiment =
      train::reopen(options.run, options.data_dir,
                    is_new ? std::optional<std::string>(options.data) : std::nullopt);
  for (const std::string& note : experiment.dataset->notes) say("note: " + note);
  const auto produce = [&](const io::Sink& sink) {
    if (experiment.dataset->task == data::Task::kForecast) {
      train::write_forecast(*experiment.dataset, experiment.config,
                            experiment.problem->preprocessing(), *experiment.model.module, sink);
    } else {
      experiment.problem->write_predictions(*experiment.model.module, sink);
    }
  };
  if (options.out.empty() || options.out == "-") {
    produce([](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size()) {
        throw io::InputError("cannot write to stdout");
      }
    });
    return 0;
  }
  io::write_file(options.out, produce);
  say("wrote " + options.out);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("predict", "Predictions of a trained model, as CSV");
  verb->add_option("run", options->run, "run folder or model.safetensors")->required();
  verb->add_option("data", options->data, "other data of the same kind (default: its own)");
  verb->add_option("--out", options->out, "file to write (default: stdout)")->type_name("FILE");
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  verb->footer(kFooter);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mpssm::cli
