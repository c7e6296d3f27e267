// SPDX-License-Identifier: MIT
// Elementwise nonlinearities by name, and their derivatives.
#pragma once

#include <cstdint>
#include <string_view>

#include "mpssm/base/enum_table.h"
#include "mpssm/engine/executor.h"

namespace mpssm::engine {

enum class Activation { kGelu, kRelu, kTanh, kLeakyRelu /* slope 0.01 below 0 */, kIdentity };
inline constexpr base::EnumRow<Activation> kActivations[] = {
    {Activation::kGelu, "gelu"},         {Activation::kRelu, "relu"},
    {Activation::kTanh, "tanh"},         {Activation::kLeakyRelu, "leaky_relu"},
    {Activation::kIdentity, "identity"},
};
constexpr base::EnumTable<Activation> table_of(Activation) { return kActivations; }
constexpr std::string_view to_string(Activation activation) {
  return table_of(activation).name(activation);
}
/// Throws std::invalid_argument listing the names.
inline Activation activation_from_name(std::string_view name) {
  return table_of(Activation{}).from_name("activation_from_name", name);
}

/// y = f(x) for `count` numbers; y may be x. float and double.
template <typename T>
void activate(Activation activation, const T* x, std::int64_t count, T* y,
              const Executor& executor);

/// y = f(x) and slope = f'(x); each may be x, but not both.
template <typename T>
void activate_and_slope(Activation activation, const T* x, std::int64_t count, T* y, T* slope,
                        const Executor& executor);

/// grad_x = f'(x) grad; grad_x may be grad.
template <typename T>
void activate_adjoint(Activation activation, const T* x, const T* grad, std::int64_t count,
                      T* grad_x, const Executor& executor);

}  // namespace mpssm::engine
