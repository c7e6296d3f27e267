// SPDX-License-Identifier: MIT
// A series on one graph: windows in, the next steps of every node out.
#include <algorithm>
#include <fmt/core.h>
#include <numeric>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/io/csv.h"
#include "mpssm/task/encoded_features.h"
#include "mpssm/task/forecast_references.h"
#include "mpssm/task/problems.h"
#include "mpssm/task/series_view.h"

namespace mpssm::task {
namespace {

using data::Part;
using Samples = std::span<const std::int64_t>;

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

/// The operator of the series, or one for each of its steps.
class OperatorsOverTime {
 public:
  explicit OperatorsOverTime(graph::Operators gso) : gso_(std::move(gso)) {}
  /// Throws base::Error if nothing changes with time.
  OperatorsOverTime(const data::Dataset& dataset, const graph::GsoGroups& groups) {
    const auto& series = std::get<data::SeriesData>(dataset.content);
    if (series.changing.of_step.empty()) {
      throw base::Error("data.graph_over_time",
                        dataset.name + " has edges without times, one graph for all steps");
    }
    if (groups.is_of_edges()) {
      throw base::Error("data.graph_over_time",
                        "a sequence of graphs has no operators of some of the edges, got model.gso "
                        "= " +
                            to_string(groups));
    }
    for (const graph::Graph& graph : series.changing.graphs) {
      steps_.push_back(graph::make_operators(graph, groups));
      if (steps_.back().has_low_rank()) {
        throw base::Error("data.graph_over_time",
                          "a sequence of graphs has no virtual_node or adaptive, got model.gso = " +
                              to_string(groups));
      }
    }
    of_step_ = series.changing.of_step;
  }

  /// Of steps [window, window + lags) for each window.
  graph::Operators of(Samples windows, std::int64_t lags) const {
    if (steps_.empty()) return gso_;
    std::vector<graph::Operators> used;
    std::vector<std::int32_t> place(steps_.size(), -1);
    std::vector<std::int32_t> index;
    for (const std::int64_t window : windows) {
      for (std::int64_t t = window; t < window + lags; ++t) {
        std::int32_t& at = place[static_cast<std::size_t>(of_step_[static_cast<std::size_t>(t)])];
        if (at < 0) {
          at = static_cast<std::int32_t>(used.size());
          used.push_back(steps_[static_cast<std::size_t>(of_step_[static_cast<std::size_t>(t)])]);
        }
        index.push_back(at);
      }
    }
    return graph::Operators::sequence(std::move(used), std::move(index), lags);
  }

  /// For estimates: a window in which every step has the most entries.
  graph::Operators largest(std::int64_t lags) const {
    if (steps_.empty()) return gso_;
    const auto largest = std::max_element(
        steps_.begin(), steps_.end(),
        [](const auto& a, const auto& b) { return a.num_nonzeros() < b.num_nonzeros(); });
    return graph::Operators::sequence(
        {*largest}, std::vector<std::int32_t>(static_cast<std::size_t>(lags)), lags);
  }

  std::int64_t bytes() const {
    constexpr std::int64_t kOfEntry = 40;
    std::int64_t entries = steps_.empty() ? gso_.num_nonzeros() : 0;
    for (const graph::Operators& gso : steps_) entries += gso.num_nonzeros() + gso.num_nodes();
    return kOfEntry * entries;
  }

 private:
  graph::Operators gso_;
  std::vector<graph::Operators> steps_;  // empty: gso_ at every step
  std::vector<std::int32_t> of_step_;
};

class SeriesProblem final : public Problem {
 public:
  SeriesProblem(const data::Dataset& dataset, const ProblemOptions& options,
                const Preprocessing* learned)
      : data_(std::get<data::SeriesData>(dataset.content)),
        encoded_(data_.graph, options.encodings, data_.edge_table, learned),
        operators_(options.graph_over_time ? OperatorsOverTime(dataset, options.gso)
                                           : OperatorsOverTime(data::make_operators(
                                                 data_.graph, options.gso, data_.edge_table))),
        split_(dataset.is_new ? all_windows_in_test(data_) : data::window_split(data_)),
        train_end_(options.on_validation ? split_.test : split_.val),
        view_(data_, options.series, train_end_, learned),
        evaluation_batch_(windows_at_once(data_, options)),
        use_mae_(options.loss == Loss::kMae ||
                 (options.loss == Loss::kAuto && dataset.metric == "mae")) {
    if (options.split != 0) {
      throw base::Error("data.split", fmt::format("{} is split by time, in one way (0), got {}",
                                                  dataset.name, options.split));
    }
    inputs_ = view_.inputs(data_, options.series);
    has_missing_ = data_.null_value.has_value() || view_.measured.isnan().any().item<bool>();
  }

  /// x [..., N, F] -> [..., N, F + width]: the same at every step.
  static torch::Tensor with_encodings(const torch::Tensor& x, const EncodedFeatures& encoded,
                                      bool training = false) {
    if (encoded.width() == 0) return x;
    torch::Tensor of_nodes = encoded.append(torch::empty({x.size(-2), 0}));
    if (training) of_nodes = encoded.flipped(of_nodes);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = encoded.width();
    return torch::cat({x, of_nodes.expand(shape)}, -1);
  }

  ProblemShape shape() const override {
    return {.in_channels = inputs_.size(2) + encoded_.width(),
            .out_channels = data_.horizon,
            .mode = nn::Mode::kTemporal,
            .readout = nn::Readout::kForecast,
            .num_nodes = data_.num_nodes,
            .num_steps = data_.lags};
  }

