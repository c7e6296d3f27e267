// SPDX-License-Identifier: MIT
#include "mpssm/ops/saved_pattern.h"

#include <utility>

#include <torch/csrc/autograd/custom_function.h>

namespace mpssm::ops {
namespace {

struct SavedPattern : torch::CustomClassHolder {
  explicit SavedPattern(graph::Gso gso_in) : gso(std::move(gso_in)) {}
  graph::Gso gso;
};

}  // namespace

void save_pattern(torch::autograd::AutogradContext& context, const graph::Gso& gso) {
  context.saved_data["pattern"] = c10::IValue::make_capsule(c10::make_intrusive<SavedPattern>(gso));
}

graph::Gso saved_pattern(torch::autograd::AutogradContext& context) {
  const auto saved =
      c10::static_intrusive_pointer_cast<SavedPattern>(context.saved_data["pattern"].toCapsule());
  return saved->gso;
}

}  // namespace mpssm::ops
