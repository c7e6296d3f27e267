// SPDX-License-Identifier: MIT
// The one place where tensors as torch can make them become tensors as kernels read them. Every
// operator passes its arguments through here, and the gradients that come into its backward.
#pragma once

#include <initializer_list>
#include <string>

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// x with its numbers in memory as its shape says: strided layout, conjugate and negative bits
/// carried out, contiguous. x itself if it is so already; an undefined tensor stays undefined.
/// Differentiable.
at::Tensor canonical(const at::Tensor& x);

/// An argument and its name in messages.
struct Argument {
  const char* name;
  const at::Tensor& tensor;
};

/// Throws (c10::Error) unless every defined argument is on one device, naming the two that differ:
/// "linear: expected x and weight on one device, got cpu and meta".
void check_same_device(const char* op, std::initializer_list<Argument> arguments);

/// True if every defined tensor is on the CPU and all are float or all are double: what kernels
/// read, once canonical(). The first one is defined.
bool has_kernel(std::initializer_list<at::Tensor> tensors);

/// Shape and type of a tensor for messages.
std::string describe(const at::Tensor& tensor);

}  // namespace mpssm::ops
