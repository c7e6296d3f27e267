// SPDX-License-Identifier: MIT
// Dropout whose mask is a function of a seed: made again in the backward pass, never stored.
#pragma once

#include <cstdint>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// x with each number set to 0 with the given probability and the others divided by what is left.
/// Takes one number per call from `generator` (undefined: current_generator(), see generator.h)
/// and gives the same bits for any number of threads. Differentiable in x, once. probability in
/// [0, 1); 0 returns x itself. Other types than float and double take one number of the generator
/// per number of x; other devices than the CPU go to torch's own.
at::Tensor dropout(const at::Tensor& x, double probability, const at::Generator& generator = {});

/// The one number that a dropout takes from its generator, for operators that have one inside.
std::uint64_t draw_dropout_seed(const at::Generator& generator = {});

}  // namespace mpssm::ops
