// SPDX-License-Identifier: MIT
#include "mpssm/run/memory_limit.h"

#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/base/machine.h"

namespace mpssm::run {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

double training_mib(const Experiment& experiment) {
  return static_cast<double>(experiment.model.training_bytes) / kMib;
}

}  // namespace

MemoryLimit::MemoryLimit(double mib) : mib_(mib > 0.0 ? mib : base::available_mib()) {}

void MemoryLimit::check(double bytes) const {
  const double wanted = bytes / kMib;
  if (mib_ > 0.0 && wanted > mib_) {
    throw base::Error(
        fmt::format("a training step needs about {:.0f} MiB, the limit is {:.0f} MiB; lower "
                    "model.channels, model.blocks or train.batch, or raise --memory-limit",
                    wanted, mib_));
  }
}

void MemoryLimit::check_weights(const train::Config& config) const {
  constexpr double kBytesPerWeight = 5 * 4;
  check(kBytesPerWeight * static_cast<double>(least_parameters(config)));
}

std::string MemoryLimit::fit(Experiment& experiment) const {
  const double kept = training_mib(experiment);
  std::string note;
  const bool can_save = experiment.model.least_training_bytes < experiment.model.training_bytes;
  if (mib_ > 0.0 && kept > mib_ && can_save) {
    train::save_memory(experiment.model);
    note = fmt::format(
        "a training step would need about {:.0f} MiB, the limit is {:.0f}: blocks run again in the "
        "backward pass, which takes {:.0f} MiB and more time and gives the same numbers",
        kept, mib_, training_mib(experiment));
  }
  check(static_cast<double>(experiment.model.training_bytes));
  return note;
}

}  // namespace mpssm::run
