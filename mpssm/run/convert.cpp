// SPDX-License-Identifier: MIT
#include "mpssm/run/convert.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/data_card.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/nn/diagonalise.h"
#include "mpssm/nn/model.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/report/run_record.h"
#include "mpssm/report/text.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/run/run_report.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/checkpoint.h"
#include "mpssm/version.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;
using base::Error;

const nn::ModelImpl& dense_model(const Experiment& from, const std::string& name) {
  const auto* model = dynamic_cast<const nn::ModelImpl*>(from.model.module.get());
  if (model == nullptr) {
    throw Error(name, fmt::format("expected a run of model.kind mpssm, got {}",
                                  train::to_string(from.config.model.kind)));
  }
  if (from.config.model.state != nn::StateKind::kDense) {
    throw Error(name, fmt::format("expected a run with a dense W, got model.state = {}, which is "
                                  "diagonal already",
                                  nn::to_string(from.config.model.state)));
  }
  if (from.config.model.gso.groups.size() > 1) {
    throw Error(name, "expected a run with one operator, got one with several");
  }
  return *model;
}

/// `weight` with zeros after its last row or column, up to `size`: channels that nothing enters and
/// that nobody reads.
torch::Tensor widened(const torch::Tensor& weight, std::int64_t dim, std::int64_t size) {
  std::vector<std::int64_t> shape = weight.sizes().vec();
  shape[dim] = size - shape[dim];
  return torch::cat({weight, torch::zeros(shape, weight.options())}, dim);
}

/// Parameters and buffers of a block by the names that they have in a model.
void add_block(train::Weights& weights, const nn::Block& block, std::size_t index,
               std::int64_t state_channels) {
  const std::string prefix = fmt::format("block_{}.", index);
  for (const auto& [name, value] : train::copy_weights(*block)) {
    torch::Tensor wide = value;
    if (name == "w_in") wide = widened(value, 1, state_channels);
    if (name == "w_state.sigma") wide = widened(value, 0, state_channels / 2);
    if (name == "w_out" || name == "entries.attention") wide = widened(value, 0, state_channels);
    if (name == "mlp_in.weight" && !block->w_out.defined())
      wide = widened(value, 1, state_channels);
    weights[prefix + name] = wide;
  }
}

double difference(const Experiment& a, const Experiment& b) {
  const torch::NoGradGuard no_grad;
  const auto sample = a.problem->sample(0);
  const torch::Tensor expected = a.model.module->forward(sample.x, sample.gso);
  const torch::Tensor got = b.model.module->forward(sample.x, sample.gso);
  const double largest = expected.abs().max().item<double>();
  return (got - expected).abs().max().item<double>() /
         std::max(largest, std::numeric_limits<double>::min());
}

void write_run(const Experiment& to, const fs::path& source, const RunFolder& folder) {
  const fs::path& out = folder.path();
  const std::string config_text = train::to_toml(to.config);
  const std::string pins_text = to_json(to.pins);
  io::write_file(pins_path(out), pins_text + "\n");
  const data::DataCard card = data::make_card(*to.dataset, to.config.data.split);
  io::write_file(out / "card.json", report::to_json(card, 1) + "\n");
  io::write_file(out / "config.toml", config_text);
  train::save_model(out / "model.safetensors", train::copy_weights(*to.model.module),
                    {{"format", "mpssm-model-2"},
                     {"version", kVersion},
                     {"dataset", to.dataset->name},
                     {"task", std::string(data::to_string(to.dataset->task))},
                     {"config", config_text},
                     {"data", pins_text}});
  // How the weights were come by stays what it was.
  if (const fs::path history = source / "metrics.csv"; fs::exists(history)) {
    io::write_file(out / "metrics.csv", io::read_file(history));
  }
  report::RunRecord record;
  const fs::path old_record = source / "record.json";
  if (fs::exists(old_record)) {
    record = report::run_record_from_json(io::read_file(old_record), old_record.string());
  }
  record.version = kVersion;
  record.run = out.string();
  record.dataset = to.dataset->name;
  record.task = data::to_string(to.dataset->task);
  record.metric = to.metric;
  record.protocol = to.dataset->protocol;
  record.seed = to.config.seed;
  record.split = to.config.data.split;
  record.num_parameters = to.model.num_parameters;
  record.metrics["val"] = evaluate(to, data::Part::kVal);
  record.metrics["test"] = evaluate(to, data::Part::kTest);
  {
    const torch::NoGradGuard no_grad;
    io::write_file(out / "predictions.csv", [&](const io::Sink& sink) {
      to.problem->write_predictions(*to.model.module, sink);
    });
  }
  io::write_file(out / "record.json", report::to_json(record, 2) + "\n");
}

}  // namespace