  graph::Operators largest_gso(std::int64_t) const override {
    return operators_.largest(data_.lags);
  }
  std::int64_t evaluation_batch() const override { return evaluation_batch_; }
  std::int64_t data_bytes() const override {
    // Forecasts of the largest part that is evaluated, in pieces and joined, and the truth.
    const std::int64_t windows = std::max(split_.test - split_.val, split_.end - split_.test);
    const std::int64_t forecasts = windows * data_.num_nodes * data_.horizon;
    const std::int64_t encoded = 2 * evaluation_batch_ * data_.lags * encoded_.bytes();
    return 8 * inputs_.numel() + 2 * view_.bytes() + 12 * forecasts + encoded + operators_.bytes();
  }
  std::int64_t num_train() const override { return train_end_; }

  /// The ridge regression: a network beside it has to find what the line cannot say.
  std::optional<LinearStart> linear_start() const override {
    if (split_.val == 0 || split_.test == split_.val) return std::nullopt;
    const torch::NoGradGuard no_grad;
    const torch::Tensor line = ridge_line(view_.line, split_, train_end_, use_mae_);
    const Preprocessing& scale = view_.learned;
    const std::int64_t num_calendar = view_.line.num_calendar();
    const torch::Tensor slope = line.slice(1, 0, data_.lags);  // of raw values as of scaled ones
    torch::Tensor weight =
        torch::zeros({data_.horizon, data_.lags, inputs_.size(2) + encoded_.width()});
    weight.select(2, 0).copy_(slope);
    if (num_calendar > 0) {  // the last channels of the last step
      weight.select(1, data_.lags - 1)
          .slice(1, inputs_.size(2) - num_calendar, inputs_.size(2))
          .copy_(line.slice(1, data_.lags, data_.lags + num_calendar) / scale.scale);
    }
    const torch::Tensor constant = line.select(1, data_.lags + num_calendar);
    return LinearStart{.weight = weight.flatten(1),
                       .bias = (constant + scale.mean * (slope.sum(1) - 1.0)) / scale.scale};
  }

  torch::Tensor loss(nn::GraphModule& model, Samples windows) const override {
    const torch::Tensor truth = targets(windows);
    const torch::Tensor mask = mask_of(truth);
    const torch::Tensor difference =
        forecast(model, windows) - (mask.defined() ? truth.nan_to_num() : truth);
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
    return forecast_metrics(torch::cat(outputs), targets(windows), use_mae_);
  }

  Sample sample(std::int64_t index) const override {
    check_sample(index, split_.end);
    const std::int64_t windows[] = {index};
    Sample sample{with_encodings(steps_of(inputs_, windows, 0, data_.lags)[0], encoded_),
                  operators_.of(windows, data_.lags)};
    if (view_.base.defined()) sample.base = base_of(windows)[0];
    return sample;
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

  Preprocessing preprocessing() const override {
    Preprocessing learned = view_.learned;
    learned.edge_columns = encoded_.edge_columns();
    return learned;
  }

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
    const torch::Tensor window =
        with_encodings(steps_of(inputs_, windows, 0, data_.lags), encoded_, model.is_training());
    torch::Tensor output = model.forward(window, operators_.of(windows, data_.lags));
    if (view_.is_scaled()) output = output * view_.learned.scale + view_.learned.mean;
    return view_.base.defined() ? output + base_of(windows) : output;
  }

  /// [B, N, H]
  torch::Tensor base_of(Samples windows) const {
    return steps_of(view_.base, windows, data_.lags, data_.horizon).transpose(1, 2).contiguous();
  }

  torch::Tensor targets(Samples windows) const {
    return steps_of(view_.measured, windows, data_.lags, data_.horizon)
        .transpose(1, 2)
        .contiguous();
  }

  /// Undefined: nothing is missing.
  torch::Tensor mask_of(const torch::Tensor& truth) const {
    if (!has_missing_) return {};
    return truth.isnan().logical_not().to(torch::kFloat);
  }

  const data::SeriesData& data_;
  EncodedFeatures encoded_;
  OperatorsOverTime operators_;
  data::WindowSplit split_;
  std::int64_t train_end_;  // training windows are [0, train_end_)
  SeriesView view_;
  std::int64_t evaluation_batch_;
  bool use_mae_;
  torch::Tensor inputs_;  // [T, N, F]
  bool has_missing_ = false;
};

}  // namespace

std::unique_ptr<Problem> make_series_problem(const data::Dataset& dataset,
                                             const ProblemOptions& options,
                                             const Preprocessing* learned) {
  return std::make_unique<SeriesProblem>(dataset, options, learned);
}

void write_forecast(const data::Dataset& dataset, const ProblemOptions& options,
                    const Preprocessing& learned, nn::GraphModule& model, const io::Sink& sink) {
  const auto& data = std::get<data::SeriesData>(dataset.content);
  if (data.num_steps < data.lags) {
    throw base::Error(dataset.name,
                      fmt::format("expected at least {} steps (data.lags of the model), got {}",
                                  data.lags, data.num_steps));
  }
  const OperatorsOverTime operators =
      options.graph_over_time
          ? OperatorsOverTime(dataset, options.gso)
          : OperatorsOverTime(data::make_operators(data.graph, options.gso, data.edge_table));
  const std::int64_t last[] = {data.num_steps - data.lags};
  const SeriesView view(data, options.series, 0, &learned);
  const torch::Tensor window = SeriesProblem::with_encodings(
      view.inputs(data, options.series).slice(0, data.num_steps - data.lags),
      EncodedFeatures(data.graph, options.encodings, data.edge_table, &learned));
  torch::Tensor output =
      model.forward(window.unsqueeze(0), operators.of(last, data.lags))[0] * learned.scale +
      learned.mean;
  if (view.base.defined()) output = output + view.base.slice(0, data.num_steps).t();
  output = output.contiguous();
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
