// SPDX-License-Identifier: MIT
// What a front brings to a call of the engine: memory, and the type of its tensors.
// Internal to ops/.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/call_memory.h"
#include "mpssm/engine/precision.h"

namespace mpssm::ops {

using engine::CallMemory;

/// at::empty on the CPU, with large pages for large tensors where the system leaves that to the
/// program, and with kept memory for those of 32 MiB and more (kept_memory.h): a training step
/// allocates its activations anew each time, and taking their pages costs as much as some kernels.
at::Tensor empty_tensor(at::IntArrayRef sizes, const at::TensorOptions& options);
inline at::Tensor empty_tensor_like(const at::Tensor& x) {
  return empty_tensor(x.sizes(), x.options());
}

/// Autograd functions take no undefined tensors: an absent one goes in empty and comes out
/// undefined.
at::Tensor empty_if_absent(const at::Tensor& tensor, const at::Tensor& like);
at::Tensor absent_if_empty(const at::Tensor& tensor);

/// Throws if a graph of the backward pass is being recorded: our gradients are not differentiable.
void check_single_backward(const char* op, const char* way_out = "");

/// Throws unless `x` is of a type that can be multiplied in `precision`.
void check_precision(const char* op, engine::Precision precision, const at::Tensor& x);

/// Runs `body` with a value of type float or double according to the tensor's dtype.
template <typename Body>
decltype(auto) with_real_type(const at::Tensor& tensor, Body&& body) {
  if (tensor.scalar_type() == at::kFloat) return body(float{});
  return body(double{});
}

/// The tensor's numbers, null if it is undefined; complex ones as pairs (re, im).
template <typename T>
T* numbers(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.data_ptr()) : nullptr;
}

}  // namespace mpssm::ops
