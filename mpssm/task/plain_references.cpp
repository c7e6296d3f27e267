// SPDX-License-Identifier: MIT
#include "mpssm/task/plain_references.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <torch/types.h>

#include "mpssm/graph/gso.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

using data::Part;

std::vector<std::int64_t> rows_of(const LabelledRows& samples, Part part) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < samples.truth.size(); ++i) {
    if (samples.part[i] == part && !std::isnan(samples.truth[i])) {
      rows.push_back(static_cast<std::int64_t>(i));
    }
  }
  return rows;
}

torch::Tensor pick(const torch::Tensor& x, const std::vector<std::int64_t>& rows) {
  return x.index_select(0, torch::tensor(rows, torch::kLong));
}

torch::Tensor labels_of(const LabelledRows& samples, const std::vector<std::int64_t>& rows) {
  torch::Tensor y = torch::empty({std::ssize(rows)});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    y.data_ptr<float>()[i] = samples.truth[rows[i]];
  }
  return y;
}

// Two classes have one logit, of the second.
std::int64_t outputs_of(const LabelledRows& samples) {
  return samples.num_classes > 2 ? samples.num_classes : 1;
}

Metrics measure(const LabelledRows& samples, const torch::Tensor& output,
                const std::vector<std::int64_t>& rows) {
  const torch::Tensor some = output.contiguous();
  const torch::Tensor truth = labels_of(samples, rows);
  return samples.num_classes > 0 ? class_metrics(numbers_of(some), some.size(1), numbers_of(truth))
                                 : value_metrics(numbers_of(some), numbers_of(truth));
}

// Deterministic full-batch descent (Adam) on a convex loss: softmax or logistic, or squared error.
class LinearFit {
 public:
  LinearFit(const LabelledRows& samples, double strength) : samples_(samples), strength_(strength) {
    const std::int64_t features = samples.x.size(1);
    weight_ = torch::zeros({outputs_of(samples), features});
    bias_ = torch::zeros({outputs_of(samples)});
  }

  void fit(const torch::Tensor& x, const torch::Tensor& y, int steps) {
    torch::Tensor moments[2][2];
    for (int step = 1; step <= steps; ++step) {
      const torch::Tensor slope = slope_of(output(x), y) / static_cast<double>(x.size(0));
      const torch::Tensor gradients[2] = {
          ops::transposed_matmul(slope, x) + strength_ * weight_,
          ops::transposed_matmul(slope, torch::ones({x.size(0), 1})).squeeze(1)};
      torch::Tensor* parameters[2] = {&weight_, &bias_};
      const double rate = 0.1 * (1.0 - static_cast<double>(step - 1) / steps);
      for (int p = 0; p < 2; ++p) {
        if (step == 1) moments[p][0] = moments[p][1] = torch::zeros_like(gradients[p]);
        moments[p][0] = 0.9 * moments[p][0] + 0.1 * gradients[p];
        moments[p][1] = 0.99 * moments[p][1] + 0.01 * gradients[p].square();
        const torch::Tensor mean = moments[p][0] / (1.0 - std::pow(0.9, step));
        const torch::Tensor square = moments[p][1] / (1.0 - std::pow(0.99, step));
        *parameters[p] = *parameters[p] - rate * mean / (square.sqrt() + 1e-8);
      }
    }
  }

  torch::Tensor output(const torch::Tensor& x) const { return ops::linear(x, weight_, bias_); }

 private:
  // Derivative of the summed loss by the output.
  torch::Tensor slope_of(const torch::Tensor& output, const torch::Tensor& y) const {
    if (samples_.num_classes > 2) {
      torch::Tensor slope = torch::softmax(output, 1).contiguous();
      for (std::int64_t i = 0; i < slope.size(0); ++i) {
        slope.data_ptr<float>()[i * slope.size(1) +
                                static_cast<std::int64_t>(y.data_ptr<float>()[i])] -= 1.0F;
      }
      return slope;
    }
    const torch::Tensor value = samples_.num_classes == 2 ? torch::sigmoid(output) : output;
    return value - y.unsqueeze(1);
  }

  const LabelledRows& samples_;
  double strength_;
  torch::Tensor weight_;
  torch::Tensor bias_;
};

// Fewer steps where each takes long; some seconds at most.
int steps_for(const LabelledRows& samples) {
  const double products =
      static_cast<double>(samples.x.numel()) * static_cast<double>(outputs_of(samples));
  constexpr double kProducts = 2e10;
  return static_cast<int>(std::clamp(kProducts / std::max(products, 1.0), 50.0, 300.0));
}