Converted convert(const ConvertOptions& options) {
  if (options.to != "diagonal") {
    throw Error("--to", fmt::format("expected diagonal, got '{}'", base::printable(options.to)));
  }
  const std::string name = options.run.lexically_normal().string();
  Experiment from = reopen(options.run, {.data_dir = options.data_dir, .in_float32 = true});
  const nn::ModelImpl& model = dense_model(from, name);
  Converted result{.from = name, .channels = from.config.model.channels};
  std::vector<nn::Block> blocks;
  for (const nn::Block& block : model.blocks()) {
    // The check of the tolerance is made here, where a user can be told about it.
    const nn::Diagonalised diagonal =
        nn::diagonalise(block, std::numeric_limits<double>::infinity());
    const double rounding = diagonal.condition * std::numeric_limits<float>::epsilon();
    if (!(rounding <= options.tolerance)) {
      throw Error(
          {.where = name,
           .what = fmt::format("block {}: the eigenvectors of W have condition number {:.3g}, so "
                               "rounding could grow to {:.2g}, more than {:.2g}",
                               blocks.size() + 1, diagonal.condition, rounding, options.tolerance),
           .hint = "keep the dense W, or allow more with --tolerance"});
    }
    result.condition.push_back(diagonal.condition);
    result.state_channels =
        std::max(result.state_channels, diagonal.block->options().state_channels);
    blocks.push_back(diagonal.block);
  }
  train::Weights weights;
  for (const auto& [key, value] : train::copy_weights(*from.model.module)) {
    if (!key.starts_with("block_")) weights[key] = value;
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    add_block(weights, blocks[b], b, result.state_channels);
  }
  Experiment to = reopen(options.run, {.data_dir = options.data_dir, .in_float32 = true});
  to.config.model.state = nn::StateKind::kDiagonal;
  to.config.model.state_channels = result.state_channels;
  to.config.model.plan = engine::Plan::kAuto;
  train::check(to.config);
  to.model = train::build_model(*to.problem, to.config);
  train::set_weights(*to.model.module, weights, name);
  to.model.module->eval();
  result.difference = difference(from, to);
  if (!(result.difference <= options.tolerance)) {
    throw Error({.where = name,
                 .what = fmt::format("predictions would differ by {:.2g} of the largest, more than "
                                     "{:.2g}",
                                     result.difference, options.tolerance),
                 .hint = "keep the dense W, or allow more with --tolerance"});
  }
  const RunFolder folder(options.out, /*resume=*/false);
  write_run(to, options.run, folder);
  result.to = options.out.lexically_normal().string();
  return result;
}

std::string to_text(const Converted& converted) {
  report::Rows rows = {{"block", "cond(V)"}};
  for (const double condition : converted.condition) {
    rows.push_back({std::to_string(rows.size()), fmt::format("{:.4g}", condition)});
  }
  return fmt::format(
      "{}\n"
      "{} channels with a dense W are {} real channels of a diagonal one\n"
      "predictions on the first sample differ by {:.2g} of the largest\n"
      "wrote {}",
      report::table(rows), converted.channels, converted.state_channels, converted.difference,
      converted.to);
}

std::string to_json(const Converted& converted) {
  return io::json_text(nlohmann::ordered_json{{"run", converted.to},
                                              {"from", converted.from},
                                              {"condition", converted.condition},
                                              {"channels", converted.channels},
                                              {"state_channels", converted.state_channels},
                                              {"difference", converted.difference}});
}

}  // namespace mpssm::run
