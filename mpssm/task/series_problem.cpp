// SPDX-License-Identifier: MIT
// A series on one graph: windows in, the next steps of every node out.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numbers>
#include <numeric>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/forecast_references.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::Part;
using Samples = std::span<const std::int64_t>;

constexpr int kHarmonics = 4;  // down to six hours

/// One mean and deviation of feature 0 over the inputs of the training windows, each step as often
/// as windows see it (DCRNN's choice; missing values count as they stand).
Preprocessing scale_of(const data::SeriesData& data, std::int64_t windows) {
  if (!data.standardise) return {};
  double count = 0.0;
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t t = 0; t < windows + data.lags - 1; ++t) {
    const auto seen =
        static_cast<double>(std::min({t + 1, data.lags, windows + data.lags - 1 - t, windows}));
    for (std::int64_t i = 0; i < data.num_nodes; ++i) {
      const double x = data.values[(t * data.num_nodes + i) * data.num_features];
      count += seen;
      sum += seen * x;
      squares += seen * x * x;
    }
  }
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(squares / count - mean * mean, 0.0));
  return {.mean = mean, .scale = deviation > 0.0 ? deviation : 1.0};
}

/// For data that a trained model is applied to.
data::WindowSplit all_windows_in_test(const data::SeriesData& data) {
  return {0, 0, std::max<std::int64_t>(data.num_steps - data.lags - data.horizon + 1, 0)};
}

/// Evaluation keeps nothing for gradients: larger batches, fewer calls, as long as they are small.
std::int64_t windows_at_once(const data::SeriesData& data, const ProblemOptions& options) {
  constexpr std::int64_t kMost = 64;
  constexpr std::int64_t kNumbers = 1 << 20;
  const std::int64_t window = data.lags * data.num_nodes * options.channels;
  const std::int64_t fitting = kNumbers / std::max<std::int64_t>(window, 1);
  return std::max({options.batch, std::min(kMost, fitting), std::int64_t{1}});
}

class SeriesProblem final : public Problem {
 public:
  SeriesProblem(const data::Dataset& dataset, const ProblemOptions& options,
                const Preprocessing* learned)
      : data_(std::get<data::SeriesData>(dataset.content)),
        gso_(graph::make_gso(data_.graph, {.kind = options.gso})),
        split_(dataset.is_new ? all_windows_in_test(data_) : data::window_split(data_)),
        train_end_(options.on_validation ? split_.test : split_.val),
        scale_(learned != nullptr ? *learned : scale_of(data_, train_end_)),
        evaluation_batch_(windows_at_once(data_, options)),
        use_mae_(options.loss == Loss::kMae ||
                 (options.loss == Loss::kAuto && dataset.metric == "mae")) {
    if (options.split != 0) {
      throw base::Error("data.split", fmt::format("{} is split by time, in one way (0), got {}",
                                                  dataset.name, options.split));
    }
    inputs_ = inputs_of(data_, scale_);
    series_ = measured(data_);
  }

  /// [T, N, F (+ the time of day and its harmonics: midnight is no jump for these)]
  static torch::Tensor inputs_of(const data::SeriesData& data, const Preprocessing& scale) {
    const bool with_time = !data.time_of_day.empty();
    const std::int64_t channels = data.num_features + (with_time ? 1 + 2 * kHarmonics : 0);
    torch::Tensor inputs = torch::empty({data.num_steps, data.num_nodes, channels});
    float* to = inputs.data_ptr<float>();
    const float* from = data.values.data();
    for (std::int64_t t = 0; t < data.num_steps; ++t) {
      for (std::int64_t i = 0; i < data.num_nodes; ++i) {
        *to++ = static_cast<float>((*from++ - scale.mean) / scale.scale);
        for (std::int64_t f = 1; f < data.num_features; ++f) *to++ = *from++;
        if (!with_time) continue;
        *to++ = data.time_of_day[t];
        for (int h = 1; h <= kHarmonics; ++h) {
          const double angle = 2.0 * std::numbers::pi * h * data.time_of_day[t];
          *to++ = static_cast<float>(std::sin(angle));
          *to++ = static_cast<float>(std::cos(angle));
        }
      }
    }
    return inputs;
  }

  ProblemShape shape() const override {
    return {.in_channels = inputs_.size(2),
            .out_channels = data_.horizon,
            .mode = nn::Mode::kTemporal,
            .readout = nn::Readout::kForecast,
            .num_nodes = data_.num_nodes,
            .num_steps = data_.lags};
  }

