// SPDX-License-Identifier: MIT
#include "mpssm/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/nn/shared_module.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ranks/collectives.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/adam.h"
#include "mpssm/train/checkpoint.h"
#include "mpssm/train/shared_batch.h"
#include "mpssm/train/weight_average.h"

namespace mpssm::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string shortest(double value) { return fmt::format("{:.9g}", value); }

class Run {
 public:
  Run(const TrainJob& job, const TrainHooks& hooks)
      : job_(job),
        hooks_(hooks),
        settings_(job.config.train),
        higher_is_better_(task::metric_info(job.metric).higher_is_better),
        config_text_(to_toml(job.config)),
        adam_(*job.model, {.weight_decay = settings_.weight_decay,
                           .decoupled = settings_.optimiser == Optimiser::kAdamW}),
        average_(*job.model, settings_.ema),
        generator_(*job.generator),
        alone_(job.ranks == nullptr ? ranks::alone() : nullptr),
        ranks_(job.ranks == nullptr ? *alone_ : *job.ranks),
        num_train_(job.problem.num_train()),
        batch_size_(std::min(settings_.batch, std::max<std::int64_t>(num_train_, 1))),
        num_batches_((num_train_ + batch_size_ - 1) / batch_size_) {
    if (num_train_ < 1) throw base::Error("expected something to train on, got no sample");
    if (job.resume && std::filesystem::exists(state_path())) {
      RestoredState state = load_state(state_path(), *job.model, adam_, generator_, config_text_);
      position_ = std::move(state.position);
      best_ = std::move(state.best);
      average_.set_mean(std::move(state.average), state_path().string());
      position_.finished = is_over();  // not any more, if it is to last longer now
      check_position();
    }
    seconds_before_ = position_.seconds;
    first_step_ = position_.step;
  }

  TrainOutcome go() {
    while (!position_.finished) {
      step();
      const bool is_stopped = hooks_.should_stop && hooks_.should_stop();
      if (ranks::any(ranks_, is_stopped) && !position_.finished) {
        save();
        return outcome();
      }
      if (position_.finished || seconds_since(last_save_) >= settings_.checkpoint_seconds) save();
    }
    set_weights(*job_.model, best_, state_path().string());
    return outcome();
  }

 private:
  /// A damaged state must not send the run anywhere else than on.
  void check_position() const {
    const bool is_possible = position_.batch < num_batches_ &&
                             position_.epoch <= settings_.epochs &&
                             position_.step == position_.epoch * num_batches_ + position_.batch &&
                             (position_.finished || position_.epoch < settings_.epochs);
    if (is_possible) return;
    throw base::Error(
        state_path().string(),
        fmt::format("the position of the run is epoch {} of {}, batch {} of {}, step {}",
                    position_.epoch, settings_.epochs, position_.batch, num_batches_,
                    position_.step));
  }

  std::filesystem::path state_path() const { return job_.folder / "state.safetensors"; }

  TrainOutcome outcome() const {
    return {position_.finished, position_.step, position_.best_step, seconds()};
  }
  double seconds() const { return seconds_before_ + seconds_since(start_); }

  void step() {
    if (position_.batch == 0 || order_.empty()) {
      order_ = epoch_order(num_train_, job_.config.seed, position_.epoch);
    }
    const std::int64_t begin = position_.batch * batch_size_;
    const std::span<const std::int64_t> samples =
        std::span(order_).subspan(begin, std::min(batch_size_, num_train_ - begin));
    const double epoch = static_cast<double>(position_.epoch) +
                         static_cast<double>(position_.batch) / static_cast<double>(num_batches_);
    Progress progress;
    progress.lr = settings_.lr * position_.lr_factor * schedule_factor(settings_, epoch);

    const ops::GeneratorScope own_numbers(generator_);
    job_.model->train();
    progress.loss = gradient_of(samples);
    ++position_.step;
    if (!std::isfinite(progress.loss)) stop_as_diverged("the loss", progress);
    const double norm = adam_.clip_gradients(settings_.clip);
    if (!std::isfinite(norm)) stop_as_diverged("the gradient", progress);
    adam_.step(progress.lr);
    average_.follow(position_.step);

    position_.loss_sum += progress.loss;
    task::Metrics val;
    if (++position_.batch == num_batches_) end_epoch(progress, val);
    progress.step = position_.step;
    progress.num_steps = settings_.epochs * num_batches_;
    progress.best =
        position_.has_best ? position_.best_value : std::numeric_limits<double>::quiet_NaN();
    progress.seconds = seconds();
    progress.seconds_left = seconds_since(start_) /
                            static_cast<double>(position_.step - first_step_) *
                            static_cast<double>(progress.num_steps - position_.step);
    if (hooks_.on_step) hooks_.on_step(progress);
  }

  nn::GraphModule& network() const {
    return job_.shared ? static_cast<nn::GraphModule&>(*job_.shared) : *job_.model;
  }

  /// Leaves the gradient with the parameters and returns the loss.
  double gradient_of(std::span<const std::int64_t> samples) {
    if (settings_.pieces > 1 && !job_.shared) {
      return SharedBatch{job_.problem, *job_.model, adam_, generator_, ranks_, settings_.pieces}
          .gradient(samples);
    }
    adam_.zero_grad();
    const torch::Tensor loss = job_.problem.loss(network(), samples);
    const auto value = loss.item<double>();
    if (!std::isfinite(value)) return value;
    loss.backward();
    if (job_.shared) job_.shared->collect_gradients();
    return value;
  }

  [[noreturn]] void stop_as_diverged(const char* what, const Progress& progress) const {
    throw base::Error(fmt::format("training stopped at step {}: {} is not a finite number any more "
                                  "(learning rate {}); try {}",
                                  position_.step, what, shortest(progress.lr), remedies()),
                      base::ErrorKind::kDiverged);
  }

