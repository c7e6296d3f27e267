// SPDX-License-Identifier: MIT
#include "mpssm/task/problem.h"

#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {

torch::Tensor ordered_sum(const torch::Tensor& x) {
  // torch adds up to 32768 numbers on one thread; sums of rows are one thread's work each.
  constexpr std::int64_t kRow = 4096;
  torch::Tensor flat = x.reshape({-1});
  const std::int64_t rest = flat.numel() % kRow;
  if (flat.numel() <= kRow) return flat.sum();
  const torch::Tensor rows = flat.slice(0, 0, flat.numel() - rest).view({-1, kRow}).sum(1);
  const torch::Tensor sum = ordered_sum(rows);
  return rest == 0 ? sum : sum + flat.slice(0, flat.numel() - rest).sum();
}

torch::Tensor Problem::loss_of_part(nn::GraphModule&, data::Part) const {
  throw base::Error("a loss of a whole part: expected one graph, these are many");
}

void check_sample(std::int64_t index, std::int64_t count) {
  if (index >= 0 && index < count) return;
  throw base::Error({.where = "sample",
                     .expected = fmt::format("0 to {}", count - 1),
                     .got = std::to_string(index)});
}

torch::Tensor tensor_of(const data::Matrix& matrix) {
  torch::Tensor tensor = torch::empty({matrix.rows, matrix.columns});
  std::copy(matrix.values.begin(), matrix.values.end(), tensor.data_ptr<float>());
  return tensor;
}

std::span<const float> numbers_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

void append_numbers(std::string& text, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    fmt::format_to(std::back_inserter(text), ",{:.7g}", values[i]);
  }
}

void add_error_metrics(const Errors& errors, Metrics& metrics) {
  metrics["mae"] = errors.mae;
  metrics["mse"] = errors.mse;
  metrics["rmse"] = errors.rmse;
}

namespace {

/// The first setting that only series know, nullptr: none is given.
const char* setting_of_series(const ProblemOptions& options) {
  if (options.on_validation) return "train.on_validation";
  if (options.graph_over_time) return "data.graph_over_time";
  if (options.series.fill) return "data.fill";
  if (options.series.mark_missing) return "data.mark_missing";
  if (options.series.deviation) return "data.deviation";
  return options.series.harmonics > 0 ? "data.harmonics" : nullptr;
}

}  // namespace

std::unique_ptr<Problem> make_problem(const data::Dataset& dataset, const ProblemOptions& options,
                                      const Preprocessing* learned, const NodeShare* share) {
  if (!std::holds_alternative<data::SeriesData>(dataset.content)) {
    if (const char* setting = setting_of_series(options)) {
      throw base::Error(setting, "for series only, " + dataset.name + " is none");
    }
  }
  if (share != nullptr && !options.encodings.empty()) {
    throw base::Error("data.encodings", "not for a graph in parts: they look at all of it");
  }
  if (dataset.task == data::Task::kLinks && !options.encodings.empty()) {
    throw base::Error("data.encodings", "not for links: they would tell which edges are held out");
  }
  if (dataset.task == data::Task::kLinks) return make_link_problem(dataset, options);
  if (std::holds_alternative<data::NodeData>(dataset.content)) {
    return make_node_problem(dataset, options, learned, share);
  }
  if (std::holds_alternative<data::GraphsData>(dataset.content)) {
    return make_graphs_problem(dataset, options, learned);
  }
  return make_series_problem(dataset, options, learned);
}

}  // namespace mpssm::task
