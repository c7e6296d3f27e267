// SPDX-License-Identifier: MIT
// Precompiled where sources are compiled one by one (MPSSM_UNITY off). What ops, nn and train
// include of torch, and no more: the whole of torch/torch.h costs half as much again.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