  /// What is not set yet.
  std::string remedies() const {
    std::string text = "a smaller train.lr";
    if (settings_.clip <= 0.0) text += ", train.clip=1";
    const ModelConfig& model = job_.config.model;
    if (model.kind == ModelKind::kMpssm && model.state != nn::StateKind::kStable)
      text += ", model.state=stable";
    return text;
  }

  void end_epoch(Progress& progress, task::Metrics& val) {
    const double train_loss = position_.loss_sum / static_cast<double>(num_batches_);
    ++position_.epoch;
    position_.batch = 0;
    position_.loss_sum = 0.0;
    const bool is_last = position_.epoch >= settings_.epochs;
    if (position_.epoch % settings_.eval_every == 0 || is_last) {
      const WeightAverage::Scope averaged(average_);
      val = evaluate(data::Part::kVal);
      // Nothing could ever be selected by it.
      if (std::isnan(val.at("loss"))) stop_as_diverged("the loss on validation", progress);
      progress.val = &val;
      select(val);
      record(train_loss, progress.lr, val);
    }
    position_.finished = is_over();
  }

  bool is_over() const {
    return position_.epoch >= settings_.epochs ||
           (settings_.patience > 0 && position_.evals_since_gain >= settings_.patience);
  }

  task::Metrics evaluate(data::Part part) const {
    const torch::NoGradGuard no_grad;
    job_.model->eval();
    if (ranks_.size() == 1 || job_.shared) return job_.problem.evaluate(network(), part);
    // The numbers as rank 0 has them, to the bit.
    std::string text;
    if (ranks_.is_first()) text = task::to_text(job_.problem.evaluate(*job_.model, part));
    return task::metrics_from_text(ranks::from_first(ranks_, text));
  }

  /// Keeps the weights if they are the best so far; lowers the learning rate on a plateau.
  void select(const task::Metrics& val) {
    double value = val.at(job_.metric);
    // Not defined on this validation part (one class only, say): the loss decides.
    if (std::isnan(value)) value = higher_is_better_ ? -val.at("loss") : val.at("loss");
    const bool is_better =
        !position_.has_best || settings_.on_validation ||
        (higher_is_better_ ? value > position_.best_value : value < position_.best_value);
    if (is_better) {
      position_.has_best = true;
      position_.best_value = value;
      position_.best_step = position_.step;
      position_.evals_since_gain = 0;
      position_.evals_since_drop = 0;
      best_ = copy_weights(*job_.model);
      return;
    }
    ++position_.evals_since_gain;
    if (settings_.schedule == Schedule::kPlateau &&
        ++position_.evals_since_drop > settings_.plateau_patience) {
      position_.lr_factor = std::max(position_.lr_factor * settings_.plateau_factor,
                                     std::min(settings_.min_lr / settings_.lr, 1.0));
      position_.evals_since_drop = 0;
    }
  }

  void record(double train_loss, double lr, const task::Metrics& val) {
    task::Metrics columns;
    for (const auto& [name, value] : val) columns["val_" + name] = value;
    if (settings_.track_test) {
      for (const auto& [name, value] : evaluate(data::Part::kTest)) columns["test_" + name] = value;
    }
    if (position_.history.empty()) {
      position_.history = "step,epoch,lr,train_loss";
      for (const auto& [name, value] : columns) position_.history += "," + name;
      position_.history += "\n";
    }
    position_.history += fmt::format("{},{},{},{}", position_.step, position_.epoch, shortest(lr),
                                     shortest(train_loss));
    for (const auto& [name, value] : columns) position_.history += "," + shortest(value);
    position_.history += "\n";
  }

  /// The state comes last: what it promises is on disk by then.
  void save() {
    if (!ranks_.is_first()) return;
    position_.seconds = seconds();
    if (position_.has_best) {
      save_model(job_.folder / "model.safetensors", best_, job_.metadata);
      io::write_file(job_.folder / "metrics.csv", position_.history);
    }
    save_state(state_path(), *job_.model, adam_, generator_, best_, average_.mean(), position_,
               config_text_);
    last_save_ = Clock::now();
  }

  const TrainJob& job_;
  const TrainHooks& hooks_;
  const TrainConfig& settings_;
  bool higher_is_better_;
  std::string config_text_;
  Adam adam_;
  WeightAverage average_;
  at::Generator generator_;  // of dropout; torch's own belongs to others
  std::unique_ptr<ranks::Communicator> alone_;
  ranks::Communicator& ranks_;
  std::int64_t num_train_;
  std::int64_t batch_size_;
  std::int64_t num_batches_;
  std::vector<std::int64_t> order_;
  Position position_;
  Weights best_;
  double seconds_before_ = 0.0;
  std::int64_t first_step_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_save_ = Clock::now();
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::int64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (count <= 1) return order;
  std::seed_seq mix{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                    static_cast<std::uint32_t>(epoch)};
  std::mt19937_64 generator(mix);
  // std::shuffle differs between libraries; this does not.
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[generator() % static_cast<std::uint64_t>(i + 1)]);
  }
  return order;
}

double schedule_factor(const TrainConfig& config, double epoch) {
  if (config.schedule != Schedule::kCosine) return 1.0;
  if (epoch < config.warmup_epochs) return std::max(1e-6, epoch / config.warmup_epochs);
  const double rest = std::max(static_cast<double>(config.epochs) - config.warmup_epochs, 1e-9);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * (epoch - config.warmup_epochs) / rest));
}

TrainOutcome train(const TrainJob& job, const TrainHooks& hooks) { return Run(job, hooks).go(); }

}  // namespace mpssm::train
