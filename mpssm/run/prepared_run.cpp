// SPDX-License-Identifier: MIT
#include "mpssm/run/prepared_run.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/nn/channel_ranks.h"
#include "mpssm/ranks/collectives.h"
#include "mpssm/run/board_file.h"
#include "mpssm/run/memory_limit.h"
#include "mpssm/run/partition.h"
#include "mpssm/run/train_into.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/compared_networks.h"

namespace mpssm::run {

namespace fs = std::filesystem;
namespace {

MemoryLimit checked_limit(std::int64_t mib, const train::Config& config) {
  const MemoryLimit limit(static_cast<double>(mib));
  limit.check_weights(config);
  return limit;
}

}  // namespace

// The folder before the data: whoever writes into it must not notice that we were here.
PreparedRun::PreparedRun(const train::Config& config, const RunOptions& options)
    : limit_(checked_limit(options.memory_limit_mib, config)),
      alone_(options.ranks == nullptr ? ranks::alone() : nullptr),
      ranks_(options.ranks == nullptr ? *alone_ : *options.ranks),
      folder_(options.folder, options.resume,
              ranks_.is_first() ? Writer::kThisProcess : Writer::kAnotherRank),
      pins_(pins_to_go_on(options.resume)),
      experiment_(make_experiment(config, options)),
      with_picture_(options.with_picture) {
  const bool is_one_sample = experiment_.problem->num_train() == 1;
  if (is_one_sample && ranks_.size() > 1 && !experiment_.by_nodes) share_channels();
  if (!is_one_sample) share_batches();
  if (const std::string note = limit_.fit(experiment_); !note.empty()) {
    notes_.push_back("note: " + note);
  }
  if (pins_) {
    check_same_settings(options.folder, experiment_.config,
                        options.may_last_longer ? Length::kLonger : Length::kSame);
  }
  if (!options.with_notes) return;
  std::string unused;
  for (const std::string& key : train::settings_without_meaning(config)) {
    unused += (unused.empty() ? "" : ", ") + key;
  }
  if (!unused.empty()) {
    notes_.push_back(
        fmt::format("note: {} does not look at {}", train::to_string(config.model.kind), unused));
  }
  for (const std::string& note : experiment_.dataset->notes) notes_.push_back("note: " + note);
}

Experiment PreparedRun::make_experiment(const train::Config& config, const RunOptions& options) {
  const train::Config settings = pins_ ? settings_to_go_on(options.folder, config) : config;
  const DataPins* const pins = pins_ ? &*pins_ : nullptr;
  return data::is_partition(settings.data.name) ? set_up_partition(settings, ranks_, pins)
                                                : set_up(settings, options.data_dir, pins);
}

/// As rank 0 finds them; other ranks need not see the folder before they go on.
std::optional<DataPins> PreparedRun::pins_to_go_on(bool resume) const {
  if (!resume) return std::nullopt;
  std::string text;
  if (ranks_.is_first()) {
    const auto pins = read_pins(folder_.path());
    if (pins && fs::exists(folder_.path() / "config.toml")) text = to_json(*pins);
  }
  text = ranks::from_first(ranks_, text);
  if (text.empty()) return std::nullopt;
  return pins_from_json(text, pins_path(folder_.path()).string());
}

void PreparedRun::share_batches() {
  train::TrainConfig& settings = experiment_.config.train;
  if (settings.pieces == 1) {
    settings.pieces = pins_ ? read_run_config(folder_.path()).train.pieces : ranks_.size();
  }
  train::check(experiment_.config);
  if (ranks_.size() == 1) return;
  notes_.push_back(fmt::format("{} ranks share each batch of {} in {} pieces", ranks_.size(),
                               std::min(settings.batch, experiment_.problem->num_train()),
                               settings.pieces));
  if (ranks_.size() > settings.pieces) {
    notes_.push_back("note: there are more ranks than pieces, so that some have nothing to do");
  }
}

void PreparedRun::share_channels() {
  const auto model = std::dynamic_pointer_cast<nn::ModelImpl>(experiment_.model.module);
  const std::string reason = model == nullptr
                                 ? fmt::format("{} has no channels that are apart",
                                               train::to_string(experiment_.config.model.kind))
                                 : nn::why_not_by_channels(model->options(), ranks_.size());
  if (!reason.empty()) {
    throw base::Error(
        {.where = "--ranks",
         .what = fmt::format("{} ranks cannot share one graph: {}", ranks_.size(), reason),
         .hint =
             "model.kind=mpssm with model.state=stable and model.input_dropout=0 can be shared"});
  }
  notes_.push_back(
      fmt::format("{} ranks share the nodes and, through all {} hops of a block, the {} "
                  "channels of one graph",
                  ranks_.size(), model->options().hops, model->options().hidden_channels));
}

std::optional<report::RunRecord> PreparedRun::train(const train::TrainHooks& hooks) {
  auto record = train_into(folder_, experiment_, pins_.has_value(), hooks, &ranks_);
  if (record && with_picture_ && ranks_.is_first() && !experiment_.by_nodes &&
      is_board(*experiment_.dataset)) {
    write_board(experiment_, *record);
  }
  return record;
}

}  // namespace mpssm::run
