// SPDX-License-Identifier: MIT
// Predictions that any model has to beat: the most frequent class or the mean, a linear model on
// features alone, the labels of the neighbours. Private to task/.
#pragma once

#include <span>
#include <vector>

#include "mpssm/task/problem.h"

namespace mpssm::task {

/// LabelledRows with features, a label each (NaN: none) and a part: what a linear model is fitted
/// to.
struct LabelledRows {
  torch::Tensor x = {};  ///< [n, F]
  std::vector<float> truth = {};
  std::vector<data::Part> part = {};
  std::int64_t num_classes = 0;  ///< 0: values
};

/// The most frequent class, or the mean, of train; on test.
Reference constant_reference(const LabelledRows& samples);

/// Logistic or ridge regression on the features, its strength chosen on validation; on test.
Reference linear_reference(const LabelledRows& samples, const std::string& name);

/// The two above; without features (x undefined) the first only, and none if a part is empty.
std::vector<Reference> plain_references(const LabelledRows& rows);

/// For one graph: these and and label propagation: labels of train spread over the edges, from
/// a node to its neighbours, with 0.9 of their strength at each of 50 steps.
std::vector<Reference> node_references(const data::NodeData& data, std::span<const data::Part> part,
                                       const torch::Tensor& x);

}  // namespace mpssm::task
