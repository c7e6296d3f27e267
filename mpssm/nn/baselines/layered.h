// SPDX-License-Identifier: MIT
// The frame that the compared networks share: encoder, layers with norm, nonlinearity, dropout and
// residual, readout. A kind brings its layers.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/activation.h"
#include "mpssm/nn/encode.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/norm.h"
#include "mpssm/nn/readout.h"

namespace mpssm::nn {

struct LayeredOptions {
  std::int64_t in_channels = 1;
  Vocabulary vocabulary = {};  ///< of the features that are categories, see encode.h
  std::int64_t hidden_channels = 64;
  std::int64_t out_channels = 1;
  std::int64_t num_layers = 4;
  Activation activation = Activation::kRelu;
  NormKind norm = NormKind::kNone;  ///< on the input of each layer, and before the readout
  bool residual = false;
  double dropout = 0.0;         ///< on each layer's output
  double input_dropout = 0.0;   ///< on H at the start
  ReadoutOptions readout = {};  ///< its channels are taken from the above
  bool forecasts = false;       ///< x has a time axis; the last step is read out
};

/// H = x E + e;  H <- [H +] Dropout(phi(layer(Norm(H)))) for each layer;  y = Readout(Norm(H)).
/// x [N, in] -> [N, out], or [G, out] with a readout that pools; a forecast x [..., T, N, in] ->
/// [..., N, out].
class LayeredImpl : public GraphModule {
 public:
  /// Of one operator.
  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;
  bool takes_codes() const override {
    return can_take_codes(options_.in_channels, options_.vocabulary);
  }

 protected:
  /// `name` is for messages. The constructor of a kind calls begin_layer() before it registers the
  /// parameters of a layer, and end_layers() after the last, with the norm before the readout.
  LayeredImpl(const char* name, const LayeredOptions& options);
  void begin_layer();
  void end_layers(NormKind final_norm);

  /// What goes into the nonlinearity of a layer; h is normed.
  virtual torch::Tensor layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso);
  /// H after all layers, for kinds that need more than layer().
  virtual torch::Tensor embed(torch::Tensor h, const graph::Gso& gso);

  const LayeredOptions& options() const { return options_; }
  torch::Tensor norm(std::int64_t index, const torch::Tensor& h) {
    return norms_[index]->forward(h);
  }
  /// [h +] Dropout(y)
  torch::Tensor leave(const torch::Tensor& h, const torch::Tensor& y) const;

 private:
  const char* name_;
  LayeredOptions options_;
  torch::nn::Linear encoder_{nullptr};
  std::vector<Norm> norms_;
  Norm final_norm_{nullptr};
  ReadoutHead readout_;
};

}  // namespace mpssm::nn
