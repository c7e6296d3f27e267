// SPDX-License-Identifier: MIT
// Random numbers of one's own, in a process where others use torch's default generator.
#pragma once

#include <cstdint>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// A generator of its own on the CPU.
at::Generator make_generator(std::uint64_t seed);

/// While it lives, what our operators draw on this thread (dropout) comes from `generator`. Scopes
/// nest. Nothing global is touched.
class GeneratorScope {
 public:
  explicit GeneratorScope(at::Generator generator);
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;
  ~GeneratorScope();

 private:
  at::Generator before_;
};

/// The generator of the innermost scope on this thread, else torch's default one.
at::Generator current_generator();

/// While it lives, torch's default CPU generator gives the numbers of `generator`: for torch's own
/// code, which takes no generator (the start of a torch::nn::Linear). At the end, exception or not,
/// the default one goes on as if nothing had been drawn, and `generator` after its last number. The
/// default generator belongs to the whole process: what other threads draw meanwhile comes from
/// `generator` too, so keep the scope short, such as one model's construction.
class DefaultGeneratorScope {
 public:
  explicit DefaultGeneratorScope(at::Generator generator);
  DefaultGeneratorScope(const DefaultGeneratorScope&) = delete;
  DefaultGeneratorScope& operator=(const DefaultGeneratorScope&) = delete;
  ~DefaultGeneratorScope();

 private:
  at::Generator generator_;
  at::Tensor state_before_;
};

}  // namespace mpssm::ops
