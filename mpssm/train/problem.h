// SPDX-License-Identifier: MIT
// A dataset as a trainer sees it: a loss on some samples, metrics on a part, predictions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/graph/gso.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/model.h"
#include "mpssm/train/config.h"
#include "mpssm/train/data_pins.h"
#include "mpssm/train/metrics.h"

namespace mpssm::train {

class Problem {
 public:
  virtual ~Problem() = default;

  /// Sets what the data decide: channels in and out, mode, readout.
  virtual void shape_model(nn::ModelOptions& options) const = 0;
  /// The operator and batch that a training step sees at most, for the memory estimate.
  virtual graph::Gso largest_gso(std::int64_t batch_size) const = 0;

  /// Weights that the data know a better start for than chance.
  virtual void start(nn::GraphModule&) const {}

  virtual std::int64_t num_steps() const { return 1; }         ///< series: of a window
  virtual std::int64_t evaluation_batch() const { return 1; }  ///< series: windows at once
  /// What the data themselves take: as read, as tensors, as operator, as text of predictions.
  virtual std::int64_t data_bytes() const = 0;

  /// Samples of an epoch; 1 if the whole graph is one sample.
  virtual std::int64_t num_train() const = 0;
  /// Mean loss over training samples, with gradient.
  virtual torch::Tensor loss(nn::GraphModule& model,
                             std::span<const std::int64_t> samples) const = 0;
  /// Metrics of a part; "loss" among them. The model must be in evaluation mode.
  virtual Metrics evaluate(nn::GraphModule& model, data::Part part) const = 0;

  /// CSV with a header: one line per node or graph; for a series, per window of the test part and
  /// node.
  virtual void write_predictions(nn::GraphModule& model, const io::Sink& sink) const = 0;

  /// What the network sees of one sample: of the whole graph (0), of a graph by its number, of the
  /// window that begins at a step. Throws std::out_of_range if there is no such sample.
  struct Sample {
    torch::Tensor x;
    graph::Gso gso;
  };
  virtual Sample sample(std::int64_t index) const = 0;

  virtual std::vector<Reference> references() const { return {}; }
  virtual Preprocessing preprocessing() const { return {}; }
};

/// `learned`: from a trained model, when its data are read again or new ones in their place; labels
/// may then be absent. The dataset must outlive the problem. Throws io::InputError if settings and
/// data do not fit (no such split).
std::unique_ptr<Problem> make_problem(const data::Dataset& dataset, const Config& config,
                                      const Preprocessing* learned = nullptr);

/// Forecast of the steps that follow the end of a series, from its last window; CSV.
void write_forecast(const data::Dataset& dataset, const Config& config,
                    const Preprocessing& learned, nn::GraphModule& model, const io::Sink& sink);

/// Sum of all numbers in an order that does not depend on the number of threads. Differentiable.
torch::Tensor ordered_sum(const torch::Tensor& x);

}  // namespace mpssm::train
