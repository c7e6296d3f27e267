// SPDX-License-Identifier: MIT
#include "mpssm/run/remarks.h"

#include <algorithm>
#include <fmt/core.h>

#include "mpssm/io/csv.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/run/run_report.h"

namespace mpssm::run {
namespace {

/// A smaller network: half as wide, and at half the depth where it has any.
std::string smaller(const train::ModelConfig& model) {
  std::string text;
  if (model.channels >= 16) text = fmt::format("--set model.channels={}", model.channels / 4 * 2);
  if (model.blocks >= 2) {
    text += fmt::format("{}--set model.blocks={}", text.empty() ? "" : " ", model.blocks / 2);
  }
  return text;
}

/// The index of the evaluation at a step, or -1.
std::ptrdiff_t evaluation_at(const std::vector<double>& steps, std::int64_t step) {
  const auto found = std::find(steps.begin(), steps.end(), static_cast<double>(step));
  return found == steps.end() ? -1 : found - steps.begin();
}

std::string early_end(const report::RunRecord& record, const train::Config& config,
                      const std::vector<double>& epochs) {
  if (config.train.patience == 0 || epochs.empty()) return {};
  if (epochs.back() >= static_cast<double>(config.train.epochs)) return {};
  return fmt::format(
      "stopped early, after {:.0f} of {} epochs: no gain on validation in {} evaluations "
      "(train.patience); best step {} of {}",
      epochs.back(), config.train.epochs, config.train.patience, record.best_step, record.steps);
}

/// The loss of training went on falling, that of validation rose.
std::string overfitting(const report::RunRecord& record, const train::Config& config,
                        const std::vector<double>& steps, const std::vector<double>& train_loss,
                        const std::vector<double>& val_loss) {
  constexpr double kRisen = 1.1;
  const std::ptrdiff_t best = evaluation_at(steps, record.best_step);
  if (best < 0 || 2 * record.best_step > record.steps) return {};
  const double fell_from = train_loss[best];
  const double rose_from = val_loss[best];
  if (!(train_loss.back() < fell_from && val_loss.back() > kRisen * rose_from)) return {};
  const train::ModelConfig& model = config.model;
  return fmt::format(
      "best at step {} of {}: since then the loss of training fell from {:.3g} to {:.3g}, that of "
      "validation rose from {:.3g} to {:.3g}, so the model learns by heart; more model.dropout ({} "
      "now), train.weight_decay ({} now) or fewer model.channels ({} now) may do better",
      record.best_step, record.steps, fell_from, train_loss.back(), rose_from, val_loss.back(),
      io::number_text(model.dropout), io::number_text(config.train.weight_decay), model.channels);
}

/// The best came last, and the learning rate was not yet small.
std::string still_rising(const report::RunRecord& record, const train::Config& config,
                         const std::filesystem::path& folder, std::size_t evaluations) {
  constexpr std::size_t kEnough = 10;
  const bool at_the_end = record.best_step == record.steps;
  if (!at_the_end || evaluations < kEnough || config.train.on_validation ||
      config.train.schedule == train::Schedule::kCosine) {
    return {};
  }
  return fmt::format(
      "the last step was the best: mpssm train {} --resume --set train.epochs={} goes on",
      folder.string(), 2 * config.train.epochs);
}

}  // namespace

std::string time_remark(const train::Config& config, const train::Progress& progress) {
  constexpr double kHour = 3600.0;
  constexpr double kSure = 5.0;  // seconds of training; the first steps are slower than the others
  const double all = progress.seconds + progress.seconds_left;
  if (progress.seconds < kSure || all <= kHour) return {};
  std::string remedy = smaller(config.model);
  const auto epochs =
      static_cast<std::int64_t>(static_cast<double>(config.train.epochs) * kHour / all);
  if (epochs >= 1) {
    remedy = fmt::format("--set train.epochs={} takes about an hour{}", epochs,
                         remedy.empty() ? "" : ", " + remedy + " less for each");
  } else if (!remedy.empty()) {
    remedy += " takes less";
  }
  return fmt::format("this training will take about {:.1f} hours{}", all / kHour,
                     remedy.empty() ? "" : "; " + remedy);
}

std::vector<std::string> remarks_on(const report::RunRecord& record, const train::Config& config,
                                    const report::History& history) {
  const std::vector<double>* steps = history.find("step");
  const std::vector<double>* epochs = history.find("epoch");
  const std::vector<double>* train_loss = history.find("train_loss");
  const std::vector<double>* val_loss = history.find("val_loss");
  if (steps == nullptr || epochs == nullptr || train_loss == nullptr || val_loss == nullptr ||
      steps->empty()) {
    return {};
  }
  std::vector<std::string> remarks = {early_end(record, config, *epochs),
                                      overfitting(record, config, *steps, *train_loss, *val_loss),
                                      still_rising(record, config, record.run, steps->size())};
  std::erase(remarks, "");
  return remarks;
}

std::vector<std::string> remarks_on(const std::filesystem::path& folder) {
  const report::RunPage page = read_folder(folder);
  return remarks_on(page.record, read_run_config(folder), page.history);
}

}  // namespace mpssm::run
