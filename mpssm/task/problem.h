// SPDX-License-Identifier: MIT
// A dataset as a trainer sees it: a loss on some samples, metrics on a part, predictions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/engine/node_encodings.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/model.h"
#include "mpssm/task/loss.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/preprocessing.h"
#include "mpssm/task/series_options.h"

namespace mpssm::task {

/// Settings that a problem looks at.
struct ProblemOptions {
  graph::GsoGroups gso = graph::GsoKind::kSymNormalized;
  engine::EncodingOptions encodings = {};  ///< appended to the features of nodes
  std::int64_t split = 0;                  ///< which of the dataset's splits
  std::int64_t batch = 32;
  std::int64_t channels = 64;  ///< of the network, for the size of batches in evaluation
  Loss loss = Loss::kAuto;
  bool class_weights = false;    ///< node classes: each class counts the same
  bool on_validation = false;    ///< series: train on the validation part as well
  bool graph_over_time = false;  ///< series: the graph of each step, not that of all
  SeriesOptions series = {};
};

/// What the data decide of the network.
struct ProblemShape {
  std::int64_t in_channels = 1;
  nn::Vocabulary vocabulary = {};  ///< of the first features, if they are categories
  std::int64_t out_channels = 1;
  nn::Mode mode = nn::Mode::kStatic;
  nn::Readout readout = nn::Readout::kNode;
  std::int64_t num_nodes = 0;  ///< of the one graph there is; 0: many graphs
  std::int64_t num_steps = 1;  ///< of a window; 1 if time plays no part
};

/// A linear map from the window to the forecast that is known before training: weight [horizon,
/// steps * in], bias [horizon].
struct LinearStart {
  torch::Tensor weight;
  torch::Tensor bias;
};

class Problem {
 public:
  virtual ~Problem() = default;

  virtual ProblemShape shape() const = 0;
  /// The operator that a training step sees at most, for the memory estimate.
  virtual graph::Operators largest_gso(std::int64_t batch_size) const = 0;
  virtual std::int64_t evaluation_batch() const { return 1; }  ///< series: windows at once
  /// What the data themselves take: as read, as tensors, as operator, as text of predictions.
  virtual std::int64_t data_bytes() const = 0;
  /// For networks with a linear map beside them: a better start than chance.
  virtual std::optional<LinearStart> linear_start() const { return std::nullopt; }

  /// Samples of an epoch; 1 if the whole graph is one sample.
  virtual std::int64_t num_train() const = 0;
  /// Mean loss over training samples, with gradient.
  virtual torch::Tensor loss(nn::GraphModule& model,
                             std::span<const std::int64_t> samples) const = 0;
  /// Mean loss over a part, with gradient; of a long series over some of its windows. Throws
  /// base::Error if the data are many graphs, or the part has no labels.
  virtual torch::Tensor loss_of_part(nn::GraphModule& model, data::Part part) const;
  /// How much these samples count in a mean over more of them: loss() of a batch is the mean of the
  /// losses of its pieces, each by its weight.
  virtual double weight(std::span<const std::int64_t> samples) const {
    return static_cast<double>(samples.size());
  }
  /// Metrics of a part; "loss" among them. The model must be in evaluation mode.
  virtual Metrics evaluate(nn::GraphModule& model, data::Part part) const = 0;

  /// CSV with a header: one line per node or graph; for a series, per window of the test part and
  /// node.
  virtual void write_predictions(nn::GraphModule& model, const io::Sink& sink) const = 0;

  /// What the network sees of one sample: of the whole graph (0), of a graph by its number, of the
  /// window that begins at a step. Throws base::Error if there is no such sample.
  struct Sample {
    torch::Tensor x;
    graph::Operators gso;
    torch::Tensor base = {};  ///< what scaled predictions are added to; undefined: nothing
  };
  virtual Sample sample(std::int64_t index) const = 0;

  virtual std::vector<Reference> references() const { return {}; }
  virtual Preprocessing preprocessing() const { return {}; }
};

struct NodeShare;  // node_share.h

/// `learned`: from a trained model, when its data are read again or new ones in their place; labels
/// may then be absent. The dataset must outlive the problem. Throws base::Error if settings and
/// data do not fit (no such split). `share`: the dataset holds the nodes that this rank has of one
/// graph, without its edges; loss, metrics and predictions are those of all ranks, which call each
/// function of the problem at the same time.
std::unique_ptr<Problem> make_problem(const data::Dataset& dataset, const ProblemOptions& options,
                                      const Preprocessing* learned = nullptr,
                                      const NodeShare* share = nullptr);

/// Forecast of the steps that follow the end of a series, from its last window; CSV.
void write_forecast(const data::Dataset& dataset, const ProblemOptions& options,
                    const Preprocessing& learned, nn::GraphModule& model, const io::Sink& sink);

/// Sum of all numbers in an order that does not depend on the number of threads. Differentiable.
torch::Tensor ordered_sum(const torch::Tensor& x);

}  // namespace mpssm::task
