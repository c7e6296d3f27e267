// SPDX-License-Identifier: MIT
// Whether a training fits into memory, told before it starts.
#pragma once

#include <string>

#include "mpssm/run/experiment.h"
#include "mpssm/train/config.h"

namespace mpssm::run {

class MemoryLimit {
 public:
  /// 0: what the machine and its container have; nothing is refused if that is not known.
  explicit MemoryLimit(double mib);

  /// The weights alone (with gradient, Adam's two moments and the best), before they are made.
  /// Throws base::Error.
  void check_weights(const train::Config& config) const;

  /// Where a training step does not fit, its blocks run again in the backward pass; returns a note
  /// that says so, else nothing. Throws base::Error if that is not enough either.
  std::string fit(Experiment& experiment) const;

 private:
  void check(double bytes) const;
  double mib_;
};

}  // namespace mpssm::run