  graph::Operators largest_gso(std::int64_t) const override { return gso_; }
  std::int64_t evaluation_batch() const override { return evaluation_batch_; }
  std::int64_t data_bytes() const override {
    // Forecasts of the largest part that is evaluated, in pieces and joined, and the truth.
    const std::int64_t windows = std::max(split_.test - split_.val, split_.end - split_.test);
    const std::int64_t forecasts = windows * data_.num_nodes * data_.horizon;
    return 8 * (inputs_.numel() + series_.numel()) + 12 * forecasts + 40 * gso_.num_nonzeros();
  }
  std::int64_t num_train() const override { return train_end_; }

  /// The ridge regression: a network beside it has to find what the line cannot say.
  std::optional<LinearStart> linear_start() const override {
    if (split_.val == 0 || split_.test == split_.val) return std::nullopt;
    const torch::NoGradGuard no_grad;
    const torch::Tensor line = ridge_line(data_, split_, train_end_, use_mae_);
    const torch::Tensor slope = line.slice(1, 0, data_.lags);  // of raw values as of scaled ones
    torch::Tensor weight = torch::zeros({data_.horizon, data_.lags, inputs_.size(2)});
    weight.select(2, 0).copy_(slope);
    return LinearStart{
        .weight = weight.flatten(1),
        .bias = (line.select(1, data_.lags) + scale_.mean * (slope.sum(1) - 1.0)) / scale_.scale};
  }

  torch::Tensor loss(nn::GraphModule& model, Samples windows) const override {
    const torch::Tensor truth = targets(windows);
    const torch::Tensor mask = mask_of(truth);
    const torch::Tensor difference = forecast(model, windows) - truth;
    const torch::Tensor each = use_mae_ ? difference.abs() : difference.square();
    if (!mask.defined()) return ordered_sum(each) / static_cast<double>(each.numel());
    return ordered_sum(each * mask) / ordered_sum(mask).clamp_min(1.0);
  }

  double weight(Samples windows) const override {
    const torch::Tensor truth = targets(windows);
    const torch::Tensor mask = mask_of(truth);
    return mask.defined() ? mask.to(torch::kDouble).sum().item<double>()
                          : static_cast<double>(truth.numel());
  }

  torch::Tensor loss_of_part(nn::GraphModule& model, Part part) const override {
    const std::vector<std::int64_t> windows = some_windows_of(part);
    const std::int64_t count = std::min(std::ssize(windows), evaluation_batch_);
    std::vector<std::int64_t> some;
    for (std::int64_t k = 0; k < count; ++k) {
      some.push_back(windows[(2 * k + 1) * std::ssize(windows) / (2 * count)]);
    }
    return loss(model, some);
  }

