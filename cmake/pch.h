// SPDX-License-Identifier: MIT
// Precompiled for the library, its tests and benches: parsing torch takes some twenty seconds.
#pragma once

#include <torch/torch.h>
