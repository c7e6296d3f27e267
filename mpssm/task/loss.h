// SPDX-License-Identifier: MIT
// What a training makes small. No torch here: settings name it.
#pragma once

#include "mpssm/base/enum_table.h"

namespace mpssm::task {

enum class Loss { kAuto /* of the dataset's metric */, kMse, kMae };
inline constexpr base::EnumRow<Loss> kLosses[] = {
    {Loss::kAuto, "auto"}, {Loss::kMse, "mse"}, {Loss::kMae, "mae"}};
constexpr base::EnumTable<Loss> table_of(Loss) { return kLosses; }

}  // namespace mpssm::task