Reference label_propagation(const LabelledRows& samples, const graph::Graph& graph) {
  const graph::Gso gso = graph::make_gso(graph, {.kind = graph::GsoKind::kSymNormalized});
  const std::int64_t n = graph.num_nodes();
  const bool are_classes = samples.num_classes > 0;
  // Classes one hot; of values the sum and the weight that it came with.
  const std::int64_t columns = are_classes ? samples.num_classes : 2;
  torch::Tensor start = torch::zeros({n, columns});
  const std::vector<std::int64_t> train = rows_of(samples, Part::kTrain);
  double mean = 0.0;
  for (const std::int64_t i : train) {
    mean += static_cast<double>(samples.truth[i]) / static_cast<double>(train.size());
  }
  for (const std::int64_t i : train) {
    float* row = start.data_ptr<float>() + i * columns;
    if (are_classes) {
      row[static_cast<std::int64_t>(samples.truth[i])] = 1.0F;
    } else {
      row[0] = static_cast<float>(samples.truth[i] - mean);
      row[1] = 1.0F;
    }
  }
  constexpr double kKept = 0.9;
  constexpr int kSteps = 50;
  torch::Tensor spread = start;
  for (int step = 0; step < kSteps; ++step) {
    spread = kKept * ops::spmm(gso, spread) + (1.0 - kKept) * start;
  }
  torch::Tensor output;
  if (!are_classes) {
    output = (spread.slice(1, 0, 1) / (spread.slice(1, 1, 2) + 1e-6) + mean);
  } else {
    // Where nothing arrives, the frequent classes are the best guess.
    torch::Tensor share = start.sum(0, true) / static_cast<double>(train.size());
    output = torch::log(spread + 1e-6 * share + 1e-12);
    if (samples.num_classes == 2) output = output.slice(1, 1, 2) - output.slice(1, 0, 1);
  }
  const std::vector<std::int64_t> test = rows_of(samples, Part::kTest);
  return {"label propagation", measure(samples, pick(output, test), test)};
}

}  // namespace

Reference constant_reference(const LabelledRows& samples) {
  const std::vector<std::int64_t> train = rows_of(samples, Part::kTrain);
  const std::vector<std::int64_t> test = rows_of(samples, Part::kTest);
  const bool are_classes = samples.num_classes > 0;
  torch::Tensor one = torch::zeros({1, outputs_of(samples)});
  std::vector<std::int64_t> count(std::max<std::int64_t>(samples.num_classes, 1), 0);
  double mean = 0.0;
  for (const std::int64_t i : train) {
    if (are_classes) ++count[static_cast<std::size_t>(samples.truth[i])];
    mean += static_cast<double>(samples.truth[i]) / static_cast<double>(train.size());
  }
  const auto best = std::max_element(count.begin(), count.end()) - count.begin();
  if (samples.num_classes > 2) {
    one[0][best] = 1.0;
  } else {
    one[0][0] = are_classes ? (best == 1 ? 1.0 : -1.0) : mean;
  }
  return {are_classes ? "most frequent class" : "mean",
          measure(samples, one.expand({std::ssize(test), one.size(1)}), test)};
}

Reference linear_reference(const LabelledRows& samples, const std::string& name) {
  const std::vector<std::int64_t> train = rows_of(samples, Part::kTrain);
  const std::vector<std::int64_t> val = rows_of(samples, Part::kVal);
  const std::vector<std::int64_t> test = rows_of(samples, Part::kTest);
  const torch::Tensor raw = pick(samples.x, train);
  // Each feature on one scale, that one strength may fit all.
  const torch::Tensor mean = raw.mean(0, true);
  const torch::Tensor scale = (raw - mean).square().mean(0, true).sqrt() + 1e-6;
  const auto scaled = [&](const torch::Tensor& x) { return ((x - mean) / scale).clamp(-20, 20); };
  const torch::Tensor x = scaled(raw);
  torch::Tensor y = labels_of(samples, train);
  const bool are_classes = samples.num_classes > 0;
  const double middle = are_classes ? 0.0 : y.mean().item<double>();
  const double unit =
      are_classes ? 1.0 : std::max((y - middle).square().mean().sqrt().item<double>(), 1e-12);
  y = (y - middle) / unit;
  const char* metric = are_classes ? "accuracy" : "mse";
  Reference best{name, {}};
  double best_value = std::numeric_limits<double>::infinity();
  for (const double strength : {1e-3, 1e-1}) {
    LinearFit fit(samples, strength);
    fit.fit(x, y, steps_for(samples));
    const auto measured_on = [&](const std::vector<std::int64_t>& rows) {
      return measure(samples, fit.output(scaled(pick(samples.x, rows))) * unit + middle, rows);
    };
    const double on_val = measured_on(val).at(metric) * (are_classes ? -1.0 : 1.0);
    if (!best.test.empty() && !(on_val < best_value)) continue;
    best_value = on_val;
    best.test = measured_on(test);
  }
  return best;
}

std::vector<Reference> plain_references(const LabelledRows& rows) {
  for (const Part needed : {Part::kTrain, Part::kVal, Part::kTest}) {
    if (rows_of(rows, needed).empty()) return {};
  }
  const torch::NoGradGuard no_grad;
  std::vector<Reference> references = {constant_reference(rows)};
  if (!rows.x.defined()) return references;
  references.push_back(linear_reference(rows, rows.num_classes == 0
                                                  ? "ridge regression on features alone"
                                                  : "logistic regression on features alone"));
  return references;
}

std::vector<Reference> node_references(const data::NodeData& data, std::span<const data::Part> part,
                                       const torch::Tensor& x) {
  const LabelledRows samples{.x = x,
                             .truth = data.target,
                             .part = {part.begin(), part.end()},
                             .num_classes = std::ssize(data.class_names)};
  std::vector<Reference> references = plain_references(samples);
  if (references.empty()) return references;
  const torch::NoGradGuard no_grad;
  references.push_back(label_propagation(samples, data.graph));
  return references;
}

}  // namespace mpssm::task
