// SPDX-License-Identifier: MIT
// Nonlinearities under the name that options of networks use.
#pragma once

#include "mpssm/ops/activation.h"

namespace mpssm::nn {

using engine::Activation;
using ops::activate;

}  // namespace mpssm::nn
