// SPDX-License-Identifier: MIT
#include "mpssm/ops/canonical.h"

#include <ATen/ATen.h>

namespace mpssm::ops {

at::Tensor canonical(const at::Tensor& x) {
  if (!x.defined()) return x;
  at::Tensor out = x;
  if (out.layout() != at::kStrided) out = out.to_dense();
  // Zeros that torch has not written down have no memory at all.
  if (out._is_zerotensor()) out = out.clone();
  if (out.is_conj()) out = out.resolve_conj();
  if (out.is_neg()) out = out.resolve_neg();
  return out.contiguous();
}

void check_same_device(const char* op, std::initializer_list<Argument> arguments) {
  const Argument* first = nullptr;
  for (const Argument& argument : arguments) {
    if (!argument.tensor.defined()) continue;
    if (first == nullptr) first = &argument;
    TORCH_CHECK_VALUE(argument.tensor.device() == first->tensor.device(), op, ": expected ",
                      first->name, " and ", argument.name, " on one device, got ",
                      first->tensor.device(), " and ", argument.tensor.device());
  }
}

bool has_kernel(std::initializer_list<at::Tensor> tensors) {
  const at::ScalarType type = tensors.begin()->scalar_type();
  if (type != at::kFloat && type != at::kDouble) return false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && (!tensor.device().is_cpu() || tensor.scalar_type() != type)) {
      return false;
    }
  }
  return true;
}

std::string describe(const at::Tensor& tensor) {
  return tensor.defined() ? c10::str(tensor.sizes()) : std::string("an undefined tensor");
}

}  // namespace mpssm::ops
