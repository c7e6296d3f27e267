// SPDX-License-Identifier: MIT
#include "mpssm/kernels/simd.h"

#include <cstdint>
#include <stdexcept>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/simd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
const char* TargetHere() { return hwy::TargetName(HWY_TARGET); }
}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {
namespace {

HWY_EXPORT(TargetHere);

/// Asked once: SupportedTargets() also resets the choice that was made.
std::int64_t usable_targets() {
  static const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (std::int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  return names;
}

std::string active_simd_target() { return HWY_DYNAMIC_DISPATCH(TargetHere)(); }

void set_simd_target(std::string_view name) {
  if (name.empty()) {
    hwy::GetChosenTarget().Update(usable_targets());
    return;
  }
  std::string known;
  for (std::int64_t rest = usable_targets(); rest != 0; rest &= rest - 1) {
    const std::int64_t bit = rest & -rest;
    if (name == hwy::TargetName(bit)) {
      hwy::GetChosenTarget().Update(bit);
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(bit));
  }
  throw std::invalid_argument("set_simd_target: expected one of " + known + ", got '" +
                              std::string(name) + "'");
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
