// SPDX-License-Identifier: MIT
// In which numbers a call multiplies. Arguments, results and sums are floats either way.
#pragma once

#include <string_view>

#include "mpssm/base/enum_table.h"

namespace mpssm::engine {

enum class Precision {
  kFloat32,
  kBf16,  ///< factors of dense products and states between hops are rounded to bfloat16
};
inline constexpr base::EnumRow<Precision> kPrecisions[] = {
    {Precision::kFloat32, "float32"},
    {Precision::kBf16, "bf16"},
};
constexpr base::EnumTable<Precision> table_of(Precision) { return kPrecisions; }
constexpr std::string_view to_string(Precision precision) {
  return table_of(precision).name(precision);
}
/// Throws std::invalid_argument listing the names.
inline Precision precision_from_name(std::string_view name) {
  return table_of(Precision{}).from_name("precision_from_name", name);
}

}  // namespace mpssm::engine
