// SPDX-License-Identifier: MIT
// The compiled part of Highway that our kernels need: which instruction sets this CPU has. Debian
// ships it as a shared library only, and a wheel must not depend on one.
#include <cstdint>

#include <hwy/targets.h>

namespace hwy {
namespace {

std::int64_t targets_of_this_cpu() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  // Each set includes the one before it. What the system does not save is not reported.
  if (__builtin_cpu_supports("ssse3") == 0) return targets;
  targets |= HWY_SSSE3;
  if (__builtin_cpu_supports("sse4.1") == 0 || __builtin_cpu_supports("sse4.2") == 0 ||
      __builtin_cpu_supports("aes") == 0 || __builtin_cpu_supports("pclmul") == 0) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0 ||
      __builtin_cpu_supports("bmi") == 0 || __builtin_cpu_supports("bmi2") == 0 ||
      __builtin_cpu_supports("lzcnt") == 0 || __builtin_cpu_supports("f16c") == 0) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (__builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_supports("avx512cd") == 0 ||
      __builtin_cpu_supports("avx512vl") == 0 || __builtin_cpu_supports("avx512dq") == 0 ||
      __builtin_cpu_supports("avx512bw") == 0) {
    return targets;
  }
  targets |= HWY_AVX3;
#endif
  return targets;
}

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t targets = targets_of_this_cpu();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
