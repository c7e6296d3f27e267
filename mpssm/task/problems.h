// SPDX-License-Identifier: MIT
// Private to task/: the kinds of problem and what they share.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "mpssm/task/metrics.h"
#include "mpssm/task/problem.h"

namespace mpssm::task {

std::unique_ptr<Problem> make_node_problem(const data::Dataset& dataset,
                                           const ProblemOptions& options,
                                           const Preprocessing* learned, const NodeShare* share);
std::unique_ptr<Problem> make_graphs_problem(const data::Dataset& dataset,
                                             const ProblemOptions& options,
                                             const Preprocessing* learned);
std::unique_ptr<Problem> make_series_problem(const data::Dataset& dataset,
                                             const ProblemOptions& options,
                                             const Preprocessing* learned);

std::unique_ptr<Problem> make_link_problem(const data::Dataset& dataset,
                                           const ProblemOptions& options);

/// Throws base::Error unless 0 <= index < count.
void check_sample(std::int64_t index, std::int64_t count);
torch::Tensor tensor_of(const data::Matrix& matrix);
/// The numbers of a dense float tensor; it must outlive the span.
std::span<const float> numbers_of(const torch::Tensor& tensor);
/// ",a,b,c" with seven digits: cells of a table of predictions.
void append_numbers(std::string& text, const float* values, std::int64_t count);
void add_error_metrics(const Errors& errors, Metrics& metrics);

}  // namespace mpssm::task
