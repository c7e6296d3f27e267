// SPDX-License-Identifier: MIT
#include "mpssm/ops/generator.h"

#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace mpssm::ops {
namespace {

thread_local at::Generator t_generator;  // undefined outside of every scope

at::Tensor state_of(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void check_cpu(const at::Generator& generator) {
  TORCH_CHECK_VALUE(generator.defined() && generator.device().is_cpu(),
                    "generator: expected a generator of the CPU, got ",
                    generator.defined() ? c10::str(generator.device()) : "an undefined one");
}

}  // namespace

at::Generator make_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

GeneratorScope::GeneratorScope(at::Generator generator) {
  check_cpu(generator);
  before_ = std::exchange(t_generator, std::move(generator));
}

GeneratorScope::~GeneratorScope() { t_generator = std::move(before_); }

at::Generator current_generator() {
  return t_generator.defined() ? t_generator : at::detail::getDefaultCPUGenerator();
}

DefaultGeneratorScope::DefaultGeneratorScope(at::Generator generator)
    : generator_(std::move(generator)) {
  check_cpu(generator_);
  const at::Generator& shared = at::detail::getDefaultCPUGenerator();
  state_before_ = state_of(shared);
  set_state(shared, state_of(generator_));
}

DefaultGeneratorScope::~DefaultGeneratorScope() {
  const at::Generator& shared = at::detail::getDefaultCPUGenerator();
  set_state(generator_, state_of(shared));
  set_state(shared, state_before_);
}

}  // namespace mpssm::ops