  Metrics evaluate(nn::GraphModule& model, Part part) const override {
    const std::vector<std::int64_t> windows = some_windows_of(part);
    std::vector<torch::Tensor> outputs;
    for_batches(windows, [&](Samples some) { outputs.push_back(forecast(model, some)); });
    return forecast_metrics(torch::cat(outputs), targets(windows), data_.null_value, use_mae_);
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, split_.end);
    const std::int64_t windows[] = {index};
    return {steps_of(inputs_, windows, 0, data_.lags)[0], gso_};
  }

  void write_predictions(nn::GraphModule& model, const io::Sink& sink) const override {
    std::string header = "window,node";
    for (std::int64_t h = 1; h <= data_.horizon; ++h) header += fmt::format(",step_{}", h);
    sink(header + "\n");
    for_batches(windows_of(Part::kTest), [&](Samples some) {
      const torch::Tensor output = forecast(model, some).contiguous();
      const float* row = output.data_ptr<float>();
      std::string text;
      for (const std::int64_t window : some) {
        for (std::int64_t i = 0; i < data_.num_nodes; ++i, row += data_.horizon) {
          text += fmt::format("{},{}", window, node_id(data_, i));
          append_numbers(text, row, data_.horizon);
          text += "\n";
        }
      }
      sink(text);
    });
  }

  std::vector<Reference> references() const override {
    return forecast_references(data_, split_, use_mae_);
  }

  Preprocessing preprocessing() const override { return scale_; }

  static std::string node_id(const data::SeriesData& data, std::int64_t i) {
    return data.node_ids.empty() ? std::to_string(i) : io::csv_cell(data.node_ids[i]);
  }

 private:
  /// At least one.
  std::vector<std::int64_t> some_windows_of(Part part) const {
    std::vector<std::int64_t> windows = windows_of(part);
    if (!windows.empty()) return windows;
    throw base::Error(
        fmt::format("a series of {} steps has no window to evaluate; {} steps make one",
                    data_.num_steps, data_.lags + data_.horizon));
  }

  std::vector<std::int64_t> windows_of(Part part) const {
    const std::int64_t bounds[] = {0, split_.val, split_.test, split_.end};
    const auto index = static_cast<std::size_t>(part);
    std::vector<std::int64_t> windows(bounds[index + 1] - bounds[index]);
    std::iota(windows.begin(), windows.end(), bounds[index]);
    return windows;
  }

  template <typename Body>
  void for_batches(Samples windows, const Body& body) const {
    const auto size = static_cast<std::size_t>(evaluation_batch_);
    for (std::size_t begin = 0; begin < windows.size(); begin += size) {
      body(windows.subspan(begin, std::min(size, windows.size() - begin)));
    }
  }

  /// Steps [window + first, window + first + count) of x [T, ...]: [B, count, ...].
  static torch::Tensor steps_of(const torch::Tensor& x, Samples windows, std::int64_t first,
                                std::int64_t count) {
    std::vector<std::int64_t> shape = x.sizes().vec();
    const std::int64_t step_size = x.numel() / x.size(0);
    shape[0] = count;
    shape.insert(shape.begin(), static_cast<std::int64_t>(windows.size()));
    torch::Tensor result = torch::empty(shape);
    float* to = result.data_ptr<float>();
    for (const std::int64_t window : windows) {
      const float* from = x.data_ptr<float>() + (window + first) * step_size;
      to = std::copy(from, from + count * step_size, to);
    }
    return result;
  }

  /// [B, N, H] on the original scale.
  torch::Tensor forecast(nn::GraphModule& model, Samples windows) const {
    const torch::Tensor output = model.forward(steps_of(inputs_, windows, 0, data_.lags), gso_);
    return scale_.scale == 1.0 && scale_.mean == 0.0 ? output : output * scale_.scale + scale_.mean;
  }

  torch::Tensor targets(Samples windows) const {
    return steps_of(series_, windows, data_.lags, data_.horizon).transpose(1, 2).contiguous();
  }

  torch::Tensor mask_of(const torch::Tensor& truth) const {
    if (!data_.null_value) return {};
    return (truth != *data_.null_value).to(torch::kFloat);
  }

  const data::SeriesData& data_;
  graph::Operators gso_;
  data::WindowSplit split_;
  std::int64_t train_end_;  // training windows are [0, train_end_)
  Preprocessing scale_;
  std::int64_t evaluation_batch_;
  bool use_mae_;
  torch::Tensor inputs_;  // [T, N, F]
  torch::Tensor series_;  // [T, N]
};

}  // namespace

std::unique_ptr<Problem> make_series_problem(const data::Dataset& dataset,
                                             const ProblemOptions& options,
                                             const Preprocessing* learned) {
  return std::make_unique<SeriesProblem>(dataset, options, learned);
}

void write_forecast(const data::Dataset& dataset, graph::GsoKind kind, const Preprocessing& learned,
                    nn::GraphModule& model, const io::Sink& sink) {
  const auto& data = std::get<data::SeriesData>(dataset.content);
  if (data.num_steps < data.lags) {
    throw base::Error(dataset.name,
                      fmt::format("expected at least {} steps (data.lags of the model), got {}",
                                  data.lags, data.num_steps));
  }
  const graph::Gso gso = graph::make_gso(data.graph, {.kind = kind});
  const torch::Tensor window =
      SeriesProblem::inputs_of(data, learned).slice(0, data.num_steps - data.lags);
  const torch::Tensor output =
      (model.forward(window.unsqueeze(0), gso)[0] * learned.scale + learned.mean).contiguous();
  std::string text = "node";
  for (std::int64_t h = 1; h <= data.horizon; ++h) text += fmt::format(",step_{}", h);
  text += "\n";
  for (std::int64_t i = 0; i < data.num_nodes; ++i) {
    text += SeriesProblem::node_id(data, i);
    append_numbers(text, output.data_ptr<float>() + i * data.horizon, data.horizon);
    text += "\n";
  }
  sink(text);
}

}  // namespace mpssm::task
